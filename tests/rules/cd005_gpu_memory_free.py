"""CD005: each GPU has the free memory that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import GIB, fails, linux, node, passes, skips, unknown_when

RULE = "CD005"

ASKED = {"gpu.memory_free": 70 * GIB}
HELD = {"gpu.1.memory_free": 9 * GIB, "gpu.1.processes": [{"pid": 4711, "memory": 71 * GIB}]}

CASES = [
    skips("nobody asks", node(8)),
    passes("idle cards", node(8).asks(ASKED)),
    fails(
        "the job before left something behind",
        node(8).set(HELD).asks(ASKED),
        says=["GPU 1", "has 9.0 GiB of 80.0 GiB free, 1 process on it", "70.0 GiB is asked for"],
        blame="machine",
    ),
    fails("held by nobody that is seen", node(8).set({"gpu.0.memory_free": GIB}).asks(ASKED), says="has 1.0 GiB"),
    passes("a GPU that this job does not see", node(8).set(HELD).set({"env.CUDA_VISIBLE_DEVICES": "0"}).asks(ASKED)),
    unknown_when(
        "a part of a card has a part of its memory",
        node(1).set({"gpu.0.mig_mode": True, "gpu.0.mig_devices": 7}).asks(ASKED),
        says="MIG splits it",
    ),
    # Nobody can free what a card does not have: the job is on the wrong card, and no node is drained for it.
    fails(
        "a card that never has as much",
        linux().asks(ASKED),
        says="has 24.0 GiB in all, 70.0 GiB free is asked for",
        blame="allocation",
    ),
    unknown_when("it cannot be read", node(2).unknown("gpu.1.memory_free").asks(ASKED)),
]
