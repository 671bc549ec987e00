"""What models are put together from: the tensors of an attention, of a feed-forward part, and layers out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from cudadoctor.fit.architecture import (
    BIAS,
    EXPERT,
    MATRIX,
    NORM,
    ROUTER,
    Architecture,
    Attention,
    FeedForward,
    Layers,
    Tensor,
)
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import ParseError

MOST_PARAMETERS = 10**17


class Block(NamedTuple):
    """One layer: `tensors` are of one such layer."""

    attention: Optional[Attention]
    feed_forward: Optional[FeedForward]
    tensors: tuple[Tensor, ...]
    norms: int = 2
    rms_norm: bool = True
    side: str = "decoder"
    cross: Optional[Attention] = None


def matrix(name: str, out: int, into: int, bias: bool = False, copies: int = 1, role: str = MATRIX) -> list[Tensor]:
    """A linear layer: its weight, and its bias where it has one."""
    made = [Tensor(name, role, (out, into), copies)]
    if bias:
        made.append(Tensor(name + "_bias", BIAS, (out,), copies))
    return made


def norm(name: str, width: int, bias: bool = False, copies: int = 1) -> list[Tensor]:
    made = [Tensor(name, NORM, (width,), copies)]
    if bias:
        made.append(Tensor(name + "_bias", BIAS, (width,), copies))
    return made


def attention_tensors(
    hidden: int, attention: Attention, bias: bool = False, out_bias: bool = False, prefix: str = "", source: int = 0
) -> list[Tensor]:
    """Queries, keys, values (in one matrix where it is packed) and what joins the heads again. `source`: width of what
    keys and values are made of, where that is not the hidden state."""
    query, key = attention.query_width, attention.kv_width
    value = attention.kv_heads * (attention.value_dim or attention.head_dim)
    joined = attention.heads * (attention.value_dim or attention.head_dim)
    made: list[Tensor] = []
    if attention.packed:
        made += matrix(prefix + "qkv", query + key + value, hidden, bias)
    else:
        made += matrix(prefix + "q", query, hidden, bias)
        made += matrix(prefix + "k", key, source or hidden, bias)
        made += matrix(prefix + "v", value, source or hidden, bias)
    return made + matrix(prefix + "o", hidden, joined, out_bias)


def feed_forward_tensors(
    hidden: int, intermediate: int, gated: bool, bias: bool = False, packed: bool = False, prefix: str = ""
) -> list[Tensor]:
    """gate and up (one matrix where it is packed) and down; up and down where it is not gated."""
    if gated and packed:
        made = matrix(prefix + "gate_up", 2 * intermediate, hidden, bias)
    else:
        made = matrix(prefix + "gate", intermediate, hidden, bias) if gated else []
        made += matrix(prefix + "up", intermediate, hidden, bias)
    return made + matrix(prefix + "down", hidden, intermediate, bias)


def expert_tensors(hidden: int, part: FeedForward, bias: bool = False, packed: bool = False) -> list[Tensor]:
    """The router's matrix, and the experts that it chooses from."""
    made = [Tensor("router", ROUTER, (part.experts, hidden))]
    for tensor in feed_forward_tensors(hidden, part.intermediate, part.gated, bias, packed):
        made.append(tensor._replace(copies=part.experts, role=EXPERT if tensor.role == MATRIX else tensor.role))
    return made


def stack(blocks: Sequence[Block]) -> tuple[tuple[Layers, ...], list[Tensor]]:
    """Neighbours that are alike become one run; layers of each side are counted from 0."""
    runs: list[Layers] = []
    tensors: list[Tensor] = []
    counted: dict[str, int] = {}
    at = 0
    while at < len(blocks):
        block, end = blocks[at], at + 1
        while end < len(blocks) and (blocks[end] is block or blocks[end] == block):
            end += 1
        first = counted.get(block.side, 0)
        counted[block.side] = first + end - at
        tensors += [one._replace(copies=one.copies * (end - at), layers=len(runs)) for one in block.tensors]
        runs.append(
            Layers(
                *(first, end - at, block.attention, block.feed_forward),
                *(block.norms, block.rms_norm, block.side, block.cross),
            )
        )
        at = end
    return tuple(runs), tensors


def build(
    name: str,
    kind: str,
    family: str,
    hidden: int,
    vocabulary: int,
    blocks: Sequence[Block],
    outside: Iterable[Tensor],
    tied: bool = False,
    max_context: Optional[int] = None,
    shared_blocks: bool = False,
    tokens_per_item: int = 0,
    source: str = "",
) -> Architecture:
    """`outside`: the tensors that belong to no layer. ParseError where it is larger than any that exists."""
    layers, tensors = stack(blocks)
    made = Architecture(
        *(name, kind, family, hidden, vocabulary, layers, (*outside, *tensors), tied, max_context, source),
        shared_blocks=shared_blocks,
        tokens_per_item=tokens_per_item,
    )
    empty = next((tensor.name for tensor in made.tensors if min(tensor.shape, default=1) < 1), None)
    if empty is not None:
        raise ParseError(f"config: its numbers contradict each other: {empty} would hold nothing")
    if made.parameters > MOST_PARAMETERS:
        raise ParseError(f"config: it describes a model of {made.parameters:.1e} parameters, more than any has")
    return made
