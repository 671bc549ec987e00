"""CD115: errors of a GPU's memory."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD115"


def a100(**facts: object) -> Machine:
    healthy = {"ecc_mode": True, "ecc_uncorrected": 0, "remap_pending": False, "remap_failure": False}
    machine = linux().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2")
    return machine.set({f"gpu.0.{name}": value for name, value in {**healthy, **facts}.items()})


def xid(number: int, machine: Machine | None = None) -> Machine:
    return (machine or a100()).log("xid", f"NVRM: Xid (PCI:0000:01:00): {number}", "0000:01:00.0", number=str(number))


REPORT = linux().only("system.os").set({"examination.kind": "report"})
UNCORRECTABLE = {"symptom.ecc_uncorrectable": {"text": "CUDA error: uncorrectable ECC error encountered"}}

CASES = [
    passes("ECC is on, and nothing was counted", a100()),
    passes("a GeForce card without ECC", linux()),
    fails(
        "no spare row is left",
        a100(remap_failure=True),
        says=["GPU 0 (NVIDIA A100", "could not be replaced"],
        certainty="certain",
        severity="error",
        blame="machine",
        fix="manual",
    ),
    fails("a row waits for a reset", a100(remap_pending=True), says="next reset", severity="warning", fix="reset-gpu"),
    fails(
        "a page of an older card waits", a100(retired_pending=True), says="page", severity="warning", fix="reset-gpu"
    ),
    fails("three errors", a100(ecc_uncorrected=3), says="3 errors", severity="warning", certainty="certain"),
    fails(
        "a program met it",
        a100().set(UNCORRECTABLE),
        severity="error",
        certainty="likely",
        fix="reset-gpu",
    ),
    fails("a program met it, and it was counted", a100(ecc_uncorrected=1).set(UNCORRECTABLE), certainty="certain"),
    fails("a rented GeForce card reports it", linux().set(UNCORRECTABLE), severity="error", certainty="likely"),
    fails("a traceback alone", REPORT.set(UNCORRECTABLE), severity="error", certainty="likely"),
    fails("Xid 48", xid(48), says="Xid 48", severity="error", certainty="likely", fix="reset-gpu"),
    fails("Xid 63: noted, a reset is due", xid(63), severity="warning", fix="reset-gpu"),
    fails("Xid 64: could not be noted", xid(64), says="Xid 64", severity="error", fix="manual"),
    fails("Xid 94: one program only", xid(94), severity="warning"),
    fails("Xid 95: all programs", xid(95), severity="error"),
    fails(
        "somebody tells of Xid 64",
        REPORT.set({"symptom.xid": {"text": "Xid 64", "number": "64"}}),
        severity="error",
    ),
    fails(
        "by its name",
        REPORT.set({"symptom.row_remap_failed": {"text": "INFOROM_DRAM_RETIREMENT_FAILURE"}}),
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    passes("before the driver was loaded anew", xid(48).log("module-loaded", "NVRM: loading")),
    passes("a program's fault", xid(31)),
    skips("no driver", linux().no_driver()),
    skips("no card", linux().no_gpu().set({"gpu.count": 0})),
    unknown_when("NVML may not be asked", a100().unknown("gpu.0.ecc_mode", "gpu.0.ecc_uncorrected")),
    unknown_when("a report about something else", REPORT),
]
