"""Why a card that is on the bus is not among those that the driver lists."""

from __future__ import annotations

import pytest

from cudadoctor.derive import left_out as reasons
from cudadoctor.derive.case import Case
from cudadoctor.derive.left_out import flavour_needed, left_out, listed, within_reach
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import Machine, container, linux, pci_card


def case(machine: Machine) -> Case:
    return Case(machine.facts, load_matrix())


NONE_FOUND = linux().no_devices()
EXCLUDED = {"address": "0000:02:00.0", "model": None, "minor": 1, "firmware": None, "excluded": True}
BLACKWELL = {"pci.gpus": [pci_card("0000:01:00.0", "2b85", None)]}

CASES = [
    ("nouveau has it", linux().display_card("128b", "nouveau"), reasons.OTHER_DRIVER),
    ("a container was given another", container().display_card("2684", "nvidia"), reasons.NOT_GIVEN),
    ("a job was given another", linux().job(gpus=1).display_card("2684", "nvidia"), reasons.NOT_GIVEN),
    (
        "the administrator excluded it",
        linux().display_card("2684", "nvidia").set({"procfs.gpus": [EXCLUDED]}),
        reasons.EXCLUDED,
    ),
    (
        "a part of a card that is shared out",
        linux().set({"pci.gpus": [pci_card("0000:01:00.0", "20b0", "nvidia"), pci_card("0000:01:00.4", "20b0", None)]}),
        reasons.VIRTUAL,
    ),
    ("the branch has dropped it", linux().display_card("128b", None), reasons.TOO_OLD),
    (
        "the branch does not know it yet",
        linux().driver("550.54.14", "12.4").no_devices().set(BLACKWELL),
        reasons.TOO_NEW,
    ),
    (
        "it needs the open module",
        NONE_FOUND.set(BLACKWELL).set({"driver.module_flavour": "proprietary"}),
        reasons.NEEDS_OPEN,
    ),
    ("it needs the proprietary module", linux().display_card("1b06", None), reasons.NEEDS_PROPRIETARY),
    (
        "the kernel log knows better than its age",
        NONE_FOUND.log("needs-open-module", bus_id="0000:01:00.0"),
        reasons.NEEDS_OPEN,
    ),
    ("nothing explains it", NONE_FOUND, reasons.UNEXPLAINED),
    (
        "a line about another card explains nothing",
        NONE_FOUND.log("needs-open-module", bus_id="0000:09:00.0"),
        reasons.UNEXPLAINED,
    ),
    (
        "a line about no card in particular, and two cards",
        NONE_FOUND.display_card("2684", "nvidia").log("needs-open-module"),
        reasons.UNEXPLAINED,
    ),
    ("in a job that sees none of its cards", NONE_FOUND.job(gpus=1), reasons.UNEXPLAINED),
]


@pytest.mark.parametrize(("title", "machine", "why"), CASES)
def test_why(title: str, machine: Machine, why: str) -> None:
    found = left_out(case(machine))
    assert found[-1].why == why
    assert found[-1].evidence


def test_a_healthy_machine_leaves_none_out() -> None:
    assert left_out(case(linux())) == () and len(listed(case(linux()))) == 1


class TestWithinReach:
    """The cards that torch's list is held against."""

    def labels(self, machine: Machine) -> list[str]:
        return [gpu.label for gpu in within_reach(case(machine))]

    def test_what_the_driver_lists(self) -> None:
        assert self.labels(linux()) == ["NVIDIA GeForce RTX 4090"]

    @pytest.mark.parametrize(
        "machine",
        [
            linux().display_card("128b", "nouveau"),
            linux().display_card("128b", None),
            container().display_card("1b06", "nvidia"),
            linux().job(gpus=1).display_card("1b06", "nvidia"),
        ],
    )
    def test_no_card_that_is_for_others_or_for_a_screen(self, machine: Machine) -> None:
        assert self.labels(machine) == ["NVIDIA GeForce RTX 4090"]

    def test_a_card_that_another_module_would_serve(self) -> None:
        assert self.labels(linux().display_card("1b06", None))[1:] == ["NVIDIA GeForce GTX 1080 Ti"]

    def test_all_of_them_while_the_driver_lists_none(self) -> None:
        assert self.labels(linux().no_driver()) == ["NVIDIA GeForce RTX 4090"]


@pytest.mark.parametrize(
    ("device_id", "flavour"), [("2b85", "open"), ("1b06", "proprietary"), ("2684", None), ("ffff", None)]
)
def test_the_module_that_a_card_needs(device_id: str, flavour: str | None) -> None:
    machine = linux().no_devices().set({"pci.gpus": [pci_card("0000:01:00.0", device_id, None)]})
    (entry,) = left_out(case(machine))
    assert flavour_needed(case(machine), entry.gpu) == flavour
