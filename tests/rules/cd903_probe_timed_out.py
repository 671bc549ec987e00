"""CD903: a part of the examination was left behind at the deadline."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips

RULE = "CD903"

CASES = [
    passes("all ended in time", linux()),
    fails(
        "a folder on a dead network file system",
        linux().set({"examination.timed_out": [{"probe": "packages", "seconds": 6.0}]}),
        says="the probe packages did not end within 6.0 s",
        severity="warning",
        blame="machine",
    ),
    fails(
        "two",
        linux().set(
            {"examination.timed_out": [{"probe": "packages", "seconds": 6.0}, {"probe": "pci", "seconds": 6.0}]}
        ),
        says="(and 1 more)",
    ),
    fails(
        "a folder that does not answer, and was left alone",
        linux().set(
            {"examination.timed_out": [{"probe": "folders", "folder": "/net/home/user", "seconds": 2.0}]},
        ),
        says="/net/home/user did not answer within 2.0 s: what lies there is unknown",
        severity="warning",
        blame="machine",
    ),
    skips("a pasted report", linux().unknown("examination.timed_out")),
]

NEVER_UNDECIDED = "facts that come from no examination have no probes that could be late"
