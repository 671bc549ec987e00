"""Which GPUs are in the machine, out of sources that each know a part of it."""

from __future__ import annotations

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.derive.gpus import NONE, PRESENT, UNCLEAR, Gpu, gpus, presence
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import (
    GIB,
    GONE,
    Machine,
    container,
    container_without_gpu,
    device_nodes,
    jetson,
    linux,
    pci_card,
    report,
    windows,
    wsl,
)


def case(machine: Machine) -> Case:
    return Case(machine.facts, load_matrix())


def seen(machine: Machine) -> list[tuple[str, object, object]]:
    return [(gpu.label, gpu.index, gpu.compute_capability.value) for gpu in gpus(case(machine))]


def only(machine: Machine) -> Gpu:
    (gpu,) = gpus(case(machine))
    return gpu


RTX_4090 = ("NVIDIA GeForce RTX 4090", 0, "8.9")


class TestOneSourceEach:
    def test_what_a_person_names_is_listed_by_no_driver(self) -> None:
        machine = report("linux").set({"gpu.told": ["NVIDIA GeForce RTX 4090"]})
        assert seen(machine) == [("NVIDIA GeForce RTX 4090", None, "8.9")]
        assert only(machine).facts == ("gpu.told",)

    def test_nvml_knows_all(self) -> None:
        gpu = only(linux())
        assert (gpu.label, gpu.index, gpu.compute_capability.get(), gpu.memory.get()) == (*RTX_4090, 24 * GIB)
        assert gpu.pci_device_id == "2684" and gpu.bound_driver == "nvidia" and not gpu.lost
        assert gpu.facts == ("gpu.0.name", "gpu.0.compute_capability")

    def test_a_report_that_tells_details_of_one_card_and_lists_both(self) -> None:
        rows = [{"index": n, "name": f"NVIDIA GeForce RTX 40{n}...", "truncated": True} for n in (6, 7)]
        told = {"examination.kind": "report", "smi.gpus": rows, "gpu.6.temperature": 60}
        found = case(linux().only("system.os").set(told)).derived(gpus)
        assert [(gpu.index, gpu.label, gpu.name_is_cut) for gpu in found] == [
            (6, "NVIDIA GeForce RTX 406...", True),
            (7, "NVIDIA GeForce RTX 407...", True),
        ]

    def test_nvidia_smi_where_nvml_is_silent(self) -> None:
        gpu = only(linux().unknown("gpu.count"))
        assert (gpu.label, gpu.index, gpu.compute_capability.get()) == RTX_4090
        assert gpu.facts == ("smi.gpus",)

    def test_an_old_nvidia_smi_cuts_names_and_knows_no_compute_capability_and_the_bus_does(self) -> None:
        row = {"index": 0, "name": "NVIDIA GeForce RTX 40...", "truncated": True, "address": "0000:01:00.0"}
        gpu = only(linux().unknown("gpu.count").set({"smi.gpus": [row]}))
        assert gpu.compute_capability.get() == "8.9" and gpu.pci_device_id == "2684"
        assert gpu.facts == ("smi.gpus", "pci.gpus")

    def test_a_cut_name_alone_may_be_any_of_several(self) -> None:
        row = {"index": 0, "name": "NVIDIA GeForce RTX 30...", "truncated": True, "address": None}
        gpu = only(linux().only("system.os").set({"smi.gpus": [row]}))
        assert gpu.name_is_cut and gpu.compute_capability.is_unknown

    def test_the_bus_alone(self) -> None:
        gpu = only(linux().no_driver())
        assert (gpu.label, gpu.index, gpu.compute_capability.get()) == ("NVIDIA GeForce RTX 4090", None, "8.9")
        assert gpu.memory.is_absent and gpu.facts == ("pci.gpus",)

    def test_a_card_of_the_bus_that_the_matrix_does_not_know(self) -> None:
        gpu = only(linux().no_driver().set({"pci.gpus": [pci_card("0000:01:00.0", "ffff", None)]}))
        assert gpu.label == "NVIDIA GPU (PCI id 10de:ffff)" and gpu.compute_capability.is_unknown

    def test_proc_alone(self) -> None:
        assert seen(linux().only("system.os", "procfs.gpus")) == [("NVIDIA GeForce RTX 4090", None, "8.9")]

    def test_the_registry_alone(self) -> None:
        assert seen(windows().only("system.os", "windows.gpus")) == [("NVIDIA GeForce RTX 4070", None, "8.9")]

    def test_windows_own_name_for_a_card_without_driver_is_not_shown(self) -> None:
        assert seen(windows().no_driver()) == [("NVIDIA GeForce RTX 4070", None, "8.9")]

    def test_adapters_of_other_makers_are_none(self) -> None:
        intel = {"name": "Intel(R) UHD Graphics", "driver_version": None, "vendor_id": "8086", "device_id": "9bc4"}
        assert seen(windows().no_gpu().set({"windows.gpus": [intel]})) == []


