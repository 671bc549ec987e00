"""Decoders of one plan: attention and feed-forward part, layer by layer, with or without experts.

What tells the families apart is a table of traits. Where a trait follows a key of the config, the key stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional, Union

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

from .blocks import Block, attention_tensors, build, expert_tensors, feed_forward_tensors, matrix, norm
from .reader import MOST_EXPERTS, MOST_TOKENS, Reader

# A trait that a config decides: the name of its key; with "!" before it, the opposite.
Trait = Union[bool, str]
Config = Mapping[str, Any]


_NOTHING: Config = {}


class Traits(NamedTuple):
    defaults: Config = _NOTHING
    """What the family's class takes where the config is silent."""
    qkv_bias: Trait = False
    out_bias: Trait = False
    mlp_bias: Trait = False
    """Of the experts, too."""
    head_bias: Trait = False
    gated: bool = True
    packed: bool = False
    """Queries, keys and values are one matrix."""
    packed_ffn: bool = False
    """Gate and up are one matrix."""
    norms: int = 2
    """Over the hidden width, in each layer."""
    rms: bool = True
    norm_bias: Trait = False
    norm_weight: bool = True
    qk_norm: str = ""
    """head: over one head's width; full: over all heads; each: own weights a head."""
    qk_norm_if: Trait = True
    positions: int = -1
    """Rows of a learned table of positions beyond the context; -1: there is no table."""
    embedding_norm: bool = False
    parallel: Trait = False
    final_norm: bool = True
    prepare: Optional[Callable[[Config, Config], Config]] = None
    """What turns the family's own layout of a config, and its defaults, into the common one."""
    extra: Optional[Callable[[Reader, Attention, FeedForward], list[Tensor]]] = None
    """What a layer has beside the usual."""
    outside: Optional[Callable[[Reader], list[Tensor]]] = None
    """The same outside of the layers."""


def tie(reader: Reader) -> bool:
    """Whether the head is the embedding."""
    return reader.flag("tie_word_embeddings")


def said(reader: Reader, trait: Trait) -> bool:
    if isinstance(trait, bool):
        return trait
    if trait.startswith("!"):
        return not reader.flag(trait[1:])
    return reader.flag(trait)


def windows(reader: Reader, layers: int) -> list[int]:
    """Tokens that each layer sees; 0: all."""
    size = max(reader.whole_or("sliding_window", 0, MOST_TOKENS, least=-1), 0)
    if reader.value("use_sliding_window") is False:
        size = 0
    kinds = reader.texts("layer_types")
    if kinds is not None:
        if len(kinds) < layers:
            raise ParseError(f"config: layer_types names {len(kinds)} layers, num_hidden_layers is {layers}")
        return [size if "sliding" in kind or "chunked" in kind else 0 for kind in kinds[:layers]]
    pattern = reader.value("sliding_window_pattern")
    if isinstance(pattern, str) and 0 < len(pattern) <= layers:  # "LLLG": local and global
        return [size if pattern[number % len(pattern)] == "L" else 0 for number in range(layers)]
    if pattern is not None:  # each so-manieth layer sees everything
        step = reader.whole("sliding_window_pattern")
        return [0 if (number + 1) % step == 0 else size for number in range(layers)]
    start = reader.whole_or_none("max_window_layers", least=0)
    if start is not None:
        return [size if number >= start else 0 for number in range(layers)]
    return [size] * layers


def experts_of(reader: Reader, layers: int) -> list[bool]:
    """Which layers have experts."""
    if reader.whole_or("num_local_experts", 0, MOST_EXPERTS, least=0) == 0:
        return [False] * layers
    listed = reader.wholes("moe_layers")
    if listed is not None:
        chosen = set(listed)
        return [number in chosen for number in range(layers)]
    kinds = reader.texts("mlp_layer_types")
    if kinds is not None and len(kinds) >= layers:
        return [kind == "sparse" for kind in kinds[:layers]]
    dense = set(reader.wholes("mlp_only_layers") or ())
    first = reader.whole_or("first_k_dense_replace", 0, least=0)
    if isinstance(reader.value("moe_layer_freq"), list):
        flags = reader.wholes("moe_layer_freq") or []
        return [number < len(flags) and bool(flags[number]) for number in range(layers)]
    if reader.value("moe_layer_freq") is not None:
        step = reader.whole("moe_layer_freq")
        return [number >= first and number % step == 0 for number in range(layers)]
    step = reader.whole_or("decoder_sparse_step", 1)
    return [number >= first and number not in dense and (number + 1) % step == 0 for number in range(layers)]


