"""CD102: nouveau, or its successor nova, holds the card."""

from __future__ import annotations

from cudadoctor.testing import (
    GONE,
    Machine,
    container_without_gpu,
    fails,
    linux,
    passes,
    pci_card,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD102"


def held_by(driver: str, machine: Machine) -> Machine:
    return machine.set(
        {
            "kernel.modules": [driver, "drm"],
            "kernel.nouveau_blacklisted_by": [],
            "pci.gpus": [dict(entry, driver=driver) for entry in machine.facts.value("pci.gpus")],
        }
    )


FRESH = held_by("nouveau", linux().no_driver())
INSTALLED = held_by("nouveau", linux().not_loaded())
BLACKLIST = ["/etc/modprobe.d/blacklist-nouveau.conf"]
OLD_CARD = pci_card("0000:02:00.0", "128b", "nouveau")

CASES = [
    passes("NVIDIA's driver answers", linux()),
    passes("an old card for the screen beside a card that works", linux().display_card("128b", "nouveau")),
    passes(
        "an old card for the screen; NVIDIA's driver holds the other, and fails",
        linux().display_card("128b", "nouveau").driver_fails(18, "mismatch", 18),
    ),
    passes("the driver is installed and not loaded, without nouveau", linux().not_loaded()),
    passes("a machine without a driver, whose card nobody holds", linux().no_driver()),
    fails(
        "a fresh installation of Linux",
        FRESH,
        says=["nouveau holds the NVIDIA GeForce RTX 4090", "CUDA needs NVIDIA's driver"],
        certainty="certain",
        severity="error",
        blame="machine",
        fix=["install-driver", "blacklist-nouveau"],
    ),
    fails("nova in nouveau's place", held_by("nova_core", linux().no_driver()), says="nova_core holds"),
    fails("the driver is installed beside it", INSTALLED, fix="blacklist-nouveau"),
    fails(
        "the driver was just installed, and the reboot is pending",
        INSTALLED.set({"kernel.nouveau_blacklisted_by": BLACKLIST}),
        says="at the next start",
        fix="blacklist-nouveau",
    ),
    fails(
        "two cards, and nouveau holds one: the other may have another trouble",
        linux().not_loaded().set({"pci.gpus": [pci_card("0000:01:00.0", "2684", None), OLD_CARD]}),
        certainty="likely",
    ),
    fails(
        "lsmod alone: nouveau is loaded and nvidia is not",
        FRESH.unknown("pci.gpus").set({"request.gpu": True}),
        certainty="likely",
        says="instead of NVIDIA's",
    ),
    fails(
        "the kernel log alone",
        linux().not_loaded().unknown("pci.gpus", "kernel.modules").log("device-taken", drivers="nouveau"),
        certainty="certain",
        says="kernel log",
    ),
    passes(
        "an old line of the log: nouveau is gone by now",
        linux().not_loaded().log("device-taken", drivers="nouveau"),
    ),
    unknown_when("neither modules nor bus could be read", linux().not_loaded().unknown("kernel.modules", "pci.gpus")),
    passes("/proc/modules is missing, the bus tells enough", linux().not_loaded().unknown("kernel.modules")),
    skips("no NVIDIA card", linux().no_gpu()),
    skips("a container sees the host's nouveau", container_without_gpu().set({"driver.module_loaded": False})),
    skips("WSL", wsl().no_driver()),
    skips("Windows", windows().no_driver()),
    skips("the card is lent to a virtual machine", held_by("vfio-pci", linux().no_driver()).set({"procfs.gpus": GONE})),
    fails(
        "a report: lsmod shows it",
        report().set({"kernel.modules": ["nouveau", "mxm_wmi"]}),
        certainty="likely",
        fix="blacklist-nouveau",
    ),
    fails(
        "a report: the kernel log's words, and lsmod",
        report().log("device-taken", "NVRM: ...", drivers="nouveau, rivafb").set({"kernel.modules": ["nouveau"]}),
        certainty="certain",
    ),
    unknown_when("a report that shows neither", report("linux").says("smi_no_driver", "has failed")),
    unknown_when(
        "a report: the module found no GPU, since it does not serve this one",
        report("linux")
        .says("module_device_taken", "NVRM: No NVIDIA GPU found.")
        .log("needs-legacy-driver", branch="470"),
    ),
    fails(
        "a report: NVIDIA's installer refuses",
        report().says("driver_install_failed", "ERROR: The Nouveau kernel driver is currently in use by your system."),
        says="installer",
        certainty="certain",
        fix="blacklist-nouveau",
    ),
]
