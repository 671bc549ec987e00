"""CD202: nvcc of another CUDA major than torch's matters for building alone."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD202"

COMPLAINT = {"symptom.cuda_version_mismatch": {"text": "The detected CUDA version (11.8) mismatches the version ..."}}
HEALTHY = linux()


def toolkit(root: str, version: str) -> dict[str, Any]:
    return {"root": root, "version": version, "nvcc": f"{root}/bin/nvcc", "found_by": "usr-local"}


def nvcc(version: str, machine: Machine = HEALTHY) -> Machine:
    return machine.set(
        {
            "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc",
            "toolkit.nvcc_on_path_version": version,
            "toolkit.found": [toolkit("/usr/local/cuda", version)],
        }
    )


def home(machine: Machine, root: str, version: str) -> Machine:
    return machine.set(
        {
            "toolkit.cuda_home": {"variable": "CUDA_HOME", "path": root, "exists": True, "has_nvcc": True},
            "toolkit.found": [*machine.facts.value("toolkit.found"), toolkit(root, version)],
        }
    )


CU118 = linux().torch("2.6.0+cu118", sass=["sm_86", "sm_90"])

CASES = [
    skips("no nvcc at all", linux(), says="not needed to run"),
    passes("the same release", nvcc("13.0.88")),
    passes("another minor of the same major builds as well", nvcc("13.2.1")),
    passes("CUDA_HOME leads to the right one, PATH to an old one", home(nvcc("11.5.119"), "/opt/cuda-13.0", "13.0.88")),
    skips("a CPU build has nothing to build against", nvcc("12.4.131").torch("2.14.1+cpu")),
    skips("no torch", nvcc("12.4.131").no_torch()),
    fails(
        "Debian's old nvcc, and nobody builds: advice at most",
        nvcc("12.0.140"),
        says=["nvcc 12.0.140 cannot build extensions for torch's CUDA 13.0", "running is not affected"],
        severity="info",
        fix="install-toolkit",
    ),
    fails(
        "a build failed over it",
        nvcc("12.2.140", CU118).set(COMPLAINT),
        says="nvcc 12.2.140 cannot build extensions for torch's CUDA 11.8",
        severity="error",
        fix="install-toolkit",
    ),
    fails(
        "the right toolkit is there beside: it is to be named, not installed",
        nvcc("12.4.131").set(
            {"toolkit.found": [toolkit("/usr/local/cuda-12.4", "12.4.131"), toolkit("/usr/local/cuda-13.0", "13.0.88")]}
        ),
        severity="info",
        fix="change-variable",
    ),
    fails(
        "CUDA_HOME leads to the wrong one, whatever is on PATH",
        home(nvcc("13.0.88"), "/usr/local/cuda-11.8", "11.8.89"),
        says="nvcc 11.8.89 cannot build",
    ),
    fails(
        "nvcc and torch agree: pip's build isolation took another torch",
        nvcc("11.8.89", CU118).set(COMPLAINT),
        says=["fits torch's CUDA 11.8", "build isolation"],
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails("Windows", nvcc("12.6.85", windows()), severity="info"),
    unknown_when(
        "nvcc did not answer", nvcc("13.0").unknown("toolkit.nvcc_on_path_version", reason="it did not answer")
    ),
    skips("looked, and there is none", linux().set({"toolkit.nvcc_on_path_version": GONE})),
    fails(
        "a build log alone: both numbers stand in it",
        linux().only().set({"symptom.cuda_version_mismatch": {"text": "...", "toolkit": "12.2", "torch": "11.3"}}),
        says="nvcc 12.2 cannot build extensions for a torch of CUDA 11.3",
        severity="error",
        certainty="certain",
        fix="install-toolkit",
    ),
    fails(
        "the torch that the build saw is not the one that is installed",
        CU118.only("torch.version", "torch.cuda", "torch.hip", "system.os", "system.arch").set(
            {"symptom.cuda_version_mismatch": {"text": "...", "toolkit": "11.8", "torch": "12.1"}}
        ),
        says="build isolation",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "words without numbers",
        linux().only().set({"symptom.cuda_version_mismatch": {"text": "does not match the version used to compile"}}),
        severity="error",
        certainty="likely",
    ),
]