def read_experts(reader: Reader, gated: bool = True) -> FeedForward:
    experts = reader.whole("num_local_experts", MOST_EXPERTS)
    used = reader.whole("num_experts_per_tok", MOST_EXPERTS)
    if used > experts:
        raise ParseError(f"config: a token visits {used} experts, but there are {experts}")
    width = reader.whole_or_none("moe_intermediate_size") or reader.whole("intermediate_size")
    shared = reader.whole_or("shared_expert_intermediate_size", 0, least=0)
    if not shared:
        shared = width * reader.whole_or("n_shared_experts", 0, MOST_EXPERTS, least=0)
    return FeedForward(width, gated, experts, used, shared)


def feed_forward_of(
    reader: Reader, hidden: int, part: FeedForward, bias: bool = False, packed: bool = False, shared_gate: bool = False
) -> list[Tensor]:
    """All matrices of a feed-forward part, with or without experts."""
    if not part.experts:
        return feed_forward_tensors(hidden, part.intermediate, part.gated, bias, packed)
    made = expert_tensors(hidden, part, bias, packed)
    if part.shared:
        made += feed_forward_tensors(hidden, part.shared, part.gated, prefix="shared_")
        if shared_gate:
            made += [Tensor("shared_gate", OTHER, (1, hidden))]
    return made


def decoder(name: str, family: str, config: Config, traits: Traits, where: str = "") -> Architecture:
    """The architecture of a decoder with those traits. ParseError where the config is broken."""
    if traits.prepare is not None:
        config = traits.prepare(config, traits.defaults)
    c = Reader(config, traits.defaults, where)
    count, hidden = c.layers, c.hidden
    heads, kv_heads, head_dim = c.heads(hidden)
    qk_norm = traits.qk_norm if traits.qk_norm and said(c, traits.qk_norm_if) else ""
    qkv_bias, out_bias, mlp_bias = said(c, traits.qkv_bias), said(c, traits.out_bias), said(c, traits.mlp_bias)
    norm_bias, shared_gate = said(c, traits.norm_bias), family in ("qwen2_moe", "qwen3_next", "qwen3_5_moe_text")
    norms = c.whole_or("norms_per_layer", traits.norms, most=16, least=0)
    sparse = experts_of(c, count)
    mixed = read_experts(c, traits.gated) if any(sparse) else None
    dense = None
    if not all(sparse):
        width = c.whole_or_none("intermediate_size_mlp") or c.whole_or("intermediate_size", 4 * hidden)
        dense = FeedForward(width, traits.gated)

    crossing = set(c.wholes("cross_attention_layers") or ()) if family == "mllama_text_model" else set()
    made: dict[tuple[int, bool, bool], Block] = {}

    def block(window: int, is_sparse: bool, crosses: bool) -> Block:
        attention = Attention(
            *(WINDOW if window else FULL, heads, kv_heads, head_dim),
            window=window,
            qk_norm=bool(qk_norm),
            packed=traits.packed,
        )
        part = mixed if is_sparse else dense
        assert part is not None
        tensors = attention_tensors(hidden, attention, qkv_bias, out_bias)
        tensors += qk_norms(qk_norm, attention, norm_bias and not traits.rms)
        tensors += feed_forward_of(c, hidden, part, mlp_bias, traits.packed_ffn, shared_gate)
        if traits.norm_weight:
            tensors += norm("norm", hidden, norm_bias, norms)
        if traits.extra is not None:
            tensors += traits.extra(c, attention, part)
        if crosses:
            tensors += [*qk_norms("head", attention), Tensor("gate", OTHER, (1,), 2)]
        return Block(None if crosses else attention, part, tuple(tensors), norms, traits.rms)

    blocks = []
    for key in zip(windows(c, count), sparse, (number in crossing for number in range(count))):
        if key not in made:
            made[key] = block(*key)
        blocks.append(made[key])
    outside = outer_tensors(c, hidden, traits, norm_bias)
    return build(
        *(name, DECODER, family, hidden, c.vocabulary, blocks, outside, tie(c), c.max_context),
        shared_blocks=said(c, traits.parallel),
    )


