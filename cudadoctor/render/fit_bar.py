"""The breakdown as bars: each part begins where the one above it ends, and a line marks what is free.

Drawn with letters alone, so that it can be read without colour, in a log, and in ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Optional

from cudadoctor.fit.need import PARTS, Need
from cudadoctor.fit.workload import Workload
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.fit_sizes import GB, GIB, fixed, number
from cudadoctor.render.fit_view import part_name
from cudadoctor.render.style import Style


class _Signs(NamedTuple):
    """What a bar is drawn with: what there is room for, what there is none for, what may come on top of it, what is too
    little to be drawn, and the line where the free memory ends."""

    inside: str
    beyond: str
    margin: str
    little: str
    limit: str


_ASCII = _Signs("#", "X", "-", ".", "|")
_UNICODE = _Signs("\u2588", "\u2593", "\u2591", "\u258c", "\u2502")

_NAME, _AMOUNT = 14, 9
_LEAST_BAR = 10


class Bar(NamedTuple):
    """A row of the breakdown, in bytes: it begins at `start` and is `size` long."""

    name: str
    start: int
    size: int
    margin: int = 0
    """What may come on top of it."""


def bars(need: Need, workload: Workload) -> list[Bar]:
    """The parts of what one GPU needs, in their order, and the sum of them."""
    found = []
    start = 0
    for part in PARTS:
        size = sum(term.bytes for term in need.terms if term.part == part)
        if size:
            found.append(Bar(part_name(part, workload), start, size))
            start += size
    found.append(Bar("together", 0, need.device.expected, max(need.device.high - need.device.expected, 0)))
    return found


def lines(need: Need, available: Optional[int], style: Style, workload: Workload) -> Iterator[str]:
    """The table with its bars, at most `style.width` columns wide."""
    signs = _UNICODE if style.unicode else _ASCII
    width = max(style.width - 4 - _NAME - 2 * _AMOUNT - 2, _LEAST_BAR)
    rows = bars(need, workload)
    scale = max(available or 0, need.device.high, 1)
    # The line stands in a column of its own behind what fits.
    limit = None if available is None else min(round(available / scale * (width - 1)), width - 1)
    head = f"  {'':<{_NAME}}{'GiB':>{_AMOUNT}}{'GB':>{_AMOUNT}}  "
    if available is not None and limit is not None:
        head += _label(f"{number(available, GIB)} GiB free", limit, width, signs)
    yield head
    for bar in rows:
        total = bar is rows[-1]
        if total and len(rows) == 2:
            continue  # the only part is all of it
        cells = _cells(bar, scale, width, limit, signs)
        amounts = f"{fixed(bar.size, GIB):>{_AMOUNT}}{fixed(bar.size, GB):>{_AMOUNT}}"
        yield f"  {bar.name:<{_NAME}}{amounts}  {_painted(cells, limit, style, signs)}"
    last = rows[-1]
    if last.margin:
        amounts = f"{fixed(last.margin, GIB):>{_AMOUNT}}{fixed(last.margin, GB):>{_AMOUNT}}"
        margin = _cells(Bar("", last.size, last.margin), scale, width, limit, signs._replace(inside=signs.margin))
        yield f"  {'margin, up to':<{_NAME}}{amounts}  {_painted(margin, limit, style, signs)}"


def _label(text: str, limit: int, width: int, signs: _Signs) -> str:
    """What the line says, before it where there is room, else behind it."""
    if limit > len(text):
        return f"{text + ' ' + signs.limit:>{limit + 1}}"
    return " " * limit + f"{signs.limit} {text}"[: max(width - limit, 0)]


def _cells(bar: Bar, scale: int, width: int, limit: Optional[int], signs: _Signs) -> list[str]:
    cells = [" "] * width
    # Ends are rounded, not lengths: so neighbours meet, and the last end is that of the sum.
    first, end = (round(place / scale * (width - 1)) for place in (bar.start, bar.start + bar.size))
    if first == end:
        cells[min(first, width - 1)] = signs.little
    for place in range(first, end):
        cells[place] = signs.inside if limit is None or place < limit else signs.beyond
    if limit is not None and cells[limit] == " ":
        cells[limit] = signs.limit
    return cells


def _painted(cells: Sequence[str], limit: Optional[int], style: Style, signs: _Signs) -> str:
    """What there is room for in one colour, what there is none for in another, the line in none."""

    def role(cell: tuple[int, str]) -> str:
        place, sign = cell
        if sign in (" ", signs.limit) or limit is None:
            return ""
        return "ok" if place < limit else "FAIL"

    runs = groupby(enumerate(cells), role)
    return "".join(style.paint(name, "".join(sign for _, sign in run)) for name, run in runs).rstrip()
