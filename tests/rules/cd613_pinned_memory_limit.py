"""CD613: pinned and locked memory."""

from __future__ import annotations

from cudadoctor.testing import GONE, container, fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD613"

LOCKED = {"symptom.memlock_too_small": {"text": "ibv_reg_mr_iova2 failed with error Cannot allocate memory"}}
PINNED = {"symptom.pinned_memory_failed": {"text": "cudaHostAlloc failed: out of memory"}}
SMALL = {"limits.memlock": 64 << 10}

CASES = [
    passes("the default of most systems", linux(), says="8.0 GiB"),
    passes("a low default, and nothing asked for more", linux().set(SMALL)),
    passes("no limit", linux().set({"limits.memlock": GONE}), says="not limited"),
    fails(
        "InfiniBand in a container",
        container().set(SMALL).set(LOCKED),
        says="65536 bytes",
        severity="error",
        certainty="certain",
        blame="allocation",
        fix="manual",
    ),
    fails("a log alone", linux().only().set(LOCKED), certainty="likely", blame="machine"),
    fails("the limit is off", linux().set({"limits.memlock": GONE}).set(LOCKED), says="is off", certainty="possible"),
    fails("CUDA could not pin", linux().set(PINNED), says="is short", certainty="possible", blame="environment"),
    fails("CUDA could not pin in WSL", wsl().set(PINNED), says="WSL can pin only a part", certainty="likely"),
    skips("Windows", windows().unknown("limits.memlock")),
    skips("a report that says nothing of it", linux().only("system.os").set({"examination.kind": "report"})),
    unknown_when("the limit cannot be read", linux().unknown("limits.memlock")),
]
