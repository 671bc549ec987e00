"""CD014: no GPU is hotter than the policy allows."""

from __future__ import annotations

from cudadoctor.testing import fails, node, passes, skips, unknown_when

RULE = "CD014"

ASKED = {"gpu.temperature": 60}

CASES = [
    skips("nobody asks", node(8)),
    passes("idle cards", node(8).asks(ASKED)),
    passes("just as hot as is allowed", node(8).set({"gpu.0.temperature": 60}).asks(ASKED)),
    fails(
        "a fan has failed",
        node(8).set({"gpu.6.temperature": 71}).asks(ASKED),
        says=["GPU 6", "is at 71 degrees C, 60 at most is asked for"],
        blame="machine",
    ),
    unknown_when("a sensor tells nothing", node(8).unknown("gpu.2.temperature").asks(ASKED)),
    fails(
        "a hot one beside it decides", node(8).unknown("gpu.2.temperature").set({"gpu.3.temperature": 90}).asks(ASKED)
    ),
]
