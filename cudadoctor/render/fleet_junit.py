"""`fleet --format junit`: a test a node, for what shows test results. Missing nodes fail, nodes without a verdict are
errors; a test more says whether the nodes are alike."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.fleet.model import FAIL, FINE, FleetReport, Judgement
from cudadoctor.model.report import counts
from cudadoctor.render.fleet_view import FleetView, says
from cudadoctor.render.junit import Case, Suite, document

_SUITE = "cudadoctor.fleet"


def render(view: FleetView) -> str:
    report = view.report
    properties = (("verdict", report.verdict), ("exit", str(report.exit)), ("cudadoctor", view.tool_version))
    return document([Suite(_SUITE, tuple(_cases(report)), properties)])


def _cases(report: FleetReport) -> Iterator[Case]:
    kinds = {name: kind.label for kind in report.kinds for name in kind.nodes}
    for node in report.nodes:
        yield _judged(Case(f"fleet.{kinds[node.name]}", node.name), node.snapshot.judgement)
    for name in report.missing:
        yield Case("fleet.missing", name, "failure", "missing", "expected, and there is no snapshot of it")
    for item in report.unreadable:
        yield Case("fleet.unreadable", str(item.place), "error", "unreadable", item.reason)
    if len(report.nodes) > 1:
        yield _alike(report)


def _judged(case: Case, judgement: Judgement) -> Case:
    if judgement.state == FINE:
        return case
    findings = judgement.counted or judgement.left_open
    return case._replace(
        tag="failure" if judgement.state == FAIL else "error",
        kind=findings[0].rule if findings else judgement.state,
        message=says(findings[0]) if findings else judgement.state,
        lines=tuple(says(finding) for finding in findings[1:]),
    )


def _alike(report: FleetReport) -> Case:
    case, outcome = Case("fleet", "nodes-alike"), report.disagreement
    if outcome is None or not outcome.failed:
        return case
    if counts(outcome, report.fail_on):
        return case._replace(tag="failure", kind=outcome.rule, message=outcome.message)
    # As in a check: what is below the threshold must not turn a run red that ends with 0, and is not fine either.
    return case._replace(tag="skipped", message=f"{outcome.severity}: {outcome.message} ({outcome.rule})")
