"""CD101: a card, and nothing of a driver."""

from __future__ import annotations

from cudadoctor.testing import (
    container,
    container_without_gpu,
    fails,
    jetson,
    linux,
    passes,
    pci_card,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD101"

BARE = linux().no_driver()
LENT = {"pci.gpus": [pci_card("0000:01:00.0", "2684", "vfio-pci")]}

CASES = [
    passes("the driver answers", linux()),
    passes("NVML is broken and nvidia-smi answers", linux().unknown("driver.nvml_version")),
    passes("a driver is loaded and does not answer", linux().driver_fails(999, "unknown-error", 255)),
    fails(
        "a new workstation",
        BARE,
        says="for the NVIDIA GeForce RTX 4090",
        certainty="certain",
        severity="error",
        blame="machine",
        fix="install-driver",
    ),
    fails(
        "a card that the matrix does not know",
        BARE.set({"pci.gpus": [pci_card("0000:01:00.0", "ffff", None)]}),
        says="PCI id 10de:ffff",
    ),
    fails("/proc/modules is missing, /sys shows no module", BARE.unknown("kernel.modules"), fix="install-driver"),
    fails(
        "Windows with its own basic driver",
        windows().no_driver(),
        says="GeForce RTX 4070",
        fix="install-windows-driver",
    ),
    fails(
        "a container on a host without a driver",
        container_without_gpu().set({"driver.module_loaded": False}),
        says="host of this container",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "a container on a host whose card nouveau holds",
        container_without_gpu().set(
            {"driver.module_loaded": False, "pci.gpus": [pci_card("0000:01:00.0", "2684", "nouveau")]}
        ),
        says="nouveau holds the card",
    ),
    passes("a container without its GPU: the host has a driver", container_without_gpu()),
    unknown_when("a sandbox that hides the host's modules", container_without_gpu().unknown("driver.module_loaded")),
    unknown_when("nobody could look for NVML", BARE.unknown("driver.nvml_library", "driver.smi_path")),
    skips("the driver is installed and its module is not loaded", linux().not_loaded()),
    skips(
        "only a package is left of it", BARE.set({"driver.packages": [{"name": "nvidia-utils-580", "version": None}]})
    ),
    skips(
        "Windows has a driver, whose NVML is missing", windows().no_driver().set({"driver.windows_version": "581.57"})
    ),
    skips("no card", linux().no_gpu()),
    skips("the card is lent to a virtual machine", BARE.set(LENT)),
    skips("WSL has no driver of its own", wsl().no_driver()),
    passes("a Jetson needs neither NVML nor nvidia-smi", jetson()),
    skips("a container on a Jetson, without its GPU", jetson().set({"system.container": "docker", "device.nodes": []})),
    passes("Docker Desktop: a container in WSL2", container().set({"system.wsl": 2})),
    fails(
        "a report: the shell knows no nvidia-smi, and the bus has a card",
        report("linux")
        .says("smi_not_found", "nvidia-smi: command not found")
        .set({"pci.gpus": [pci_card("0000:01:00.0", "2684", None)]}),
        says="nvidia-smi is not found",
        certainty="likely",
        fix="install-driver",
    ),
    fails("a report: the shell's word alone", report("linux").says("smi_not_found", "not found"), certainty="possible"),
    fails(
        "a report from Windows",
        report("windows").says("smi_not_found", "'nvidia-smi' is not recognized"),
        fix="install-windows-driver",
    ),
    skips(
        "a report from a lent notebook",
        report().says("smi_not_found", "not found").says("hosted_notebook_named", "I use Colab"),
    ),
    skips("a report from a container", report().says("smi_not_found", "not found").set({"system.container": "docker"})),
    passes("a report: torch sees the GPU", report().says("smi_not_found", "?").set({"torch.cuda_available": True})),
    unknown_when("a report about torch", report("linux").set({"torch.version": "2.6.0"})),
]
