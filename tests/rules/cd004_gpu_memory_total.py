"""CD004: each GPU has the memory that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import GIB, fails, linux, node, passes, skips, unknown_when

RULE = "CD004"

ASKED = "gpu.memory_total"

CASES = [
    skips("nobody asks", node(8)),
    passes("enough", node(8).asks({ASKED: 78 * GIB})),
    fails(
        "a smaller card",
        linux().asks({ASKED: 40 * GIB}),
        says=["has 24.0 GiB", "40.0 GiB is asked for"],
        blame="allocation",
    ),
    fails(
        "one of eight is smaller",
        node(8).gpu("NVIDIA H100 PCIe", "9.0", 64, index=2).asks({ASKED: 78 * GIB}),
        says="GPU 2",
    ),
    fails(
        "a part of a card that is too small itself",
        linux().set({"gpu.0.mig_mode": True}).asks({ASKED: 40 * GIB}),
        says="has 24.0 GiB",
    ),
    unknown_when(
        "a part of a card has a part of its memory",
        node(1).set({"gpu.0.mig_mode": True, "gpu.0.mig_devices": 7}).asks({ASKED: 70 * GIB}),
        says="GPU 0: MIG splits it",
    ),
    unknown_when(
        "a part by its name, and MIG mode cannot be read",
        node(1).unknown("gpu.0.mig_mode").set({"env.CUDA_VISIBLE_DEVICES": "MIG-4b1c"}).asks({ASKED: 70 * GIB}),
    ),
    unknown_when(
        "the smaller card may not be the one that is seen, and the other does not tell",
        node(2)
        .set({"env.CUDA_VISIBLE_DEVICES": "GPU-4b1c", "gpu.0.memory_total": 24 * GIB})
        .unknown("gpu.1.memory_total")
        .asks({ASKED: 70 * GIB}),
    ),
    unknown_when("it cannot be read", node(1).unknown("gpu.0.memory_total").asks({ASKED: GIB})),
]
