"""A report that names no GPU still gets commands: one for each kind of GPU, each with its driver."""

from __future__ import annotations

import pytest

from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import Facts, known
from cudadoctor.plan import Plan, make_plan

MATRIX = load_matrix()


def plan_for(torch: str, **more: str) -> Plan:
    told = {"examination.kind": "report", "torch.version": torch, "system.os": "linux", **more}
    facts = Facts({name: known(value, "the text") for name, value in told.items()})
    return make_plan(diagnose(facts, MATRIX), MATRIX)


@pytest.mark.parametrize(
    ("torch", "commands"),
    [
        ("2.6.0+cpu", {"Hopper": "torch==2.6.0+cu126", "Blackwell": "torch==2.7.1+cu128"}),
        ("2.9.1+cpu", {"Pascal": "torch==2.9.1+cu126", "Blackwell": "torch==2.9.1+cu1"}),
    ],
)
def test_each_kind_of_gpu_has_its_command(torch: str, commands: dict[str, str]) -> None:
    (step,) = [step for step in plan_for(torch).steps if step.id == "name-the-gpu"]
    lines = step.instructions.splitlines()
    assert step.argv is None
    for kind, requirement in commands.items():
        number = next(place for place, line in enumerate(lines) if kind in line and line.endswith(":"))
        assert lines[number + 1].startswith("    python -m pip install") and requirement in lines[number + 1]
        assert "driver 5" in lines[number]


def test_a_driver_that_is_known_is_not_asked_for() -> None:
    steps = plan_for("2.6.0+cpu", **{"driver.smi_version": "550.54.14"}).steps
    assert all("or newer:" not in step.instructions for step in steps)
