"""Decoders with layers that keep a state of fixed size: Mamba, linear attention, short convolutions, and mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    DECODER,
    FULL,
    LINEAR,
    OTHER,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .decoders import Traits, feed_forward_of, outer_tensors, qk_norms, read_experts, tie
from .reader import Reader

_UNTIED = {"tie_word_embeddings": False}
_TIED = {"tie_word_embeddings": True}
_DELTA = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "full_attention_interval": 4,
    "head_dim": 256,
}
_MAMBA = {
    "mamba_d_state": 256,
    "mamba_d_conv": 4,
    "mamba_n_groups": 1,
    "mamba_d_head": 64,
    "mamba_n_heads": 128,
    "mamba_conv_bias": True,
}

FAMILIES: dict[str, Mapping[str, Any]] = {
    "mamba": {**_TIED, "state_size": 16, "expand": 2, "conv_kernel": 4, "use_conv_bias": True},
    "falcon_mamba": {**_TIED, "state_size": 16, "expand": 2, "conv_kernel": 4, "use_conv_bias": True},
    "mamba2": {
        **_UNTIED,
        "state_size": 128,
        "expand": 2,
        "conv_kernel": 4,
        "n_groups": 8,
        "head_dim": 64,
        "num_heads": 128,
        "use_conv_bias": True,
    },
    "qwen3_next": {
        **_UNTIED,
        **_DELTA,
        "num_local_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    },
    "qwen3_5_text": {**_UNTIED, **_DELTA},
    "qwen3_5_moe_text": {
        **_UNTIED,
        **_DELTA,
        "num_local_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    },
    "jamba": {
        **_UNTIED,
        "num_local_experts": 16,
        "num_experts_per_tok": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 8,
        "attn_layer_offset": 4,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_conv_bias": True,
    },
    "bamba": {**_UNTIED, **_MAMBA},
    "granitemoehybrid": {
        **_UNTIED,
        **_MAMBA,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 1024,
    },
    "falcon_h1": {**_UNTIED, **_MAMBA, "mamba_d_ssm": 1024},
    "nemotron_h": {
        **_UNTIED,
        "ssm_state_size": 128,
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "n_groups": 8,
        "conv_kernel": 4,
        "use_conv_bias": True,
        "head_dim": 128,
    },
    "lfm2": {
        **_TIED,
        "conv_L_cache": 3,
        "block_auto_adjust_ff_dim": True,
        "block_multiple_of": 256,
        "block_ffn_dim_multiplier": 1.0,
    },
    "lfm2_moe": {**_TIED, "conv_L_cache": 3, "num_dense_layers": 2, "num_local_experts": 32, "num_experts_per_tok": 4},
}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    if family in ("mamba", "falcon_mamba", "mamba2"):
        blocks = _only_mamba(family, c)
    elif family in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"):
        blocks = _delta(family, c)
    elif family == "jamba":
        blocks = _jamba(c)
    elif family == "nemotron_h":
        blocks = _nemotron(c)
    elif family in ("lfm2", "lfm2_moe"):
        blocks = _lfm(family, c)
    else:
        blocks = _mamba_and_attention(family, c)
    outside = outer_tensors(c, c.hidden, Traits())
    return build(name, DECODER, family, c.hidden, c.vocabulary, blocks, outside, tie(c), c.max_context)


# -- the mixers


def mamba_tensors(
    hidden: int, inner: int, state: int, kernel: int, rank: int, bias: bool, conv_bias: bool
) -> list[Tensor]:
    """Mamba's first version."""
    made = matrix("ssm_in", 2 * inner, hidden, bias) + _convolution(inner, kernel, conv_bias)
    made += matrix("ssm_x", rank + 2 * state, inner) + matrix("ssm_dt", inner, rank, True)
    made += [Tensor("ssm_a", OTHER, (inner, state)), Tensor("ssm_d", OTHER, (inner,))]
    return made + matrix("ssm_out", hidden, inner, bias)


def mamba2_tensors(
    hidden: int,
    heads: int,
    width: int,
    groups: int,
    state: int,
    kernel: int,
    bias: bool,
    conv_bias: bool,
    normed: bool = True,
) -> list[Tensor]:
    inner = heads * width
    mixed = inner + 2 * groups * state
    made = matrix("ssm_in", inner + mixed + heads, hidden, bias) + _convolution(mixed, kernel, conv_bias)
    made += [Tensor("ssm_a", OTHER, (heads,)), Tensor("ssm_d", OTHER, (heads,)), Tensor("ssm_dt_bias", OTHER, (heads,))]
    made += norm("ssm_norm", inner) if normed else []
    return made + matrix("ssm_out", hidden, inner, bias)


