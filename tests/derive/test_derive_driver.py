"""Which driver is at work, and whether it answers."""

from __future__ import annotations

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.derive.driver import NO, UNCLEAR, YES, answer, cuda_ceiling, numbering, version, version_fact
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import Machine, container_without_gpu, jetson, linux, report, windows, wsl


def case(machine: Machine) -> Case:
    return Case(machine.facts, load_matrix())


HUNG_AT_A_CARD = linux().unknown("gpu.count").set({"driver.nvml_unresponsive": True})

ANSWERS = [
    ("both answer", linux(), YES, "driver.nvml_version"),
    ("NVML alone", linux().unknown("driver.smi_version"), YES, "driver.nvml_version"),
    (
        "nvidia-smi timed out, NVML did not",
        linux().unknown("driver.smi_version").set({"driver.smi_failure": "timed-out"}),
        YES,
        "driver.nvml_version",
    ),
    ("NVML's library is missing", linux().unknown("driver.nvml_version"), YES, "driver.smi_version"),
    ("NVML hung at a card, nvidia-smi did not", HUNG_AT_A_CARD, YES, "driver.smi_version"),
    (
        "NVML hung at a card, and there is no nvidia-smi",
        HUNG_AT_A_CARD.unknown("driver.smi_version", "driver.smi_failure"),
        NO,
        "driver.nvml_unresponsive",
    ),
    ("NVML refuses", linux().driver_fails(9, "no-driver", 9), NO, "driver.nvml_error"),
    (
        "nvidia-smi alone fails",
        linux().driver_fails(9, "no-driver", 9).unknown("driver.nvml_error"),
        NO,
        "driver.smi_failure",
    ),
    ("nothing is installed", linux().no_driver(), NO, "driver.nvml_library"),
    ("both hang", linux().hangs(), NO, "driver.smi_failure"),
    ("a Jetson of old has neither", jetson(), YES, "device.nodes"),
    ("a container on a Jetson without its GPU", jetson().set({"device.nodes": []}), UNCLEAR, "device.nodes"),
    (
        "the library could not be looked for",
        container_without_gpu().unknown("driver.nvml_library"),
        UNCLEAR,
        "driver.nvml_version",
    ),
    ("nobody was asked", linux().only("system.os"), UNCLEAR, "driver.nvml_version"),
    (
        "a person names the driver's version",
        report("linux").set({"driver.told_version": "560.35.03"}),
        UNCLEAR,
        "driver.nvml_version",
    ),
]


@pytest.mark.parametrize(("title", "machine", "state", "fact"), ANSWERS)
def test_answer(title: str, machine: Machine, state: str, fact: str) -> None:
    found = answer(case(machine))
    assert (found.state, found.evidence[0]) == (state, fact)
    assert found.reason


class TestVersion:
    def test_nvml_is_trusted_before_all(self) -> None:
        machine = linux().set({"driver.smi_version": "1.1", "driver.module_version": "2.2"})
        assert version(case(machine)).get() == "580.95.05"
        assert version_fact(case(machine)) == "driver.nvml_version"

    def test_the_loaded_module_tells_where_nobody_answers(self) -> None:
        machine = linux().driver_fails(18, "mismatch", 18)
        assert version(case(machine)).get() == "580.95.05"
        assert version_fact(case(machine)) == "driver.module_version"

    def test_the_library_on_disk_is_not_the_driver_at_work(self) -> None:
        machine = linux().not_loaded()
        assert machine.facts["driver.library_version"].is_known
        assert version(case(machine)).is_absent

    def test_a_loaded_module_of_unknown_version_is_not_absent(self) -> None:
        machine = linux().driver_fails(4, "permission", 4).unknown("driver.module_version", "driver.procfs_version")
        assert version(case(machine)).is_unknown

    def test_wsl_has_no_module_that_could_tell(self) -> None:
        machine = wsl().driver_fails(9, "no-driver", 9).set({"driver.module_version": "535.1"})
        assert not version(case(machine)).is_known

    def test_what_a_person_names_comes_last(self) -> None:
        machine = report("linux").set({"driver.told_version": "560.35.03"})
        assert version(case(machine)).get() == "560.35.03"
        assert version(case(machine.set({"driver.smi_version": "535.54.03"}))).get() == "535.54.03"

    def test_windows_knows_it_without_nvml(self) -> None:
        machine = windows().driver_fails(9, "no-driver", 9)
        assert version(case(machine)).get() == "581.57"


class TestNumbering:
    @pytest.mark.parametrize(("machine", "whose"), [(linux(), "linux"), (windows(), "windows"), (wsl(), "windows")])
    def test_wsl_counts_as_windows(self, machine: Machine, whose: str) -> None:
        assert numbering(case(machine)) == whose


class TestCeiling:
    def test_as_the_driver_says_it(self) -> None:
        assert cuda_ceiling(case(linux())).get() == "13.0"

    def test_else_by_the_branch(self) -> None:
        machine = linux().driver("535.183.01", "12.2").unknown("driver.nvml_cuda", "driver.smi_cuda")
        assert cuda_ceiling(case(machine)).get() == "12.2"

    def test_unknown_without_a_driver(self) -> None:
        assert cuda_ceiling(case(linux().no_driver())).is_unknown
