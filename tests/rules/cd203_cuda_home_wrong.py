"""CD203: what CUDA_HOME, else CUDA_PATH, leads to."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import Machine, container, fails, linux, passes, skips, unknown_when, windows

RULE = "CD203"

TOOLKIT = {"root": "/usr/local/cuda-11.7", "version": "11.7.99", "nvcc": "/usr/local/cuda-11.7/bin/nvcc"}
NEWER = {"root": "/usr/local/cuda-12.4", "version": "12.4.131", "nvcc": "/usr/local/cuda-12.4/bin/nvcc"}
ASKED = {"symptom.nvcc_missing": {"text": "FileNotFoundError: /usr/local/cuda/bin/nvcc"}}
HEALTHY = linux()


def home(
    path: str, *, exists: bool, nvcc: bool = False, machine: Machine = HEALTHY, variable: str = "CUDA_HOME"
) -> Machine:
    entry: dict[str, Any] = {"variable": variable, "path": path, "exists": exists, "has_nvcc": nvcc}
    return machine.set({"toolkit.cuda_home": entry, f"env.{variable}": path})


CASES = [
    skips("not set", linux()),
    passes("a toolkit", home("/usr/local/cuda", exists=True, nvcc=True)),
    passes(
        "a runtime image sets it and brings no nvcc: enough to run",
        home("/usr/local/cuda", exists=True, machine=container()),
        says="without nvcc: enough to run",
    ),
    fails(
        "it points nowhere",
        home("/usr/local/cuda-10.2", exists=False),
        says=["CUDA_HOME is /usr/local/cuda-10.2, which does not exist", "running is not affected"],
        severity="warning",
        blame="environment",
        fix="unset-variable",
    ),
    fails(
        "it points nowhere, and there is a toolkit elsewhere",
        home("/usr/local/cuda-10.2", exists=False).set({"toolkit.found": [NEWER]}),
        fix="change-variable",
    ),
    fails(
        "written as a list: export CUDA_HOME=$CUDA_HOME:/usr/local/cuda-11.7",
        home(":/usr/local/cuda-11.7", exists=False).set({"toolkit.found": [NEWER, TOOLKIT], **ASKED}),
        says="a list, where one folder is wanted",
        severity="error",
        fix="change-variable",
    ),
    fails(
        "a folder without nvcc, and a whole toolkit elsewhere",
        home("/opt/cuda", exists=True).set({"toolkit.found": [NEWER]}),
        says="which holds no nvcc",
        severity="info",
        fix="change-variable",
    ),
    fails(
        "a build failed in a runtime image",
        home("/usr/local/cuda", exists=True, machine=container()).set(ASKED),
        severity="error",
        fix="install-toolkit",
    ),
    fails(
        "Windows' CUDA_PATH after the toolkit was removed",
        home(
            "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.8",
            exists=False,
            machine=windows(),
            variable="CUDA_PATH",
        ),
        says="which does not exist",
        severity="warning",
    ),
    unknown_when("the folder may not be looked into", linux().unknown("toolkit.cuda_home")),
    fails(
        "a build log alone: CUDA_HOME was set as a list",
        linux().only().set({"symptom.cuda_home_wrong": {"text": "...", "path": ":/usr/local/cuda-11.7/bin/nvcc"}}),
        says=["CUDA_HOME is :/usr/local/cuda-11.7", "a list, where one folder is wanted"],
        severity="error",
        certainty="certain",
        fix="change-variable",
    ),
    fails(
        "a build log alone: no nvcc where CUDA_HOME says",
        linux().only().set({"symptom.cuda_home_wrong": {"text": "...", "path": "/usr/local/cuda/bin/nvcc"}}),
        says="/usr/local/cuda (CUDA_HOME, where that is set), and there is no nvcc in it",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
]
