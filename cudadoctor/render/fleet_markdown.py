"""`fleet --format markdown`: for a job's summary or an issue. Long lists of nodes fold up."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.fleet.verdict import of_nodes, short
from cudadoctor.render.fleet_view import FleetView, Row, difference_texts, rows, several_kinds
from cudadoctor.render.markdown import escaped

_WORDS = {"FAIL": "**FAIL**", "warn": "**warn**", "????": "undecided", "BUG": "**BUG**"}
# Rows of a table that somebody reads; the JSON has them all.
_MOST_ROWS = 50
_MOST_LETTERS = 300


def render(view: FleetView) -> str:
    return "\n".join(line.rstrip() for line in _lines(view)) + "\n"


def _lines(view: FleetView) -> Iterator[str]:
    report = view.report
    yield f"**{'undecided' if report.word == '????' else report.word}:** {escaped(report.verdict)}"
    yield ""
    found = rows(report)
    if found:
        yield "| | | nodes | |"
        yield "|---|---|---|---|"
        yield from (_row(row) for row in found[:_MOST_ROWS])
        yield ""
    if len(found) > _MOST_ROWS:
        yield f"{len(found) - _MOST_ROWS} more rows are in the JSON (`--format json`)."
        yield ""
    if report.differences:
        yield "### Nodes that are not alike"
        yield ""
        yield "| in what | value | nodes |"
        yield "|---|---|---|"
        for difference in report.differences[:_MOST_ROWS]:
            what = difference.what + (f" ({difference.kind})" if several_kinds(report) else "")
            for text, nodes in list(difference_texts(difference))[:_MOST_ROWS]:
                listed = f"{len(nodes)}: {escaped(short(nodes, _MOST_LETTERS))}" if nodes else ""
                yield f"| {escaped(what)} | {escaped(text)} | {listed} |"
        yield ""
    if several_kinds(report):
        yield "### Kinds of nodes"
        yield ""
        for kind in report.kinds:
            names = escaped(short(kind.nodes, _MOST_LETTERS))
            yield f"- {of_nodes(len(kind.nodes))} with {escaped(kind.label)}: {names}"
        yield ""
    yield f"<sub>cudadoctor {escaped(view.tool_version)}; only nodes with the same GPU models are compared</sub>"


def _row(row: Row) -> str:
    names = escaped(short(row.names, _MOST_LETTERS)) if row.names else ""
    texts = "<br>".join(escaped(text) for text in row.says)
    return f"| {_WORDS.get(row.word, row.word)} | {escaped(row.label)} | {names} | {texts} |"
