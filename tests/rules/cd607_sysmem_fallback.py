"""CD607: the driver moves GPU memory into the machine's own."""

from __future__ import annotations

from cudadoctor.testing import GIB, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD607"

SLOW = {"symptom.work_is_slow": {"text": "17.56s/it", "seconds": "17.56"}}
SOON = {"symptom.work_is_slow": {"text": "1.21s/it", "seconds": "1.21"}}
NAMED = {"symptom.system_memory_fallback": {"text": "Shared GPU memory 9.1/15.9 GB"}}
MORE_THAN_THERE_IS = {"oom.allocated": 14 * GIB, "oom.total": 8 * GIB, "oom.free": 0}


def card(used: float, machine: Machine | None = None) -> Machine:
    gpu = {"index": 0, "name": "NVIDIA GeForce RTX 3090", "memory_total": 24 * GIB, "memory_used": int(used * GIB)}
    return (machine or windows()).set({"smi.gpus": [gpu]})


REPORT = windows().driver("536.40", "12.2").only("system.os", "driver.smi_version")

CASES = [
    skips("nothing is slow", windows()),
    passes("slow with an empty card", card(3).set(SLOW), says="nothing had to be moved"),
    passes("slow under a driver from before", windows().driver("531.79", "12.1").set(SLOW)),
    fails(
        "torch holds more than the card has",
        windows().set(MORE_THAN_THERE_IS),
        says=["14.0 GiB", "8.0 GiB"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="refuse-sysmem-fallback",
    ),
    fails("the traceback alone", windows().only().set(MORE_THAN_THERE_IS), severity="error", certainty="likely"),
    fails("steps of many seconds after a driver update", REPORT.set(SLOW), severity="warning", certainty="likely"),
    fails("slow with a full card", card(23.5).set(SOON), certainty="likely"),
    fails("slow, and they see shared memory in use", REPORT.set(SOON).set(NAMED), certainty="likely"),
    fails(
        "slow since an update, whose number is named",
        linux()
        .only()
        .set(SLOW)
        .set({"symptom.driver_updated": {"text": "update to driver 536.40", "driver": "536.40"}}),
        certainty="likely",
    ),
    fails("a driver whose number is not told", windows().only("system.os").set(SLOW), certainty="possible"),
    unknown_when("a step of a second proves little", REPORT.set(SOON)),
    skips("Linux refuses", linux().set(SLOW)),
    skips("Linux: a wrong number, or one pool", linux().set(MORE_THAN_THERE_IS)),
    unknown_when("the system is not known", windows().only().set(SLOW)),
    unknown_when(
        "slow since an update to a driver with three parts in its number, as Linux' have",
        windows()
        .only()
        .set(SLOW)
        .set({"symptom.driver_updated": {"text": "update to driver 550.54.14", "driver": "550.54.14"}}),
    ),
]
