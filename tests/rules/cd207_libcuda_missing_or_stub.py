"""CD207: the libcuda.so.1 that the loader takes."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.testing import GONE, container, fails, jetson, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD207"

DRIVERS = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def library(path: str, kind: str, found_by: str = "ld.so.cache", version: Optional[str] = None) -> dict[str, Any]:
    return {"path": path, "real_path": path, "found_by": found_by, "kind": kind, "version": version}


GOOD = library(DRIVERS, "driver", version="580.95.05")
STUB = library("/usr/local/cuda/lib64/stubs/libcuda.so.1", "stub", "LD_LIBRARY_PATH")
STUB_IN_CACHE = dict(STUB, found_by="ld.so.cache")

# nvidia-smi shows "CUDA Version: N/A" where it finds no libcuda.
NO_CUDA: dict[str, Any] = {"driver.libcuda": [], "driver.nvml_cuda": GONE, "driver.smi_cuda": GONE}

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
]
