"""The compatibility matrix: loading, checking and querying the data of ``compat/``.

Which driver serves which CUDA, which torch build has code for which GPU, what a GPU name or a driver number stands for.
No version number stands in this code; each answer carries the source of the data that it rests on.
"""

from __future__ import annotations

from .installers import BaseImage, CondaBuild, Image
from .load import load_matrix
from .query import Matrix
from .sections import Origin
from .tables import (
    Architecture,
    Branch,
    Build,
    Distribution,
    DriverBound,
    Floor,
    ForwardCompat,
    Framework,
    FrameworkRelease,
    Gpu,
    GpuMatch,
    HeaderClash,
    HostCompiler,
    Library,
    MatrixError,
    Message,
    Pin,
    PowerPlan,
    Toolkit,
    TorchRelease,
    Variant,
    Verdict,
    Xid,
)
from .torch_builds import COMPANIONS
from .versions import capability, cuda_of_variant, numbers, torch_key, variant_of_cuda

__all__ = [
    "COMPANIONS",
    "Architecture",
    "BaseImage",
    "Branch",
    "Build",
    "CondaBuild",
    "Distribution",
    "DriverBound",
    "Floor",
    "ForwardCompat",
    "Framework",
    "FrameworkRelease",
    "Gpu",
    "GpuMatch",
    "HeaderClash",
    "HostCompiler",
    "Image",
    "Library",
    "Matrix",
    "MatrixError",
    "Message",
    "Origin",
    "Pin",
    "PowerPlan",
    "Toolkit",
    "TorchRelease",
    "Variant",
    "Verdict",
    "Xid",
    "capability",
    "cuda_of_variant",
    "load_matrix",
    "numbers",
    "torch_key",
    "variant_of_cuda",
]
