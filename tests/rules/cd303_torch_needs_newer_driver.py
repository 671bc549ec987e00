"""CD303: the driver against the CUDA major of torch. The minor never counts."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import Machine, container, fails, jetson, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD303"


def torch(variant: str, driver: str, ceiling: str, machine: Machine) -> Machine:
    return machine.driver(driver, ceiling).torch(f"2.9.1+{variant}")


LINUX = linux()
A100 = container().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2")


def compat(machine: Machine, version: str) -> Machine:
    """NVIDIA's forward-compatibility libcuda, found before the driver's."""
    path = "/usr/local/cuda/compat/lib/libcuda.so.1"
    entry: dict[str, Any] = {"path": path, "real_path": path, "found_by": "LD_LIBRARY_PATH", "kind": "compat"}
    return machine.set({"driver.libcuda": [{**entry, "version": version}, *machine.facts.value("driver.libcuda")]})


CASES = [
    passes("a cu130 build on R580", LINUX, says="driver 580.95.05 serves every CUDA 13.x build"),
    passes("a cu128 build on R550, which shows CUDA 12.4", torch("cu128", "550.54.15", "12.4", LINUX)),
    passes("a cu129 build on the first driver of CUDA 12", torch("cu129", "525.60.13", "12.0", LINUX)),
    passes("a cu132 build on a driver that shows 13.0", LINUX.torch("2.14.1+cu132")),
    passes("a cu118 build on R470", LINUX.driver("470.256.02", "11.4").torch("2.6.0+cu118")),
    passes("a cu118 build on the newest driver", LINUX.driver("610.43.02", "13.3").torch("2.6.0+cu118")),
    passes("Windows, whose numbers are others", torch("cu128", "528.49", "12.0", windows())),
    passes("WSL, which counts in Windows' numbers", torch("cu128", "528.49", "12.0", wsl())),
    passes(
        "a CUDA of after this matrix, which the driver says that it serves",
        LINUX.driver("640.11.01", "15.0").torch("2.19.0+cu150"),
        says="by its own word",
    ),
    passes("a nightly", LINUX.torch("2.16.0.dev20261101+cu132")),
    passes(
        "NVIDIA's container for CUDA 13 on R535 and a data-center card: forward compatibility",
        compat(A100.driver("535.183.06", "13.0"), "580.95.05").torch("2.9.0a0+145a3a7bda.nv25.10", "13.0"),
        says="forward compatibility",
    ),
    fails(
        "a cu130 build on R535",
        torch("cu130", "535.183.01", "12.2", LINUX),
        says=["torch 2.9.1+cu130 needs CUDA 13, and driver 535.183.01 is too old", "580.65.06"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="install-torch",
    ),
    fails("a cu128 build on R470", torch("cu128", "470.256.02", "11.4", LINUX), says="525.60.13"),
    fails("a cu121 build on 525.53, a beta below the floor", torch("cu121", "525.53", "12.0", LINUX)),
    fails("Windows", torch("cu130", "566.36", "12.7", windows()), says="driver 566.36 is too old"),
    fails("WSL: the Windows driver counts", torch("cu130", "566.36", "12.7", wsl())),
    fails(
        "forward compatibility on a GeForce does not count",
        compat(container().driver("535.183.06", "13.0"), "580.95.05").torch("2.9.1+cu130"),
    ),
    fails(
        "the compatibility package itself is too old for this build",
        compat(A100.driver("535.183.06", "12.8"), "570.124.06").torch("2.9.1+cu130"),
    ),
    fails(
        "only /sys tells the driver",
        torch("cu130", "535.183.01", "12.2", LINUX).unknown("driver.nvml_version", "driver.smi_version"),
    ),
    skips("a CPU build", LINUX.torch("2.9.1+cpu")),
    skips("no torch", LINUX.no_torch()),
    skips("a Jetson's driver has numbers of its own", jetson().torch("2.5.0a0+872d972e41.nv24.8", "12.6")),
    unknown_when(
        "nobody could ask the driver",
        LINUX.unknown("driver.nvml_version", "driver.smi_version", "driver.module_version", "driver.procfs_version"),
    ),
    unknown_when("a CUDA of which no driver is known yet", LINUX.torch("3.1.0+cu150", "15.0")),
    unknown_when("which CUDA it was built with could not be read", LINUX.torch("2.9.1").unknown("torch.cuda")),
    fails(
        "torch names the CUDA that the driver serves, and its own",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "torch.cuda": "13.0",
                "symptom.driver_too_old": {"text": "too old (found version 12020)", "found": "12020"},
            }
        ),
        says=["needs CUDA 13.0", "serves CUDA 12.2"],
        certainty="likely",
        fix="install-torch",
    ),
    fails(
        "the same words beside the driver's number",
        linux()
        .driver("470.86", "11.4")
        .only("driver.smi_version", "driver.smi_cuda", "system.os")
        .set(
            {
                "examination.kind": "report",
                "symptom.driver_too_old": {"text": "too old (found version 11040)", "found": "11040"},
            }
        ),
        says="driver 470.86 serves CUDA 11.4",
        certainty="likely",
    ),
    unknown_when(
        "the number that torch found is not this driver's: another libcuda",
        linux()
        .driver("535.183.01", "12.2")
        .only("driver.smi_version", "driver.smi_cuda", "system.os")
        .set(
            {
                "examination.kind": "report",
                "symptom.driver_too_old": {"text": "too old (found version 11040)", "found": "11040"},
            }
        ),
        says="another libcuda",
    ),
]
