"""The verdict on one machine: every outcome, the root causes in order, the exit status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.model.fact import Facts
from cudadoctor.model.outcome import (
    CERTAINTIES,
    CRASH,
    ERROR,
    FAIL,
    SEVERITIES,
    UNDECIDED,
    Outcome,
)
from cudadoctor.model.record import NamedTuple

EXIT_FINE = 0
EXIT_FINDINGS = 1
EXIT_UNUSABLE = 2
EXIT_UNDECIDED = 3


_NOTHING: Mapping[str, Any] = {}


class Report(NamedTuple):
    """What `diagnose` returns. `outcomes` stand in the order of the rule ids; `root_causes` are rule ids, the
    likeliest first; `ignored` maps rule ids that the person ignored to their reasons."""

    facts: Facts
    outcomes: tuple[Outcome, ...]
    root_causes: tuple[str, ...]
    matrix_revision: str
    ignored: Mapping[str, str] = _NOTHING

    def outcome(self, rule_id: str) -> Outcome | None:
        for outcome in self.outcomes:
            if outcome.rule == rule_id:
                return outcome
        return None


def blamed(outcome: Outcome, by_id: Mapping[str, Outcome]) -> str:
    """Who can mend what an outcome shows: whoever can mend the failure that it follows from."""
    seen = {outcome.rule}
    while outcome.because_of is not None and outcome.because_of not in seen and outcome.because_of in by_id:
        outcome = by_id[outcome.because_of]
        seen.add(outcome.rule)
    return outcome.blame


def exit_status(outcomes: tuple[Outcome, ...], fail_on: str = ERROR, unknown_ok: bool = False) -> int:
    """The exit status, a function of the outcomes alone. Precedence: 1 findings, 2 our own bug, 3 undecided, 0."""
    if any(counts(outcome, fail_on) for outcome in outcomes):
        return EXIT_FINDINGS
    if any(o.status == CRASH for o in outcomes):
        return EXIT_UNUSABLE
    if not unknown_ok and any(o.status == UNDECIDED and o.chain for o in outcomes):
        return EXIT_UNDECIDED
    return EXIT_FINE


def counts(outcome: Outcome, fail_on: str) -> bool:
    """Whether it is a finding that is at least so severe."""
    return outcome.status == FAIL and SEVERITIES.index(outcome.severity) <= SEVERITIES.index(fail_on)


def rank(outcome: Outcome) -> tuple[int, int]:
    """Order among failing outcomes: severity first, then certainty."""
    return SEVERITIES.index(outcome.severity), CERTAINTIES.index(outcome.certainty)
