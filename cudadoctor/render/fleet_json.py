"""`fleet --format json`: the document `cudadoctor.fleet/1`."""

from __future__ import annotations

from typing import Any, cast

from cudadoctor.fleet.hostlist import fold
from cudadoctor.fleet.model import Difference, FleetReport, Group, Value
from cudadoctor.render.fleet_documents import (
    DifferenceEntry,
    FleetDocument,
    GroupEntry,
    NodeEntry,
    ValueEntry,
)
from cudadoctor.render.fleet_view import FleetView
from cudadoctor.render.json_report import dump, finding_entry


def render(view: FleetView) -> str:
    return dump(document(view))


def document(view: FleetView) -> FleetDocument:
    report, disagreement = view.report, view.report.disagreement
    return {
        "schema": "cudadoctor.fleet/1",
        "tool": {"name": "cudadoctor", "version": view.tool_version},
        "exit": report.exit,
        "verdict": report.verdict,
        "expected": report.expected,
        "bad": list(report.bad),
        "bad_list": fold(report.bad),
        "good": list(report.good),
        "good_list": fold(report.good),
        "groups": [_group(group) for group in report.groups],
        "nodes": _nodes(report),
        "kinds": [{"label": kind.label, "nodes": list(kind.nodes)} for kind in report.kinds],
        "differences": [_difference(difference) for difference in report.differences],
        "disagreement": finding_entry(disagreement) if disagreement is not None and disagreement.failed else None,
        "missing": list(report.missing),
        "unexpected": list(report.unexpected),
        "repeated": [
            {"node": item.node, "counts": str(item.counts), "others": [str(place) for place in item.others]}
            for item in report.repeated
        ],
        "unreadable": [
            {
                "file": item.place.file,
                "line": item.place.line,
                "last": max(item.last, item.place.line),
                "node": item.node,
                "reason": item.reason,
            }
            for item in report.unreadable
        ],
        "versions": [{"tool": v.tool, "matrix": v.matrix, "nodes": list(v.nodes)} for v in report.versions],
    }


def _nodes(report: FleetReport) -> list[NodeEntry]:
    kinds = {name: kind.label for kind in report.kinds for name in kind.nodes}
    entries: list[Any] = [
        {
            "name": node.name,
            "state": node.snapshot.judgement.state,
            "causes": [finding.rule for finding in node.snapshot.judgement.counted],
            "kind": kinds[node.name],
            "source": str(node.snapshot.place),
        }
        for node in report.nodes
    ]
    return cast("list[NodeEntry]", entries)


def _group(group: Group) -> GroupEntry:
    judgement = group.judgement
    entry = {
        "state": judgement.state,
        "causes": [finding_entry(finding) for finding in judgement.counted],
        "noted": [finding_entry(finding) for finding in judgement.noted],
        "left_open": [finding_entry(finding) for finding in judgement.left_open],
        "nodes": list(group.nodes),
        "node_list": fold(group.nodes),
    }
    return cast(GroupEntry, entry)


def _difference(difference: Difference) -> DifferenceEntry:
    return {
        "what": difference.what,
        "kind": difference.kind,
        "norm": None if difference.norm is None else _value(difference.norm),
        "others": [_value(value) for value in difference.others],
        "should_be_alike": difference.should_be_alike,
    }


def _value(value: Value) -> ValueEntry:
    return {"value": value.text, "nodes": list(value.nodes)}
