"""What a machine that lacks what a policy asks for is told to do: each finding has a way out, and one that can work."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import FAIL
from cudadoctor.plan import Plan, make_plan
from cudadoctor.plan.shell import quote
from cudadoctor.testing import GIB, MIB, Machine, container, linux, node

pytestmark = pytest.mark.once

MATRIX = load_matrix()


def planned(machine: Machine) -> Plan:
    return make_plan(diagnose(machine.facts, MATRIX), MATRIX, strict=True)


class Advice(NamedTuple):
    """A machine, what is asked of it, and what the advice holds and does not hold."""

    title: str
    machine: Machine
    asked: dict[str, Any]
    says: tuple[str, ...]
    never: tuple[str, ...] = ()


ADVICE = [
    Advice(
        "no GPU is conjured up", node(4), {"gpu.count": "==8"}, ("Take a machine with as many GPUs", "ask for fewer")
    ),
    Advice(
        "a job is told what to ask for",
        node(4).job(gpus=4),
        {"gpu.count": "==8"},
        ("--gres=gpu:8",),
        ("Take a machine",),
    ),
    Advice("an old card", linux(), {"gpu.compute_capability": ">=9.0"}, ("Ask for another kind of card",)),
    Advice("a small card", linux(), {"gpu.memory_total": 70 * GIB}, ("Ask for a card with more memory",)),
    Advice(
        "memory that a card never has cannot be freed",
        linux(),
        {"gpu.memory_free": 70 * GIB},
        ("Ask for a card with more memory",),
        ("Free the GPU's memory", "fuser"),
    ),
    Advice(
        "memory that somebody holds",
        node(1).set({"gpu.0.memory_free": GIB, "gpu.0.processes": [{"pid": 4711, "memory": 79 * GIB}]}),
        {"gpu.memory_free": 70 * GIB},
        ("Free the GPU's memory", "nvidia-smi shows who holds it"),
    ),
    Advice(
        "memory that nobody seems to hold",
        node(1).set({"gpu.0.memory_free": GIB}),
        {"gpu.memory_free": 70 * GIB},
        ("No process is seen on it", "fuser -v /dev/nvidia*"),
    ),
    Advice(
        "another driver", node(1), {"driver.version": "==535.*"}, ("The policy asks for 535.*.", "widen driver.version")
    ),
    Advice("another torch", linux(), {"torch.version": "==2.7.*"}, ('"torch==2.7.',)),
    Advice("another CUDA, of which there is one build", linux(), {"torch.cuda": "==12.6"}, ("/cu126",)),
    Advice("some other CUDA", linux(), {"torch.cuda": "<12.9,>=12.4"}, ("cudadoctor matrix query --cuda VERSION",)),
    Advice(
        "a small working folder has nothing to do with TMPDIR",
        node(1).set({"disk.working_free": GIB}),
        {"disk.working": 9 * GIB},
        ("8.0 GiB more is needed in the working folder", "another folder"),
        ("TMPDIR",),
    ),
    Advice(
        "a small /tmp",
        node(1).set({"disk.temporary_free": GIB}),
        {"disk.temporary": 9 * GIB},
        ("TMPDIR",),
    ),
    # 20 GiB are in use, and stay so.
    Advice(
        "what is used of /dev/shm comes on top",
        node(1).set({"memory.shm_size": 32 * GIB, "memory.shm_free": 12 * GIB}),
        {"disk.shm": 64 * GIB},
        ("remount,size=84G",),
    ),
    Advice(
        "/dev/shm is memory",
        linux().set({"memory.shm_size": 32 * GIB, "memory.shm_free": 32 * GIB}),
        {"disk.shm": 200 * GIB},
        ("/dev/shm is memory, of which this machine has 64.0 GiB",),
        ("remount",),
    ),
    Advice(
        "Docker's /dev/shm",
        container().set({"memory.shm_size": 64 * MIB, "memory.shm_free": 64 * MIB}),
        {"disk.shm": 8 * GIB},
        ("docker run --shm-size=8g",),
    ),
    Advice("open files", linux(), {"limits.nofile": "65536"}, ("ulimit -n 65536.",), ("NUMBER",)),
    Advice("locked memory counts in KiB", linux(), {"limits.memlock": str(16 * GIB)}, ("ulimit -l 16777216.",)),
    Advice("a container's limits", container(), {"limits.memlock": "unlimited"}, ("docker run --ulimit memlock=-1",)),
    Advice(
        "a job's share of the memory",
        node(8).job().set({"memory.cgroup_limit": 32 * GIB}),
        {"system.memory_total": 100 * GIB},
        ("--mem",),
    ),
    Advice(
        "memory that others hold", linux(), {"system.memory_available": 60 * GIB}, ("Free the machine's memory", "ps ")
    ),
    Advice(
        "more memory than there is cannot be freed",
        linux(),
        {"system.memory_available": 600 * GIB},
        ("Take a machine with more memory",),
        ("Free the",),
    ),
    Advice("a hot card", node(2).set({"gpu.1.temperature": 80}), {"gpu.temperature": 60}, ("nvidia-smi -i 1 -q",)),
    Advice("few lanes", node(2).set({"gpu.1.pcie_width": 8}), {"gpu.pcie_width": 16}, ("nvidia-smi -i 1 -q",)),
    Advice(
        "a link that is as fast as the slot",
        node(2).set({"gpu.1.pcie_generation_max": 3}),
        {"gpu.pcie_generation": 5},
        ("Take a machine whose card and slot can do it",),
        ("holds the PCIe link down",),
    ),
    Advice(
        "a link that is down",
        node(2).set({"gpu.1.nvlinks_up": 17, "gpu.1.nvlinks_down": 1}),
        {"gpu.nvlink": True},
        ("nvidia-smi nvlink -s",),
    ),
    Advice(
        "MIG where whole cards are asked for", node(2).set({"gpu.1.mig_mode": True}), {"gpu.mig": False}, ("-mig 0",)
    ),
    Advice(
        "slow clocks",
        node(1).set({"gpu.0.throttle_reasons": ["hw_power_brake_slowdown"]}),
        {"gpu.throttled": False},
        ("PERFORMANCE", "Power supply"),
    ),
]


@pytest.mark.parametrize("case", ADVICE, ids=[case.title for case in ADVICE])
def test_the_advice_fits_the_reason(case: Advice) -> None:
    plan = planned(case.machine.asks(case.asked))
    said = "\n".join(
        " ".join((step.title, step.instructions or "", quote(step.argv, plan.shell) if step.argv else ""))
        for step in plan.steps
    )
    assert [word for word in case.says if word not in said] == [], said
    assert [word for word in case.never if word in said] == [], said


def test_every_finding_about_a_policy_has_a_way_out() -> None:
    for case in ADVICE:
        report = diagnose(case.machine.asks(case.asked).facts, MATRIX)
        found = [outcome for outcome in report.outcomes if outcome.rule.startswith("CD0") and outcome.status == FAIL]
        assert found and all(outcome.fixes for outcome in found), case.title
