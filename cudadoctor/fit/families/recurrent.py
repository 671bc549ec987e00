"""More decoders with layers that keep a state of fixed size: Kimi Linear, MiniMax 01, Zamba 2, RecurrentGemma, RWKV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    DECODER,
    FULL,
    LINEAR,
    OTHER,
    WINDOW,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .decoders import Traits, experts_of, feed_forward_of, outer_tensors, read_experts, tie
from .hybrids import kinds_of, mamba2_tensors, mamba_state, plain_attention
from .latent import latent_attention, latent_tensors
from .reader import MOST_TOKENS, Reader

_UNTIED = {"tie_word_embeddings": False}
_TIED = {"tie_word_embeddings": True}
_KIMI = {**_UNTIED, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
_KIMI.update(num_local_experts=256, num_experts_per_tok=8, moe_intermediate_size=1024, first_k_dense_replace=1)
_ZAMBA = {**_TIED, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_ngroups": 1, "n_mamba_heads": 8}
_ZAMBA.update(num_attention_heads=32, num_mem_blocks=1, adapter_rank=128, use_conv_bias=True, num_hidden_layers=54)

FAMILIES: dict[str, Mapping[str, Any]] = {
    "kimi_linear": _KIMI,
    "minimax": {**_UNTIED, "num_local_experts": 8, "num_experts_per_tok": 2},
    "zamba2": _ZAMBA,
    "recurrent_gemma": {**_TIED, "attention_window_size": 2048, "conv1d_width": 4},
    "rwkv": _UNTIED,
}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    outside = outer_tensors(c, c.hidden, Traits())
    if family == "zamba2":
        blocks, shared = _zamba(c)
        outside += shared
    elif family == "rwkv":
        blocks = _rwkv(c)
        outside += norm("final_norm_bias", c.hidden) + norm("embedding_norm", c.hidden, True)
    else:
        blocks = {"kimi_linear": _kimi, "minimax": _minimax, "recurrent_gemma": _griffin}[family](c)
    return build(name, DECODER, family, c.hidden, c.vocabulary, blocks, outside, tie(c), c.max_context)


def _kimi(c: Reader) -> list[Block]:
    """Gated delta nets beside latent attention."""
    hidden, count = c.hidden, c.layers
    delta = c.part("linear_attn_config")
    heads = delta.whole_or("num_heads", c.whole_or("linear_num_heads", 32))
    width = delta.whole_or("head_dim", c.whole_or("linear_head_dim", 128))
    kernel = delta.whole_or("short_conv_kernel_size", c.whole_or("linear_conv_kernel_dim", 4, 64), 64)
    inner = heads * width
    linear = Attention(LINEAR, heads, heads, width, state=inner * width + 3 * inner * kernel)
    mixing = matrix("q", inner, hidden) + matrix("k", inner, hidden) + matrix("v", inner, hidden)
    mixing += [Tensor("ssm_convolution", CONVOLUTION, (3 * inner, 1, kernel))]
    for gate in ("forget", "output_gate"):
        mixing += matrix(gate + "_in", width, hidden) + matrix(gate + "_out", inner, width)
    mixing += [Tensor("ssm_a", OTHER, (1, 1, heads, 1)), Tensor("ssm_dt_bias", OTHER, (inner,))]
    mixing += matrix("beta", heads, hidden) + norm("ssm_norm", width) + matrix("o", hidden, inner)
    latent = latent_attention(c)
    attending = latent_tensors(hidden, latent, c.flag("attention_bias"))
    sparse = experts_of(c, count)
    shared = c.value("num_shared_experts" if c.has("num_shared_experts") else "n_shared_experts")
    mixed = read_experts(Reader({**c.config, "n_shared_experts": 1 if shared is None else shared}, c.defaults, c.where))
    dense = FeedForward(c.whole_or("intermediate_size", 9216), True)

    kinds, listed = kinds_of(c, "layer_types"), delta.wholes("full_attn_layers")
    if kinds is not None:
        full = [kind == "full_attention" for kind in kinds]
    elif listed is not None:  # counted from one
        full = [number + 1 in listed for number in range(count)]
    else:
        full = [bool(number) and number % 4 == 0 for number in range(count)]
    made: dict[tuple[bool, bool], Block] = {}
    for key in zip(full, sparse):
        if key not in made:
            part = mixed if key[1] else dense
            tensors = (attending if key[0] else mixing) + feed_forward_of(c, hidden, part)
            made[key] = Block(latent if key[0] else linear, part, (*tensors, *norm("norm", hidden, copies=2)))
    return [made[key] for key in zip(full, sparse)]


def _minimax(c: Reader) -> list[Block]:
    """Lightning attention beside attention, all with experts."""
    hidden, count = c.hidden, c.layers
    full = plain_attention(c, hidden)
    inner = full.query_width
    linear = Attention(LINEAR, full.heads, full.heads, full.head_dim, state=inner * full.head_dim, packed=True)
    mixing = matrix("qkv", 3 * inner, hidden) + matrix("o", hidden, inner) + matrix("output_gate", inner, hidden)
    mixing += norm("linear_norm", inner)
    part = read_experts(c)
    rest = feed_forward_of(c, hidden, part) + norm("norm", hidden, copies=2)
    made = {
        True: Block(full, part, (*attention_tensors(hidden, full), *rest)),
        False: Block(linear, part, (*mixing, *rest)),
    }
    kinds, numbers = kinds_of(c, "layer_types"), c.wholes("attn_type_list")
    if kinds is not None:
        return [made["full" in kind] for kind in kinds]
    if numbers is not None and len(numbers) >= count:
        return [made[one == 1] for one in numbers[:count]]
    return [made[number % 2 == 0] for number in range(count)]


def _zamba(c: Reader) -> tuple[list[Block], list[Tensor]]:
    """Mamba in every layer; before some of them an attention whose weights these layers share, each with a cache of its
    own. It sees the hidden state and the embedding side by side."""
    hidden, count = c.hidden, c.layers
    heads, groups, state = c.whole("n_mamba_heads"), c.whole("mamba_ngroups"), c.whole("mamba_d_state")
    kernel, width = c.whole("mamba_d_conv", 64), c.whole("mamba_expand", 64) * hidden // heads
    mixing = mamba2_tensors(
        *(hidden, heads, width, groups, state, kernel, c.flag("add_bias_linear"), c.flag("use_conv_bias")),
    )
    mixing += norm("norm", hidden)
    mamba = mamba_state(heads, width, groups, state, kernel)
    number = c.whole("num_attention_heads")
    if 2 * hidden % number:
        raise ParseError(f"config: num_attention_heads {number} does not divide twice the hidden_size {hidden}")
    attention = Attention(
        *(FULL, number, c.whole_or("num_key_value_heads", number), 2 * hidden // number), state=mamba.state
    )
    part = FeedForward(c.whole_or("intermediate_size", 4 * hidden), True)
    rank, wide = c.whole("adapter_rank"), 2 * hidden
    own = matrix("adapter_in", rank, hidden) + matrix("adapter_out", 2 * part.intermediate, rank)
    if c.flag("use_shared_attention_adapter"):
        own += matrix("attention_adapter_in", rank, wide, copies=3) + matrix(
            "attention_adapter_out", wide, rank, copies=3
        )
    both = Block(attention, part, (*mixing, *matrix("linear", hidden, hidden), *own), 3)
    plain = Block(mamba, None, tuple(mixing), 1)
    kinds = kinds_of(c, "layers_block_type")
    if kinds is None:
        if count != 54:
            raise ParseError("config: layers_block_type is missing: what each of the layers is")
        kinds = ["hybrid" if one in (6, 12, 18, 24, 30, 36, 42, 47, 51) else "mamba" for one in range(count)]
    blocks = [both if kind == "hybrid" else plain for kind in kinds]
    copies = min(c.whole("num_mem_blocks", 64), kinds.count("hybrid"))
    shared = [
        *[one for one in attention_tensors(wide, attention) if one.name != "o"],
        *matrix("o", hidden, attention.query_width),
        *feed_forward_tensors(hidden, part.intermediate, True, packed=True),
        *norm("shared_norm", wide),
        *norm("shared_norm", hidden),
    ]
    return blocks, [one._replace(copies=copies) for one in shared if copies]


def _griffin(c: Reader) -> list[Block]:
    """Linear recurrences beside attention to a window."""
    hidden, count = c.hidden, c.layers
    plain = plain_attention(c, hidden)
    attention = plain._replace(kind=WINDOW, window=c.whole("attention_window_size", MOST_TOKENS))
    attending = attention_tensors(hidden, attention, c.flag("attention_bias"), True)
    inner, kernel, heads = c.whole_or("lru_width", hidden), c.whole("conv1d_width", 64), plain.heads
    if inner % heads:
        raise ParseError(f"config: num_attention_heads {heads} does not divide lru_width {inner}")
    mixing = matrix("gate_in", inner, hidden, True) + matrix("recurrent_in", inner, hidden, True)
    mixing += matrix("recurrent_out", hidden, inner, True)
    mixing += [
        Tensor("ssm_convolution", CONVOLUTION, (inner, 1, kernel)),
        Tensor("ssm_convolution_bias", BIAS, (inner,)),
    ]
    mixing += [Tensor("gates", OTHER, (heads, inner // heads, inner // heads), 2), Tensor("ssm_a", OTHER, (inner,))]
    mixing += [Tensor("gates_bias", BIAS, (heads, inner // heads), 2)]
    linear = Attention(LINEAR, 1, 1, inner, state=inner * kernel)
    part = FeedForward(c.whole("intermediate_size", least=2) // 2, True)
    rest = feed_forward_tensors(hidden, part.intermediate, True, True) + norm("norm", hidden, copies=2)
    made = {True: Block(attention, part, (*attending, *rest)), False: Block(linear, part, (*mixing, *rest))}
    kinds = c.texts("block_types") or ["recurrent", "recurrent", "attention"]
    return [made[kinds[number % len(kinds)] == "attention"] for number in range(count)]


def _rwkv(c: Reader) -> list[Block]:
    """The fourth version: the only one that transformers has."""
    hidden = c.hidden
    inner, width = c.whole_or("attention_hidden_size", hidden), c.whole_or("intermediate_size", 4 * hidden)
    tensors = [Tensor("time_mix", OTHER, (1, 1, hidden), 5), Tensor("time_decay", OTHER, (inner,), 2)]
    for one in ("k", "v", "receptance"):
        tensors += matrix(one, inner, hidden)
    tensors += matrix("o", hidden, inner) + matrix("up", width, hidden) + matrix("down", hidden, width)
    tensors += matrix("ffn_receptance", hidden, hidden) + norm("norm", hidden, True, 2)
    attention = Attention(LINEAR, 1, 1, inner, state=2 * hidden + 3 * inner)
    return [Block(attention, FeedForward(width, False), tuple(tensors), 2, False)] * c.layers
