"""`fleet --format html`: one page that needs nothing else, with a map of the nodes.

Whatever comes from a node is text (`html.escape`), and the page forbids everything but its own style and script: a
node that calls itself `<script>` is shown as such.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from itertools import groupby

from cudadoctor.fleet.hostlist import fold, sort_key
from cudadoctor.fleet.model import CRASH, FAIL, UNDECIDED, FleetReport
from cudadoctor.fleet.verdict import of_nodes, short
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.fleet_page import SCRIPT, STYLE
from cudadoctor.render.fleet_view import (
    FleetView,
    Row,
    difference_texts,
    difference_word,
    rows,
    several_kinds,
    word_of,
)
from cudadoctor.render.style import clean

# Up to so many nodes have room for their names, or at least for their numbers.
_MOST_CARDS = 48
_MOST_NUMBERED = 640
_A_ROW = {"cards": 10_000, "mid": 20, "small": 50}

_SIGNS = {"fail": "\N{MULTIPLICATION SIGN}", "open": "?", "gone": "\N{EN DASH}", "odd": "!", "fine": ""}
_LABELS = {
    "fail": "fail",
    "gone": "missing",
    "open": "no verdict",
    "odd": "warnings, or unlike the others",
    "fine": "fine",
}
_CLASSES = {"FAIL": "fail", "BUG": "open", "????": "open", "warn": "odd", "ok": "fine", "OK": "fine", "info": "gone"}

_NUMBER = pattern(r"(.*?)([0-9]+)([^0-9]*)")


class Cell(NamedTuple):
    """A node on the map. `kind` is a class of the style sheet, `says` what is known of it, `row` the row of the table
    that tells more (empty: none)."""

    name: str
    kind: str
    says: str
    row: str


def render(view: FleetView) -> str:
    return "\n".join(_page(view)) + "\n"


def _page(view: FleetView) -> Iterator[str]:
    report = view.report
    found = rows(report)
    allowed = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield (
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(report.word)}: {_text(of_nodes(len(report.nodes)))}, cudadoctor fleet</title>"
    yield f"<style>{STYLE}</style></head><body>"
    yield f'<h1 class="{_CLASSES[report.word]}"><b>{_text(_word(report.word))}</b>{_text(report.verdict)}</h1>'
    yield from _map(report, found)
    yield from _rows(found)
    yield from _differences(report)
    yield from _kinds(report)
    yield (
        f"<footer>cudadoctor {_text(view.tool_version)}. Only nodes with the same GPU models are compared; a value "
        "that two in three nodes have is the norm.</footer>"
    )
    yield f"<script>{SCRIPT}</script></body></html>"


# -- the map ----------------------------------------------------------------------------------------------------------


def _map(report: FleetReport, found: Sequence[Row]) -> Iterator[str]:
    cells = _cells(report, found)
    counted = {kind: sum(cell.kind == kind for cell in cells) for kind in _LABELS}
    yield '<ul class="legend">'
    for kind, label in _LABELS.items():
        none = "" if counted[kind] else ' class="none"'
        sign = f'<span class="c {kind}" aria-hidden="true">{_SIGNS[kind]}</span>'
        yield f"<li{none}>{sign}<strong>{counted[kind]}</strong> {label}</li>"
    yield "</ul>"
    yield (
        '<p class="find" hidden><label>Find nodes <input id="find" type="search" autocomplete="off" '
        'placeholder="name, check or message"></label> <span id="found" class="soft" role="status"></span></p>'
    )
    size = "cards" if len(cells) <= _MOST_CARDS else "mid" if len(cells) <= _MOST_NUMBERED else "small"
    yield f'<div class="map {size}">'
    # One field a series of names (a rack, say): its nodes stand in the order of their numbers.
    for series, members in groupby(cells, key=lambda cell: _series(cell.name)):
        row = list(members)
        if size != "cards" and series != _series(cells[-1].name if row[0] is cells[0] else cells[0].name):
            yield f'<h3 class="mono">{_text(series)}</h3>'
        for start in range(0, len(row), _A_ROW[size]):
            shown = row[start : start + _A_ROW[size]]
            at = "" if size == "cards" else f'<span class="at mono">{_text(shown[0].name[-24:])}</span>'
            yield f'<div class="row">{at}{"".join(_cell(cell, size) for cell in shown)}</div>'
    yield "</div>"


def _cells(report: FleetReport, found: Sequence[Row]) -> list[Cell]:
    """Every node that is there or should be, in the order of the names."""
    places: dict[str, tuple[str, str]] = {}
    for number, row in enumerate(found):
        for name in row.names:
            places.setdefault(name, (f"r{number}", "; ".join(row.says)))
    unlike: dict[str, list[str]] = {}
    for difference in report.differences:
        for value in difference.others if difference.norm is not None else ():
            for name in value.nodes:
                unlike.setdefault(name, []).append(f"{difference.what} {value.text}")
    cells = []
    for node in report.nodes:
        judgement = node.snapshot.judgement
        place, says = places.get(node.name, ("", ""))
        kind = {FAIL: "fail", CRASH: "open", UNDECIDED: "open"}.get(judgement.state, "fine")
        if kind == "fine" and (word_of(judgement) == "warn" or node.name in unlike):
            kind = "odd"
        says = "; ".join([*([says] if says else []), *unlike.get(node.name, ())])
        cells.append(Cell(node.name, kind, says, place if kind != "fine" else ""))
    for name in report.missing:
        place, says = places.get(name, ("", ""))
        cells.append(Cell(name, "gone", says, place))
    return sorted(cells, key=lambda cell: sort_key(cell.name))


def _cell(cell: Cell, size: str) -> str:
    title = _text(f"{cell.name}: {cell.says}" if cell.says else cell.name)
    inside = _SIGNS[cell.kind]
    if size == "cards":
        word = _LABELS[cell.kind] if cell.kind != "odd" else "warning"
        inside = f"<span>{inside} {_text(cell.name)}</span><small>{_text(cell.says or word)}</small>"
    elif size == "mid":
        inside = f"{inside}{_text(_number(cell.name))}"
    if cell.row:
        # The sign alone is nothing that can be read aloud.
        return f'<a class="c {cell.kind}" href="#{cell.row}" title="{title}" aria-label="{title}">{inside}</a>'
    return f'<span class="c {cell.kind}" title="{title}">{inside}</span>'


def _series(name: str) -> str:
    found = _NUMBER.fullmatch(name.partition(".")[0])
    return found.group(1) if found is not None else ""


def _number(name: str) -> str:
    """The last digits of the node's number, all that a small cell has room for."""
    found = _NUMBER.fullmatch(name.partition(".")[0])
    return (found.group(2) if found is not None else name)[-4:]


