"""CD019: nothing holds a GPU's clocks down, where the policy forbids it."""

from __future__ import annotations

from cudadoctor.testing import fails, node, passes, skips, unknown_when

RULE = "CD019"

ASKED = {"gpu.throttled": False}
REASONS = "gpu.2.throttle_reasons"

CASES = [
    skips("nobody asks", node(8)),
    passes("idle", node(8).asks(ASKED)),
    passes("its power limit is normal under load", node(8).set({REASONS: ["sw_power_cap"]}).asks(ASKED)),
    fails(
        "heat",
        node(8).set({REASONS: ["hw_slowdown", "hw_thermal_slowdown"]}).asks(ASKED),
        says="GPU 2 (NVIDIA H100 80GB HBM3) is slowed down by heat",
        blame="machine",
    ),
    fails("the power supply", node(8).set({REASONS: ["hw_power_brake_slowdown"]}).asks(ASKED), says="the power brake"),
    unknown_when("it cannot be read", node(8).unknown(REASONS).asks(ASKED)),
]
