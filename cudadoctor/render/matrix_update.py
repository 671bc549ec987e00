"""What `cudadoctor matrix update` prints."""

from __future__ import annotations

import json
from textwrap import wrap

from cudadoctor.matrix.outcome import REFUSED, UP_TO_DATE, UPDATED, Outcome, headline
from cudadoctor.render.style import clean

SCHEMA = "cudadoctor.matrix-update/1"

_WIDTH = 80
_ORDER = ("release", "build", "seen", "branch", "driver", "toolkit", "pythons", "confirmed")
# Left out of a long list of changes of one kind: the JSON has them all.
_SHOWN = 12


def update_text(outcome: Outcome, program: str, place: str) -> str:
    """The verdict, what changes, what was seen and not taken, and the way back. `place`: the folder as it is shown;
    `program`: what calls cudadoctor, empty where there is no such way back."""
    lines = [*wrap(clean(headline(outcome)), _WIDTH, subsequent_indent="  ")]
    if outcome.verdict == REFUSED:
        lines += _list("why", outcome.problems) if len(outcome.problems) > 1 else []
        lines += _list("left", outcome.notes)
        lines += ["", "      nothing was changed"]
        return _joined(lines)
    ranked = sorted(outcome.changes, key=lambda change: _ORDER.index(change.kind))
    confirmed = sum(change.kind == "confirmed" for change in ranked)
    changes = [f"{change.subject}: {change.text}" for change in ranked if change.kind != "confirmed"]
    lines += _list("new", changes)
    if confirmed:
        lines += [*([] if changes else [""]), f"      {confirmed} builds have the Pythons that were inferred for them"]
    lines += _list("left", outcome.notes)
    if outcome.dry_run:
        lines += ["", "      nothing was written (--dry-run)"]
    elif program and outcome.verdict in (UPDATED, UP_TO_DATE):
        lines += ["", f"data  {outcome.revision}, in {clean(place)}", f"undo  {program} matrix update --remove"]
    return _joined(lines)


def update_json(outcome: Outcome) -> str:
    """The same for programs."""
    return (
        json.dumps(
            {
                "schema": SCHEMA,
                "verdict": outcome.verdict,
                "message": headline(outcome),
                "revision": outcome.revision,
                "updated": outcome.updated,
                "path": outcome.path,
                "changes": [
                    {"kind": change.kind, "subject": change.subject, "text": change.text, "builds": change.builds}
                    for change in outcome.changes
                ],
                "left_out": list(outcome.notes),
                "problems": list(outcome.problems),
            },
            indent=2,
        )
        + "\n"
    )


def _list(word: str, items: tuple[str, ...] | list[str]) -> list[str]:
    """A label before the first of the items, each wrapped under itself."""
    lines = [""] if items else []
    for number, item in enumerate(items[:_SHOWN]):
        label = word if number == 0 else ""
        lines += wrap(clean(item), _WIDTH, initial_indent=f"{label:<6}", subsequent_indent=" " * 8)
    if len(items) > _SHOWN:
        lines.append(f"      and {len(items) - _SHOWN} more (--format json)")
    return lines


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
