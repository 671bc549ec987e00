"""CD503: a card is held back by its power; "SW Power Cap" under load is no fault."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when, windows

RULE = "CD503"

CAPPED = {"gpu.0.throttle_reasons": ["sw_power_cap"], "gpu.0.power": 449.0}
BRAKE = {"gpu.0.throttle_reasons": ["hw_slowdown", "hw_power_brake_slowdown"]}

CASES = [
    passes("idle", linux()),
    passes("every card meets its limit under load", linux().set(CAPPED)),
    passes("a lowered limit that holds nothing back now", linux().set({"gpu.0.power_limit": 300.0})),
    passes("a limit that is lowered a little", linux().set(CAPPED).set({"gpu.0.power_limit": 420.0})),
    passes(
        "a hardware slowdown by heat is CD502's",
        linux().set({"gpu.0.throttle_reasons": ["hw_slowdown", "hw_thermal_slowdown"]}),
    ),
    fails(
        "a power brake",
        linux().set(BRAKE),
        says="a power brake",
        certainty="certain",
        severity="warning",
        blame="machine",
        fix="manual",
    ),
    fails(
        "a hardware slowdown that tells no reason",
        linux().set({"gpu.0.throttle_reasons": ["hw_slowdown"]}),
        says="power or heat",
        certainty="likely",
    ),
    fails(
        "a laptop on battery brakes on purpose",
        windows().set(BRAKE).set({"windows.on_battery": True}),
        says="on battery",
        severity="info",
    ),
    fails(
        "somebody has lowered the limit, and it is met",
        linux().set(CAPPED).set({"gpu.0.power_limit": 300.0}),
        says=["300 W", "450 W"],
        severity="info",
    ),
    fails(
        "the second card",
        linux()
        .gpu("NVIDIA RTX A6000", "8.6", 48, index=1)
        .set({"gpu.1.throttle_reasons": ["hw_power_brake_slowdown"]}),
        says="RTX A6000",
    ),
    skips("no card", linux().no_gpu()),
    unknown_when("the reasons cannot be read", linux().unknown("gpu.0.throttle_reasons")),
]
