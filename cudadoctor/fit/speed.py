"""How fast it can be at most: what the memory's bandwidth allows while decoding, and how long loading takes."""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit.answer import Speed
from cudadoctor.fit.architecture import DECODER, EMBEDDING, ENCODER_DECODER, EXPERT, SPEECH, Model, Tensor
from cudadoctor.fit.kv_cache import Held, cache
from cudadoctor.fit.quantisation import tensor_bytes, weight_bytes
from cudadoctor.fit.target import Card, Machine
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix.query import Matrix

# Of PCIe, generation and lanes: what a card is connected by at worst and at best is mostly between them.
_SLOW_LINK, _FAST_LINK = (3, 4), (5, 16)
_CEILING = "a ceiling: every weight is read once for each token, and nothing else takes time"


def speed(matrix: Matrix, model: Model, workload: Workload, card: Optional[Card], machine: Machine) -> Speed:
    """`tokens`: a second, of one sequence; None where nothing is generated or the card's bandwidth is not known. The
    load time is between reading at the best and at the worst rate of such a disk, at most what the bus carries; None
    where the kind of disk is not known."""
    tokens, formula, source = _decoding(matrix, model, workload, card)
    seconds, text = _loading(matrix, model, machine)
    return Speed(tokens, formula, seconds, text, source)


def bytes_read(matrix: Matrix, model: Model, workload: Workload, context: Optional[int] = None) -> tuple[int, int]:
    """Of weights and of cache, to decode one token of one sequence that is `context` tokens long. Of an embedding one
    row is read, of experts those that are chosen; a head that is the embedding is read whole."""
    shape = model.architecture
    weights = 0
    for tensor, amount in tensor_bytes(matrix, model):
        if tensor.role == EMBEDDING and not shape.tied:
            continue
        if model.architecture.kind in (ENCODER_DECODER, SPEECH) and _side(model, tensor) == "encoder":
            continue
        weights += _visited(model, tensor, amount)
    seen = workload.context if context is None else context
    # vLLM's pages hold tokens that a window no longer sees, but nobody reads them.
    kept = cache(matrix, model, workload._replace(batch=1), seen, Held(), across=shape.tokens_per_item).total
    return weights, kept


def _side(model: Model, tensor: Tensor) -> str:
    return "" if tensor.layers is None else model.architecture.layers[tensor.layers].side


def _visited(model: Model, tensor: Tensor, amount: int) -> int:
    part = None if tensor.layers is None else model.architecture.layers[tensor.layers].feed_forward
    if tensor.role == EXPERT and part is not None and part.experts:
        return amount * part.experts_per_token // part.experts
    return amount


def _decoding(
    matrix: Matrix, model: Model, workload: Workload, card: Optional[Card]
) -> tuple[Optional[float], str, str]:
    kind = model.architecture.kind
    if workload.trains or kind not in (DECODER, ENCODER_DECODER, SPEECH):
        return None, "", ""
    weights, kept = bytes_read(matrix, model, workload)
    read = max(weights + kept, 1)
    if card is None or not card.bandwidth:
        return None, f"({weights:,} + {kept:,}) bytes a token; the card's bandwidth is not known", ""
    # Split matrices are read by all GPUs at once; the stages of a pipeline wait for each other.
    gpus = max(workload.sharding.degree, 1) if workload.sharding.kind == "tp" else 1
    rate = card.bandwidth * gpus / read
    formula = f"{card.bandwidth * gpus / 1e9:,.0f} GB/s / ({weights:,} + {kept:,}) bytes a token: {_CEILING}"
    return rate, formula, card.source


def _loading(matrix: Matrix, model: Model, machine: Machine) -> tuple[Optional[tuple[float, float]], str]:
    size = weight_bytes(matrix, model)
    rate = matrix.disk_rate(machine.disk) if machine.disk else None
    if rate is None:
        return None, f"{size:,} bytes; what kind of disk they are on is not known"
    slow, fast = (matrix.pcie_rate(*link) for link in (_SLOW_LINK, _FAST_LINK))
    low = rate.low if slow is None else min(rate.low, slow.gbs * 1e9)
    high = rate.high if fast is None else min(rate.high, fast.gbs * 1e9)
    text = f"{size:,} bytes / {low / 1e9:.3g} to {high / 1e9:.3g} GB/s ({machine.disk}: {rate.source})"
    return (size / high, size / low), text
