"""CD003: each GPU has the compute capability that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when

RULE = "CD003"

ASKED = "gpu.compute_capability"

CASES = [
    skips("nobody asks", node(8)),
    passes("newer than asked for", node(8).asks({ASKED: ">=8.0"})),
    passes("the very one", node(8).asks({ASKED: "==9.0"}), says="9.0"),
    passes("12.0 is more than 9.0", linux().gpu("NVIDIA B", "12.0").asks({ASKED: ">=9.0"})),
    fails(
        "too old for fp8",
        linux().gpu("NVIDIA A100-SXM4-80GB", "8.0").asks({ASKED: ">=8.9"}),
        says="has compute capability 8.0, >=8.9 is asked for",
        blame="allocation",
    ),
    fails("one old card among eight", node(8).gpu("Tesla T4", "7.5", 16, index=7).asks({ASKED: ">=8.0"}), says="GPU 7"),
    unknown_when("it cannot be read", node(1).unknown("gpu.0.compute_capability").asks({ASKED: ">=8.0"})),
]
