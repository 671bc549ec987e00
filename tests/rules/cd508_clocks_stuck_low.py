"""CD508: busy cards at idle clocks."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD508"


def busy(state: int, clock: int, *reasons: str, use: int = 99) -> Machine:
    changes: dict[str, Any] = {
        "gpu.0.utilization": use,
        "gpu.0.performance_state": state,
        "gpu.0.clock_sm": clock,
        "gpu.0.throttle_reasons": list(reasons),
    }
    return linux().set(changes)


IN_REPORT = {"examination.kind": "report"}

CASES = [
    passes("an idle card idles", linux(), says="no busy GPU"),
    passes("at work", busy(2, 2700)),
    passes("at its power limit", busy(2, 1500, "sw_power_cap")),
    passes("far down at its power limit, as a lowered one makes it", busy(2, 800, "sw_power_cap")),
    passes("the work has just begun", busy(0, 210)),
    passes("a desktop that draws a window", busy(8, 300, use=35)),
    passes("what is hot is another rule's affair", busy(8, 300, "hw_thermal_slowdown")),
    fails(
        "P8 at work",
        busy(8, 210),
        says=["is busy (99 %) in power state P8"],
        severity="warning",
        certainty="likely",
        blame="machine",
        fix="manual",
    ),
    fails("its clocks are locked", busy(2, 300, "applications_clocks_setting"), says="somebody has set its clocks"),
    fails(
        "a table alone tells of it",
        linux().only("gpu.0.name").set({**IN_REPORT, "gpu.0.utilization": 100, "gpu.0.performance_state": 8}),
        says="P8",
    ),
    fails(
        "somebody says so",
        linux().only("smi.gpus").set({**IN_REPORT, "symptom.clocks_stuck": {"text": "stuck at 210 MHz"}}),
        certainty="possible",
    ),
    skips("no GPU", linux().no_gpu()),
    skips("nothing tells", linux().only("smi.gpus").set(IN_REPORT)),
    unknown_when("NVML does not tell", linux().unknown("gpu.0.utilization", "gpu.0.clock_sm")),
]
