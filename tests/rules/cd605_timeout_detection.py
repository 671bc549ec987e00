"""CD605: Windows' watchdog ended a kernel."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD605"

TIMED_OUT = {"symptom.launch_timed_out": {"text": "CUDA error: the launch timed out and was terminated"}}
RESET = {"symptom.display_driver_reset": {"text": "Display driver nvlddmkm stopped responding"}}

CASES = [
    passes("the default", windows(), says="its default"),
    passes("a raised limit", windows().set({"windows.tdr_delay": 60}), says="60 s"),
    passes("no watchdog", windows().set({"windows.tdr_level": 0}), says="off"),
    fails("a lowered limit: advice", windows().set({"windows.tdr_delay": 1}), severity="info"),
    fails(
        "a kernel was ended",
        windows().set(TIMED_OUT),
        says=["longer than Windows", "2 s"],
        severity="error",
        certainty="likely",
        blame="machine",
        fix="raise-tdr-delay",
    ),
    fails(
        "a traceback alone: Windows, or Linux with a display",
        windows().only().set(TIMED_OUT),
        says=["a system lets", "Windows: 2 s"],
        certainty="likely",
        fix=["raise-tdr-delay", "manual"],
    ),
    fails("in WSL it is Windows' limit", wsl().set(TIMED_OUT), certainty="likely", fix="raise-tdr-delay"),
    fails("the event log", windows().set(RESET), says="has reset the display driver", certainty="likely"),
    fails("the event log alone", windows().only().set(RESET), fix="raise-tdr-delay"),
    fails(
        "an ample limit: it is something else",
        windows().set({"windows.tdr_delay": 300}).set(TIMED_OUT),
        says="may hang",
        certainty="possible",
    ),
    fails("Linux with a display", linux().set(TIMED_OUT), says="draws a display", certainty="possible", fix="manual"),
    skips("Linux without a report", linux()),
    skips("nothing is known", windows().only("examination.kind")),
    unknown_when("the registry cannot be read", windows().unknown("windows.tdr_delay", "windows.tdr_level")),
    fails(
        "the screen went black for a moment",
        windows().only().set({"symptom.screen_went_black": {"text": "my screen goes black for a second"}}),
        says="perhaps Windows reset",
        certainty="possible",
        fix="raise-tdr-delay",
    ),
    skips("it went black on Linux", linux().set({"symptom.screen_went_black": {"text": "black for a second"}})),
]
