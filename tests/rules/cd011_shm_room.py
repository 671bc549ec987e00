"""CD011: /dev/shm has the room that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import GIB, GONE, MIB, container, fails, linux, node, passes, skips, unknown_when

RULE = "CD011"

ASKED = {"disk.shm": 8 * GIB}
FULL = {"memory.shm_size": 32 * GIB, "memory.shm_free": GIB}
DOCKERS = {"memory.shm_size": 64 * MIB, "memory.shm_free": 64 * MIB}

CASES = [
    skips("nobody asks", node(8)),
    passes("half of the memory", node(8).asks(ASKED)),
    fails(
        "Docker's default",
        container().set(DOCKERS).asks(ASKED),
        says="/dev/shm has 64 MiB free, 8.0 GiB is asked for",
        blame="allocation",
        fix="enlarge-shm",
    ),
    fails("left-overs of jobs", node(8).set(FULL).asks(ASKED), says="1.0 GiB of 32.0 GiB free", blame="machine"),
    fails("a small one on a machine of its own", linux().set(DOCKERS).asks(ASKED), blame="machine", fix="enlarge-shm"),
    fails("there is none", linux().set({"memory.shm_free": GONE, "memory.shm_size": GONE}).asks(ASKED)),
    unknown_when("it cannot be read", linux().unknown("memory.shm_free", "memory.shm_size").asks(ASKED)),
    unknown_when("only its size is known", linux().unknown("memory.shm_free").asks(ASKED), says="how much"),
]
