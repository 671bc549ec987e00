"""CD601: no swap, on a Linux machine of its own."""

from __future__ import annotations

from cudadoctor.testing import GIB, MIB, container, fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD601"

NONE = linux().set({"memory.swap_total": 0, "memory.swap_devices": []})
SMALL = NONE.set({"memory.total": 16 * GIB})

CASES = [
    passes("8 GiB", linux(), says="8 GiB"),
    passes("zram", linux().set({"memory.swap_total": 512 * MIB}), says="512 MiB"),
    passes("WSL has its own", wsl()),
    fails("ample memory: advice", NONE, says="no swap", severity="info", certainty="possible", fix="add-swap"),
    fails(
        "little memory: a warning, and no root cause of anything",
        SMALL,
        severity="warning",
        certainty="possible",
        blame="machine",
        fix="add-swap",
    ),
    fails("the memory is not known: advice", NONE.unknown("memory.total"), severity="info"),
    fails(
        "the kernel has ended a process",
        NONE.log("process-killed", pid="4242", name="python", scope="system"),
        says="ended python",
        severity="warning",
        certainty="likely",
    ),
    fails(
        "a container beside it met its own limit",
        NONE.log("process-killed", name="java", scope="cgroup"),
        severity="info",
    ),
    skips("a container has none by design", container().set({"memory.swap_total": 0})),
    skips("a pod", NONE.job("kubernetes")),
    skips("a job", NONE.job(gpus=1)),
    skips("the login node of a cluster", NONE.set({"scheduler.kind": "slurm"})),
    skips("Windows has page files", windows().set({"memory.swap_total": 0})),
    unknown_when("it cannot be read", linux().unknown("memory.swap_total")),
]
