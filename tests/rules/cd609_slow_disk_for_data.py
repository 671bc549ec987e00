"""CD609: the data lies on a slow disk."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD609"

SLOW = {"symptom.work_is_slow": {"text": "epochs got slower"}}

CASES = [
    passes("an NVMe disk", linux(), says="nvme"),
    passes("an SSD, and slow all the same", linux().set({"disk.kind": "ssd"}).set(SLOW)),
    fails("a turning disk: advice", linux().set({"disk.kind": "hdd"}), severity="info", certainty="possible"),
    passes("the home of a cluster", linux().set({"disk.kind": "network"}), says="network"),
    fails(
        "the home of a cluster, and the work is slow", linux().set({"disk.kind": "network"}).set(SLOW), says="network"
    ),
    fails(
        "a turning disk, and the work is slow",
        linux().set({"disk.kind": "hdd"}).set(SLOW),
        says="may wait for its data",
        severity="warning",
        certainty="likely",
        blame="environment",
        fix="manual",
    ),
    fails("/mnt/c", wsl().set({"disk.kind": "network", "disk.filesystem": "9p"}), says="drive of Windows"),
    skips("Windows does not tell", windows()),
    skips("a report that says nothing of it", linux().only().set({"examination.kind": "report"})),
    skips("it could not be looked at, and nothing is slow", linux().unknown("disk.kind")),
    unknown_when("the work is slow", linux().unknown("disk.kind").set(SLOW)),
]
