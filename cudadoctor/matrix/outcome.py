"""What became of an update of the data, and how that is said in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.model.record import NamedTuple

from .merge import Change

UPDATED = "updated"
WOULD_UPDATE = "would-update"
UP_TO_DATE = "up-to-date"
REFUSED = "refused"
REMOVED = "removed"
NOTHING = "nothing-to-remove"


class Outcome(NamedTuple):
    """What became of an update. `verdict`: one of the words above. `problems`: why it was refused, as sentences.

    `revision`: of the data that counts from now on; of a dry run: that would. `path`: the folder of the update.
    """

    verdict: str
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    revision: Optional[str] = None
    updated: Optional[str] = None
    path: Optional[str] = None
    dry_run: bool = False


def headline(outcome: Outcome) -> str:
    """The verdict in one line."""
    if outcome.verdict == REFUSED:
        more = len(outcome.problems) - 1
        return f"refused: {outcome.problems[0]}" + (f" (and {more} more)" if more else "")
    if outcome.verdict == REMOVED:
        return f"removed the update; the shipped data {outcome.revision} counts"
    if outcome.verdict == NOTHING:
        return f"there is no update to remove; the shipped data {outcome.revision} counts"
    if not outcome.changes:
        return "up to date: nothing newer was found"
    news = _news(outcome.changes)
    verb = "would be" if outcome.dry_run else "are"
    news = _news(outcome.changes)
    if news.startswith("1 ") and ", " not in news:
        verb = "would be" if outcome.dry_run else "is"
    return f"{news} {verb} new"


def _news(changes: Sequence[Change]) -> str:
    """ "12 builds of torch 2.16.0, 3 announced builds, 2 drivers"; what only confirms the data where that is all."""
    parts = [
        f"{_count(change.builds, 'build', 'builds')} of {change.subject}"
        for change in changes
        if change.kind == "release"
    ]
    words = (
        ("build", "build", "builds"),
        ("seen", "announced build", "announced builds"),
        ("branch", "driver branch", "driver branches"),
        ("driver", "driver", "drivers"),
        ("toolkit", "CUDA toolkit", "CUDA toolkits"),
        ("pythons", "build's Pythons", "builds' Pythons"),
        ("confirmed", "build's confirmation", "builds' confirmations"),
    )
    for kind, one, several in words:
        number = sum(change.kind == kind for change in changes)
        if number and not (kind == "confirmed" and parts):
            parts.append(_count(number, one, several))
    return ", ".join(parts)


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
