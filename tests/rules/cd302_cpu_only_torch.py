"""CD302: torch without CUDA where there is a GPU to use."""

from __future__ import annotations

from cudadoctor.testing import GONE, fails, jetson, linux, passes, report, skips, unknown_when, windows, wsl

RULE = "CD302"

CPU = linux().torch("2.6.0+cpu")
# As PyPI has it for Windows, and as conda has it: the version does not say so.
UNMARKED = windows().torch("2.6.0").set({"torch.cuda": GONE})
AMD = {"torch.hip": "6.4.43484", "torch.cuda": GONE}

CASES = [
    passes("a CUDA build", linux(), says="is built for CUDA 13.0"),
    passes("a nightly", linux().torch("2.16.0.dev20261101+cu132")),
    passes("NVIDIA's container", linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0")),
    passes("a Jetson's wheel", jetson().torch("2.5.0a0+872d972e41.nv24.8", "12.6")),
    passes("its version.py was not read, its version says it", linux().torch("2.6.0+cu124").unknown("torch.cuda")),
    passes("a build of the time when versions said more", linux().torch("2.0.1+cu117.with.pypi.cudnn", "11.7")),
    fails(
        "from the CPU index",
        CPU,
        says=["torch 2.6.0+cpu is built without CUDA", "NVIDIA GeForce RTX 4090"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="install-torch",
    ),
    fails("from PyPI on Windows: nothing in its version says so", UNMARKED, says="torch 2.6.0 is built without CUDA"),
    fails("in WSL", wsl().torch("2.6.0+cpu")),
    fails("no driver yet: the wheel is wrong all the same", CPU.no_driver(), fix="install-torch"),
    fails("a GPU was asked for, and is elsewhere", CPU.no_gpu().set({"request.gpu": True}), says="an NVIDIA GPU"),
    fails("the build for Intel's GPUs", linux().torch("2.9.1+xpu"), says="built without CUDA"),
    fails(
        "the build for AMD's GPUs", linux().torch("2.9.1+rocm6.4").set(AMD), says="for AMD's ROCm", certainty="certain"
    ),
    fails(
        "the same, and there is an AMD card that it may be meant for",
        linux().torch("2.9.1+rocm6.4").set({**AMD, "pci.other_display": ["1002"]}),
        certainty="likely",
    ),
    skips("no GPU: the CPU build is the right one", CPU.no_gpu(), says="suits a machine without an NVIDIA GPU"),
    skips("macOS", CPU.no_gpu().set({"system.os": "darwin", "system.arch": "arm64", "pci.gpus": GONE})),
    skips(
        "a card that no CUDA build has code for: there is no better torch",
        CPU.gpu("NVIDIA GeForce GT 710", "3.5", 2, device_id="128b"),
        says="no CUDA build has code for the NVIDIA GeForce GT 710",
    ),
    skips("no torch", linux().no_torch()),
    unknown_when("which build it is could not be read", linux().unknown("torch.version")),
    unknown_when("no line about CUDA, and no local version", linux().torch("2.6.0").unknown("torch.cuda")),
    unknown_when("whether there is a GPU could not be seen", CPU.no_driver().unknown("pci.gpus")),
    fails(
        "a run says so, and nothing else is told",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "symptom.torch_not_compiled_with_cuda": {
                    "text": "AssertionError: Torch not compiled with CUDA enabled"
                },
            }
        ),
        says="torch of unknown version is built without CUDA",
        severity="error",
        certainty="likely",
        fix="install-torch",
    ),
    fails(
        "pip's list on Windows, where PyPI has no other build",
        windows()
        .only("system.os", "smi.gpus")
        .set({"examination.kind": "report", "torch.version": "2.6.0", "torch.metadata_version": "2.6.0"}),
        certainty="likely",
    ),
    skips(
        "a build for ROCm at work, and no NVIDIA GPU in the text",
        report().set({"torch.version": "2.8.0+rocm6.4", "torch.cuda_available": True}),
    ),
    skips(
        "a program that is started for the processor",
        report().says("cpu_wanted", "Device: cpu").set({"torch.version": "2.9.0+cpu"}),
    ),
    fails(
        "somebody complains of a CPU build, and shows none",
        linux()
        .only("examination.kind")
        .set({"examination.kind": "report", "symptom.cpu_build_said": {"text": "pip installs the CPU version"}}),
        says="the text says that the installation gave a torch without CUDA",
        certainty="possible",
    ),
]
