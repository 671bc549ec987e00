"""CD801: what the policy wants to run fits into the memory that the GPUs have free."""

from __future__ import annotations

from typing import Any

from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.spec import read_row
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import GIB, fails, linux, node, passes, skips, unknown_when

RULE = "CD801"

# Run in bf16 with 4096 tokens.
LLAMA = {"fit.model": "llama-3.1-8b"}


def needed(row: dict[str, Any]) -> int:
    """What is expected of the GPU, in bytes."""
    matrix = load_matrix()
    question = read_row(matrix, row)
    return estimate(matrix, question.model, question.workload).device.expected


def train(how: str, **more: Any) -> dict[str, Any]:
    return {**LLAMA, "fit.train": how, **{f"fit.{key}": value for key, value in more.items()}}


CASES = [
    skips("nobody asks", linux()),
    skips("another thing is asked for", node(8).asks({"gpu.count": "==8"})),
    passes("8 billion parameters on a card of 24 GB", linux().asks(LLAMA)),
    passes("by its name at Hugging Face", linux().asks({"fit.model": "meta-llama/Llama-3.1-8B-Instruct"})),
    passes("by its size", linux().asks({"fit.model": "7b"})),
    passes("trained in four bits", linux().asks(train("qlora", batch=1, context=1024, checkpointing="full"))),
    passes(
        "in full, over eight GPUs",
        node(8).asks(train("full", batch=1, context=4096, checkpointing="full", gpus=8, sharding="fsdp")),
    ),
    fails(
        "in full, on one card of 24 GB",
        linux().asks(train("full", batch=1, context=2048, checkpointing="full")),
        says=["llama-3.1-8b needs", "is free"],
        severity="error",
        certainty="certain",
        fix="manual",
    ),
    fails(
        "70 billion parameters",
        linux().asks({"fit.model": "llama-3.1-70b"}),
        says="llama-3.1-70b needs",
        severity="error",
        fix="manual",
    ),
    fails(
        "a context that no card holds",
        linux().asks({**LLAMA, "fit.context": 131072, "fit.batch": 8}),
        says="llama-3.1-8b needs",
        blame="environment",
        fix="manual",
    ),
    fails(
        "others hold most of it",
        linux().set({"gpu.0.memory_free": 6 * GIB}).asks(LLAMA),
        says=["6.0 GiB is free", "others hold the rest of GPU 0's 24.0 GiB"],
        blame="machine",
        fix=["manual", "manual"],
    ),
    fails(
        "just what is expected is free",
        linux().set({"gpu.0.memory_free": needed({"model": "llama-3.1-8b"})}).asks(LLAMA),
        says=["llama-3.1-8b needs", "tight"],
        severity="warning",
    ),
    unknown_when("what is free is not known", linux().unknown("gpu.0.memory_free").asks(LLAMA), says="cannot tell"),
    unknown_when("a card in parts", linux().set({"gpu.0.mig_mode": True}).asks(LLAMA), says="MIG splits GPU 0"),
    unknown_when(
        "of eight GPUs two are here",
        node(2).asks(train("full", gpus=8, sharding="fsdp")),
        says="8 GPUs are to share the work, and 2 are seen here",
    ),
    unknown_when("no such model", linux().asks({"fit.model": "llama-3.1-9b-instruct"}), says="no model called"),
    unknown_when("no model at all", linux().asks({"fit.batch": 8}), says="fit.model is missing"),
    unknown_when("a type that nobody knows", linux().asks({**LLAMA, "fit.quant": "int3000"}), says="cannot be judged"),
    unknown_when(
        "what cannot be trained in full", linux().asks(train("full", quant="q4_k_m")), says="cannot be judged"
    ),
]
