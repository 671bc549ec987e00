"""CD106: nobody gets an answer from the driver."""

from __future__ import annotations

from cudadoctor.testing import (
    GONE,
    Machine,
    container,
    container_without_gpu,
    fails,
    jetson,
    linux,
    passes,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD106"

SMI_SENTENCE = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running."
)


def compute_only(machine: Machine) -> Machine:
    """What NVIDIA_DRIVER_CAPABILITIES=compute gives: libcuda, and neither NVML nor nvidia-smi."""
    libraries, version = machine.facts.value("driver.libcuda"), machine.facts.value("driver.library_version")
    machine = machine.no_driver().set({"driver.libcuda": libraries, "driver.library_version": version or GONE})
    return machine.set({"driver.module_loaded": True, "driver.module_version": "580.95.05"})


CASES = [
    unknown_when(
        "a container that was given the capability compute alone: CUDA works there",
        compute_only(container()),
        says="neither NVML nor nvidia-smi to ask",
    ),
    fails(
        "the module is loaded, and the libraries are gone: a reboot brings none",
        linux().no_driver().set({"driver.module_loaded": True, "driver.module_version": "580.95.05"}),
        says="neither an NVML library nor nvidia-smi",
        fix="install-driver",
    ),
    passes("both answer", linux(), says="driver 580.95.05 answers"),
    passes("Windows", windows(), says="driver 581.57 answers"),
    passes("WSL: the number is Windows'", wsl(), says="driver 581.57 answers"),
    passes(
        "nvidia-smi is slow, NVML works", linux().unknown("driver.smi_version").set({"driver.smi_failure": "timed-out"})
    ),
    passes("no nvidia-smi at all, NVML works", linux().unknown("driver.smi_version", "driver.smi_failure")),
    passes(
        "NVML hangs, nvidia-smi works",
        linux().unknown("driver.nvml_version", "gpu.count").set({"driver.nvml_unresponsive": True}),
    ),
    passes(
        "NVML is of another driver, nvidia-smi works",
        linux().unknown("driver.nvml_version").set({"driver.nvml_error": 18}),
    ),
    passes("a Jetson without NVML and nvidia-smi", jetson(), says="Jetson"),
    fails(
        "the module is not loaded",
        linux().not_loaded(),
        says="not loaded",
        certainty="certain",
        severity="error",
        blame="machine",
        fix="reload-module",
    ),
    fails(
        "prime-select or a file of somebody's keeps it from loading",
        linux().not_loaded().set({"kernel.nvidia_blacklisted_by": ["/lib/modprobe.d/blacklist-nvidia.conf"]}),
        says="/lib/modprobe.d/blacklist-nvidia.conf",
        certainty="certain",
        fix="remove-module-blacklist",
    ),
    fails("both hang", linux().hangs(), says="hangs", certainty="certain", fix="reboot"),
    fails(
        "NVML told its version and hung at a card; nvidia-smi hangs",
        linux()
        .unknown("driver.smi_version", "gpu.count")
        .set({"driver.nvml_unresponsive": True, "driver.smi_failure": "timed-out"}),
        says="hangs",
    ),
    fails(
        "there is no nvidia-smi to ask, and NVML hangs",
        linux().hangs().unknown("driver.smi_failure", "driver.smi_failure_text"),
        says="hangs",
    ),
    fails(
        "it is loaded and says that it is not",
        linux().driver_fails(999, "unknown-error", 255, "Unknown Error"),
        says="NVML: Unknown Error (999)",
        certainty="certain",
        fix="reload-module",
    ),
    fails(
        "nvidia-smi's own long sentence is cut",
        linux().driver_fails(9, "no-driver", 9, SMI_SENTENCE).unknown("driver.nvml_error", "driver.nvml_error_text"),
        says="nvidia-smi: NVIDIA-SMI has failed because",
    ),
    fails(
        "the control group of a long-running container lost its devices",
        container().driver_fails(999, "unknown-error", 255, "Unknown Error"),
        says="inside this container",
        fix="manual",
    ),
    fails("Windows: the driver is there and fails", windows().driver_fails(9, "no-driver", 9), fix="reload-module"),
    fails("a container without its GPU follows from that", container_without_gpu(), certainty="certain"),
    skips("no card", linux().no_gpu()),
    unknown_when(
        "a sandbox that shows neither bus nor driver",
        container_without_gpu().unknown("pci.gpus", "procfs.gpus", "driver.module_loaded"),
        says="whether there is a GPU",
    ),
    unknown_when("WSL without the libraries that Windows lends", wsl().no_driver(), says="Windows' driver"),
    unknown_when(
        "NVML was never asked",
        linux().unknown("driver.nvml_version", "driver.smi_version", "driver.nvml_error", "driver.smi_failure"),
    ),
    unknown_when(
        "a container on a Jetson, without its GPU",
        jetson().set({"system.container": "docker", "device.nodes": []}),
    ),
    fails(
        "a report: nvidia-smi fails, and no more is told",
        report().set({"driver.smi_failure": "no-driver", "driver.smi_failure_text": "NVIDIA-SMI has failed"}),
        certainty="likely",
    ),
    fails(
        "a report: somebody says it in their own words",
        report("linux").says("smi_no_driver", "nvidia-smi cannot communicate with the driver"),
        certainty="likely",
    ),
    skips("a report: the failure names its own cause", report().set({"driver.smi_failure": "mismatch"}), says="CD105"),
    unknown_when("a report without nvidia-smi", report("linux")),
    skips(
        "a report: torch sees the GPU, and nvidia-smi fails",
        report().set({"driver.smi_failure": "unknown-error", "torch.cuda_available": True}),
        says="CD121",
    ),
]
