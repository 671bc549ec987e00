"""Decoders whose keys and values come out of one narrow latent vector (MLA): DeepSeek and what was built after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import DECODER, LATENT, Architecture, Attention, FeedForward, Tensor

from .blocks import Block, build, feed_forward_tensors, matrix, norm
from .decoders import Traits, experts_of, feed_forward_of, outer_tensors, read_experts, tie
from .reader import Reader

_UNTIED = {"tie_word_embeddings": False}
_WIDTHS = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
_V3 = {**_UNTIED, **_WIDTHS, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3}

FAMILIES: dict[str, Mapping[str, Any]] = {
    "deepseek_v2": {**_UNTIED, **_WIDTHS, "n_shared_experts": 2, "first_k_dense_replace": 0},
    "deepseek_v3": _V3,
    "kimi_k2": _V3,
    "mistral4": {
        **_UNTIED,
        **_WIDTHS,
        "kv_lora_rank": 256,
        "q_lora_rank": 1024,
        "qk_nope_head_dim": 64,
        "n_shared_experts": 1,
        "num_experts_per_tok": 4,
        "first_k_dense_replace": 0,
    },
    "minicpm3": {
        "tie_word_embeddings": True,
        "kv_lora_rank": 256,
        "q_lora_rank": 768,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
    },
    "glm4_moe_lite": {
        **_UNTIED,
        **_WIDTHS,
        "q_lora_rank": 768,
        "qk_nope_head_dim": 192,
        "v_head_dim": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 4,
        "first_k_dense_replace": 1,
    },
}


def latent_attention(c: Reader) -> Attention:
    heads = c.whole("num_attention_heads")
    rope = c.whole("qk_rope_head_dim", least=0)
    return Attention(
        *(LATENT, heads, heads, c.whole("qk_nope_head_dim") + rope, c.whole("v_head_dim")),
        kv_rank=c.whole("kv_lora_rank"),
        rope_dim=rope,
        q_rank=c.whole_or("q_lora_rank", 0, least=0),
    )


def latent_tensors(hidden: int, attention: Attention, bias: bool = False) -> list[Tensor]:
    heads, rank = attention.heads, attention.kv_rank
    made: list[Tensor] = []
    if attention.q_rank:
        made += matrix("q_a", attention.q_rank, hidden, bias) + norm("q_a_norm", attention.q_rank)
        made += matrix("q_b", attention.query_width, attention.q_rank)
    else:
        made += matrix("q", attention.query_width, hidden)
    made += matrix("kv_a", rank + attention.rope_dim, hidden, bias) + norm("kv_a_norm", rank)
    made += matrix("kv_b", heads * (attention.head_dim - attention.rope_dim + attention.value_dim), rank)
    return made + matrix("o", hidden, heads * attention.value_dim, bias)


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    count, hidden = c.layers, c.hidden
    attention, bias = latent_attention(c), c.flag("attention_bias")
    sparse = experts_of(c, count)
    mixed = read_experts(c) if any(sparse) else None
    dense = None if all(sparse) else FeedForward(c.whole("intermediate_size"), True)

    def block(part: FeedForward) -> Block:
        tensors = latent_tensors(hidden, attention, bias) + norm("norm", hidden, copies=2)
        if part.experts:
            tensors += feed_forward_of(c, hidden, part)
        else:
            tensors += feed_forward_tensors(hidden, part.intermediate, True, c.flag("mlp_bias"))
        return Block(attention, part, tuple(tensors))

    with_experts = block(mixed) if mixed else None
    plain = block(dense) if dense else None
    blocks = [one for one in (with_experts if is_sparse else plain for is_sparse in sparse) if one is not None]
    outside = outer_tensors(c, hidden, Traits())
    return build(name, DECODER, family, hidden, c.vocabulary, blocks, outside, tie(c), c.max_context)
