"""The whole answer to "will it fit?": what `cudadoctor fit` shows."""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.need import Interval, Need
from cudadoctor.fit.target import Card, Target
from cudadoctor.fit.workload import Workload
from cudadoctor.model.record import NamedTuple

FITS, TIGHT, DOES_NOT_FIT, UNKNOWN = "fits", "tight", "does-not-fit", "unknown"


class Change(NamedTuple):
    """One thing that a person can change, alone. `saves`: bytes of one GPU, against the workload before it. `quality`
    and `speed` are words for what it costs: none, a little, some, much; `lines`: what they write for it."""

    id: str
    title: str
    lines: tuple[str, ...]
    saves: int
    quality: str
    speed: str
    why: str = ""
    source: str = ""


class Combination(NamedTuple):
    """Changes that together make it fit, and what is then needed and available. `verdict` is fits or tight."""

    changes: tuple[Change, ...]
    need: Interval
    available: Optional[int]
    verdict: str


class Alternative(NamedTuple):
    """Another model or another card on which it fits: `kind` is model, gpu or rented. `need` is what it then takes."""

    kind: str
    name: str
    gpus: int
    need: Interval
    card: Optional[Card] = None
    changes: tuple[Change, ...] = ()
    """What has to be changed there, too; empty: it fits as it is."""


class Speed(NamedTuple):
    """Upper bounds. `tokens` a second that one sequence decodes at most; `load_seconds` from disk to GPU, low and
    high."""

    tokens: Optional[float]
    formula: str
    load_seconds: Optional[tuple[float, float]]
    load_formula: str
    source: str


class Answer(NamedTuple):
    """`available` is what one GPU has free (None: unknown), `need.device` is compared with it. `largest_batch` and
    `longest_context` are the most that still fit with all else as it is; None: not even one fits, or nothing is
    known."""

    model: Model
    workload: Workload
    target: Target
    need: Need
    verdict: str
    available: Optional[int]
    headroom: Optional[int]
    """available less expected; negative: so much is missing."""
    largest_batch: Optional[int]
    longest_context: Optional[int]
    speed: Speed
    changes: tuple[Change, ...]
    """Every change that would lower the need, cheapest first."""
    cure: Optional[Combination]
    """The first combination, cheapest first, that fits; None: it fits already, or nothing found does."""
    alternatives: tuple[Alternative, ...]
    warnings: tuple[str, ...] = ()
    """About RAM, /dev/shm, disk and swap: never a reason to refuse."""
    notes: tuple[str, ...] = ()
    """What else belongs to the answer: what the target was taken for, what was not looked at."""
