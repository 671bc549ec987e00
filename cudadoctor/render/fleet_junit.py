"""`fleet --format junit`: a test a node, for what shows test results. Missing nodes fail, nodes without a verdict are
errors; a test more says whether the nodes are alike."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from cudadoctor.fleet.merge import counts
from cudadoctor.fleet.model import FAIL, FINE, FleetReport, Judgement
from cudadoctor.render.fleet_view import FleetView, says
from cudadoctor.render.style import clean

_SUITE = "cudadoctor.fleet"


def render(view: FleetView) -> str:
    report = view.report
    cases = list(_cases(report))
    failures = sum("<failure" in case for case in cases)
    errors = sum("<error" in case for case in cases)
    head = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="cudadoctor" {head}>',
        f'  <testsuite name="{_SUITE}" {head}>',
        f"    <properties>{_property('verdict', report.verdict)}{_property('version', view.tool_version)}</properties>",
        *cases,
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _cases(report: FleetReport) -> Iterator[str]:
    kinds = {name: kind.label for kind in report.kinds for name in kind.nodes}
    for node in report.nodes:
        yield _case(kinds[node.name], node.name, _result(node.snapshot.judgement))
    for name in report.missing:
        yield _case("missing", name, _element("failure", "expected, and there is no snapshot of it", "missing"))
    for item in report.unreadable:
        yield _case("unreadable", str(item.place), _element("error", item.reason, "unreadable"))
    if len(report.nodes) > 1:
        yield _case("fleet", "nodes-alike", _alike(report))


def _result(judgement: Judgement) -> str:
    if judgement.state == FINE:
        return ""
    findings = judgement.counted or judgement.left_open
    element = "failure" if judgement.state == FAIL else "error"
    return _element(
        element,
        says(findings[0]) if findings else judgement.state,
        findings[0].rule if findings else judgement.state,
        [says(finding) for finding in findings],
    )


def _alike(report: FleetReport) -> str:
    outcome = report.disagreement
    if outcome is None or not outcome.failed:
        return ""
    if counts(outcome, report.fail_on):
        return _element("failure", outcome.message, outcome.rule)
    return f"<system-out>{_text(outcome.message)} ({outcome.rule})</system-out>"


def _case(group: str, name: str, inside: str) -> str:
    start = f'    <testcase classname="{_text(f"{_SUITE}.{group}")}" name="{_text(name)}" time="0"'
    return f"{start}>{inside}</testcase>" if inside else f"{start}/>"


def _element(kind: str, message: str, of: str, lines: list[str] | None = None) -> str:
    body = "\n".join(map(_text, lines or [message]))
    return f'<{kind} message="{_text(message)}" type="{_text(of)}">{body}</{kind}>'


def _property(name: str, value: str) -> str:
    return f'<property name="{name}" value="{_text(value)}"/>'


def _text(text: str) -> str:
    """Text for XML, which holds no control characters, not even as references."""
    return "".join(letter if letter < "\ufffe" or letter > "\uffff" else "?" for letter in escape(clean(text)))
