"""CD009: NCCL is of the version that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when

RULE = "CD009"

ASKED = {"nccl.version": ">=2.20"}

CASES = [
    skips("nobody asks", node(8)),
    passes("the wheel's", node(8).asks(ASKED), says="NCCL 2.28.9"),
    fails(
        "an older one",
        linux().package("nvidia-nccl-cu12", "2.18.1").asks(ASKED),
        says="NCCL is 2.18.1, >=2.20 is asked for",
        blame="environment",
    ),
    unknown_when("no package of it: torch may hold it within itself", linux().asks(ASKED), says="no package"),
    unknown_when("two of them", node(8).package("nvidia-nccl-cu12", "2.18.1").asks(ASKED), says="several"),
]
