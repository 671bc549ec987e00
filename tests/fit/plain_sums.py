"""An estimator that fits on a page: whoever tests what is done with needs can reckon them in the head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.fit.architecture import (
    DECODER,
    FULL,
    MATRIX,
    Architecture,
    Attention,
    FeedForward,
    Layers,
    Model,
    Tensor,
)
from cudadoctor.fit.need import (
    ACTIVATIONS,
    CACHED,
    CONTEXT,
    GRADIENTS,
    KV_CACHE,
    LOGITS,
    OPTIMIZER,
    WEIGHTS,
    Interval,
    Need,
    Term,
)
from cudadoctor.fit.target import Card, Machine, Target
from cudadoctor.fit.workload import FULL as TRAIN_FULL
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError

GIB = 1 << 30
MIB = 1 << 20

LAYERS, HEADS, HEAD_DIM, HIDDEN, VOCABULARY = 32, 32, 128, 4096, 100_000
PARAMETERS = 8_000_000_000
# Bytes of a weight.
WIDTHS = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "int8": 1.0, "fp8": 1.0, "nf4-dq": 0.5, "awq": 0.5,
    "q8_0": 1.0, "q6_k": 0.8, "q5_k_m": 0.7, "q4_k_m": 0.6, "q3_k_m": 0.5, "q2_k": 0.4,
}  # fmt: skip
# Bytes of a token of context in one sequence: 2 x layers x key-value heads x head dimension x 2 bytes.
KV_TOKEN = 2 * LAYERS * 8 * HEAD_DIM * 2
_KV = {"bf16": 1.0, "fp16": 1.0, "fp8": 0.5, "q8_0": 0.5, "q4_0": 0.25}
_STATES = {"adamw": 4, "adamw_8bit": 2, "paged_adamw_8bit": 0}


def model(parameters: int = PARAMETERS, weights: str = "bf16", name: str = "plain-8b", **more: Any) -> Model:
    """A decoder whose only tensors are one matrix a layer."""
    attention = Attention(FULL, HEADS, 8, HEAD_DIM)
    tensor = Tensor("q", MATRIX, (parameters // LAYERS, 1), LAYERS, 0)
    run = Layers(0, LAYERS, attention, FeedForward(14336, True))
    shape = Architecture(name, DECODER, "llama", HIDDEN, VOCABULARY, (run,), (tensor,), max_context=131072)
    return Model(shape._replace(**more), weights)


def estimate(matrix: Matrix, found: Model, workload: Workload) -> Need:
    """The same for all models: weights, what training adds, the cache; 5 % of that kept by the allocator, 0.5 GiB of
    context, and a tenth up and down."""
    shape = found.architecture
    if shape.kind != DECODER:
        raise ParseError("only decoders are summed up here")
    width = WIDTHS[found.weights]
    divided = workload.sharding.degree if workload.sharding.kind in ("tp", "pp", "fsdp", "zero3") else 1
    tokens = workload.batch * workload.context
    weights = int(shape.parameters * width) // divided
    terms: list[tuple[str, int]] = []
    host = weights
    if workload.trains:
        trained = shape.parameters // (1 if workload.method == TRAIN_FULL else 1000 // workload.lora.rank)
        if workload.offload == "all":
            host, weights = weights + host, weights // LAYERS
        states = trained * _STATES[workload.optimizer] // divided
        if workload.offload != "none":
            host, states = host + states, 0
        terms += [(GRADIENTS, trained * 2 // divided), (OPTIMIZER, states)]
        kept = {"none": 34, "selective": 20, "full": 3, "full_offload": 1}[workload.checkpointing]
        kept += 40 if workload.attention == "eager" else 0
        terms.append((ACTIVATIONS, tokens * shape.hidden * LAYERS * kept))
        terms.append((LOGITS, int(tokens * shape.vocabulary * (0.3 if workload.loss in ("fused", "chunked") else 15))))
    else:
        if workload.offload == "layers":
            host, weights = host + weights // 2, weights // 2
        terms.append((KV_CACHE, int(tokens * KV_TOKEN * _KV[workload.kv]) // divided))
        passing = min(workload.prefill_chunk or workload.context, workload.prompt or workload.context)
        terms.append((ACTIVATIONS, passing * workload.batch * shape.hidden * 50))
    terms.insert(0, (WEIGHTS, weights))
    allocated = sum(size for _, size in terms)
    terms.append((CACHED, 0 if workload.expandable_segments else allocated // 20))
    terms.append((CONTEXT, GIB // 2))
    device = sum(size for _, size in terms)
    return Need(
        terms=tuple(Term(part, part, size, "", "", "", size, size) for part, size in terms),
        allocated=_about(allocated),
        reserved=_about(device - GIB // 2),
        device=_about(device),
        all_gpus=_about(allocated * workload.sharding.degree),
        host=_about(host),
        gpus=workload.sharding.degree,
        peak="",
        assumed=(),
    )


def _about(size: int) -> Interval:
    return Interval(size * 9 // 10, size, size * 11 // 10)


def target(*gib: float, capability: str = "8.9", system: str = "linux", machine: Optional[Machine] = None) -> Target:
    """GPUs with so much free memory each."""
    cards = tuple(
        Card(f"card of {size:g} GiB", int(size * GIB), int(size * GIB), 1e12, 1e14, capability) for size in gib
    )
    return Target("machine", cards, machine or Machine(), (), system)


def ids(changes: Sequence[object]) -> list[str]:
    return [str(getattr(change, "id", "")) for change in changes]
