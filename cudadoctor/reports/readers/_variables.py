"""Environment variables that a report shows, as the probe of the live machine tells them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadoctor.model.pattern import pattern
from cudadoctor.reports.blocks import Claim

_NAMES = pattern(
    r"(?:CUDA|CUDNN|NVIDIA|PYTORCH|TORCH|NCCL|TRITON|XLA_PYTHON|CONDA_OVERRIDE)_[A-Z0-9_]{2,60}"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|PYTHONHOME|PYTHONNOUSERSITE|VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV"
    r"|UV_TORCH_BACKEND|SLURM_JOB_ID|SLURM_(?:JOB|STEP)_GPUS|SLURM_GPUS_ON_NODE|(?:ROCR|HIP)_VISIBLE_DEVICES"
)
# Parts of names whose values may be secret or personal.
_SECRET = pattern(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH|URL|PROXY|USER|EMAIL|API|LICENSE")
_LONGEST = 4096
_UUID = pattern(r"\b(GPU|MIG)-[0-9A-Za-z][0-9A-Za-z/-]*")


def variable_claims(name: str, value: str, line: int) -> Iterator[Claim]:
    """NAME=value as some program printed it; a variable that does not matter says nothing."""
    if not _NAMES.fullmatch(name) or _SECRET.search(name):
        return
    value = _UUID.sub(r"\1-*", value[:_LONGEST].strip())
    yield Claim(f"env.{name}", value, line)
    if name == "LD_LIBRARY_PATH":
        yield Claim("libraries.search_path", [part for part in value.split(":") if part], line)
    if name == "LD_PRELOAD":
        yield Claim("libraries.preloaded", [part for part in re.split(r"[: ]", value) if part], line)


def unset_claims(name: str, line: int) -> Iterator[Claim]:
    """A program says that the variable is not set."""
    if _NAMES.fullmatch(name):
        yield Claim(f"env.{name}", None, line, "absent")
