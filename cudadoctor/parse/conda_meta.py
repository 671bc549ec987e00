"""Packages of a conda environment, by the names of the files in conda-meta.

pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.json         name, version, build
libtorch-2.6.0-cpu_mkl_hc5f969b_101.json
pytorch-2.6.0-cuda126_py312h30b5a27_301.json            conda-forge's way
pytorch-mutex-1.0-cuda.json
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple


class CondaPackage(NamedTuple):
    """One installed conda package.

    `cuda`: the CUDA that the build string names ("12.4", "12.6"), "cpu", or None when silent.
    """

    name: str
    version: str
    build: str
    cuda: str | None


def parse_conda_meta_name(file: str) -> CondaPackage | None:
    """A file name of conda-meta -> CondaPackage; None for `history` and other names.

    Never fails.
    """
    if not file.endswith(".json"):
        return None
    parts = file[:-5].rsplit("-", 2)
    if len(parts) != 3 or not all(parts):
        return None
    name, version, build = parts
    return CondaPackage(name.lower(), version, build, cuda_of_build(build))


def cuda_of_build(build: str) -> str | None:
    """What a build string says: "py3.12_cuda12.4_cudnn9_0" -> "12.4", "cuda126_py312h..._301" -> "12.6",
    "cpu_mkl_..." -> "cpu".

    A bare "cuda" or "gpu" (pytorch-mutex) gives "cuda"; None when it says nothing.
    """
    if not ("cuda" in build or "cpu" in build or "gpu" in build):
        return None
    found = re.search(r"(?:^|_)cuda_?([0-9]{1,2})\.([0-9]{1,2})", build, re.ASCII)
    if found:
        return f"{found.group(1)}.{found.group(2)}"
    found = re.search(r"(?:^|_)cuda_?([0-9]{2})([0-9])(?![0-9])", build, re.ASCII)
    if found:
        return f"{found.group(1)}.{found.group(2)}"
    if re.search(r"(?:^|_)cpu(?![a-z0-9])", build, re.ASCII):
        return "cpu"
    return "cuda" if re.search(r"(?:^|_)(?:cuda|gpu)(?![a-z0-9])", build, re.ASCII) else None
