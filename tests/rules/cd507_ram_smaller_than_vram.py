"""CD507: advice where the card has more memory than the machine."""

from __future__ import annotations

from cudadoctor.testing import GIB, GONE, fails, jetson, linux, passes, skips, unknown_when

RULE = "CD507"

CASES = [
    passes("64 GiB beside 24", linux()),
    passes("as much, less what the firmware keeps", linux().set({"memory.total": 23 * GIB})),
    passes("a limit of the control group that is ample", linux().set({"memory.cgroup_limit": 48 * GIB})),
    fails("16 GiB beside 24", linux().set({"memory.total": 16 * GIB}), says=["16 GiB", "24 GiB"], severity="info"),
    fails("a job with 8 GiB", linux().job(gpus=1).set({"memory.cgroup_limit": 8 * GIB}), says="8 GiB of memory"),
    fails(
        "the largest card counts",
        linux().gpu("NVIDIA H100 80GB HBM3", "9.0", 80, index=1),
        says="a GPU of 80 GiB",
    ),
    skips("no card", linux().no_gpu()),
    skips("a GB10 shares the machine's memory and tells none of its own", linux().set({"gpu.0.memory_total": GONE})),
    skips("a Jetson", jetson()),
    unknown_when("the memory cannot be read", linux().unknown("memory.total")),
]
