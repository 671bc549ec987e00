"""CD207: the libcuda.so.1 that the loader takes."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.testing import GONE, Machine, container, fails, jetson, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD207"

DRIVERS = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def library(path: str, kind: str, found_by: str = "ld.so.cache", version: Optional[str] = None) -> dict[str, Any]:
    return {"path": path, "real_path": path, "found_by": found_by, "kind": kind, "version": version}


GOOD = library(DRIVERS, "driver", version="580.95.05")
STUB = library("/usr/local/cuda/lib64/stubs/libcuda.so.1", "stub", "LD_LIBRARY_PATH")
STUB_IN_CACHE = dict(STUB, found_by="ld.so.cache")

# nvidia-smi shows "CUDA Version: N/A" where it finds no libcuda.
NO_CUDA: dict[str, Any] = {"driver.libcuda": [], "driver.nvml_cuda": GONE, "driver.smi_cuda": GONE}


def report(machine: Machine, name: str, text: str, *keep: str) -> Machine:
    """A pasted text, with what else it shows of the machine."""
    return machine.only("system.os", "system.wsl", "driver.smi_version", "smi.gpus", *keep).set(
        {"examination.kind": "report", f"symptom.{name}": {"text": text}}
    )


NUMBA = "Error at driver init: Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)"

CASES = [
    passes(
        "a libcuda in a folder of NixOS' own: nvidia-smi names the CUDA that it read out of it",
        linux().set({"driver.libcuda": []}),
        says="where we did not look",
    ),
    passes("the driver's", linux(), says=DRIVERS),
    passes("WSL's", wsl()),
    passes("a container's", container()),
    passes(
        "a link that leads nowhere, which the loader passes over",
        linux().set({"driver.libcuda": [library("/usr/lib64/libcuda.so.1", "dangling"), GOOD]}),
        says=DRIVERS,
    ),
    fails(
        "the toolkit's stub by LD_LIBRARY_PATH",
        linux().set({"driver.libcuda": [STUB, GOOD], "env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs"}),
        says=["the toolkit's stub, made for linking only", "/usr/local/cuda/lib64/stubs/libcuda.so.1"],
        certainty="certain",
        severity="error",
        blame="environment",
        fix="change-variable",
    ),
    fails(
        "the stub in the loader's cache: it is not to be removed, builds need it",
        linux().set({"driver.libcuda": [STUB_IN_CACHE, GOOD]}),
        blame="machine",
        fix="manual",
    ),
    fails(
        "an empty file, which a broken container engine left in the image",
        linux().set({"driver.libcuda": [library(DRIVERS, "empty"), library("/usr/lib64/libcuda.so.1", "driver")]}),
        says="an empty file",
        fix="remove-library",
    ),
    fails(
        "nothing but a link that leads nowhere",
        linux().set({"driver.libcuda": [library(DRIVERS, "dangling")]}),
        says="a link that leads nowhere",
        fix="install-driver",
    ),
    fails(
        "nothing but an empty file",
        linux().set({"driver.libcuda": [library(DRIVERS, "empty")]}),
        fix=["remove-library", "install-driver"],
    ),
    fails(
        "the driver answers, and its CUDA library is not installed",
        linux().set(NO_CUDA),
        says="the driver answers and there is no libcuda.so.1",
        certainty="likely",
        blame="machine",
        fix="install-driver",
    ),
    fails(
        "a container that was given nvidia-smi and no CUDA",
        container().set({**NO_CUDA, "env.NVIDIA_DRIVER_CAPABILITIES": "utility"}),
        says="only the capabilities utility",
        certainty="certain",
        blame="allocation",
        fix="run-container-with-gpu",
    ),
    fails(
        "a container with no reason to be seen",
        container().set({**NO_CUDA, "env.NVIDIA_DRIVER_CAPABILITIES": "all"}),
        certainty="likely",
        blame="allocation",
    ),
    skips("no driver that could miss one", linux().no_driver()),
    skips("Windows has another loader", windows()),
    passes("a Jetson's", jetson()),
    unknown_when("a Jetson that keeps it elsewhere", jetson().set({"driver.libcuda": []})),
    unknown_when("the loader's cache could not be read", linux().unknown("driver.libcuda")),
    fails(
        "a text: the stub was loaded",
        report(linux(), "cuda_stub_library", "RuntimeError: CUDA driver is a stub library"),
        says="error 34",
        certainty="certain",
        blame="environment",
        fix="manual",
    ),
    fails(
        "a text: the stub, and LD_LIBRARY_PATH that names it",
        report(linux(), "cuda_stub_library", "CUDA driver is a stub library").set(
            {"env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs:/usr/local/cuda/lib64"}
        ),
        fix="change-variable",
    ),
    fails(
        "a text: Triton finds none in the loader's list",
        report(linux(), "triton_libcuda_missing", "AssertionError: libcuda.so cannot found!"),
        says="Triton finds no libcuda.so",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "a text: nvidia-smi works, and libcuda is missing",
        report(linux(), "libcuda_missing", "ImportError: libcuda.so.1: cannot open shared object file"),
        says="the driver answers",
        certainty="likely",
    ),
    fails(
        "a text: WSL, where nvidia-smi works and numba finds no GPU",
        report(wsl(), "cuda_init_failed", NUMBA),
        says="another libcuda than Windows'",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "a text: somebody speaks of WSL and says that nvidia-smi works",
        report(linux(), "cuda_init_failed", NUMBA)
        .unknown("driver.smi_version", "smi.gpus")
        .set({"symptom.wsl_named": {"text": "WSL2"}, "symptom.smi_works": {"text": "nvidia-smi works"}}),
        says="nvidia-smi works in WSL",
        certainty="likely",
    ),
    unknown_when(
        "a text: libcuda is missing, and whether there is a driver is not known",
        linux()
        .only()
        .set({"examination.kind": "report", "symptom.libcuda_missing": {"text": "libcuda.so.1: cannot open"}}),
    ),
    fails(
        "a text: cuDNN was loaded, and looks for the driver's library",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "symptom.libcuda_missing": {
                    "text": "Could not load library libcudnn_ops_infer.so.8. Error: libcuda.so: cannot open shared"
                },
            }
        ),
        says="cuDNN finds no libcuda.so",
        certainty="likely",
    ),
    fails(
        "a text: the stubs are in the path, and torch finds no CUDA",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs",
                "torch.cuda_available": False,
            }
        ),
        says="the toolkit's stubs",
        certainty="possible",
    ),
    skips(
        "a text: the stubs are in the path, and nothing is amiss",
        linux().only().set({"examination.kind": "report", "env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs"}),
    ),
    skips("a text about something else", linux().only().set({"examination.kind": "report"})),
    fails(
        "the loader lists libcuda.so.1, and a program asks for the plain name",
        report(wsl(), "libcuda_missing", "OSError: libcuda.so: cannot open shared object file", "driver.libcuda"),
        says="its plain name libcuda.so",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "nvidia-smi works in WSL and a program of its own runtime finds no GPU",
        report(wsl(), "no_cuda_device", "no CUDA-capable device is detected"),
        certainty="possible",
        severity="warning",
    ),
]
