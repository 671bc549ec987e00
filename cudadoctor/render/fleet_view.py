"""What the formats of a fleet's report have in common: the formats by name, and what they say in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from cudadoctor.fleet.model import CRASH, FAIL, FINE, UNDECIDED, Difference, Finding, FleetReport, Group, Judgement
from cudadoctor.fleet.verdict import of_nodes
from cudadoctor.model.outcome import ERROR
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.style import Style

FORMATS: dict[str, str] = {
    "text": "cudadoctor.render.fleet_text",
    "json": "cudadoctor.render.fleet_json",
    "markdown": "cudadoctor.render.fleet_markdown",
    "junit": "cudadoctor.render.fleet_junit",
    "html": "cudadoctor.render.fleet_html",
    "bad-nodes": "cudadoctor.render.fleet_nodes",
    "good-nodes": "cudadoctor.render.fleet_nodes",
}


class FleetView(NamedTuple):
    """Everything that a format may show. `form` is the format's own name, `program` what calls cudadoctor again."""

    report: FleetReport
    form: str = "text"
    style: Style = Style()
    tool_version: str = ""
    program: str = "cudadoctor"


def render(view: FleetView) -> str:
    """The report in the view's format, ending with a newline."""
    text: str = import_module(FORMATS[view.form]).render(view)
    return text


class Row(NamedTuple):
    """A line of the report: the word of the first column, a label, who it is about, and what is said of them."""

    word: str
    label: str
    names: tuple[str, ...]
    says: tuple[str, ...] = ()


_WORDS = {FAIL: "FAIL", CRASH: "BUG", UNDECIDED: "????"}


def word_of(judgement: Judgement) -> str:
    """The word for what became of a node."""
    return _WORDS.get(judgement.state, "warn" if judgement.noted else "ok")


def says(finding: Finding) -> str:
    """A finding in one line; of an error that is no certainty, saying so."""
    hedge = f"{finding.certainty}: " if finding.severity == ERROR and finding.certainty != "certain" else ""
    return f"{hedge}{finding.message} ({finding.rule} {finding.name})"


def group_row(group: Group) -> Row:
    judgement = group.judgement
    findings = judgement.counted or judgement.left_open or judgement.noted
    return Row(word_of(judgement), of_nodes(len(group.nodes)), group.nodes, tuple(says(f) for f in findings))


def difference_word(difference: Difference) -> str:
    return "warn" if difference.should_be_alike else "info"


def difference_texts(difference: Difference) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The values and the nodes that have them; the norm, of which nobody needs a list, is without nodes."""
    for value in difference.others:
        yield value.text, value.nodes
    if difference.norm is not None:
        yield f"{difference.norm.text} on {of_nodes(len(difference.norm.nodes))}, as most", ()


def rows(report: FleetReport) -> list[Row]:
    """The report, a row a matter, the gravest first."""
    found = [group_row(group) for group in report.groups if group.judgement.state == FAIL]
    if report.missing:
        found.append(Row("FAIL", "missing", report.missing, ("expected, and there is no snapshot of it",)))
    found += [group_row(group) for group in report.groups if group.judgement.state in (CRASH, UNDECIDED)]
    for item in report.unreadable:
        lines = f"-{item.last}" if item.last > item.place.line else ""
        node = f"{item.node}: " if item.node else ""
        found.append(Row("????", "unreadable", (), (f"{item.place}{lines}: {node}{item.reason}",)))
    found += [group_row(group) for group in report.groups if group.judgement.state == FINE]
    if report.unexpected:
        found.append(Row("info", "unexpected", report.unexpected, ("not among the nodes that are expected",)))
    for repeated in report.repeated:
        others = ", ".join(map(str, repeated.others[:3])) + (" and more" if len(repeated.others) > 3 else "")
        found.append(Row("info", "repeated", (repeated.node,), (f"{repeated.counts} counts, not {others}",)))
    for version in report.versions:
        who = f"judged by cudadoctor {version.tool or 'of an unknown version'}, data {version.matrix or 'unknown'}"
        found.append(Row("info", "versions", version.nodes, (who,)))
    return found


def several_kinds(report: FleetReport) -> bool:
    return len(report.kinds) > 1
