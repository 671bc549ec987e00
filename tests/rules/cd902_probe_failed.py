"""CD902: an error of cudadoctor's own while it looked."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips

RULE = "CD902"


def failed(*entries: tuple[str, str]) -> dict[str, object]:
    return {"examination.failed": [{"probe": probe, "reason": reason} for probe, reason in entries]}


CASES = [
    passes("all came to their end", linux()),
    fails(
        "one",
        linux().set(failed(("disks", "KeyError: 'x'"))),
        says="the probe disks failed: KeyError: 'x'",
        severity="warning",
        blame="tool",
    ),
    fails("two", linux().set(failed(("disks", "KeyError"), ("pci", "OSError"))), says="(and 1 more)"),
    fails("a long reason is cut", linux().set(failed(("disks", "ValueError: " + "x" * 500))), says="..."),
    skips("a pasted report", linux().unknown("examination.failed")),
]

NEVER_UNDECIDED = "facts that come from no examination have no probes that could have failed"
