"""CD114: errors of a GPU in the kernel log that no narrower rule takes."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD114"


def xid(number: int, machine: Machine | None = None, detail: str = "") -> Machine:
    text = f"NVRM: Xid (PCI:0000:01:00): {number}, pid=4242, name=python, {detail}"
    return (machine or linux()).log("xid", text, "0000:01:00.0", number=str(number), detail=detail)


REPORT = linux().only("system.os").set({"examination.kind": "report"})

CASES = [
    passes("a quiet log", linux()),
    fails(
        "a kernel touched an address that is not mapped",
        xid(31),
        says=["Xid 31", "program's own fault"],
        severity="info",
        certainty="likely",
    ),
    fails("an illegal instruction", xid(13), says="the program's own fault", severity="info"),
    fails("a program that was stopped", xid(45), severity="info"),
    fails(
        "the card's own processor does not answer",
        xid(119),
        says=["Xid 119", "(GSP)"],
        severity="error",
        certainty="likely",
        blame="machine",
        fix="manual",
    ),
    fails("the power cable", xid(54), says="auxiliary power", severity="error", fix="manual"),
    fails("damaged commands", xid(32), severity="warning"),
    fails("of two the graver one counts", xid(62, xid(13)), says="Xid 62", severity="error"),
    fails("a number that is not in the data", xid(999), says="does not know", severity="info", certainty="possible"),
    fails("a display", xid(56), severity="info"),
    skips("the card fell off the bus: CD113", xid(79), says="CD113"),
    skips("its memory: CD115", xid(48), says="CD115"),
    passes("the driver was loaded anew since", xid(62).log("module-loaded", "NVRM: loading NVIDIA UNIX")),
    passes("eleven days ago", xid(62).set({"system.uptime": 950000.0}), says="history"),
    fails("a minute ago", xid(62).set({"system.uptime": 65.0})),
    fails("somebody tells of one", REPORT.set({"symptom.xid": {"text": "we got Xid 62", "number": "62"}})),
    skips("nobody may read the log, and the GPU answers", linux().unknown("kernel.log_events")),
    skips("no card", linux().no_gpu().unknown("kernel.log_events")),
    unknown_when("nobody may read the log, and NVML fails", linux().hangs().unknown("kernel.log_events")),
    unknown_when("a report without a log", REPORT),
    unknown_when("a network card's XID", REPORT.set({"symptom.xid": {"text": "eth0: XID 541", "number": "541"}})),
]
