"""CD015: each GPU's PCIe link is what the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import fails, node, passes, skips, unknown_when

RULE = "CD015"

ASKED = {"gpu.pcie_width": 16, "gpu.pcie_generation": 4}

CASES = [
    skips("nobody asks", node(8)),
    passes("an idle link runs at generation 1", node(8).asks(ASKED)),
    fails(
        "half of the lanes",
        node(8).set({"gpu.4.pcie_width": 8}).asks(ASKED),
        says=["GPU 4", "8 PCIe lanes, 16 is asked for"],
        blame="machine",
    ),
    fails("an old slot", node(8).set({"gpu.1.pcie_generation_max": 3}).asks(ASKED), says="3 as its PCIe generation"),
    fails(
        "at work, and still at generation 1",
        node(8).set({"gpu.0.utilization": 95}).asks({"gpu.pcie_generation": 4}),
        says="while it works",
    ),
    unknown_when("it cannot be read", node(1).unknown("gpu.0.pcie_width").asks(ASKED)),
]
