"""`fleet --format text`: the verdict, the nodes by what became of them, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.fleet.hostlist import fold
from cudadoctor.fleet.verdict import of_nodes, short
from cudadoctor.render.fleet_view import (
    FleetView,
    Row,
    difference_texts,
    difference_word,
    rows,
    several_kinds,
)
from cudadoctor.render.style import clean, columns, wrap

# Rows of one label, and values of one difference: more are counted.
_MOST_ROWS = 12
_MOST_VALUES = 5
# Pages that are named.
_MOST_EXPLAINED = 3


def render(view: FleetView) -> str:
    return "".join(line.rstrip() + "\n" for line in _lines(view))


def _lines(view: FleetView) -> Iterator[str]:
    report, style = view.report, view.style
    first = _wrapped(clean(report.verdict), style.width - 6)
    yield style.paint("ok" if report.word == "OK" else report.word, f"{report.word:<4}") + "  " + first[0]
    for line in first[1:]:
        yield "      " + line
    yield ""
    shown = _limited(rows(report), view)
    width = max((columns(row.label) for row in shown), default=0)
    for row in shown:
        yield from _row(row, width, view)
    if several_kinds(report):
        yield ""
        yield "Kinds of nodes (only nodes of the same kind are compared)"
        counted = max(len(of_nodes(len(kind.nodes))) for kind in report.kinds)
        for kind in report.kinds:
            text = f"{clean(kind.label)}: {_names(kind.nodes, view)}"
            yield from _hanging(f"  {of_nodes(len(kind.nodes)):<{counted}}  ", text, view)
    if report.differences:
        yield ""
        yield "Nodes that are not alike"
        for difference in report.differences:
            what = difference.what + (f" ({difference.kind})" if several_kinds(report) else "")
            if difference.norm is None:
                what += ": no value that most have"
            word = difference_word(difference)
            yield "  " + style.paint(word, f"{word:<4}") + f"  {clean(what)}"
            texts = list(difference_texts(difference))
            most = len(texts) if style.verbose else _MOST_VALUES
            for text, names in texts[:most]:
                count = f" on {of_nodes(len(names))}: {_names(names, view)}" if names else ""
                yield from _hanging("        ", f"{clean(text)}{count}", view)
            if len(texts) > most:
                yield f"        and {len(texts) - most} more values (--verbose)"
    causes = dict.fromkeys(cause.rule for group in report.groups for cause in group.judgement.counted)
    if causes:
        yield ""
        for number, rule in enumerate(list(causes)[:_MOST_EXPLAINED]):
            yield ("more  " if number == 0 else "      ") + clean(f"{view.program} explain {rule}")


def _limited(found: list[Row], view: FleetView) -> list[Row]:
    """At most so many rows of a kind, and how many there are beside them."""
    if view.style.verbose:
        return found
    counted: dict[tuple[str, str], int] = {}
    kept = []
    for row in found:
        key = (row.word, "nodes" if "node" in row.label else row.label)
        counted[key] = counted.get(key, 0) + 1
        if counted[key] <= _MOST_ROWS:
            kept.append(row)
    for (word, label), count in counted.items():
        if count > _MOST_ROWS:
            kept.append(Row(word, label, (), (f"and {count - _MOST_ROWS} more like these (--verbose)",)))
    return kept


def _row(row: Row, width: int, view: FleetView) -> Iterator[str]:
    style = view.style
    start = "  " + style.paint(row.word, f"{row.word:<4}") + "  " + row.label + " " * (width - columns(row.label) + 2)
    indent = 8 + width + 2
    lines = _wrapped(_names(row.names, view), style.width - indent) if row.names else []
    for line in (*lines, *(line for text in row.says for line in wrap(clean(text), style.width - indent))):
        yield start + line
        start = " " * indent


def _names(names: tuple[str, ...], view: FleetView) -> str:
    text = fold(names) if view.style.verbose else short(names, 4 * view.style.width)
    return clean(text)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a text with lists of nodes, broken at spaces and commas, not within `001-099`."""
    lines = [""]
    for word in text.split(" "):
        pieces = [piece + "," for piece in word.split(",")]
        pieces[-1] = pieces[-1][:-1]
        for number, piece in enumerate(pieces):
            gap = " " if number == 0 and lines[-1] else ""
            if lines[-1] and columns(lines[-1]) + len(gap) + columns(piece) > width:
                lines.append(piece)
            else:
                lines[-1] += gap + piece
    return [part for line in lines for part in (wrap(line, width) if columns(line) > width else [line])]


def _hanging(start: str, text: str, view: FleetView) -> Iterator[str]:
    for line in _wrapped(text, view.style.width - len(start)):
        yield start + line
        start = " " * len(start)
