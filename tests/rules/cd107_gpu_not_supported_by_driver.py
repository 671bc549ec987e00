"""CD107: the card is older or newer than the driver's branch serves."""

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

RULE = "CD107"

KEPLER = [pci_card("0000:01:00.0", "102d", None)]  # Tesla K80
BLACKWELL = [pci_card("0000:01:00.0", "2b85", None)]  # GeForce RTX 5090
NONE_FOUND = linux().no_devices()
VF = [pci_card("0000:01:00.0", "20b0", "nvidia"), pci_card("0000:01:00.4", "20b0", None)]

CASES = [
    passes("the driver lists every card", linux()),
    passes("nvidia-smi lists it", linux().unknown("gpu.count")),
    fails(
        "a K80 on R580",
        NONE_FOUND.set({"pci.gpus": KEPLER}),
        says=["Tesla K80", "R470 was the last branch"],
        certainty="likely",
        severity="error",
        blame="machine",
        fix="install-driver",
    ),
    fails(
        "the kernel log says it itself",
        NONE_FOUND.set({"pci.gpus": KEPLER}).log("needs-legacy-driver", bus_id="0000:01:00.0", branch="470"),
        says="R470",
        certainty="certain",
        fix="install-driver",
    ),
    fails(
        "the log knows it where the driver's version is not known",
        NONE_FOUND.set({"pci.gpus": KEPLER})
        .unknown("driver.nvml_version", "driver.module_version", "driver.procfs_version")
        .log("needs-legacy-driver", branch="470"),
        certainty="certain",
    ),
    fails(
        "an RTX 5090 on R550",
        linux().driver("550.54.14", "12.4").no_devices().set({"pci.gpus": BLACKWELL}),
        says=["550.54.14 is too old", "R570"],
        certainty="likely",
        fix="update-driver",
    ),
    fails(
        "an RTX 5090 beside a card that R550 serves",
        linux().driver("550.54.14", "12.4").display_card("2b85", None),
        severity="warning",
        fix="update-driver",
    ),
    fails(
        "an old card beside one that works is advice, and no older driver is offered",
        linux().display_card("128b", None),
        says=["GeForce GT 710", "the other cards work"],
        severity="info",
    ),
    passes("an old card that nouveau drives for the screen", linux().display_card("128b", "nouveau")),
    passes(
        "a card that the administrator excluded",
        linux()
        .display_card("128b", None)
        .set(
            {
                "procfs.gpus": [
                    {"address": "0000:02:00.0", "model": None, "minor": 1, "firmware": None, "excluded": True}
                ]
            }
        ),
    ),
    passes("virtual functions of a card that is shared out", linux().set({"pci.gpus": VF})),
    passes("one card of eight was given to this job", linux().job(gpus=1).display_card("128b", None)),
    passes("a card that both branch and module serve, and that still fails", NONE_FOUND),
    passes("a line of the log about another card", NONE_FOUND.log("needs-legacy-driver", bus_id="0000:09:00.0")),
    skips("the driver is not loaded", linux().not_loaded()),
    skips("no card", linux().no_gpu()),
    skips(
        "the card is lent to a virtual machine",
        linux().no_driver().set({"pci.gpus": [pci_card("0000:01:00.0", "128b", "vfio-pci")]}),
    ),
    skips("a container", container().display_card("128b", None)),
    skips("WSL", wsl()),
    skips("a Jetson", jetson()),
    passes("Windows", windows()),
    unknown_when(
        "the driver's version is not known",
        NONE_FOUND.unknown("driver.nvml_version", "driver.module_version", "driver.procfs_version"),
    ),
    unknown_when("a branch of tomorrow", linux().driver("999.10", "19.0").no_devices()),
    fails(
        "a report: the kernel log names the last branch",
        report().log("needs-legacy-driver", "NVRM: ...", branch="470"),
        says="R470",
        certainty="certain",
        severity="error",
    ),
    fails(
        "a report: the kernel log says that the driver does not know the card",
        report().log("unsupported-gpu", "NVRM: ...", driver="535.54.03"),
        says=["535.54.03", "newer or older"],
        certainty="likely",
        fix="install-driver",
    ),
    fails(
        "a report: a Kepler card under a branch of today",
        report().log("unsupported-gpu", "NVRM: ...", driver="550.144.03", device_id="11c0"),
        says="R470 was the last branch",
        certainty="certain",
        fix="install-driver",
    ),
    fails(
        "a report: a card that is newer than the branch",
        report().log("unsupported-gpu", "NVRM: ...", driver="535.54.03", device_id="2b85"),
        says="or newer",
        certainty="certain",
    ),
    skips(
        "a report: the module denies a card that its branch serves",
        report().log("unsupported-gpu", "NVRM: ...", driver="550.144.03", device_id="2684"),
    ),
    skips("a report about torch", report("linux")),
    skips(
        "a report in which only a person names the card",
        report("linux").set({"gpu.told": ["NVIDIA GeForce RTX 4090"]}),
    ),
]
