"""Puts the texts of this folder through `cudadoctor.diagnose_text` and holds what is said against cases.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from cudadoctor import diagnose_text
from cudadoctor.api import Diagnosis
from cudadoctor.model import CERTAIN, CRASH, ERROR, FAIL, INFO, POSSIBLE, Outcome
from cudadoctor.render.steps import command_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
TABLE = HERE / "cases.toml"
KINDS = HERE / "kinds.toml"

LOW = "low"


class Case(NamedTuple):
    """A row of cases.toml, which says what the keys mean."""

    id: str
    source: str
    category: str
    confidence: str
    expected: tuple[str, ...] = ()
    quiet: bool = False
    also: tuple[str, ...] = ()
    command: str = ""
    never: tuple[str, ...] = ()
    pasted: bytes = b""

    @property
    def text(self) -> bytes:
        return self.pasted or (HERE / f"{self.id}.txt").read_bytes()

    @property
    def confirmed(self) -> bool:
        return self.confidence != LOW


def load_cases() -> tuple[Case, ...]:
    return tuple(_case(row) for row in _rows(TABLE))


def load_kinds() -> tuple[Case, ...]:
    """The rows of kinds.toml, whose texts stand in the table itself."""
    return tuple(_kind(row) for row in _rows(KINDS))


def _rows(table: Path) -> list[dict[str, Any]]:
    with table.open("rb") as file:
        rows: list[dict[str, Any]] = tomllib.load(file)["case"]
    return rows


def _case(row: dict[str, Any]) -> Case:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Case(**values)


def _kind(row: dict[str, Any]) -> Case:
    values = dict(row)
    text: str = values.pop("text")
    if values.pop("crlf", False):
        text = text.replace("\n", "\r\n")
    pasted = text.encode(values.pop("encoding", "utf-8"))
    return _case({"source": "", "confidence": "high", **values, "pasted": pasted})


class Verdict(NamedTuple):
    """What was said about a case. None: the case does not ask for it (no cause is known, no command mends it).

    `false`: failing roots beside the cause, as rule ids; `certain`: roots called certain where nobody confirmed any.
    """

    case: Case
    said: tuple[Outcome, ...]
    first: Optional[bool]
    three: Optional[bool]
    false: tuple[Outcome, ...]
    certain: tuple[Outcome, ...]
    command: Optional[bool]
    crashed: tuple[Outcome, ...]
    steps: tuple[str, ...]

    @property
    def right(self) -> bool:
        wrong = self.first is False or self.command is False or self.false or self.certain or self.crashed
        return not wrong


def judge(case: Case) -> Verdict:
    """Diagnoses the text of a case and compares."""
    diagnosis = diagnose_text(case.text)
    report = diagnosis.view.report
    outcomes = {outcome.rule: outcome for outcome in report.outcomes}
    said = tuple(outcomes[rule] for rule in report.root_causes)
    true = set(case.expected) | set(case.also)
    false = tuple(outcome for outcome in outcomes.values() if _alarm(outcome) and outcome.rule not in true)
    forbidden = tuple(
        outcome
        for outcome in outcomes.values()
        if outcome.rule in case.never and outcome.status == FAIL and outcome.severity != INFO and outcome not in false
    )
    first: Optional[bool] = None
    three: Optional[bool] = None
    if case.quiet:
        first = three = not any(outcome.severity == ERROR for outcome in said)
    elif case.expected:
        first = bool(said) and said[0].rule in case.expected
        three = any(outcome.rule in case.expected for outcome in said[:3])
    steps = tuple(_steps(diagnosis))
    return Verdict(
        case,
        said,
        first,
        three,
        false + forbidden,
        () if case.confirmed else tuple(o for o in said if o.certainty == CERTAIN and o.rule not in case.also),
        any(re.search(case.command, step) for step in steps) if case.command else None,
        tuple(outcome for outcome in outcomes.values() if outcome.status == CRASH),
        steps,
    )


def _alarm(outcome: Outcome) -> bool:
    """A root that a reader takes for a cause: any error, and a warning that is at least likely."""
    if outcome.status != FAIL or outcome.because_of is not None or outcome.severity == INFO:
        return False
    return outcome.severity == ERROR or outcome.certainty != POSSIBLE


def _steps(diagnosis: Diagnosis) -> list[str]:
    """The steps that are printed, one text each: the command to paste, or what is to be done by hand."""
    view = diagnosis.view
    texts = []
    for step in (*view.steps, *view.advice):
        command = command_line(step, view.report.facts)
        texts.append("\n".join(part for part in (command, step.instructions, "" if command else step.title) if part))
    return texts


def misses(verdict: Verdict) -> list[str]:
    """What is wrong with one verdict, in words."""
    case = verdict.case
    lines = []
    if verdict.first is False:
        wanted = " or ".join(case.expected) or "nothing"
        lines.append(f"expected {wanted}, said {named(verdict.said) or 'nothing'}")
    if verdict.false:
        lines.append(f"false: {named(verdict.false)}")
    if verdict.certain:
        lines.append(f"nobody confirmed: {named(verdict.certain)}")
    if verdict.command is False:
        steps = " | ".join(" ".join(step.split()) for step in verdict.steps)
        lines.append(f"no step holds {case.command}: {steps or 'no step'}")
    lines += [f"crashed: {outcome.message}" for outcome in verdict.crashed]
    return lines


def named(outcomes: Iterable[Outcome]) -> str:
    return ", ".join(f"{o.rule} {o.name} ({o.severity}, {o.certainty})" for o in outcomes)


def judge_all(cases: Sequence[Case]) -> tuple[Verdict, ...]:
    return tuple(judge(case) for case in cases)
