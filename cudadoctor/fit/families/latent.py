"""Decoders whose keys and values come out of one narrow latent vector (MLA): DeepSeek and what was built after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import DECODER, LATENT, Architecture, Attention, FeedForward, Tensor
from cudadoctor.parse.errors import ParseError

from .blocks import Block, build, feed_forward_tensors, matrix, norm
from .decoders import Traits, experts_of, feed_forward_of, outer_tensors, read_experts, tie
from .reader import Reader

_UNTIED = {"tie_word_embeddings": False}
_WIDTHS = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
_V3 = {**_UNTIED, **_WIDTHS, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3}
_SPARSE = {**_V3, "index_n_heads": 64, "index_head_dim": 128}

FAMILIES: dict[str, Mapping[str, Any]] = {
    "deepseek_v2": {**_UNTIED, **_WIDTHS, "n_shared_experts": 2, "first_k_dense_replace": 0},
    "deepseek_v3": _V3,
    "deepseek_v32": _SPARSE,
    "glm_moe_dsa": {**_SPARSE, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256, "index_n_heads": 32},
    "youtu": {**_WIDTHS, "tie_word_embeddings": True},
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


def _indexed(c: Reader, count: int) -> list[int]:
    """Width of what each layer chooses its tokens by; 0 where it looks at all, or at what an earlier one chose."""
    width = c.whole_or("index_head_dim", 0, least=0)
    kinds, pattern = c.texts("indexer_types"), c.value("index_topk_pattern")
    if kinds is None and isinstance(pattern, str):
        kinds = ["full" if one == "F" else "shared" for one in pattern[:count]]
    if kinds is not None and len(kinds) < count:
        raise ParseError(f"config: indexer_types names {len(kinds)} layers, num_hidden_layers is {count}")
    if kinds is None:
        step, first = c.whole_or("index_topk_freq", 1), c.whole_or("index_skip_topk_offset", 2, least=0)
        kinds = ["full" if max(number - first + 1, 0) % step == 0 else "shared" for number in range(count)]
    return [width if kind == "full" else 0 for kind in kinds[:count]]


def _index_tensors(hidden: int, attention: Attention, heads: int, width: int) -> list[Tensor]:
    made = matrix("index_q", heads * width, attention.q_rank or hidden) + matrix("index_k", width, hidden)
    return made + norm("index_k_norm", width, True) + matrix("index_weights", heads, hidden)


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    count, hidden = c.layers, c.hidden
    attention, bias = latent_attention(c), c.flag("attention_bias")
    indexed = _indexed(c, count)
    sparse = experts_of(c, count)
    mixed = read_experts(c) if any(sparse) else None
    dense = None if all(sparse) else FeedForward(c.whole("intermediate_size"), True)

    def block(part: FeedForward, index_dim: int) -> Block:
        tensors = latent_tensors(hidden, attention, bias) + norm("norm", hidden, copies=2)
        if index_dim:
            tensors += _index_tensors(hidden, attention, c.whole("index_n_heads"), index_dim)
        if part.experts:
            tensors += feed_forward_of(c, hidden, part)
        else:
            tensors += feed_forward_tensors(hidden, part.intermediate, True, c.flag("mlp_bias"))
        return Block(attention._replace(index_dim=index_dim), part, tuple(tensors))

    made: dict[tuple[bool, int], Block] = {}
    for key in zip(sparse, indexed):
        part = mixed if key[0] else dense
        if key not in made and part is not None:
            made[key] = block(part, key[1])
    blocks = [made[key] for key in zip(sparse, indexed)]
    outside = outer_tensors(c, hidden, Traits())
    return build(name, DECODER, family, hidden, c.vocabulary, blocks, outside, tie(c), c.max_context)
