"""CD010: disks have the room that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import GIB, fails, linux, node, passes, skips, unknown_when

RULE = "CD010"

ALL = {f"disk.{place}": 100 * GIB for place in ("working", "temporary", "environment")}

CASES = [
    skips("nobody asks", node(8)),
    passes("room everywhere", node(8).asks(ALL)),
    fails(
        "a small /tmp",
        node(8).set({"disk.temporary_free": 2 * GIB}).asks(ALL),
        says="2.0 GiB is free for temporary files (/tmp), 100.0 GiB is asked for",
        blame="machine",
    ),
    fails(
        "a full working folder", node(8).set({"disk.working_free": 0}).asks(ALL), says="0 bytes", blame="environment"
    ),
    fails("pip's cache", linux().set({"disk.cache_free": GIB}).asks({"disk.cache": 9 * GIB}), says="pip keeps"),
    unknown_when("it cannot be read", node(8).unknown("disk.working_free").asks(ALL), says="in the working folder"),
]
