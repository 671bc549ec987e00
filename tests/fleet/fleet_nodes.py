"""Nodes of a made-up cluster, and snapshots of them as their files hold them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Optional

from cudadoctor.fleet.judging import Judge
from cudadoctor.fleet.lines import documents
from cudadoctor.fleet.merge import Asked, merge
from cudadoctor.fleet.model import FleetReport, Snapshot, Unreadable
from cudadoctor.fleet.snapshot import Reader
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import Facts
from cudadoctor.testing import Machine, linux


@cache
def matrix() -> Matrix:
    return load_matrix()


def node(name: str, gpus: int = 1, model: str = "NVIDIA H100 80GB HBM3", device_id: str = "2330") -> Machine:
    """A healthy node of a cluster."""
    machine = linux()
    for index in range(gpus):
        machine = machine.gpu(model, "9.0" if "H100" in model else "8.0", 80, device_id=device_id, index=index)
    return machine.set({"scheduler.node": name})


def a100(name: str) -> Machine:
    return node(name, 1, "NVIDIA A100-SXM4-80GB", "20b2")


def facts_line(machine: Machine | Facts) -> str:
    facts = machine.facts if isinstance(machine, Machine) else machine
    return json.dumps(facts.to_json()) + "\n"


def outcome(rule: str = "CD113", name: str = "gpu-lost", status: object = "fail", **more: Any) -> dict[str, Any]:
    """An outcome as a report document has it."""
    entry = {
        "rule": rule,
        "name": name,
        "status": status,
        "severity": "error",
        "certainty": "certain",
        "blame": "machine",
        "chain": False,
        "message": f"{name} it is",
        "data": {},
        "evidence": [],
        "because_of": None,
        "not_helping": [],
    }
    return {**entry, **more}


def _exit(outcomes: Sequence[dict[str, Any]]) -> int:
    """The exit status of a check without options that found this."""
    if any(entry["status"] == "fail" and entry["severity"] == "error" for entry in outcomes):
        return 1
    if any(entry["status"] == "crash" for entry in outcomes):
        return 2
    return 3 if any(entry["status"] == "unknown" and entry["chain"] for entry in outcomes) else 0


def report(name: Optional[str], *outcomes: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """A report document with these outcomes; the root causes are all that fail."""
    named = {} if name is None else {"scheduler.node": name}
    return {
        "schema": "cudadoctor.report/1",
        "tool": {"name": "cudadoctor", "version": "1.2.3"},
        "matrix": {"revision": "2026.11.0", "checked": "2026-11-20", "age_days": 10},
        "exit": _exit(outcomes),
        "root_causes": [entry["rule"] for entry in outcomes if entry["status"] == "fail"],
        "outcomes": list(outcomes),
        "plan": {"steps": [], "advice": []},
        "ignored": {},
        "pasted": None,
        "facts": {
            key.replace("__", "."): {"state": "known", "value": value, "source": "made by hand"}
            for key, value in {**named, **facts}.items()
        },
    }


def report_line(name: Optional[str], *outcomes: dict[str, Any], **facts: Any) -> str:
    return json.dumps(report(name, *outcomes, **facts)) + "\n"


def reader(fail_on: str = "error", unknown_ok: bool = False) -> Reader:
    return Reader(Judge(matrix(), fail_on, unknown_ok), "1.2.3")


def read(text: str | Iterable[str], file: str = "nodes.ndjson", by: Optional[Reader] = None) -> list[Any]:
    """What the reader makes of a text: snapshots and what it could not read."""
    found: list[Snapshot | Unreadable] = []
    by = by or reader()
    lines = text.splitlines(keepends=True) if isinstance(text, str) else text
    for item in documents(file, lines):
        found += [item] if isinstance(item, Unreadable) else list(by.snapshots(item))
    return found


def fleet_of(
    lines: Iterable[str],
    expected: Optional[Sequence[str]] = None,
    fail_on: str = "error",
    unknown_ok: bool = False,
    retry_code: Optional[int] = None,
) -> FleetReport:
    """The report on nodes whose snapshots are these lines."""
    found = read(lines, by=reader(fail_on, unknown_ok))
    return merge(found, matrix(), Asked(expected, fail_on, retry_code))
