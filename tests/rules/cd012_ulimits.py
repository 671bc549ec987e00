"""CD012: the process has the limits that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import GIB, GONE, container, fails, linux, passes, skips, unknown_when

RULE = "CD012"

FILES = {"limits.nofile": "65536"}
LOCKED = {"limits.memlock": "unlimited"}

CASES = [
    skips("nobody asks", linux()),
    passes("enough files", linux().set({"limits.nofile": 1048576}).asks(FILES)),
    passes("unlimited is more than any number", linux().set({"limits.nofile": GONE}).asks(FILES)),
    passes("unlimited, as asked for", linux().set({"limits.memlock": GONE}).asks(LOCKED)),
    passes("an amount that is reached", linux().asks({"limits.memlock": str(8 * GIB)})),
    fails(
        "the usual 1024",
        linux().asks(FILES),
        says="the limit on open files is 1024, 65536 is asked for",
        blame="environment",
    ),
    fails("an amount is not unlimited", linux().asks(LOCKED), says="8.0 GiB, unlimited is asked for", blame="machine"),
    fails("a container is started with its limits", container().asks(LOCKED), blame="allocation"),
    fails("a job's are those of the scheduler's service", linux().job().asks(LOCKED), blame="machine"),
    unknown_when("it cannot be read", linux().unknown("limits.memlock").asks(LOCKED)),
]