# -- tables -----------------------------------------------------------------------------------------------------------


def _rows(found: Sequence[Row]) -> Iterator[str]:
    if not found:
        return
    yield "<h2>Nodes by what became of them</h2>"
    yield '<table><thead><tr><th></th><th class="n"></th><th>nodes</th><th>what was found</th></tr></thead><tbody>'
    for number, row in enumerate(found):
        count = f"{len(row.names)}" if row.names else ""
        says = "".join(f'<p class="says">{_text(text)}</p>' for text in row.says)
        label = "" if "node" in row.label else f'<span class="soft">{_text(row.label)}</span> '
        yield (
            f'<tr id="r{number}"><td>{_tag(row.word)}</td><td class="n">{count}</td>'
            f"<td>{label}{_nodes(row.names)}</td><td>{says}</td></tr>"
        )
    yield "</tbody></table>"


def _differences(report: FleetReport) -> Iterator[str]:
    if not report.differences:
        return
    yield "<h2>Nodes that are not alike</h2>"
    yield "<table><thead><tr><th></th><th>in what</th><th>value</th><th>nodes</th></tr></thead><tbody>"
    for difference in report.differences:
        kind = f' <span class="soft">{_text(difference.kind)}</span>' if several_kinds(report) else ""
        split = "" if difference.norm is not None else ' <span class="soft">(no value that most have)</span>'
        first = f"<td>{_tag(difference_word(difference))}</td><td>{_text(difference.what)}{kind}{split}</td>"
        for text, names in difference_texts(difference):
            yield f"<tr>{first}<td>{_text(text)}</td><td>{_nodes(names)}</td></tr>"
            first = "<td></td><td></td>"
    yield "</tbody></table>"


def _kinds(report: FleetReport) -> Iterator[str]:
    if not several_kinds(report):
        return
    yield '<h2>Kinds of nodes</h2><table><thead><tr><th class="n">nodes</th><th>GPUs</th><th>which</th></tr></thead>'
    yield "<tbody>"
    for kind in report.kinds:
        yield f'<tr><td class="n">{len(kind.nodes)}</td><td>{_text(kind.label)}</td><td>{_nodes(kind.nodes)}</td></tr>'
    yield "</tbody></table>"


def _nodes(names: Sequence[str]) -> str:
    if not names:
        return ""
    whole, shown = fold(names), short(names, 120)
    if whole == shown:
        return f"<code>{_text(whole)}</code>"
    return f"<details><summary><code>{_text(shown)}</code></summary><code>{_text(whole)}</code></details>"


def _tag(word: str) -> str:
    return f'<span class="tag {_CLASSES.get(word, "gone")}">{_text(_word(word))}</span>'


def _word(word: str) -> str:
    return "undecided" if word == "????" else word


def _text(text: str) -> str:
    return escape(clean(text))
