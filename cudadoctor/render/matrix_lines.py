"""Rows with a label and tables, as all of `cudadoctor matrix` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.render.style import Style, clean, columns, wrap

LABEL = 11  # columns before the text of a row
_INDENT = "    "
_GAP = 2
_NARROWEST = 12


def row(label: str, text: str, style: Style, indent: str = "  ") -> Iterator[str]:
    head = (indent + label).ljust(LABEL)
    for number, line in enumerate(wrap(clean(text), style.width - LABEL)):
        yield (head if number == 0 else " " * LABEL) + line


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Aligned columns; where they are too wide for the screen, the last one goes on below itself."""
    every = [[clean(cell) for cell in line] for line in (headers, *rows)]
    widths = [max(columns(line[place]) for line in every) for place in range(len(headers))]
    start = len(_INDENT) + sum(width + _GAP for width in widths[:-1])
    for number, line in enumerate(every):
        cells = (cell + " " * (width - columns(cell) + _GAP) for cell, width in zip(line, widths[:-1]))
        head = _INDENT + "".join(cells)
        for place, piece in enumerate(wrap(line[-1], max(style.width - start, _NARROWEST))):
            shown = (head if place == 0 else " " * start) + piece
            yield style.paint("skip", shown.rstrip()) if number == 0 else shown
