"""`check --format json`: the document `cudadoctor.report/1`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from cudadoctor.model import FixStep, Outcome
from cudadoctor.render.documents import (
    FindingEntry,
    HandOverEntry,
    OutcomeEntry,
    PastedEntry,
    ReportDocument,
    StepEntry,
)
from cudadoctor.render.view import Pasted, View


def render(view: View) -> str:
    return dump(document(view))


def dump(value: Any) -> str:
    """JSON in ASCII, so that no stream's encoding and no control character of a name can spoil it."""
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def document(view: View) -> ReportDocument:
    report = view.report
    return {
        "schema": "cudadoctor.report/1",
        "tool": {"name": "cudadoctor", "version": view.tool_version},
        "matrix": {
            "revision": view.matrix.revision,
            "checked": view.matrix.checked,
            "age_days": view.matrix_age_days,
        },
        "exit": view.exit,
        "root_causes": list(report.root_causes),
        "outcomes": [_outcome(outcome) for outcome in report.outcomes],
        "plan": {
            "steps": [step_entry(step) for step in view.steps],
            "advice": [step_entry(step) for step in view.advice],
        },
        "hand_over": None if view.hand_over is None else cast(HandOverEntry, view.hand_over._asdict()),
        "ignored": dict(report.ignored),
        "pasted": None if view.pasted is None else _pasted(view.pasted),
        "facts": report.facts.to_json()["facts"],
    }


def _pasted(pasted: Pasted) -> PastedEntry:
    entry = {
        "read": [block._asdict() for block in pasted.read],
        "notes": list(pasted.notes),
        "questions": [{**question._asdict(), "rules": list(question.rules)} for question in pasted.questions],
        "unexplained": [{**item._asdict(), "causes": list(item.causes)} for item in pasted.unexplained],
    }
    return cast(PastedEntry, entry)


def _outcome(outcome: Outcome) -> OutcomeEntry:
    entry = {
        "rule": outcome.rule,
        "name": outcome.name,
        "status": outcome.status,
        "severity": outcome.severity,
        "certainty": outcome.certainty,
        "blame": outcome.blame,
        "chain": outcome.chain,
        "message": outcome.message,
        "data": _plain(outcome.data),
        "evidence": [
            {"fact": item.fact, "value": _plain(item.value), "source": item.source} for item in outcome.evidence
        ],
        "because_of": outcome.because_of,
        "not_helping": list(outcome.not_helping),
    }
    return cast(OutcomeEntry, entry)


def finding_entry(found: Any) -> FindingEntry:
    """What documents that show many findings keep of an outcome, or of a fleet's finding."""
    return cast(FindingEntry, {key: getattr(found, key) for key in FindingEntry.__annotations__})


def step_entry(step: FixStep) -> StepEntry:
    """A step of a plan, as every document shows it."""
    entry = {
        "id": step.id,
        "title": step.title,
        "kind": step.kind,
        "argv": None if step.argv is None else list(step.argv),
        "needs": list(step.needs),
        "safety": step.safety,
        "effect": _plain(step.effect),
        "changes": step.changes,
        "undo": step.undo,
        "instructions": step.instructions,
        "mends": list(step.mends),
    }
    return cast(StepEntry, entry)


def _plain(value: Any) -> Any:
    """What JSON can say: tuples become lists, sets sorted lists, anything else its text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=str)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return str(value)
