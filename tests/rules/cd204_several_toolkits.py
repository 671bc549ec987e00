"""CD204: several toolkits are no fault; PATH and CUDA_HOME that disagree are worth a word."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD204"


def toolkits(*versions: Optional[str], path: Optional[str] = None, home: Optional[str] = None) -> Machine:
    """Toolkits of these versions, each in a folder of its own; PATH and CUDA_HOME lead to one of them."""
    found: list[dict[str, Any]] = []
    for version in versions:
        root = f"/usr/local/cuda-{version}"
        found.append({"root": root, "version": version, "nvcc": f"{root}/bin/nvcc", "found_by": "usr-local"})
    changes: dict[str, Any] = {"toolkit.found": found}
    if path is not None:
        changes["toolkit.nvcc_on_path"] = f"/usr/local/cuda-{path}/bin/nvcc"
        changes["toolkit.nvcc_on_path_version"] = path
    if home is not None:
        root = f"/usr/local/cuda-{home}"
        changes["toolkit.cuda_home"] = {"variable": "CUDA_HOME", "path": root, "exists": True, "has_nvcc": True}
    return linux().set(changes)


CASES = [
    skips("none", linux()),
    passes("one", toolkits("13.0.88"), says="one CUDA toolkit (13.0.88)"),
    passes("one of unknown version", toolkits(None), says="version unknown"),
    passes(
        "three, in the order of their numbers", toolkits("9.2", "12.4.131", "11.8.89"), says="9.2, 11.8.89, 12.4.131"
    ),
    passes("two, and both ways lead to one", toolkits("12.4.131", "13.0.88", path="13.0.88", home="13.0.88")),
    passes("two patch releases of one", toolkits("12.4.99", "12.4.131", path="12.4.131", home="12.4.99")),
    fails(
        "PATH and CUDA_HOME disagree: advice, since nothing runs on them",
        toolkits("12.4.131", "13.0.88", path="12.4.131", home="13.0.88"),
        says="PATH leads to nvcc 12.4.131 and CUDA_HOME to CUDA 13.0.88",
        severity="info",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "only the nvcc on PATH is of torch's CUDA major",
        toolkits("11.8.89", "13.0.88", path="13.0.88", home="11.8.89"),
        severity="info",
        fix="unset-variable",
    ),
    unknown_when("the folders are unreadable", linux().unknown("toolkit.found")),
]
