"""CD319: a ptxas or nvcc that does not know the GPU."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when

RULE = "CD319"


def report(name: str, text: str, **caught: str) -> Machine:
    return linux().only().set({"examination.kind": "report", f"symptom.{name}": {"text": text, **caught}})


def on(name: str, capability: str, triton: str) -> Machine:
    return linux().gpu(name, capability, 96).package("triton", triton)


PTXAS = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
TOOLKIT: list[dict[str, Any]] = [
    {
        "root": "/usr/local/cuda-13.0",
        "version": "13.0.88",
        "nvcc": "/usr/local/cuda-13.0/bin/nvcc",
        "found_by": "usr-local",
    }
]

CASES = [
    skips("no Triton", linux().set({"package.triton.version": GONE})),
    passes("an RTX 4090", on("NVIDIA GeForce RTX 4090", "8.9", "3.5.0")),
    passes("a GB10 with a Triton of today", on("NVIDIA GB10", "12.1", "3.8.0")),
    passes("an RTX 5090 with the first Triton for it", on("NVIDIA GeForce RTX 5090", "12.0", "3.3.1")),
    passes("a card that nobody knows", on("NVIDIA Something", "99.0", "3.8.0")),
    fails(
        "a GB10 with an older one, and no error yet: advice",
        on("NVIDIA GB10", "12.1", "3.5.0"),
        says=["the ptxas inside triton 3.5.0 is of CUDA 12.8", "does not know the NVIDIA GB10", "torch itself runs"],
        severity="info",
        certainty="likely",
        fix="manual",
    ),
    fails("Thor", on("NVIDIA Thor", "11.0", "3.6.0"), says="CUDA 13.0", severity="info"),
    fails(
        "ptxas says so itself",
        report("ptxas_unknown_gpu", PTXAS, target="sm_121a"),
        says="the ptxas that Triton brings does not know sm_121a: CUDA 12.9 is the first that does",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="manual",
    ),
    fails(
        "a toolkit is at hand whose ptxas knows it",
        on("NVIDIA GB10", "12.1", "3.5.0").set(
            {"symptom.ptxas_unknown_gpu": {"text": PTXAS, "target": "sm_121a"}, "toolkit.found": TOOLKIT}
        ),
        severity="error",
        fix="change-variable",
    ),
    fails(
        "an nvcc that is older than the GPU",
        report("nvcc_unknown_gpu", "nvcc fatal : Unsupported gpu architecture 'compute_120'", target="compute_120").set(
            {"toolkit.nvcc_on_path_version": "12.4.131"}
        ),
        says=["nvcc 12.4.131 does not know compute_120", "CUDA 12.8"],
        severity="error",
        fix="install-toolkit",
    ),
    fails(
        "an nvcc that has dropped the GPU",
        report("nvcc_unknown_gpu", "nvcc fatal : Unsupported gpu architecture 'compute_70'", target="compute_70").set(
            {"toolkit.nvcc_on_path_version": "13.0.88"}
        ),
        says="no longer knows compute_70: CUDA 12.9 was the last",
        fix="manual",
    ),
    fails(
        "the run-time compiler does not name the GPU",
        report("nvrtc_unknown_gpu", "nvrtc: error: invalid value for --gpu-architecture (-arch)"),
        severity="error",
        certainty="likely",
        fix="install-torch",
    ),
    skips("no GPU is known", linux().no_driver().no_gpu().package("triton", "3.8.0")),
    unknown_when("Triton's version is not known", linux().unknown("package.triton.version")),
]
