"""What one GPU of several holds, and what it allocates to talk to the others."""

from __future__ import annotations

from collections.abc import Iterable

from cudadoctor.fit.architecture import EMBEDDING, EXPERT, HEAD, MATRIX, Architecture, Tensor
from cudadoctor.fit.workload import Sharding
from cudadoctor.model.fact import ParseError
from cudadoctor.model.record import NamedTuple

ZERO = ("zero1", "zero2", "zero3")
KINDS = ("none", "ddp", *ZERO, "fsdp", "tp", "pp")
# What tensor parallelism splits.
_SPLIT = (MATRIX, EXPERT, EMBEDDING, HEAD)


class Shares(NamedTuple):
    """By what weights, gradients and optimizer states are divided; `layers` of the model's layers are on this GPU,
    `flights` micro-batches are under way in them at once."""

    weights: int = 1
    gradients: int = 1
    states: int = 1
    tensor: int = 1
    """Of tensor parallelism: divides matrices and what lies between them."""
    stages: int = 1
    flights: int = 1


def shares(sharding: Sharding) -> Shares:
    """ParseError for a kind that is not known or a degree below 1."""
    kind, degree = sharding.kind, sharding.degree
    if kind not in KINDS:
        raise ParseError(f"the sharding {kind[:40]!a} is none of {', '.join(KINDS)}")
    if degree < 1:
        raise ParseError(f"work cannot be spread over {degree} GPUs")
    if kind == "zero1":
        return Shares(states=degree)
    if kind == "zero2":
        return Shares(gradients=degree, states=degree)
    if kind in ("zero3", "fsdp"):
        return Shares(degree, degree, degree)
    if kind == "tp":
        return Shares(tensor=degree)
    if kind == "pp":
        return Shares(stages=degree, flights=degree)
    return Shares()


def share_of(tensor: Tensor, amount: int, parts: Shares) -> int:
    """Of an amount of bytes that belongs to a tensor: what tensor and pipeline parallelism leave on one GPU. A stage of
    a pipeline holds its part of the layers, the first or last of them an embedding or the head as well."""
    if parts.tensor > 1 and tensor.role in _SPLIT:
        amount = -(-amount // parts.tensor)
    if parts.stages > 1 and tensor.layers is not None:
        amount = -(-amount // parts.stages)
    return amount


def layer_parameters(shape: Architecture) -> int:
    """Of the largest layer."""
    totals: dict[int, int] = {}
    for tensor in shape.tensors:
        if tensor.layers is not None:
            totals[tensor.layers] = totals.get(tensor.layers, 0) + tensor.elements
    return max((total // max(shape.layers[run].number, 1) for run, total in totals.items()), default=0)


def outside_parameters(tensors: Iterable[Tensor]) -> int:
    """Of what belongs to no layer: embeddings, the head, the last norm."""
    return sum(tensor.elements for tensor in tensors if tensor.layers is None)
