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


TOO_OLD = "The NVIDIA driver on your system is too old (found version {number})."


def told_too_old(number: str, **more: object) -> Plan:
    told = {
        "examination.kind": "report",
        "symptom.driver_too_old": {"text": TOO_OLD.format(number=number), "found": number},
        **more,
    }
    return make_plan(diagnose(Facts({name: known(value, "the text") for name, value in told.items()}), MATRIX), MATRIX)


def test_a_driver_that_is_too_old_for_a_gpu_whose_name_is_cut_has_both_ways_out() -> None:
    """nvidia-smi writes "NVIDIA GeForce ...": the driver's update and the builds that the driver serves are offered."""
    cut = {"index": 0, "name": "NVIDIA GeForce ...", "truncated": True}
    plan = told_too_old("11040", **{"driver.smi_version": "470.86", "driver.smi_cuda": "11.4", "smi.gpus": [cut]})
    (step,) = [step for step in plan.steps if step.id == "name-the-gpu"]
    assert step.title == "Update the driver, or take a torch that it serves"
    assert "A newer driver: 525.60.13 or later serves CUDA 12." in step.instructions
    assert "+cu118" in step.instructions
    # Cards that this driver does not know are not in the machine: no build that it cannot serve is named.
    assert "+cu12" not in step.instructions


def test_where_no_build_is_known_that_the_driver_serves_the_driver_is_the_way_out() -> None:
    (step,) = told_too_old("9010").steps
    assert "driver" in step.title and "https://www.nvidia.com/drivers" in step.instructions
