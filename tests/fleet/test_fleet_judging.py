"""A node whose facts alone are known gets the verdict that a check of them gives, however many were judged before."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from fleet_nodes import matrix, node

from cudadoctor.derive.case import Case
from cudadoctor.diagnose import diagnose, judge_rule
from cudadoctor.fleet.judging import Judge, read_fact
from cudadoctor.model import Facts, Outcome, ParseError, Rule, absent, known, unknown
from cudadoctor.probes.examine import examine
from cudadoctor.rules import rule_files
from cudadoctor.system.replay import ReplaySystem

MACHINES = Path(__file__).parent.parent / "machines"


@cache
def recorded() -> tuple[Facts, ...]:
    found = (examine(ReplaySystem(str(path.parent))) for path in sorted(MACHINES.glob("*/machine.json")))
    return tuple(facts.updated({"examination.kind": known("facts", "snapshot")}) for facts in found)


def changed(facts: Facts, chance: random.Random) -> Facts:
    """The same machine, some of its facts gone, unknown or another machine's."""
    changes = {}
    for name in chance.sample(sorted(facts), 6):
        other = chance.choice(recorded())[name]
        changes[name] = chance.choice([absent("x"), unknown("permission denied"), other])
    return facts.updated(changes)


def test_what_is_remembered_of_other_nodes_changes_no_verdict() -> None:
    chance = random.Random(707)
    judge = Judge(matrix())
    for facts in recorded():
        for other in (facts, *(changed(facts, chance) for _ in range(4)), facts):
            other = other.updated({"examination.kind": known("facts", "snapshot")})
            plain = diagnose(other, matrix())
            assert judge.of_facts(other.to_json()["facts"]) == judge.of_outcomes(plain.outcomes, plain.root_causes)


def test_nodes_that_are_alike_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(rule_id: str, case: Case) -> tuple[Rule, Outcome]:
        asked.append(rule_id)
        return judge_rule(rule_id, case)

    monkeypatch.setattr("cudadoctor.fleet.judging.judge_rule", noted)
    judge = Judge(matrix())
    judge.of_facts(node("n1").facts.to_json()["facts"])
    assert asked == list(rule_files())
    asked.clear()
    judge.of_facts(node("n2").facts.to_json()["facts"])
    assert asked == []
    hot = node("n3").set({"gpu.0.temperature": 93, "gpu.0.throttle_reasons": ["hw_thermal_slowdown"]})
    found = judge.of_facts(hot.facts.to_json()["facts"])
    assert "CD502" in asked and len(asked) < 20
    assert [finding.rule for finding in found.noted] == ["CD502"]


def test_a_rule_that_crashes_is_the_verdict_of_its_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from cudadoctor.rules import rule_module

    module = rule_module("CD113")
    real = module.judge

    def judge_or_crash(case: object) -> object:
        if case.value("gpu.0.lost"):  # type: ignore[attr-defined]
            raise RuntimeError("no such luck")
        return real(case)

    monkeypatch.setattr(module, "judge", judge_or_crash)
    judge = Judge(matrix())
    lost = node("n1").set({"gpu.0.lost": True}).facts.to_json()["facts"]
    assert judge.of_facts(lost).state == "crash"
    assert judge.of_facts(node("n2").facts.to_json()["facts"]).state == "fine"


def test_a_fact_that_is_none_is_refused_with_its_name() -> None:
    with pytest.raises(ParseError, match=r"'gpu.count' must be a int, not 'two'"):
        read_fact("gpu.count", {"state": "known", "value": "two"})
    with pytest.raises(ParseError, match="'state' is one of"):
        read_fact("gpu.count", {"state": "maybe"})