class TestSourcesTogether:
    def test_a_card_that_the_driver_leaves_out_is_in_the_machine(self) -> None:
        assert seen(linux().display_card("128b", "nouveau")) == [
            RTX_4090,
            ("NVIDIA GeForce GT 710", None, "3.5"),
        ]

    def test_a_card_that_a_virtual_machine_has_is_not(self) -> None:
        assert seen(linux().display_card("2684", "vfio-pci")) == [RTX_4090]

    def test_nvml_names_a_lost_card_no_more_and_the_bus_does(self) -> None:
        two = linux().gpu("NVIDIA RTX A6000", "8.6", 48, device_id="2230", index=1)
        gone = two.unknown(
            *(f"gpu.1.{name}" for name in ("name", "pci_address", "pci_device_id", "compute_capability")),
            reason="NVML: GPU is lost",
        ).set({"gpu.1.lost": True})
        second = gpus(case(gone))[1]
        assert (second.label, second.index, second.lost) == ("NVIDIA RTX A6000", 1, True)
        assert second.compute_capability.get() == "8.6" and len(gpus(case(gone))) == 2

    def test_a_table_without_addresses_is_matched_by_name(self) -> None:
        row = {"index": 0, "name": "NVIDIA GeForce RTX 4090", "truncated": False, "address": None}
        machine = linux().unknown("gpu.count").display_card("128b", "nouveau").set({"smi.gpus": [row]})
        assert seen(machine) == [RTX_4090, ("NVIDIA GeForce GT 710", None, "3.5")]

    def test_a_table_without_addresses_that_fits_no_card_claims_none(self) -> None:
        row = {"index": 0, "name": "NVIDIA GeForce RTX 30...", "truncated": True, "address": None}
        machine = linux().unknown("gpu.count").display_card("128b", "nouveau").set({"smi.gpus": [row]})
        first = gpus(case(machine))[0]
        assert first.compute_capability.is_unknown and len(gpus(case(machine))) == 2


@pytest.mark.parametrize(
    ("title", "machine", "state"),
    [
        ("a workstation", linux(), PRESENT),
        ("without a driver", linux().no_driver(), PRESENT),
        ("a container without its GPU, whose host has one", container_without_gpu(), PRESENT),
        ("a node of a card, and nothing else that could be seen", container().only("device.nodes"), PRESENT),
        (
            "nvidiactl alone is a left-over",
            linux().no_gpu().set({"device.nodes": device_nodes("/dev/nvidiactl")}),
            NONE,
        ),
        ("a Jetson", jetson(), PRESENT),
        ("a Jetson's kernel below a container", jetson().only("system.os", "system.kernel_release"), PRESENT),
        ("planning", linux().only().set({"request.gpu": True}), PRESENT),
        ("WSL", wsl(), PRESENT),
        ("WSL by Windows' library alone", wsl().only("system.os", "system.wsl", "driver.libcuda"), PRESENT),
        ("WSL without Windows' library", wsl().no_driver(), UNCLEAR),
        ("Windows without", windows().no_gpu(), NONE),
        ("Windows whose registry is closed", windows().no_gpu().unknown("windows.gpus"), UNCLEAR),
        ("Linux without", linux().no_gpu(), NONE),
        ("held for virtual machines", linux().no_gpu().display_card("2684", "vfio-pci"), NONE),
        ("a board without PCI", linux().no_gpu().set({"pci.gpus": GONE}), NONE),
        (
            "a board without PCI, and an NVIDIA library",
            linux()
            .set({"pci.gpus": GONE})
            .only("system.os", "pci.gpus", "driver.nvml_library", "device.nodes")
            .set({"device.nodes": []}),
            UNCLEAR,
        ),
        (
            "no card on the bus, and a library that has not answered yet",
            linux()
            .no_gpu()
            .set({"driver.nvml_library": "libnvidia-ml.so.1"})
            .unknown("driver.nvml_version", "driver.nvml_error", reason="timed out after 1 s"),
            UNCLEAR,
        ),
        (
            "no card on the bus, and a library that finds no driver",
            linux()
            .no_gpu()
            .set({"driver.nvml_library": "libnvidia-ml.so.1", "driver.nvml_error": 9})
            .unknown("driver.nvml_version", reason="NVML did not start"),
            NONE,
        ),
        ("a sandbox that hides the bus", linux().no_gpu().unknown("pci.gpus"), UNCLEAR),
        ("macOS", linux().no_gpu().set({"system.os": "darwin", "pci.gpus": GONE}), NONE),
        ("nothing is known", linux().only(), UNCLEAR),
    ],
)
def test_presence(title: str, machine: Machine, state: str) -> None:
    found = presence(case(machine))
    assert found.state == state, found.reason
    assert found.reason and found.evidence
