"""CD606: hardware-accelerated GPU scheduling, where somebody reports uneven work."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when, windows

RULE = "CD606"

SLOW = {"symptom.work_is_slow": {"text": "GPU load randomly 80% or 100%"}}
NAMED = {"symptom.hardware_scheduling_named": {"text": "HAGS on", "words": " on"}}
OFF = {"symptom.hardware_scheduling_named": {"text": "HAGS is disabled", "words": " is disabled"}}
ON = {"windows.hardware_scheduling": "on"}

CASES = [
    passes("the default", windows(), says="the default"),
    passes("on", windows().set(ON), says="on"),
    passes("off", windows().set({"windows.hardware_scheduling": "off"}), says="off"),
    passes("somebody speaks of it, and nothing is slow", windows().set(ON).set(NAMED)),
    passes("slow with it off", windows().set({"windows.hardware_scheduling": "off"}).set(SLOW)),
    passes("slow, and they say that it is off", windows().only("system.os").set(SLOW).set(OFF)),
    fails(
        "uneven with it on, and they name it",
        windows().set(ON).set(SLOW).set(NAMED),
        says="HAGS",
        severity="warning",
        certainty="likely",
        blame="machine",
        fix="turn-off-gpu-scheduling",
    ),
    fails(
        "a busy processor is a complaint, too",
        windows().only().set({"symptom.cpu_is_busy": {"text": "high CPU usage"}}).set(NAMED),
        says="the processor is kept busy",
        certainty="likely",
    ),
    fails("a sentence alone", windows().only().set(SLOW).set(NAMED), certainty="likely"),
    fails("uneven with it on", windows().set(ON).set(SLOW), certainty="possible"),
    fails(
        "somebody pastes the setting beside the complaint",
        windows().only("system.os").set(ON).set(SLOW).set({"examination.kind": "report"}),
        certainty="likely",
    ),
    skips("Linux", linux().set(SLOW)),
    skips("nothing is known", windows().only("examination.kind")),
    unknown_when("the registry cannot be read", windows().unknown("windows.hardware_scheduling")),
    unknown_when("slow, and nobody says how it is set", windows().unknown("windows.hardware_scheduling").set(SLOW)),
]
