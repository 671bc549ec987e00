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
    unknown_when("it cannot be read", node(1).unknown("gpu.0.memory_total").asks({ASKED: GIB})),
]
