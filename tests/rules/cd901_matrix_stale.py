"""CD901: the compatibility data is old."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, unknown_when

RULE = "CD901"

CASES = [
    passes("of today", linux()),
    passes("a clock that is slow", linux().set({"system.date": "1970-01-01"})),
    fails(
        "ten years later",
        linux().set({"system.date": "2036-11-30"}),
        says="days old",
        severity="info",
        blame="tool",
        fix="update-cudadoctor",
    ),
    unknown_when("the date is not known", linux().unknown("system.date")),
    unknown_when("a date that is none", linux().set({"system.date": "30.11.2026"})),
]
