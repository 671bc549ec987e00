"""CD120: a branch that NVIDIA has ended."""

from __future__ import annotations

from cudadoctor.testing import container, fails, jetson, linux, passes, skips, unknown_when

RULE = "CD120"

PASCAL = linux().gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", 11, device_id="1b06")
KEPLER = linux().gpu("Tesla K80", "3.7", 12, device_id="102d")

CASES = [
    passes("a branch that is maintained", linux(), says="R580"),
    passes("its last month", linux().driver("580.95.05", "13.0").set({"system.date": "2028-08-04"})),
    fails(
        "the long-term branch of 2023",
        linux().driver("535.183.01", "12.2"),
        says=["R535", "2026-06"],
        severity="info",
        blame="machine",
    ),
    fails("the last branch for this card", KEPLER.driver("470.256.02", "11.4"), says="last branch", severity="info"),
    fails("its last branch, years later", PASCAL.set({"system.date": "2031-01-01"}), severity="info"),
    passes("two sources differ: the later date counts", linux().driver("610.57.04", "13.3")),
    fails(
        "a report may be as old as its driver",
        linux().driver("535.183.01", "12.2").set({"examination.kind": "report"}),
        severity="info",
    ),
    fails("a container's host has it", container().driver("535.183.01", "12.2"), severity="info"),
    skips("no driver", linux().no_driver()),
    skips("a Jetson's driver is part of its system", jetson()),
    skips("a branch without a date", linux().driver("615.71.09", "13.4")),
    unknown_when("a branch of the future", linux().driver("999.10", "19.0")),
]