def _convolution(channels: int, kernel: int, bias: bool) -> list[Tensor]:
    made = [Tensor("ssm_convolution", CONVOLUTION, (channels, 1, kernel))]
    return [*made, Tensor("ssm_convolution_bias", BIAS, (channels,))] if bias else made


def mamba_state(heads: int, width: int, groups: int, state: int, kernel: int) -> Attention:
    """What a sequence keeps: the state of each head, and the last inputs of the convolution."""
    inner = heads * width
    return Attention(LINEAR, heads, heads, width, state=inner * state + (inner + 2 * groups * state) * kernel)


def plain_attention(c: Reader, hidden: int) -> Attention:
    heads, kv_heads, head_dim = c.heads(hidden)
    return Attention(FULL, heads, kv_heads, head_dim)


def kinds_of(c: Reader, key: str) -> Optional[list[str]]:
    """What each layer is, where the config names them one by one."""
    kinds = c.texts(key)
    if kinds is not None and len(kinds) < c.layers:
        raise ParseError(f"config: {key} names {len(kinds)} layers, num_hidden_layers is {c.layers}")
    return None if kinds is None else kinds[: c.layers]


# -- the families


def _only_mamba(family: str, c: Reader) -> list[Block]:
    hidden, kernel, state = c.hidden, c.whole("conv_kernel", 64), c.whole("state_size")
    bias, conv_bias = c.flag("use_bias"), c.flag("use_conv_bias")
    if family == "mamba2":
        heads, width, groups = c.whole("num_heads"), c.whole("head_dim"), c.whole("n_groups")
        tensors = mamba2_tensors(hidden, heads, width, groups, state, kernel, bias, conv_bias)
        attention = mamba_state(heads, width, groups, state, kernel)
    else:
        inner = c.whole_or("intermediate_size", c.whole("expand", 64) * hidden)
        rank = c.value("time_step_rank")
        rank = -(-hidden // 16) if rank in (None, "auto") else c.whole("time_step_rank")
        tensors = mamba_tensors(hidden, inner, state, kernel, rank, bias, conv_bias)
        attention = Attention(LINEAR, 1, 1, inner, state=inner * (state + kernel))
    block = Block(attention, None, (*tensors, *norm("norm", hidden)), 1)
    return [block] * c.layers


def _delta(family: str, c: Reader) -> list[Block]:
    """Qwen's mixture of gated delta nets and gated attention."""
    hidden, count = c.hidden, c.layers
    full = plain_attention(c, hidden)._replace(qk_norm=True)
    keys, values = c.whole("linear_num_key_heads"), c.whole("linear_num_value_heads")
    key_dim, value_dim = c.whole("linear_key_head_dim"), c.whole("linear_value_head_dim")
    key, value, kernel = keys * key_dim, values * value_dim, c.whole("linear_conv_kernel_dim", 64)
    mixed = 2 * key + value
    linear = Attention(LINEAR, values, keys, value_dim, state=values * key_dim * value_dim + mixed * kernel)
    if family == "qwen3_next":
        projections = matrix("qkvz", mixed + value, hidden) + matrix("ba", 2 * values, hidden)
    else:
        projections = matrix("qkv", mixed, hidden) + matrix("z", value, hidden) + matrix("ba", values, hidden, copies=2)
    projections += _convolution(mixed, kernel, False) + matrix("o", hidden, value)
    projections += [Tensor("ssm_a", OTHER, (values,)), Tensor("ssm_dt_bias", OTHER, (values,))]
    projections += norm("ssm_norm", value_dim)
    # Half of what the queries' matrix gives is a gate.
    attending = attention_tensors(hidden, full, c.flag("attention_bias"), c.flag("attention_bias"))
    attending = [
        one._replace(shape=(2 * one.shape[0], *one.shape[1:])) if one.name in ("q", "q_bias") else one
        for one in attending
    ]
    attending += qk_norms("head", full)
    part = FeedForward(c.whole("intermediate_size"), True) if family == "qwen3_5_text" else read_experts(c)
    rest = feed_forward_of(c, hidden, part, shared_gate=True) + norm("norm", hidden, copies=2)
    made = {
        True: Block(full, part, (*attending, *rest)),
        False: Block(linear, part, (*projections, *rest)),
    }
    kinds = kinds_of(c, "layer_types")
    if kinds is None:
        every = c.whole("full_attention_interval")
        return [made[(number + 1) % every == 0] for number in range(count)]
    return [made["full" in kind] for kind in kinds]


def _jamba(c: Reader) -> list[Block]:
    hidden, count = c.hidden, c.layers
    full = plain_attention(c, hidden)
    inner, state, kernel = c.whole("mamba_expand", 64) * hidden, c.whole("mamba_d_state"), c.whole("mamba_d_conv", 64)
    rank = c.value("mamba_dt_rank")
    rank = -(-hidden // 16) if rank in (None, "auto") else c.whole("mamba_dt_rank")
    mixing = mamba_tensors(hidden, inner, state, kernel, rank, c.flag("mamba_proj_bias"), c.flag("mamba_conv_bias"))
    mixing += norm("ssm_dt_norm", rank) + norm("ssm_bc_norm", state, copies=2)
    mamba = Attention(LINEAR, 1, 1, inner, state=inner * (state + kernel))
    dense, mixed = FeedForward(c.whole("intermediate_size"), True), read_experts(c)
    made: dict[tuple[bool, bool], Block] = {}
    blocks = []
    for number in range(count):
        attends = number % c.whole("attn_layer_period") == c.whole("attn_layer_offset", least=0)
        sparse = (
            number % c.whole("expert_layer_period") == c.whole("expert_layer_offset", least=0) and mixed.experts > 1
        )
        if (attends, sparse) not in made:
            part = mixed if sparse else dense
            tensors = attention_tensors(hidden, full) if attends else mixing
            tensors = tensors + feed_forward_of(c, hidden, part) + norm("norm", hidden, copies=2)
            made[attends, sparse] = Block(full if attends else mamba, part, tuple(tensors))
        blocks.append(made[attends, sparse])
    return blocks


def _mamba_and_attention(family: str, c: Reader) -> list[Block]:
    """Bamba, Granite 4 and Falcon-H1: Mamba's second version beside attention."""
    hidden, count = c.hidden, c.layers
    full = plain_attention(c, hidden)
    heads, groups = c.whole("mamba_n_heads"), c.whole("mamba_n_groups")
    state, kernel = c.whole("mamba_d_state"), c.whole("mamba_d_conv", 64)
    if family == "falcon_h1":
        width = c.whole("mamba_d_ssm") // heads
    else:
        said = c.value("mamba_d_head")
        width = (
            c.whole_or("mamba_expand", 2, 64) * hidden // heads if said in (None, "auto") else c.whole("mamba_d_head")
        )
    normed = family != "falcon_h1" or c.flag("mamba_rms_norm")
    mixing = mamba2_tensors(
        *(hidden, heads, width, groups, state, kernel, c.flag("mamba_proj_bias"), c.flag("mamba_conv_bias")),
        normed=normed,
    )
    mamba = mamba_state(heads, width, groups, state, kernel)
    bias = c.flag("attention_bias")
    attending = attention_tensors(hidden, full, bias, bias)
    norms = norm("norm", hidden, copies=2)
    if family == "granitemoehybrid":
        shared = c.whole("shared_intermediate_size", least=0)
        if c.whole_or("num_local_experts", 0, least=0):
            part = read_experts(c)._replace(shared=shared)
            rest = feed_forward_of(c, hidden, part._replace(shared=0), packed=True)
        else:
            part, rest = FeedForward(shared, True), []
        rest += feed_forward_tensors(hidden, shared, True, packed=True, prefix="shared_" if part.experts else "")
    else:
        part = FeedForward(c.whole("intermediate_size"), True)
        rest = feed_forward_tensors(hidden, part.intermediate, True, c.flag("mlp_bias"))
    if family == "falcon_h1":  # both in each layer
        both = full._replace(state=mamba.state)
        return [Block(both, part, (*attending, *mixing, *rest, *norms))] * count
    kinds = kinds_of(c, "layer_types") or kinds_of(c, "layers_block_type")
    chosen = set(c.wholes("attn_layer_indices") or ())
    made = {True: Block(full, part, (*attending, *rest, *norms)), False: Block(mamba, part, (*mixing, *rest, *norms))}
    if kinds is None:
        return [made[number in chosen] for number in range(count)]
    return [made["attention" in kind and "linear" not in kind] for kind in kinds]


def _nemotron(c: Reader) -> list[Block]:
    """A layer is one of: Mamba (M), attention (*), a feed-forward part (-), experts (E)."""
    hidden = c.hidden
    full = plain_attention(c, hidden)
    heads, width, groups = c.whole("mamba_num_heads"), c.whole("mamba_head_dim"), c.whole("n_groups")
    state, kernel = c.whole("ssm_state_size"), c.whole("conv_kernel", 64)
    bias, mlp_bias = c.flag("attention_bias"), c.flag("mlp_bias")
    one_norm = norm("norm", hidden)
    words = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "mlp": "-", "moe": "E"}
    listed = c.texts("layers_block_type")
    if listed is not None:
        kinds = [words.get(one, one) for one in listed]
    else:
        pattern = c.text("hybrid_override_pattern")
        kinds = list(pattern) if 0 < len(pattern) <= 4096 else []
    if not kinds or (c.has("num_hidden_layers") and len(kinds) != c.layers):
        raise ParseError("config: hybrid_override_pattern does not say what each of the layers is")
    blocks: dict[str, Block] = {}
    for kind in set(kinds):
        if kind == "M":
            tensors = mamba2_tensors(
                *(hidden, heads, width, groups, state, kernel, c.flag("use_bias"), c.flag("use_conv_bias"))
            )
            attention: Optional[Attention] = mamba_state(heads, width, groups, state, kernel)
            part: Optional[FeedForward] = None
        elif kind == "*":
            attention, part, tensors = full, None, attention_tensors(hidden, full, bias, bias)
        elif kind == "-":
            attention, part = None, FeedForward(c.whole("intermediate_size"), False)
            tensors = feed_forward_tensors(hidden, part.intermediate, False, mlp_bias)
        elif kind == "E" and c.value("moe_latent_size") is None:
            shared = c.whole_or("n_shared_experts", 0, least=0) * c.whole("moe_shared_expert_intermediate_size")
            attention, part = None, read_experts(c, False)._replace(shared=shared)
            tensors = feed_forward_of(c, hidden, part, mlp_bias)
        else:
            raise ParseError(f"config: a layer of the kind {kind[:20]!a} is not known")
        blocks[kind] = Block(attention, part, (*tensors, *one_norm), 1)
    return [blocks[kind] for kind in kinds]


def _lfm(family: str, c: Reader) -> list[Block]:
    """Liquid's short convolutions beside attention."""
    hidden, count = c.hidden, c.layers
    full = plain_attention(c, hidden)._replace(qk_norm=True)
    kernel, bias = c.whole("conv_L_cache", 64), c.flag("conv_bias")
    mixing = _convolution(hidden, kernel, bias) + matrix("conv_in", 3 * hidden, hidden, bias)
    mixing += matrix("conv_out", hidden, hidden, bias)
    short = Attention(LINEAR, 1, 1, hidden, state=hidden * kernel)
    attending = attention_tensors(hidden, full) + qk_norms("head", full)
    width = c.whole("intermediate_size")
    if family == "lfm2" and c.flag("block_auto_adjust_ff_dim"):
        multiple = c.whole("block_multiple_of")
        width = int(c.number_or("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
        width = multiple * -(-width // multiple)
    dense = FeedForward(width, True)
    sparse_from = c.whole("num_dense_layers", least=0) if family == "lfm2_moe" else count
    mixed = read_experts(c) if family == "lfm2_moe" else dense
    kinds, listed = kinds_of(c, "layer_types"), c.wholes("full_attn_idxs")
    if kinds is None:
        chosen = set(range(count) if listed is None else listed)
        kinds = ["full_attention" if number in chosen else "conv" for number in range(count)]
    made: dict[tuple[bool, bool], Block] = {}
    blocks = []
    for number in range(count):
        key = ("full" in kinds[number], number >= sparse_from)
        if key not in made:
            part = mixed if key[1] else dense
            rest = feed_forward_of(c, hidden, part) + norm("norm", hidden, copies=2)
            made[key] = Block(full if key[0] else short, part, (*(attending if key[0] else mixing), *rest))
        blocks.append(made[key])
    return blocks
