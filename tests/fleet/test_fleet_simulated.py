"""A cluster of 5,000 nodes, one in a hundred with one of ten faults: each is found with its rule, and nobody else is
named."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from fleet_nodes import a100, fleet_of, matrix, node, reader

from cudadoctor.fleet.lines import Document
from cudadoctor.fleet.merge import Asked, merge
from cudadoctor.fleet.model import Place
from cudadoctor.testing import Machine

NODES = 5000
FAULTY = 50

# By rule: what is wrong on a node of a rack of H100s.
FAULTS: dict[str, Any] = {
    "CD105": lambda m: m.driver_fails(18, "mismatch", 18, "Driver/library version mismatch").set(
        {
            "driver.library_version": "580.105.08",
            "driver.nvml_library_version": "580.105.08",
            "driver.smi_library_version": "580.105.08",
        }
    ),
    "CD113": lambda m: m.set({"gpu.1.lost": True}),
    "CD106": lambda m: m.hangs(),
    "CD102": lambda m: m.no_driver().set(
        {
            "pci.gpus": [{**card, "driver": "nouveau"} for card in m.facts["pci.gpus"].get()],
            "kernel.modules": [*m.no_driver().facts["kernel.modules"].get(), "nouveau"],
        }
    ),
    "CD115": lambda m: m.set({"gpu.0.remap_failure": True}),
    "CD302": lambda m: m.torch("2.14.1+cpu"),
    "CD303": lambda m: m.driver("535.183.01", "12.2"),
    "CD109": lambda m: m.no_devices(),
    "CD705": lambda m: m.no_devices().job(),
    "CD111": lambda m: m.set(
        {
            "device.nodes": [{**entry, "usable": False, "mode": "660"} for entry in m.facts["device.nodes"].get()],
            "system.is_admin": False,
        }
    ),
}


def entries(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = machine.facts.to_json()["facts"]
    return found


def snapshots(faulty: dict[int, str]) -> Iterator[Document]:
    """A document a node: most of them H100s, a part A100s with another driver; no two alike in what comes and goes."""
    chance = random.Random(5000)
    h100s = entries(node("", 2))
    a100s = entries(a100("").driver("580.65.06", "13.0"))
    broken = {rule: entries(fault(node("", 2))) for rule, fault in FAULTS.items()}
    moving = {"gpu.0.temperature": (30, 70), "gpu.0.utilization": (0, 99), "memory.available": (20 << 30, 60 << 30)}
    for number in range(NODES):
        rule = faulty.get(number)
        facts = dict(broken[rule] if rule else a100s if number >= 4000 else h100s)
        facts["scheduler.node"] = {"state": "known", "value": f"node{number:04d}"}
        for name, (least, most) in moving.items():
            if facts.get(name, {}).get("state") == "known":
                facts[name] = {"state": "known", "value": chance.randint(least, most), "source": "made by hand"}
        yield Document({"schema": "cudadoctor.facts/1", "facts": facts}, Place("nodes.ndjson", number + 1))


@pytest.mark.once
def test_every_faulty_node_is_found_with_its_rule_and_nobody_else_is_named() -> None:
    chance = random.Random(1)
    rules = list(FAULTS)
    chosen = chance.sample(range(4000), FAULTY)
    faulty = {number: rules[place % len(rules)] for place, number in enumerate(chosen)}
    by = reader()
    read = (snapshot for document in snapshots(faulty) for snapshot in by.snapshots(document))
    report = merge(read, matrix(), Asked([f"node{number:04d}" for number in range(NODES)]))
    found = {
        name: group.judgement.counted[0].rule
        for group in report.groups
        for name in group.nodes
        if group.judgement.state != "fine"
    }
    assert found == {f"node{number:04d}": rule for number, rule in faulty.items()}
    assert report.bad == tuple(sorted(found))
    assert len(report.good) == NODES - FAULTY
    assert not report.missing and not report.unexpected and not report.unreadable
    # Whoever differs is one of them, too: the A100s with their other driver are no oddity.
    odd = {name for difference in report.differences for value in difference.others for name in value.nodes}
    assert odd <= set(found)
    assert all(difference.norm is not None for difference in report.differences)
    assert report.verdict.startswith("50 of 5000 nodes cannot run CUDA: ")


@pytest.mark.parametrize("rule", FAULTS)
def test_each_fault_is_what_it_is_called(rule: str) -> None:
    machine: Machine = FAULTS[rule](node("n1", 2))
    report = fleet_of([json.dumps(machine.facts.to_json()) + "\n"])
    assert [finding.rule for finding in report.groups[0].judgement.counted] == [rule], report.groups[0].judgement
