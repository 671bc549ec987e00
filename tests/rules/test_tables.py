"""Every rule's table of cases: one file `cdNNN_name.py` beside this one, with `CASES`; see `cudadoctor.testing`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.matrix import load_matrix
from cudadoctor.model import FAIL, PASS, SKIP, UNDECIDED, FixStep
from cudadoctor.model.outcome import BLAMES, CERTAINTIES, SEVERITIES, Outcome
from cudadoctor.rules import rule_files, rule_module, rule_of
from cudadoctor.testing import RuleCase, container, linux, windows, wsl

pytestmark = pytest.mark.every_row

HERE = Path(__file__).parent
TABLES = {path.stem: path for path in sorted(HERE.glob("cd[0-9][0-9][0-9]_*.py"))}
HEADINGS = ("What it checks", "Why it matters", "How to fix", "References")


def table(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"rule_table_{name}", TABLES[name])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_cases() -> list[tuple[str, RuleCase]]:
    return [("CD" + name[2:5], case) for name in TABLES for case in table(name).CASES]


def judge(rule_id: str, case: RuleCase) -> Outcome:
    module = rule_module(rule_id)
    outcome: Outcome = module.judge(Case(case.facts, load_matrix()).for_rule(module.RULE))
    return outcome


@pytest.mark.parametrize(("rule_id", "case"), [pytest.param(i, c, id=f"{i}: {c.title}") for i, c in all_cases()])
def test_case(rule_id: str, case: RuleCase) -> None:
    outcome = judge(rule_id, case)
    assert outcome.status == case.status, outcome.message
    for text in case.says:
        assert text in outcome.message
    for wanted, got in (
        (case.certainty, outcome.certainty),
        (case.severity, outcome.severity),
        (case.blame, outcome.blame),
    ):
        assert wanted is None or got == wanted
    offered = {fix.id if isinstance(fix, FixStep) else fix.kind for fix in outcome.fixes}
    assert set(case.fix) <= offered
    assert outcome.message and "\n" not in outcome.message
    if outcome.status == FAIL:
        assert outcome.evidence, "a finding without evidence"


@pytest.mark.parametrize("rule_id", list(rule_files()))
class TestEveryRule:
    def test_says_who_it_is(self, rule_id: str) -> None:
        rule = rule_of(rule_id)
        assert rule.id == rule_id
        assert rule_files()[rule_id] == f"{rule.id.lower()}_{rule.name.replace('-', '_')}"
        assert rule.severity in SEVERITIES and rule.blame in BLAMES and rule.title

    def test_is_documented(self, rule_id: str) -> None:
        page = (rule_module(rule_id).__doc__ or "").splitlines()
        assert page[0].strip(), "the first line is the title"
        assert [line for line in page if line in HEADINGS] == list(HEADINGS)

    def test_has_a_passing_a_failing_and_an_undecidable_case(self, rule_id: str) -> None:
        name = rule_files()[rule_id]
        assert name in TABLES, f"tests/rules/{name}.py is missing"
        module = table(name)
        statuses = {case.status for case in module.CASES}
        assert FAIL in statuses
        # A table that lacks the other two says why the rule has none.
        assert PASS in statuses or module.NEVER_PASSES
        assert UNDECIDED in statuses or module.NEVER_UNDECIDED

    def test_is_quiet_on_healthy_machines(self, rule_id: str) -> None:
        module = rule_module(rule_id)
        for machine in (linux(), windows(), wsl(), container()):
            outcome = module.judge(Case(machine.facts, load_matrix()).for_rule(module.RULE))
            assert outcome.status in (PASS, SKIP) or outcome.severity == "info", outcome.message

    def test_names_only_rules_of_the_catalogue(self, rule_id: str) -> None:
        rule = rule_of(rule_id)
        for other in (*rule.blocked_by, *rule.follows_from):
            assert other in rule_files(), f"{rule_id} names {other}, which does not exist"
            assert other != rule_id


def test_every_table_belongs_to_a_rule() -> None:
    assert set(TABLES) <= set(rule_files().values())


def test_certainties_are_known() -> None:
    for rule_id, case in all_cases():
        assert judge(rule_id, case).certainty in CERTAINTIES
