"""CD013: there is the memory that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import GIB, GONE, container, fails, linux, node, passes, skips, unknown_when

RULE = "CD013"

TOTAL = {"system.memory_total": 100 * GIB}
FREE = {"system.memory_available": 60 * GIB}

CASES = [
    skips("nobody asks", node(8)),
    passes("a large node", node(8).asks({**TOTAL, **FREE})),
    passes("a limit that is high enough", node(8).job().set({"memory.cgroup_limit": 200 * GIB}).asks(TOTAL)),
    fails("a small machine", linux().asks(TOTAL), says="the machine has 64.0 GiB of memory", blame="machine"),
    fails(
        "the job asked for less than it needs",
        node(8).job().set({"memory.cgroup_limit": 32 * GIB}).asks(TOTAL),
        says="the job may use 32.0 GiB of memory, 100.0 GiB is asked for",
        blame="allocation",
    ),
    fails("others hold it", linux().asks(FREE), says="50.0 GiB of memory is free, 60.0 GiB", blame="machine"),
    unknown_when("it cannot be read", linux().unknown("memory.total").asks(TOTAL)),
    unknown_when(
        "a container's limit cannot be read",
        container().set({"memory.total": 500 * GIB}).unknown("memory.cgroup_limit").asks(TOTAL),
    ),
    passes("no container: no limit is looked for", node(8).set({"memory.cgroup_limit": GONE}).asks(TOTAL)),
]
