"""CD504: lanes and generation of the PCIe link."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD504"

IN_REPORT = {"examination.kind": "report"}
BUSY: dict[str, Any] = {"gpu.0.utilization": 97, "gpu.0.performance_state": 2}


def link(generation: int, width: int, base: Machine = linux()) -> Machine:  # noqa: B008
    return base.set({"gpu.0.pcie_generation": generation, "gpu.0.pcie_width": width})


CASES = [
    passes("it idles down to the first generation", link(1, 16), says="no PCIe link is narrower"),
    passes("at its best under load", link(4, 16).set(BUSY)),
    passes("half of the lanes: many boards share them", link(4, 8).set(BUSY), says="8 of 16"),
    passes("a report of an idle card", link(1, 16).set(IN_REPORT)),
    passes("busy by its number, and asleep by its state", link(1, 16).set({**BUSY, "gpu.0.performance_state": 8})),
    fails(
        "one lane, in a report",
        link(1, 1).set(IN_REPORT),
        says=["has 1 PCIe lane;", "could do 16"],
        severity="warning",
        certainty="likely",
        blame="machine",
        fix="manual",
    ),
    fails("four lanes under load", link(4, 4).set(BUSY), severity="warning"),
    fails("four lanes on an idle machine: advice", link(1, 4), severity="info"),
    fails(
        "the first generation while it works",
        link(1, 16).set(BUSY),
        says=["works over PCIe generation 1", "could do 4"],
        severity="warning",
        certainty="likely",
    ),
    fails(
        "somebody tells of it",
        linux().only("smi.gpus").set({**IN_REPORT, "symptom.pcie_link_fell_back": {"text": "PCIe link falls back"}}),
        certainty="possible",
    ),
    skips("nothing tells", linux().only("smi.gpus").set(IN_REPORT)),
    skips("no GPU", linux().no_gpu()),
    unknown_when(
        "NVML does not tell",
        linux().unknown("gpu.0.pcie_width", "gpu.0.pcie_generation").set({"pci.gpus": []}),
    ),
]
