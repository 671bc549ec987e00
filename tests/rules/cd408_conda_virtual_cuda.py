"""CD408: which CUDA conda's solver takes a machine to have."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when

RULE = "CD408"

CONDA = linux().set({"python.environment": "conda"})
CPU = linux().torch("2.6.0+cpu").set({"torch.origin": "conda", "python.environment": "conda"})


def complaint(wanted: str = "") -> dict[str, Any]:
    value = {"text": f"nothing provides __cuda {wanted} needed by pytorch-2.7.1-cuda129_mkl_py39"}
    return {"symptom.conda_virtual_cuda": {**value, "wanted": wanted} if wanted else value}


def override(value: str, base: Machine = CONDA) -> Machine:
    return base.set({"env.CONDA_OVERRIDE_CUDA": value})


CASES = [
    passes("a conda environment and a driver", CONDA, says="CUDA 13.0"),
    passes("an override that the driver serves", override("12.8")),
    passes("conda info in a report", CONDA.set({"conda.virtual_cuda": "12.4"}), says="CUDA 12.4"),
    fails(
        "nothing provides it",
        linux().no_driver().set(complaint()),
        says="sees no CUDA on this machine",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "the driver serves less than the package wants",
        linux().driver("535.183.01", "12.2").set(complaint(">=12.9")),
        says=["wants CUDA >=12.9", "serves 12.2"],
        severity="error",
        certainty="certain",
    ),
    fails("set to nothing", override(""), says="set to nothing", certainty="certain", fix="unset-variable"),
    fails("no version", override("yes"), says="'yes'"),
    fails(
        "more than the driver serves",
        override("13.0", CONDA.driver("550.54.15", "12.4")),
        says=["promises CUDA 13.0", "serves 12.4"],
        severity="warning",
        certainty="certain",
    ),
    fails(
        "conda info lists none, and torch is a CPU build",
        CPU.set({"conda.virtual_cuda": GONE, "examination.kind": "report"}),
        certainty="likely",
    ),
    fails(
        "conda info in a report lists none, beside a driver",
        linux().set({"conda.virtual_cuda": GONE, "examination.kind": "report"}),
        says="the driver serves CUDA 13.0",
    ),
    fails(
        "made on a login node, perhaps",
        CPU.set({"conda.virtual_cuda": GONE, "scheduler.kind": "slurm"}).unknown("conda.virtual_cuda"),
        says="a login node",
        certainty="possible",
    ),
    skips("no conda", linux()),
    unknown_when(
        "an override, and a driver that does not tell",
        override("12.8", CONDA.no_driver()),
    ),
    unknown_when("no driver to ask", CONDA.no_driver().unknown("conda.virtual_cuda")),
]
