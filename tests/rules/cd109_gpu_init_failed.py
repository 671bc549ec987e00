"""CD109: the driver is loaded, the card is on the bus, and no device is found."""

from __future__ import annotations

from cudadoctor.testing import (
    container,
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

RULE = "CD109"

NONE_FOUND = linux().no_devices()
TWO_CARDS = linux().display_card("2684", "nvidia")

CASES = [
    passes("every card is listed", linux()),
    passes("NVML lists it, though nvidia-smi does not", linux().set({"driver.smi_failure": "no-devices"})),
    passes("nvidia-smi lists it, though NVML was not asked", linux().unknown("gpu.count")),
    fails(
        "No devices were found, and nobody may read the log",
        NONE_FOUND.unknown("kernel.log_events"),
        says="the kernel log would tell why",
        certainty="likely",
        severity="error",
        blame="machine",
        fix="manual",
    ),
    fails(
        "RmInitAdapter failed",
        NONE_FOUND.log("init-failed", bus_id="0000:01:00.0", codes="0x26:0x56:1482"),
        says=["NVIDIA GeForce RTX 4090", "RmInitAdapter failed"],
        certainty="certain",
    ),
    fails("the firmware's file is missing", NONE_FOUND.log("firmware-missing"), says="firmware file"),
    fails("the BAR is invalid", NONE_FOUND.log("bar-invalid", bus_id="0000:01:00.0"), says="BAR"),
    fails("it does not wake from D3cold", NONE_FOUND.log("no-power-state"), says="power saving"),
    fails(
        "a line of the log about another card proves nothing for this one",
        NONE_FOUND.log("init-failed", bus_id="0000:09:00.0"),
        certainty="likely",
    ),
    fails(
        "nvidia-smi says it, and nobody knows of the module",
        NONE_FOUND.unknown("gpu.count", "driver.module_loaded"),
        certainty="likely",
    ),
    fails(
        "one of two cards is missing", TWO_CARDS, severity="warning", says="does not bring the NVIDIA GeForce RTX 4090"
    ),
    fails(
        "the driver's firmware on the card stopped answering (Xid 119)",
        linux().hangs().log("xid", bus_id="0000:01:00.0", number="119", detail="Timeout waiting for RPC from GSP!"),
        says="GSP",
        certainty="certain",
        severity="error",
    ),
    passes("an Xid 119 of before, and the card works", linux().log("xid", number="119")),
    passes("an old card that nouveau drives for the screen", linux().display_card("128b", "nouveau")),
    passes("an old card that the branch has dropped", linux().display_card("128b", None)),
    passes("a card that the other module would serve", linux().display_card("1b06", None)),
    passes("a card that is lent to a virtual machine", linux().display_card("2684", "vfio-pci")),
    passes(
        "virtual functions of a card that is shared out",
        linux().set({"pci.gpus": [pci_card("0000:01:00.0", "20b0", "nvidia"), pci_card("0000:01:00.4", "20b0", None)]}),
    ),
    passes("a job that was given one of two cards", TWO_CARDS.job(gpus=1)),
    passes("a card that is lost is counted: CD113 says so", TWO_CARDS.set({"gpu.count": 2, "gpu.1.lost": True})),
    skips("the module is not loaded", linux().not_loaded()),
    skips("the driver does not answer at all", linux().driver_fails(999, "unknown-error", 255)),
    skips("a container that was given one of two cards", container().display_card("2684", "nvidia")),
    skips("a container whose devices are gone", container().no_devices()),
    skips("WSL", wsl()),
    skips("Windows", windows()),
    skips("a Jetson", jetson()),
    unknown_when("nobody knows of the module", linux().only("system.os", "pci.gpus")),
    unknown_when(
        "neither NVML nor nvidia-smi was asked",
        linux().unknown(
            "gpu.count",
            "smi.gpus",
            "driver.nvml_version",
            "driver.smi_version",
            "driver.nvml_error",
            "driver.smi_failure",
        ),
    ),
    fails(
        "a report: No devices were found",
        report().says("no_devices_found", "No devices were found"),
        certainty="likely",
        fix="manual",
    ),
    fails(
        "a report: the kernel log tells",
        report().log("init-failed", "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1482)", "0000:01:00.0"),
        certainty="certain",
    ),
    fails(
        "a report: nvidia-smi has no handle of a card that the driver never had",
        report().says("device_handle_unknown", "Unable to determine", gpu="0000:0B:00.0", reason="Not Found"),
        certainty="likely",
    ),
    fails("a report: a probe failed", report().log("init-failed", "nvidia: probe of 0000:01:00.0"), certainty="likely"),
    fails("a report: Xid 119", report().log("xid", "NVRM: Xid", number="119"), says="GSP", certainty="likely"),
    unknown_when("a report about torch", report("linux")),
    fails(
        "nvidia-smi shows none in a container, whose devices may not have been passed in",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "container.engine": "apptainer",
                "symptom.no_devices_found": {"text": "No devices were found"},
            }
        ),
        certainty="possible",
    ),
]
