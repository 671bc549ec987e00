"""What a rule module has to hand.

A rule module holds `RULE` (its `Rule`) and `judge(case)`, which returns one `Outcome` made by
`case.passed/failed/undecided/skipped`. Its docstring is its documentation page: a first line that is its title, and
the headings "What it checks", "Why it matters", "How to fix" and "References".
"""

from __future__ import annotations

from cudadoctor.derive.case import Case
from cudadoctor.model import (
    ALLOCATION,
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    INFO,
    LIKELY,
    MACHINE,
    POSSIBLE,
    TOOL,
    WARNING,
    FixStep,
    Outcome,
    Remedy,
    Rule,
)
from cudadoctor.model.outcome import Fix

__all__ = [
    "ALLOCATION",
    "CERTAIN",
    "ENVIRONMENT",
    "ERROR",
    "INFO",
    "LIKELY",
    "MACHINE",
    "POSSIBLE",
    "TOOL",
    "WARNING",
    "Case",
    "Fix",
    "FixStep",
    "Outcome",
    "Remedy",
    "Rule",
]
