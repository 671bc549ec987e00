"""CD108: the card works with the other kernel module only."""

from __future__ import annotations

from cudadoctor.testing import container, fails, linux, passes, pci_card, report, skips, unknown_when, windows, wsl

RULE = "CD108"

CLOSED = {"driver.module_flavour": "proprietary"}
BLACKWELL = linux().no_devices().set({"pci.gpus": [pci_card("0000:01:00.0", "2b85", "nvidia")]})
PASCAL = linux().no_devices().set({"pci.gpus": [pci_card("0000:01:00.0", "1b06", None)]})
BOTH = linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85").display_card("1b06", None)

CASES = [
    passes("every card is listed", linux()),
    passes("every card is listed, by the proprietary module", linux().set(CLOSED)),
    fails(
        "an RTX 5090 on the proprietary module",
        BLACKWELL.set(CLOSED),
        says=["RTX 5090 needs the open kernel module", "the proprietary one is loaded"],
        certainty="likely",
        severity="error",
        blame="machine",
        fix="install-open-kernel-module",
    ),
    fails(
        "the kernel log says so",
        BLACKWELL.set(CLOSED).log("needs-open-module", bus_id="0000:01:00.0"),
        certainty="certain",
        fix="install-open-kernel-module",
    ),
    fails(
        "a GTX 1080 Ti on the open module",
        PASCAL,
        says="needs the proprietary",
        fix="install-proprietary-kernel-module",
    ),
    fails(
        "the log knows it where the flavour is not known",
        PASCAL.unknown("driver.module_flavour").log("needs-proprietary-module"),
        certainty="certain",
    ),
    fails(
        "a GTX 1080 Ti beside an RTX 4090: the proprietary module serves both",
        linux().display_card("1b06", None),
        severity="warning",
        fix="install-proprietary-kernel-module",
    ),
    fails(
        "a GTX 1080 Ti beside an RTX 5090: no module serves both, and nothing is offered",
        BOTH,
        says=["no module serves both", "GTX 1080 Ti (proprietary)", "RTX 5090 (open)"],
        severity="warning",
    ),
    passes("an RTX 3060 works with either, and fails for another reason", linux().no_devices()),
    passes("an RTX 5090 on the open module fails for another reason", BLACKWELL),
    passes("a card too old for the branch has no module at all", linux().display_card("128b", None)),
    passes("nouveau drives the old card for a screen", linux().display_card("1b06", "nouveau")),
    skips("the module is not loaded", linux().not_loaded()),
    skips("no card", linux().no_gpu()),
    skips("a container that was given one of two cards", container().display_card("1b06", None)),
    passes("a job that was given one of two cards", linux().job(gpus=1).display_card("1b06", None)),
    skips("Windows has one", windows()),
    skips("WSL has none", wsl()),
    unknown_when("the flavour is not known", PASCAL.unknown("driver.module_flavour")),
    fails(
        "a report: the kernel log asks for the open one",
        report().log("needs-open-module", "NVRM: ... requires use of the NVIDIA open kernel modules"),
        certainty="certain",
        fix="install-open-kernel-module",
    ),
    fails(
        "a report: the open one does not start the card's processor",
        report()
        .log("init-failed", "NVRM: cannot bootstrap riscv/gsp", gsp="yes")
        .set({"driver.module_flavour": "open"}),
        certainty="likely",
        fix="install-proprietary-kernel-module",
    ),
    skips("a report about torch", report("linux")),
    skips(
        "a report in which only a person names the card",
        report("linux").set({"gpu.told": ["NVIDIA GeForce RTX 4090"]}),
    ),
]
