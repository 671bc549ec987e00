"""CD018: GPUs are split, or whole, as the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when

RULE = "CD018"

WHOLE = {"gpu.mig": False}
SEVEN = {"gpu.mig": True, "gpu.mig_devices": "==7"}
SPLIT = node(1).set({"gpu.0.mig_mode": True, "gpu.0.mig_devices": 7})

CASES = [
    skips("nobody asks", node(8)),
    passes("whole cards", node(8).asks(WHOLE)),
    passes("a card that has no MIG", linux().asks(WHOLE)),
    passes("seven parts", SPLIT.asks(SEVEN)),
    fails(
        "one is split", node(8).set({"gpu.2.mig_mode": True}).asks(WHOLE), says="MIG is on on GPU 2", blame="machine"
    ),
    fails("none is split", node(8).asks({"gpu.mig": True}), says="asked to be on"),
    fails("fewer parts", SPLIT.set({"gpu.0.mig_devices": 3}).asks(SEVEN), says="has 3 MIG devices, 7 asked for"),
    unknown_when("it cannot be read", node(1).unknown("gpu.0.mig_mode").asks(WHOLE)),
    unknown_when("the parts cannot be counted", SPLIT.unknown("gpu.0.mig_devices").asks(SEVEN)),
]
