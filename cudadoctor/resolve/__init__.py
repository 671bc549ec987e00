"""The choice of the torch wheel for one machine: pure, exact, each answer with its reasons.

`resolve(need, matrix)` answers any `Need`; `need` and `resolution` are the questions that rules and the plan ask of the
examined machine (`case.derived(resolution)`).
"""

from __future__ import annotations

from cudadoctor.matrix import COMPANIONS
from cudadoctor.resolve.choose import resolve
from cudadoctor.resolve.drivers import bounds, fitting_branch
from cudadoctor.resolve.facts import need, resolution
from cudadoctor.resolve.need import (
    Blocker,
    Choice,
    DriverRange,
    Framework,
    Gpu,
    Installed,
    Move,
    Need,
    Objection,
    OtherWay,
    Pin,
    Resolution,
    Split,
)

__all__ = [
    "COMPANIONS",
    "Blocker",
    "Choice",
    "DriverRange",
    "Framework",
    "Gpu",
    "Installed",
    "Move",
    "Need",
    "Objection",
    "OtherWay",
    "Pin",
    "Resolution",
    "Split",
    "bounds",
    "fitting_branch",
    "need",
    "resolution",
    "resolve",
]