def outer_tensors(c: Reader, hidden: int, traits: Traits, norm_bias: bool = False) -> list[Tensor]:
    """Embedding, positions, last norm and head."""
    made = [Tensor("token_embedding", EMBEDDING, (c.vocabulary, hidden))]
    if traits.positions >= 0:
        rows = c.whole("max_position_embeddings") + traits.positions
        made.append(Tensor("position_embedding", POSITION, (rows, hidden)))
    if traits.embedding_norm:
        made += norm("embedding_norm", hidden, norm_bias)
    if traits.final_norm and traits.norm_weight:
        made += norm("final_norm", hidden, norm_bias)
    if not tie(c):
        made.append(Tensor("output", HEAD, (c.vocabulary, hidden)))
    if said(c, traits.head_bias):
        made.append(Tensor("output_bias", BIAS, (c.vocabulary,)))
    if traits.outside is not None:
        made += traits.outside(c)
    return made


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


# -- layouts of their own


def _merged(config: Config, defaults: Config, **values: Any) -> Config:
    return {**config, **{key: value for key, value in values.items() if value is not None}}


def _falcon(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    new = c.flag("new_decoder_architecture")
    heads = c.whole("num_attention_heads")
    kv_heads = c.whole_or("num_key_value_heads", heads) if new else (1 if c.flag("multi_query") else heads)
    norms = c.whole_or("num_ln_in_parallel_attn", 2 if new else 1, most=2)
    if not (new or c.flag("parallel_attn")):
        norms = 2
    plain = {key: value for key, value in config.items() if key not in ("num_kv_heads", "n_head_kv")}
    return {**plain, "num_key_value_heads": kv_heads, "norms_per_layer": norms}


def _bigcode(config: Config, defaults: Config) -> Config:
    return {**config, "num_key_value_heads": 1 if Reader(config, defaults).flag("multi_query") else None}


def _stablelm(config: Config, defaults: Config) -> Config:
    return {**config, "norms_per_layer": 1 if Reader(config, defaults).flag("use_parallel_residual") else 2}


def _qwen(config: Config, defaults: Config) -> Config:
    # Its class halves the width that stands in the config: one half for the gate, one for up.
    c = Reader(config, defaults)
    return {**config, "intermediate_size": c.whole("intermediate_size") // 2, "num_key_value_heads": None}


def _chatglm(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    groups = c.whole("multi_query_group_num") if c.flag("multi_query_attention") else None
    return {**config, "num_key_value_heads": groups}


def _dbrx(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    attention, part = c.part("attn_config"), c.part("ffn_config")
    return {
        **config,
        "num_key_value_heads": attention.whole_or("kv_n_heads", 1),
        "intermediate_size": part.whole_or("ffn_hidden_size", 3584),
        "num_local_experts": part.whole_or("moe_num_experts", 4, MOST_EXPERTS),
        "num_experts_per_tok": part.whole_or("moe_top_k", 1, MOST_EXPERTS),
    }


def _mpt(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    # Its class takes four times the width whatever expansion_ratio says, and as many keys as queries.
    return {**config, "intermediate_size": 4 * c.hidden, "num_key_value_heads": None}


def _four_wide(config: Config, defaults: Config) -> Config:
    """The feed-forward part is four times as wide as the model, whatever else the config holds."""
    c = Reader(config, defaults)
    found = c.config.get("n_inner")
    return {**config, "intermediate_size": found if found is not None else 4 * c.hidden}


def _gpt_neo(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    kinds = config.get("attention_layers")
    if not isinstance(kinds, list):
        kinds = ["global", "local"]
    local = (
        [f"{'sliding' if kinds[number % len(kinds)] == 'local' else 'full'}" for number in range(c.layers)]
        if kinds
        else None
    )
    return {**config, "layer_types": local, "sliding_window": c.whole_or("window_size", 256, MOST_TOKENS)}


def _llama4(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    count = c.layers
    step = c.whole_or("interleave_moe_layer_step", 1)
    chosen = c.wholes("moe_layers") or list(range(step - 1, count, step))
    every = c.whole_or("no_rope_layer_interval", 4)
    kinds = c.texts("layer_types")
    if kinds is None:
        ropes = c.wholes("no_rope_layers") or [int((number + 1) % every != 0) for number in range(count)]
        kinds = ["chunked" if rope else "full" for rope in ropes]
    return {
        **config,
        "moe_layers": chosen,
        "layer_types": kinds,
        "sliding_window": c.whole_or("attention_chunk_size", 0, MOST_TOKENS, least=0),
        "moe_intermediate_size": c.whole("intermediate_size"),
        "n_shared_experts": 1,
    }


def _mllama(config: Config, defaults: Config) -> Config:
    # Layers that look at an image only: without one they are passed over.
    listed = Reader(config, defaults).wholes("cross_attention_layers")
    return {**config, "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38] if listed is None else listed}


def _ernie_moe(config: Config, defaults: Config) -> Config:
    c = Reader(config, defaults)
    step = c.whole_or("moe_layer_interval", 1)
    first = c.whole_or("moe_layer_start_index", 1, least=0)
    last = c.whole_or("moe_layer_end_index", c.layers - 1, least=-1)
    last = c.layers - 1 if last == -1 else last
    chosen = [number for number in range(c.layers) if (number + 1) % step == 0 and first <= number <= last]
    return {**config, "moe_layers": chosen, "n_shared_experts": c.whole_or("moe_num_shared_experts", 0, least=0)}


def _hunyuan_moe(config: Config, defaults: Config) -> Config:
    # The configs name the choice and the width layer by layer; its class has one width, and all layers are alike.
    used = config.get("moe_topk", config.get("num_experts_per_tok"))
    if isinstance(used, (list, tuple)) and used:
        used = used[0]
    plain = {key: value for key, value in config.items() if key not in ("moe_topk", "moe_intermediate_size")}
    return {**plain, "num_experts_per_tok": 1 if used is None else used, "n_shared_experts": 1}


def _cwm(config: Config, defaults: Config) -> Config:
    kinds = ["sliding" if number % 4 else "full" for number in range(Reader(config, defaults).layers)]
    return config if config.get("layer_types") is not None else {**config, "layer_types": kinds}


def _shared_experts(config: Config, defaults: Config) -> Config:
    """Under the name that the others have for them."""
    c = Reader(config, defaults)
    made = {**config, "n_shared_experts": c.whole_or("num_shared_experts", 1, MOST_EXPERTS, least=0)}
    dense = c.whole_or_none("num_dense_layers", least=0)
    return made if dense is None else {**made, "first_k_dense_replace": dense}


def _granite_shared(config: Config, defaults: Config) -> Config:
    return {
        **config,
        "shared_expert_intermediate_size": Reader(config, defaults).value("shared_intermediate_size") or 0,
    }


# -- tensors of their own


def _sinks(c: Reader, attention: Attention, part: FeedForward) -> list[Tensor]:
    return [Tensor("sinks", OTHER, (attention.heads,)), Tensor("router_bias", BIAS, (part.experts,))]


def _ernie_bias(c: Reader, attention: Attention, part: FeedForward) -> list[Tensor]:
    return [Tensor("router_correction", BIAS, (1, part.experts))] if part.experts else []


def _gated_attention(c: Reader, attention: Attention, part: FeedForward) -> list[Tensor]:
    made = matrix("attention_gate", attention.query_width, c.hidden)
    return made + ([Tensor("router_correction", BIAS, (part.experts,))] if part.experts else [])


def _xielu(c: Reader, attention: Attention, part: FeedForward) -> list[Tensor]:
    return [Tensor("activation", OTHER, (1,), copies=2)]


def _sub_norms(c: Reader, attention: Attention, part: FeedForward) -> list[Tensor]:
    return norm("attention_sub_norm", c.hidden) + norm("ffn_sub_norm", part.intermediate)


def _opt_projections(c: Reader) -> list[Tensor]:
    narrow = c.whole_or("word_embed_proj_dim", c.hidden)
    if narrow == c.hidden:
        return []
    return matrix("project_in", c.hidden, narrow) + matrix("project_out", narrow, c.hidden)


_UNTIED = {"tie_word_embeddings": False}
_TIED = {"tie_word_embeddings": True}
_QWEN_WINDOW = {"use_sliding_window": False, "max_window_layers": 28}
_BIAS = ("attention_bias", "attention_bias")
_FOURTH = {"sliding_window": 4096, "sliding_window_pattern": 4}
_ALL_BIAS: dict[str, Any] = {"qkv_bias": True, "out_bias": True, "mlp_bias": True}
_LAYER_NORM: dict[str, Any] = {"rms": False, "norm_bias": True}

# What a config does not say is what the family's class in transformers takes.
_LLAMA = {**_UNTIED, "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
_LLAMA.update(num_attention_heads=32, max_position_embeddings=2048)
_GEMMA3 = {**_TIED, "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26}
_GEMMA3.update(num_attention_heads=8, num_key_value_heads=4, head_dim=256, sliding_window=4096)
_GEMMA3.update(sliding_window_pattern=6, max_position_embeddings=131072)
_MISTRAL = {**_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072}
_QWEN2 = {**_UNTIED, **_QWEN_WINDOW, "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016}
_QWEN2.update(num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32, max_position_embeddings=32768)
_LLAMA4 = {**_UNTIED, "vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "num_hidden_layers": 48}
_LLAMA4.update(intermediate_size_mlp=16384, num_attention_heads=40, num_key_value_heads=8, head_dim=128)
_LLAMA4.update(num_local_experts=16, num_experts_per_tok=1, attention_chunk_size=8192, max_position_embeddings=131072)
_MLLAMA: Config = {**_LLAMA, "vocab_size": 128256, "intermediate_size": 14336, "num_hidden_layers": 40}
_MLLAMA = {**_MLLAMA, "num_key_value_heads": 8, "max_position_embeddings": 131072}
_GPT2 = {**_TIED, "vocab_size": 50257, "max_position_embeddings": 1024, "hidden_size": 768, "num_hidden_layers": 12}
_GPT2.update(num_attention_heads=12)
_GPTJ = {**_UNTIED, "vocab_size": 50400, "max_position_embeddings": 2048, "hidden_size": 4096, "num_hidden_layers": 28}
_GPTJ.update(num_attention_heads=16)
_GLM_MOE = {**_UNTIED, "n_shared_experts": 1, "first_k_dense_replace": 1, "num_experts_per_tok": 8}
_GLM4V = {**_LLAMA, "vocab_size": 151552, "intermediate_size": 13696, "num_hidden_layers": 40}
_GLM4V.update(num_key_value_heads=2, max_position_embeddings=32768)
_LLAMA_TRAITS = Traits(_LLAMA, *_BIAS, "mlp_bias")
_MOE_QK = Traits(
    {**_UNTIED, **_QWEN_WINDOW, "num_experts_per_tok": 8, "num_local_experts": 128}, *_BIAS, qk_norm="head"
)

FAMILIES: dict[str, Traits] = {
    "llama": _LLAMA_TRAITS,
    "mistral": Traits({**_MISTRAL, "sliding_window": 4096}),
    "ministral": Traits({**_MISTRAL, "sliding_window": 4096}),
    "ministral3": Traits({**_MISTRAL, "vocab_size": 131072, "num_hidden_layers": 34, "head_dim": 128}),
    "mixtral": Traits({**_MISTRAL, "num_local_experts": 8, "num_experts_per_tok": 2}),
    "qwen": Traits(_UNTIED, qkv_bias=True, packed=True, prepare=_qwen),
    "qwen2": Traits(_QWEN2, qkv_bias=True),
    "qwen3": Traits({**_QWEN2, "head_dim": 128}, *_BIAS, qk_norm="head"),
    "qwen2_moe": Traits(
        {**_UNTIED, **_QWEN_WINDOW, "qkv_bias": True, "num_experts_per_tok": 4, "num_local_experts": 60},
        qkv_bias="qkv_bias",
    ),
    "qwen3_moe": _MOE_QK,
    "gemma": Traits({**_TIED, "head_dim": 256}, *_BIAS),
    "gemma2": Traits({**_TIED, "head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2}, *_BIAS, norms=4),
    "gemma3_text": Traits(_GEMMA3, *_BIAS, norms=4, qk_norm="head"),
    "vaultgemma": Traits({**_TIED, "head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2}, *_BIAS),
    "phi": Traits(
        _UNTIED,
        **_ALL_BIAS,
        **_LAYER_NORM,
        head_bias=True,
        gated=False,
        norms=1,
        parallel=True,
        qk_norm="head",
        qk_norm_if="qk_layernorm",
    ),
    "phi3": Traits(_UNTIED, packed=True, packed_ffn=True),
    "phimoe": Traits(
        {**_UNTIED, "num_experts_per_tok": 2, "num_local_experts": 16}, *_BIAS, head_bias="lm_head_bias", **_LAYER_NORM
    ),
    "glm": Traits({**_UNTIED, "attention_bias": True, "head_dim": 128}, "attention_bias", packed_ffn=True),
    "glm4": Traits({**_UNTIED, "attention_bias": True, "head_dim": 128}, "attention_bias", packed_ffn=True, norms=4),
    "glm4_moe": Traits(_GLM_MOE, "attention_bias", qk_norm="head", qk_norm_if="use_qk_norm"),
    "glm4v_text": Traits(_GLM4V, qkv_bias=True, packed_ffn=True, norms=4),
    "glm4v_moe_text": Traits({**_GLM_MOE, "attention_bias": True}, "attention_bias"),
    "chatglm": Traits(
        {**_UNTIED, "add_qkv_bias": False, "multi_query_attention": False},
        "add_qkv_bias",
        "add_bias_linear",
        "add_bias_linear",
        packed=True,
        packed_ffn=True,
        prepare=_chatglm,
    ),
    "gpt_oss": Traits(
        {
            **_UNTIED,
            "attention_bias": True,
            "head_dim": 64,
            "sliding_window": 128,
            "sliding_window_pattern": 2,
            "num_local_experts": 128,
            "num_experts_per_tok": 4,
        },
        *_BIAS,
        mlp_bias=True,
        packed_ffn=True,
        extra=_sinks,
    ),
    "olmo": Traits(_UNTIED, *_BIAS, rms=False, norm_weight=False),
    "olmo2": Traits(_UNTIED, *_BIAS, qk_norm="full"),
    "olmo3": Traits({**_UNTIED, "sliding_window": 4096, "sliding_window_pattern": 4}, *_BIAS, qk_norm="full"),
    "olmoe": Traits({**_UNTIED, "num_experts_per_tok": 8, "num_local_experts": 64}, *_BIAS, qk_norm="full"),
    "cohere": Traits(_TIED, *_BIAS, norms=1, rms=False, parallel=True, qk_norm="each", qk_norm_if="use_qk_norm"),
    "cohere2": Traits(
        {**_TIED, "sliding_window": 4096, "sliding_window_pattern": 4}, *_BIAS, norms=1, rms=False, parallel=True
    ),
    "granite": Traits(_LLAMA, *_BIAS, "mlp_bias"),
    "granitemoe": Traits({**_LLAMA, "num_local_experts": 8, "num_experts_per_tok": 2}, *_BIAS, packed_ffn=True),
    "granitemoeshared": Traits(
        {**_LLAMA, "num_local_experts": 8, "num_experts_per_tok": 2}, *_BIAS, packed_ffn=True, prepare=_granite_shared
    ),
    "exaone": Traits({**_UNTIED, "num_key_value_heads": None}),
    "exaone4": Traits({**_UNTIED, "sliding_window": 4096, "sliding_window_pattern": 4}, qk_norm="head"),
    "stablelm": Traits(
        _UNTIED,
        "use_qkv_bias",
        **_LAYER_NORM,
        qk_norm="each",
        qk_norm_if="qk_layernorm",
        parallel="use_parallel_residual",
        prepare=_stablelm,
    ),
    "starcoder2": Traits({**_TIED, "use_bias": True}, "use_bias", "use_bias", "use_bias", gated=False, **_LAYER_NORM),
    "gpt_bigcode": Traits(
        {**_GPT2, "multi_query": True},
        **_ALL_BIAS,
        **_LAYER_NORM,
        gated=False,
        packed=True,
        positions=0,
        prepare=_bigcode,
    ),
    "falcon": Traits(
        {**_TIED, "multi_query": True, "parallel_attn": True},
        "bias",
        "bias",
        "bias",
        gated=False,
        packed=True,
        parallel="parallel_attn",
        prepare=_falcon,
        **_LAYER_NORM,
    ),
    "gpt2": Traits(_GPT2, **_ALL_BIAS, **_LAYER_NORM, gated=False, packed=True, positions=0),
    "gpt_neo": Traits(
        {**_TIED, "max_position_embeddings": 2048},
        out_bias=True,
        mlp_bias=True,
        **_LAYER_NORM,
        gated=False,
        positions=0,
        prepare=_gpt_neo,
    ),
    "gpt_neox": Traits(
        {**_UNTIED, "attention_bias": True, "use_parallel_residual": True},
        *_BIAS,
        mlp_bias=True,
        **_LAYER_NORM,
        gated=False,
        packed=True,
        parallel="use_parallel_residual",
    ),
    "gptj": Traits(_GPTJ, mlp_bias=True, head_bias=True, **_LAYER_NORM, gated=False, norms=1, parallel=True),
    "codegen": Traits(
        _GPTJ, mlp_bias=True, head_bias=True, **_LAYER_NORM, gated=False, norms=1, parallel=True, packed=True
    ),
    "opt": Traits(
        {**_TIED, "enable_bias": True, "do_layer_norm_before": True, "max_position_embeddings": 2048},
        "enable_bias",
        "enable_bias",
        "enable_bias",
        **_LAYER_NORM,
        gated=False,
        positions=2,
        outside=_opt_projections,
    ),
    "bloom": Traits(
        _TIED, **_ALL_BIAS, **_LAYER_NORM, gated=False, packed=True, embedding_norm=True, prepare=_four_wide
    ),
    "mpt": Traits(_TIED, gated=False, packed=True, rms=False, prepare=_mpt),
    "dbrx": Traits(_UNTIED, packed=True, rms=False, prepare=_dbrx),
    "nemotron": Traits(_UNTIED, *_BIAS, "mlp_bias", gated=False, **_LAYER_NORM),
    "persimmon": Traits(
        {**_UNTIED, "qk_layernorm": True},
        **_ALL_BIAS,
        **_LAYER_NORM,
        gated=False,
        packed=True,
        qk_norm="head",
        qk_norm_if="qk_layernorm",
    ),
    "biogpt": Traits({**_TIED, "max_position_embeddings": 1024}, **_ALL_BIAS, **_LAYER_NORM, gated=False, positions=2),
    "xglm": Traits(_TIED, **_ALL_BIAS, **_LAYER_NORM, gated=False),
    "smollm3": Traits({**_TIED, "use_sliding_window": False, "num_key_value_heads": 4}, *_BIAS, "mlp_bias"),
    "helium": Traits({**_UNTIED, "head_dim": 128}, *_BIAS, "mlp_bias"),
    "arcee": Traits(_UNTIED, *_BIAS, "mlp_bias", gated=False),
    "seed_oss": Traits(
        {**_UNTIED, "attention_bias": True, "head_dim": 128}, "attention_bias", "attention_out_bias", "mlp_bias"
    ),
    "ernie4_5": Traits({**_TIED, "head_dim": 128}, "use_bias", "use_bias", "use_bias"),
    "ernie4_5_moe": Traits(
        {**_TIED, "num_experts_per_tok": 6, "moe_num_shared_experts": 2},
        "use_bias",
        "use_bias",
        "use_bias",
        prepare=_ernie_moe,
        extra=_ernie_bias,
    ),
    "minimax_m2": Traits({**_UNTIED, "head_dim": 128}, qk_norm="full"),
    "hunyuan_v1_dense": Traits(_UNTIED, *_BIAS, qk_norm="head"),
    "hunyuan_v1_moe": Traits({**_UNTIED, "num_local_experts": 1}, *_BIAS, qk_norm="head", prepare=_hunyuan_moe),
    "cwm": Traits({**_UNTIED, "head_dim": 128, "sliding_window": 8192}, mlp_bias="mlp_bias", prepare=_cwm),
    "exaone_moe": Traits(
        {**_UNTIED, **_FOURTH, "num_local_experts": 64, "num_experts_per_tok": 8, "first_k_dense_replace": 1},
        qk_norm="head",
        prepare=_shared_experts,
    ),
    "afmoe": Traits(
        {
            **_UNTIED,
            **_FOURTH,
            "sliding_window": 1024,
            "head_dim": 128,
            "num_local_experts": 64,
            "num_experts_per_tok": 6,
            "num_shared_experts": 2,
            "num_dense_layers": 1,
        },
        norms=4,
        qk_norm="head",
        prepare=_shared_experts,
        extra=_gated_attention,
    ),
    "flex_olmo": Traits({**_UNTIED, "num_local_experts": 7, "num_experts_per_tok": 5}, *_BIAS, qk_norm="full"),
    "mellum": Traits(
        {**_UNTIED, "head_dim": 128, "num_local_experts": 64, "num_experts_per_tok": 8}, *_BIAS, qk_norm="head"
    ),
    "hy_v3": Traits(
        {**_UNTIED, "head_dim": 128, "num_local_experts": 192, "num_experts_per_tok": 8, "first_k_dense_replace": 1},
        *_BIAS,
        qk_norm="head",
        prepare=_shared_experts,
    ),
    "jais2": Traits(
        {**_UNTIED, "attention_bias": True, "mlp_bias": True}, *_BIAS, "mlp_bias", gated=False, **_LAYER_NORM
    ),
    "dots1": Traits({**_UNTIED, "sliding_window": 4096, "max_window_layers": 62}, *_BIAS, qk_norm="head"),
    "apertus": Traits(_UNTIED, *_BIAS, gated=False, qk_norm="head", extra=_xielu),
    "solar_open": Traits(
        {**_UNTIED, "head_dim": 128, "n_shared_experts": 1, "num_experts_per_tok": 8}, "attention_bias"
    ),
    "bitnet": Traits(_UNTIED, *_BIAS, extra=_sub_norms),
    "mllama_text_model": Traits(_MLLAMA, prepare=_mllama),
    "llama4_text": Traits(_LLAMA4, *_BIAS, prepare=_llama4),
    "baichuan": Traits(_UNTIED, packed=True),
    "internlm": Traits({**_UNTIED, "bias": True}, "bias", "bias"),
    "internlm2": Traits({**_UNTIED, "bias": True}, "bias", "bias", packed=True),
    "internlm3": Traits(_UNTIED, "qkv_bias", "bias", "bias"),
    "minicpm": Traits(_TIED),
}
# The same plan under another name.
FAMILIES.update(dict.fromkeys(("yi", "Yi", "aquila", "xverse", "code_llama"), _LLAMA_TRAITS))


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    traits = FAMILIES[family]
    if family == "opt" and config.get("do_layer_norm_before") is False:
        traits = traits._replace(final_norm=False)
    made = decoder(name, family, config, traits, where)
    if family == "opt":
        # Where the embedding is narrower than the model, it and the head are.
        narrow = Reader(config).whole_or("word_embed_proj_dim", made.hidden)
        return _with_tables(made, token_embedding=(made.vocabulary, narrow), output=(made.vocabulary, narrow))
    if family == "mllama_text_model":  # eight more words stand for an image
        return _with_tables(made, token_embedding=(made.vocabulary + 8, made.hidden))
    return made


def _with_tables(made: Architecture, **shapes: tuple[int, int]) -> Architecture:
    """With embedding and head of other shapes."""
    return made._replace(tensors=tuple(one._replace(shape=shapes.get(one.name, one.shape)) for one in made.tensors))
