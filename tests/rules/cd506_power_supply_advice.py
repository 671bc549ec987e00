"""CD506: what speaks of a weak power supply."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, windows

RULE = "CD506"

NEVER_UNDECIDED = "a supply cannot be seen; without a sign of weakness there is nothing to say"

XID_79 = [
    {
        "kind": "xid",
        "text": "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        "bus_id": "0000:01:00.0",
        "values": {"number": "79", "detail": "GPU has fallen off the bus."},
    }
]
RESTARTS = {"symptom.power_off_under_load": {"text": "the PC restarts as soon as training starts"}}

CASES = [
    passes("a quiet log", linux()),
    fails(
        "it restarts under load",
        windows().set(RESTARTS),
        says="goes off or restarts under load",
        severity="warning",
        certainty="likely",
        blame="machine",
        fix="manual",
    ),
    fails("a card fell off the bus", linux().set({"kernel.log_events": XID_79}), severity="info", certainty="possible"),
    fails(
        "a power brake",
        linux().set({"gpu.0.throttle_reasons": ["hw_power_brake_slowdown"]}),
        says="holds the NVIDIA GeForce RTX 4090 back",
        severity="info",
    ),
    fails("a lost card", linux().set({"gpu.0.lost": True}), severity="info"),
    skips("no GPU", linux().no_gpu()),
    skips("the log could not be read", linux().unknown("kernel.log_events")),
]
