from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.kernel_log import PROBE

from .tables import DENIED, Unknown, check, machine
from .test_driver_packages import CARD

DRIVER = {"/sys/module/nvidia/version": "535.183.01\n"}
BOUND = {"/sys/bus/pci/devices/0000:01:00.0/driver": "../../../bus/pci/drivers/nvidia"}
XID = "[ 9000.123456] NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
REJECTED = "Loading of module with unavailable key is rejected"
JOURNALCTL = ["journalctl", "--dmesg", "--boot", "--no-pager", "--output=short"]


def dmesg(*lines: str) -> dict[str, Any]:
    return {"argv": ["dmesg"], "stdout": [*lines, ""]}


NOT_PERMITTED = {
    "argv": ["dmesg"],
    "exit_status": 1,
    "stderr": "dmesg: read kernel buffer failed: Operation not permitted\n",
}


def kinds(facts: dict[str, Any]) -> Any:
    fact = facts["kernel.log_events"]
    return [event["kind"] for event in fact.get()] if fact.is_known else Unknown(fact.reason)


CASES: list[tuple[str, dict[str, Any], Any]] = [
    (
        "an Xid",
        {"files": {**CARD, **DRIVER}, "links": BOUND, "programs": [dmesg("[    1.0] usb 1-1: new device", XID)]},
        ["xid"],
    ),
    ("a log without a word about GPUs", {"files": CARD, "programs": [dmesg("[    1.0] usb 1-1: new device")]}, []),
    (
        "no card and no module: the log is not asked",
        {"folders": {"/sys/bus/pci/devices": []}, "programs": [dmesg(XID)]},
        Unknown("not read: nothing of NVIDIA is on the PCI bus"),
    ),
    (
        "users may not read it, and the driver works: the journal is not asked",
        {
            "files": {**CARD, **DRIVER},
            "links": BOUND,
            "programs": [NOT_PERMITTED, {"argv": JOURNALCTL, "stdout": f"Nov 30 08:00:00 host kernel: {REJECTED}\n"}],
        },
        Unknown("reading the kernel log needs root"),
    ),
    (
        "users may not read it, and no driver holds the card: the journal is asked",
        {
            "files": CARD,
            "programs": [NOT_PERMITTED, {"argv": JOURNALCTL, "stdout": f"Nov 30 08:00:00 host kernel: {REJECTED}\n"}],
        },
        ["key-rejected"],
    ),
    (
        "module and library differ: the journal is asked",
        {
            "files": {**CARD, **DRIVER},
            "links": {**BOUND, "/usr/lib64/libcuda.so.1": "libcuda.so.535.216.01"},
            "status": {"/usr/lib64/libcuda.so.535.216.01": {"size": 30_000_000}},
            "programs": [
                NOT_PERMITTED,
                {"argv": JOURNALCTL, "stdout": "Nov 30 08:00:00 host kernel: NVRM: API mismatch: the client has\n"},
            ],
        },
        ["api-mismatch"],
    ),
    (
        "the journal shows this user nothing of the kernel",
        {"files": CARD, "programs": [NOT_PERMITTED, {"argv": JOURNALCTL, "stdout": "-- No entries --\n"}]},
        Unknown("reading the kernel log needs root"),
    ),
    ("there is no dmesg", {"files": CARD}, Unknown("there is no dmesg")),
    (
        "dmesg does not end",
        {"files": CARD, "programs": [{"argv": ["dmesg"], "timed_out": True}]},
        Unknown("timed out"),
    ),
    (
        "dmesg cannot be run",
        {"files": CARD, "programs": [{"argv": ["dmesg"], **DENIED}]},
        Unknown("permission denied"),
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_kernel_log(title: str, sections: dict[str, Any], expected: Any) -> None:
    assert kinds(check(PROBE, machine(**sections), {})) == expected


def test_an_event_has_what_its_kind_captures() -> None:
    facts = check(PROBE, machine(files=CARD, programs=[dmesg(XID)]), {})
    (event,) = facts["kernel.log_events"].get()
    assert event["bus_id"] == "0000:01:00.0"
    assert event["seconds"] == 9000.123456
    assert event["values"]["number"] == "79"
    assert event["text"].startswith("NVRM: Xid")


def test_of_a_flood_the_newest_events_are_kept() -> None:
    lines = [XID.replace("79", str(number % 100)) for number in range(1000)]
    facts = check(PROBE, machine(files=CARD, programs=[dmesg(*lines)]), {})
    events = facts["kernel.log_events"].get()
    assert len(events) == 200
    assert events[-1]["values"]["number"] == "99"
