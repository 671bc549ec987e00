"""Decoders of one plan: attention and feed-forward part, layer by layer, with or without experts.

What tells the families apart is a table of traits. Where a trait follows a key of the config, the key stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from cudadoctor.fit.architecture import (
    BIAS,
    DECODER,
    EMBEDDING,
    FULL,
    HEAD,
    NORM,
    OTHER,
    POSITION,
    WINDOW,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, expert_tensors, feed_forward_tensors, norm
from .reader import MOST_EXPERTS, MOST_TOKENS, Reader

# A trait that a config decides: the name of its key; with "!" before it, the opposite.
Trait = Union[bool, str]


class Traits(NamedTuple):
    defaults: Mapping[str, Any] = {}
    """What the family's class takes where the config is silent."""
    qkv_bias: Trait = False
    out_bias: Trait = False
    mlp_bias: Trait = False
    head_bias: Trait = False
    gated: Trait = True
    packed: Trait = False
    """Queries, keys and values are one matrix."""
    packed_ffn: Trait = False
    """Gate and up are one matrix."""
    norms: Union[int, str] = 2
    """Over the hidden width, in each layer."""
    rms: Trait = True
    norm_bias: Trait = False
    norm_weight: bool = True
    qk_norm: str = ""
    """head: over one head's width; full: over all heads; each: own weights a head."""
    qk_norm_if: Trait = True
    positions: int = -1
    """Rows of a learned table beyond the context; -1: there is no table."""
    embedding_norm: Trait = False
    parallel: Trait = False
    final_norm: bool = True


def tie(reader: Reader, default: bool) -> bool:
    return reader.flag("tie_word_embeddings", bool(reader.defaults.get("tie_word_embeddings", default)))


def said(reader: Reader, trait: Trait) -> bool:
    if isinstance(trait, bool):
        return trait
    if trait.startswith("!"):
        return not reader.flag(trait[1:])
    return reader.flag(trait)


def windows(reader: Reader, layers: int) -> list[int]:
    """Tokens that each layer sees; 0: all."""
    size = reader.whole_or("sliding_window", 0, MOST_TOKENS, least=-1)
    size = max(size, 0)
    if reader.value("use_sliding_window") is not None and not reader.flag("use_sliding_window"):
        size = 0
    kinds = reader.texts("layer_types")
    if kinds is not None:
        if len(kinds) < layers:
            raise ParseError(f"config: layer_types names {len(kinds)} layers, num_hidden_layers is {layers}")
        return [size if "sliding" in kind else 0 for kind in kinds[:layers]]
    pattern = reader.whole_or_none("sliding_window_pattern", least=1)
    if pattern is not None:  # each so-manieth layer sees everything
        return [0 if (number + 1) % pattern == 0 else size for number in range(layers)]
    start = reader.whole_or_none("max_window_layers", least=0)
    if start is not None:
        return [size if number >= start else 0 for number in range(layers)]
    return [size] * layers


def experts_of(reader: Reader, layers: int) -> list[bool]:
    """Which layers have experts."""
    if reader.whole_or("num_local_experts", 0, MOST_EXPERTS, least=0) == 0:
        return [False] * layers
    dense = set(reader.wholes("mlp_only_layers") or ())
    first = reader.whole_or("first_k_dense_replace", 0, least=0)
    step = reader.whole_or("decoder_sparse_step", reader.whole_or("moe_layer_freq", 1))
    by_freq = reader.has("moe_layer_freq") and not reader.has("decoder_sparse_step")
    return [
        number >= first and number not in dense and (number % step == 0 if by_freq else (number + 1) % step == 0)
        for number in range(layers)
    ]


def read_experts(reader: Reader, gated: bool, hidden: int) -> FeedForward:
    experts = reader.whole("num_local_experts", MOST_EXPERTS)
    used = reader.whole("num_experts_per_tok", MOST_EXPERTS)
    if used > experts:
        raise ParseError(f"config: a token visits {used} experts, but there are {experts}")
    width = reader.whole_or_none("moe_intermediate_size") or reader.whole("intermediate_size")
    shared = reader.whole_or("shared_expert_intermediate_size", 0, least=0)
    if not shared:
        shared = width * reader.whole_or("n_shared_experts", 0, MOST_EXPERTS, least=0)
    return FeedForward(width, gated, experts, used, shared)


