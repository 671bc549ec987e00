"""CD502: a card is too hot for its speed."""

from __future__ import annotations

from cudadoctor.testing import fails, jetson, linux, passes, skips, unknown_when

RULE = "CD502"

TWO = linux().gpu("NVIDIA RTX A6000", "8.6", 48, device_id="2230", index=1)

CASES = [
    passes("idle", linux()),
    passes(
        "busy and at its power limit, 79 degrees",
        linux().set({"gpu.0.temperature": 79, "gpu.0.throttle_reasons": ["sw_power_cap"]}),
    ),
    passes("only the reasons can be read", linux().unknown("gpu.0.temperature", "gpu.0.temperature_slowdown")),
    passes("a threshold of zero is none", linux().set({"gpu.0.temperature_slowdown": 0})),
    fails(
        "a thermal slowdown is active",
        linux().set({"gpu.0.temperature": 91, "gpu.0.throttle_reasons": ["hw_slowdown", "hw_thermal_slowdown"]}),
        says=["RTX 4090", "at 91 degrees C"],
        certainty="certain",
        severity="warning",
        blame="machine",
        fix="manual",
    ),
    fails(
        "the driver slows it, and its temperature cannot be read",
        linux().unknown("gpu.0.temperature").set({"gpu.0.throttle_reasons": ["sw_thermal_slowdown"]}),
        says="because it is hot",
        severity="warning",
    ),
    fails("at its own threshold", linux().set({"gpu.0.temperature": 95}), says="(95)", severity="warning"),
    fails("the second card", TWO.set({"gpu.1.throttle_reasons": ["sw_thermal_slowdown"]}), says="RTX A6000"),
    fails("84 degrees are advice", linux().set({"gpu.0.temperature": 84}), says="runs warm", severity="info"),
    fails(
        "a warm card does not hide a hot one",
        TWO.set({"gpu.0.temperature": 84, "gpu.1.throttle_reasons": ["hw_thermal_slowdown"]}),
        severity="warning",
    ),
    skips("no card", linux().no_gpu()),
    skips("a Jetson has no NVML", jetson()),
    unknown_when("neither can be read", linux().unknown("gpu.0.temperature", "gpu.0.throttle_reasons")),
]
