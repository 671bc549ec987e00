"""The plans for the recorded machines: what they promise, laid over the recorded facts, leaves nothing to mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import Fact, Facts, absent, known
from cudadoctor.plan import make_plan
from cudadoctor.plan.shell import quote
from cudadoctor.probes.examine import examine
from cudadoctor.system.replay import ReplaySystem

RECORDINGS = Path(__file__).parent.parent / "machines"
MACHINES = sorted(path.parent.name for path in RECORDINGS.glob("*/machine.json"))
MATRIX = load_matrix()


@pytest.mark.parametrize("name", MACHINES)
def test_plan(name: str) -> None:
    facts: Facts = examine(ReplaySystem(str(RECORDINGS / name)))
    report = diagnose(facts, MATRIX)
    plan = make_plan(report, MATRIX, strict=True)
    steps = (*plan.steps, *plan.advice)
    changes: dict[str, Fact[Any]] = {}
    promising: set[str] = set()
    for step in steps:
        quote(step.argv or (), plan.shell)
        assert step.argv or step.instructions
        if step.effect:
            promising.update(step.mends)
        for fact, value in step.effect.items():
            changes[fact] = absent("effect") if value is None else known(value, "effect")
    again = diagnose(facts.updated(changes), MATRIX)
    left = {o.rule: o.message for o in again.outcomes if o.failed and o.rule in promising}
    assert not left
    if report.root_causes and any(o.fixes for o in report.outcomes if o.rule == report.root_causes[0]):
        assert report.root_causes[0] in {rule for step in steps for rule in step.mends}
    if not any(outcome.failed for outcome in report.outcomes):
        assert steps == ()