def decoder(name: str, family: str, config: Mapping[str, Any], traits: Traits, where: str = "") -> Architecture:
    """The architecture of a decoder with those traits. ParseError where the config is broken."""
    c = Reader(config, traits.defaults, where)
    count, hidden, vocabulary = c.layers, c.hidden, c.vocabulary
    heads, kv_heads, head_dim = c.heads(hidden)
    gated, packed, rms = said(c, traits.gated), said(c, traits.packed), said(c, traits.rms)
    norm_bias = said(c, traits.norm_bias)
    norms = traits.norms if isinstance(traits.norms, int) else c.whole(traits.norms)
    qk_norm = traits.qk_norm if traits.qk_norm and said(c, traits.qk_norm_if) else ""
    qkv_bias, out_bias = said(c, traits.qkv_bias), said(c, traits.out_bias)
    mlp_bias, packed_ffn = said(c, traits.mlp_bias), said(c, traits.packed_ffn)
    sees, sparse = windows(c, count), experts_of(c, count)
    dense = None
    if not all(sparse):
        dense = FeedForward(c.whole_or("intermediate_size", 4 * hidden), gated)
    mixed = read_experts(c, gated, hidden) if any(sparse) else None

    made: dict[tuple[int, bool], Block] = {}

    def block(window: int, is_sparse: bool) -> Block:
        kind = WINDOW if window else FULL
        attention = Attention(*(kind, heads, kv_heads, head_dim), window=window, qk_norm=bool(qk_norm), packed=packed)
        tensors = attention_tensors(hidden, attention, qkv_bias, out_bias)
        tensors += qk_norms(qk_norm, attention, norm_bias and not rms)
        part = mixed if is_sparse else dense
        assert part is not None
        if part.experts:
            tensors += expert_tensors(hidden, part, mlp_bias, packed_ffn)
            if part.shared:
                tensors += feed_forward_tensors(hidden, part.shared, gated, prefix="shared_")
                if family in ("qwen2_moe", "qwen3_next"):
                    tensors += [Tensor("shared_gate", OTHER, (1, hidden))]
        else:
            tensors += feed_forward_tensors(hidden, part.intermediate, gated, mlp_bias, packed_ffn)
        if traits.norm_weight:
            tensors += norm("norm", hidden, norm_bias, norms)
        return Block(attention, part, tuple(tensors), norms, rms)

    blocks = [made[key] if key in made else made.setdefault(key, block(*key)) for key in zip(sees, sparse)]
    tied = tie(c, False)
    outside = [Tensor("token_embedding", EMBEDDING, (vocabulary, hidden))]
    if traits.positions >= 0:
        rows = (c.max_context or 0) + traits.positions
        outside.append(Tensor("position_embedding", POSITION, (rows, hidden)))
    if said(c, traits.embedding_norm):
        outside += norm("embedding_norm", hidden, norm_bias)
    if traits.final_norm and traits.norm_weight:
        outside += norm("final_norm", hidden, norm_bias)
    if not tied:
        outside.append(Tensor("output", HEAD, (vocabulary, hidden)))
    if said(c, traits.head_bias):
        outside.append(Tensor("output_bias", BIAS, (vocabulary,)))
    return build(
        *(name, DECODER, family, hidden, vocabulary, blocks, outside, tied, c.max_context),
        shared_blocks=said(c, traits.parallel),
    )


def qk_norms(kind: str, attention: Attention, bias: bool = False) -> list[Tensor]:
    """The norms of queries and keys before they meet."""
    if not kind:
        return []
    if kind == "each":
        q, k = (attention.heads, attention.head_dim), (attention.kv_heads, attention.head_dim)
        return [Tensor("q_norm", NORM, q), Tensor("k_norm", NORM, k)]
    q_width = attention.head_dim if kind == "head" else attention.query_width
    k_width = attention.head_dim if kind == "head" else attention.kv_width
    return norm("q_norm", q_width, bias) + norm("k_norm", k_width, bias)


LLAMA = Traits({"tie_word_embeddings": False}, "attention_bias", "attention_bias", "mlp_bias")
FAMILIES: dict[str, Traits] = {
    "llama": LLAMA,
    "mistral": Traits({"tie_word_embeddings": False}),
    "mixtral": Traits({"tie_word_embeddings": False}, packed_ffn=True),
    "qwen2": Traits({"tie_word_embeddings": False}, qkv_bias=True),
    "qwen3": Traits({"tie_word_embeddings": False}, "attention_bias", "attention_bias", qk_norm="head"),
    "qwen3_moe": Traits({"tie_word_embeddings": False}, "attention_bias", "attention_bias", qk_norm="head"),
}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    return decoder(name, family, config, FAMILIES[family], where)
