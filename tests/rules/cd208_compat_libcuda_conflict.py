"""CD208: a libcuda of another driver version than the loaded one (errors 803 and 804)."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.testing import GONE, Machine, container, fails, jetson, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD208"

COMPAT = "/usr/local/cuda/compat/libcuda.so.1"
CONTAINER = container()


def library(path: str, kind: str, version: Optional[str], found_by: str = "LD_LIBRARY_PATH") -> dict[str, Any]:
    return {"path": path, "real_path": path, "found_by": found_by, "kind": kind, "version": version}


def image(
    driver: str, compat: Optional[str], machine: Machine = CONTAINER, found_by: str = "LD_LIBRARY_PATH"
) -> Machine:
    """A container whose image brings NVIDIA's forward-compatibility package, on a host with this driver."""
    machine = machine.driver(driver, "12.4")
    return machine.set(
        {
            "env.LD_LIBRARY_PATH": "/usr/local/cuda/compat" if found_by == "LD_LIBRARY_PATH" else GONE,
            "driver.libcuda": [library(COMPAT, "compat", compat, found_by), *machine.facts.value("driver.libcuda")],
        }
    )


def on(machine: Machine, name: str, capability: str, device_id: str) -> Machine:
    return machine.gpu(name, capability, 80, device_id=device_id)


A100 = on(container(), "NVIDIA A100-SXM4-80GB", "8.0", "20b2")
A6000 = on(container(), "NVIDIA RTX A6000", "8.6", "2230")
H100 = on(container(), "NVIDIA H100 80GB HBM3", "9.0", "2330")


def report(machine: Machine, error: int, *keep: str) -> Machine:
    """A pasted text with nvidia-smi's table."""
    name = {803: "unsupported_driver_combination", 804: "forward_compatibility_refused"}[error]
    return machine.only("system.os", "system.container", "driver.smi_version", "driver.smi_cuda", "smi.gpus").set(
        {"examination.kind": "report", f"symptom.{name}": {"text": f"Error {error}"}}
    )


CASES = [
    passes("the driver's own", linux(), says="the loaded driver's"),
    passes("a newer one on a data-center card: that is what it is for", image("535.183.06", "580.95.05", A100)),
    passes("a workstation card may be allowed to, and nothing says otherwise", image("535.183.06", "580.95.05", A6000)),
    passes("of the driver's own version on a GeForce: there is nothing to bridge", image("580.95.05", "580.95.05")),
    passes(
        "a version that the file does not tell, of the driver's own folder",
        linux().set({"driver.libcuda": [library("/usr/lib64/libcuda.so.1", "driver", None, "ld.so.cache")]}),
    ),
    fails(
        "an image older than the node's driver: a newer driver would be the wrong advice",
        image("575.57.08", "570.124.06", H100),
        says="the forward-compatibility libcuda 570.124.06 found first is older than driver 575.57.08: error 803",
        certainty="certain",
        severity="error",
        blame="environment",
        fix="change-variable",
    ),
    fails(
        "the same on a GeForce",
        image("580.95.05", "550.54.15"),
        says="error 803",
        certainty="certain",
    ),
    fails(
        "a newer one on a GeForce",
        image("535.171.04", "550.54.15"),
        says=["does not work on the GeForce RTX 4090", "error 804"],
        certainty="certain",
        fix="change-variable",
    ),
    fails(
        "of unknown version on a GeForce",
        image("535.171.04", None),
        says="error 804",
        certainty="likely",
    ),
    fails(
        "found by the image's loader settings",
        image("575.57.08", "570.124.06", H100, "ld.so.cache"),
        fix="remove-library",
    ),
    fails(
        "a driver's libcuda that was baked into the image",
        container().set({"driver.libcuda": [library("/usr/lib64/libcuda.so.1", "driver", "535.54.03", "ld.so.cache")]}),
        says="the libcuda 535.54.03 found first is older than driver 580.95.05",
        certainty="likely",
        fix="remove-library",
    ),
    unknown_when(
        "a newer driver's libcuda on a data-center card may be forward compatibility in another folder",
        A100.set({"driver.libcuda": [library("/opt/conda/lib/libcuda.so.1", "driver", "590.44.01", "ld.so.cache")]}),
    ),
    unknown_when("compatibility of unknown version on a card that may use it", image("535.183.06", None, H100)),
    unknown_when("the loader's cache could not be read", linux().unknown("driver.libcuda")),
    skips("no libcuda at all", linux().set({"driver.libcuda": []})),
    skips("WSL has Windows' own", wsl()),
    skips("a Jetson may use it", jetson()),
    skips("Windows", windows()),
    fails(
        "a text: 803 on a new driver, where a newer one would be the wrong advice",
        report(container().driver("575.57.08", "12.9"), 803),
        says=["a libcuda of another release than driver 575.57.08", "error 803"],
        certainty="likely",
        fix="manual",
    ),
    fails(
        "a text: 804 on a GeForce, and nvidia-smi shows the image's CUDA",
        report(container().driver("460.80", "11.3").gpu("GeForce GTX 1650", "7.5", 4), 804),
        says=["the GeForce GTX 1650 may not use", "nvidia-smi shows CUDA 11.3", "is of 11.2", "error 804"],
        certainty="likely",
    ),
    fails(
        "a text: 804 and no more",
        linux()
        .only()
        .set({"examination.kind": "report", "symptom.forward_compatibility_refused": {"text": "Error 804: ..."}}),
        says="error 804",
        certainty="likely",
    ),
    skips("a text about something else", linux().only().set({"examination.kind": "report"})),
]
