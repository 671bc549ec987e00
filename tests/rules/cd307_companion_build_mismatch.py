"""CD307: torchvision and torchaudio against the installed torch, by what they were built for."""

from __future__ import annotations

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD307"

CU126 = linux().torch("2.6.0+cu126")
CPU = linux().torch("2.6.0+cpu")
CONDA = linux().torch("2.5.1", "12.4").set({"torch.origin": "conda", "package.torch.installer": "conda"})


def vision(machine: Machine, version: str, **more: object) -> Machine:
    return machine.package("torchvision", version, **more)


CASES = [
    passes("the healthy workstation", linux()),
    passes("both of one index", vision(CU126, "0.21.0+cu126")),
    passes("another minor of one major loads", vision(CU126, "0.21.0+cu124")),
    passes("both CPU builds", vision(CPU, "0.21.0+cpu")),
    passes(
        "torchvision of PyPI: its files name the CUDA that its version does not",
        vision(CU126, "0.21.0", built_for_cuda="12.6"),
    ),
    passes(
        "torchaudio's wheel for all platforms says nothing, and torchvision fits",
        linux().package("torchaudio", "2.11.1"),
    ),
    passes(
        "conda's builds, by their build strings", vision(CONDA, "0.20.1", conda_build="py311_cu124", installer="conda")
    ),
    passes("conda-forge's", vision(CONDA, "0.20.1", conda_build="cuda126py311hc2d9d9e_0", installer="conda")),
    passes(
        "a CPU pair of PyPI's on Windows",
        vision(windows().torch("2.6.0").set({"torch.cuda": GONE}), "0.21.0", built_for_cuda=GONE),
    ),
    fails(
        "a CPU torchvision beside a CUDA torch",
        vision(CU126, "0.21.0+cpu"),
        says="torchvision 0.21.0+cpu is a CPU build and torch 2.6.0+cu126 is built for CUDA 12.6",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="reinstall-companions",
    ),
    fails("the same, as its own files tell", vision(CU126, "0.21.0", built_for_cuda=GONE), certainty="likely"),
    fails("torchaudio", CU126.package("torchaudio", "2.6.0+cpu"), says="torchaudio 2.6.0+cpu is a CPU build"),
    fails(
        "conda's solver took the CPU torchvision",
        vision(CONDA, "0.20.1", conda_build="py311_cpu", installer="conda"),
        certainty="certain",
    ),
    fails("conda-forge's CPU build", vision(CONDA, "0.20.1", conda_build="cpu_py311h1234567_0", installer="conda")),
    fails(
        "another CUDA major",
        vision(CU126, "0.21.0+cu118"),
        says="is built for CUDA 11.8, and torch 2.6.0+cu126 for CUDA 12.6",
    ),
    fails(
        "a CUDA torchvision beside a CPU torch",
        vision(CPU, "0.21.0+cu126"),
        says="is built for CUDA 12.6 and torch 2.6.0+cpu is a CPU",
    ),
    skips("no companions", CU126),
    skips("no torch", linux().no_torch()),
    skips("torch for AMD", vision(linux().torch("2.6.0+rocm6.2").set({"torch.hip": "6.2.4"}), "0.21.0+rocm6.2")),
    skips(
        "NVIDIA's container says nothing about its torchvision",
        vision(linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0"), "0.24.0a0+094e7af5"),
    ),
    unknown_when("nothing tells how it was built", vision(CU126, "0.21.0")),
    fails(
        "the CUDA backend lacks torchvision's operator",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "symptom.companion_operator_missing": {
                    "text": "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."
                },
            }
        ),
        says="torchvision is a CPU build",
        certainty="likely",
    ),
]
