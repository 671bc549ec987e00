"""Where the process runs, and what of a driver is installed there."""

from __future__ import annotations

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import (
    driver_software,
    in_container,
    in_job,
    in_wsl,
    nvidia_nodes,
    on_jetson,
    on_own_linux,
)
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import Machine, container, device_nodes, jetson, linux, windows, wsl


def case(machine: Machine) -> Case:
    return Case(machine.facts, load_matrix())


IN_A_CONTAINER = jetson().set({"system.container": "docker"}).unknown("system.jetson")


@pytest.mark.parametrize(
    ("machine", "own", "contained", "under_windows", "on_a_jetson"),
    [
        (linux(), True, False, False, False),
        (container("charliecloud"), False, True, False, False),
        (container().set({"system.wsl": 2}), False, True, True, False),
        (wsl(), False, False, True, False),
        (jetson(), False, False, False, True),
        (IN_A_CONTAINER, False, True, False, True),
        (IN_A_CONTAINER.set({"device.nodes": []}), False, True, False, True),
        (windows(), False, False, False, False),
        (linux().unknown("system.container"), True, False, False, False),
    ],
)
def test_where(machine: Machine, own: bool, contained: bool, under_windows: bool, on_a_jetson: bool) -> None:
    here = case(machine)
    found = (on_own_linux(here), in_container(here), in_wsl(here), on_jetson(here))
    assert found == (own, contained, under_windows, on_a_jetson)


def test_a_login_node_is_in_no_job() -> None:
    assert not in_job(case(linux().set({"scheduler.kind": "slurm"})))
    assert in_job(case(linux().job()))


def test_only_numbered_nodes_are_cards() -> None:
    nodes = device_nodes("/dev/nvidia0", "/dev/nvidia10", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1", "/dev/dxg")
    found = nvidia_nodes(case(linux().set({"device.nodes": nodes})))
    assert [node["path"] for node in found] == ["/dev/nvidia0", "/dev/nvidia10"]


@pytest.mark.parametrize(
    ("machine", "installed"),
    [
        (linux(), True),
        (linux().not_loaded(), True),
        (linux().no_driver(), False),
        (linux().no_driver().set({"kernel.dkms": [{"version": "580.95.05"}]}), True),
        (windows().no_driver(), False),
        (windows().no_driver().set({"driver.windows_version": "581.57"}), True),
    ],
)
def test_driver_software(machine: Machine, installed: bool) -> None:
    assert driver_software(case(machine)) is installed


class TestKernelLog:
    MACHINE = linux().log("xid", number="79").log("init-failed").log("xid", number="31")

    def test_events_of_a_kind_in_their_order(self) -> None:
        assert [event["values"]["number"] for event in events(case(self.MACHINE), "xid")] == ["79", "31"]

    def test_a_log_that_could_not_be_read_has_none(self) -> None:
        assert events(case(self.MACHINE.unknown("kernel.log_events")), "xid", "init-failed") == []
