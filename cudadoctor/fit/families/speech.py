"""Encoders of speech that take the sound itself: wav2vec 2.0, HuBERT, WavLM and what is built alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    FULL,
    OTHER,
    SPEECH,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .encoders import labels
from .reader import Reader

_WAV: dict[str, Any] = {"vocab_size": 32, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_WAV.update(intermediate_size=3072, conv_dim=(512,) * 7, conv_kernel=(10, 3, 3, 3, 3, 2, 2))
_WAV.update(num_conv_pos_embeddings=128, num_conv_pos_embedding_groups=16, feat_proj_layer_norm=True)

FAMILIES: dict[str, Mapping[str, Any]] = {"wav2vec2": _WAV, "hubert": _WAV, "wavlm": _WAV}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    hidden, heads, width = c.hidden, c.whole("num_attention_heads"), c.whole("intermediate_size")
    if c.flag("add_adapter") or c.value("adapter_attn_dim") is not None:
        raise ParseError(f"config: {family} with adapters is not known")
    attention = Attention(FULL, heads, heads, c.head_dim(hidden, heads))
    tensors = attention_tensors(hidden, attention, True, True) + feed_forward_tensors(hidden, width, False, True)
    tensors += norm("norm", hidden, True, 2)
    first: list[Tensor] = []
    if family == "wavlm":  # how far apart two sounds are counts by what the head sees
        tensors += [Tensor("position_gate", OTHER, (1, heads, 1, 1)), *matrix("position", 8, attention.head_dim, True)]
        first = [Tensor("position_bias", OTHER, (c.whole_or("num_buckets", 320), heads))]
    block = Block(attention, FeedForward(width, False), tuple(tensors), 2, False, "encoder")
    blocks = [block._replace(tensors=(*tensors, *first)), *[block] * (c.layers - 1)]
    outside = [*_hears(c, hidden), *norm("final_norm", hidden, True)]
    called = (c.texts("architectures") or [""])[:1]
    if called and called[0].endswith("ForCTC"):
        outside += matrix("output", c.vocabulary, hidden, True)
    elif called and called[0].endswith("ForSequenceClassification"):
        middle = c.whole_or("classifier_proj_size", 256)
        outside += matrix("projector", middle, hidden, True) + matrix("classifier", labels(c), middle, True)
    return build(name, SPEECH, family, hidden, 0, blocks, outside)


def _hears(c: Reader, hidden: int) -> list[Tensor]:
    """The convolutions that turn the sound into tokens, and that which tells their places."""
    widths, kernels = (
        c.wholes("conv_dim", least=1, longest=64) or [],
        c.wholes("conv_kernel", least=1, longest=64) or [],
    )
    if not widths or len(widths) != len(kernels):
        raise ParseError("config: conv_dim and conv_kernel do not name the same layers")
    every, bias = c.text("feat_extract_norm", "group") == "layer", c.flag("conv_bias")
    made = [Tensor("mask_embedding", OTHER, (hidden,))] if _masks(c) else []
    for number, (width, kernel) in enumerate(zip(widths, kernels)):
        into = widths[number - 1] if number else 1
        made.append(Tensor("convolution", CONVOLUTION, (width, into, kernel)))
        made += [Tensor("convolution_bias", BIAS, (width,))] if bias else []
        made += norm("convolution_norm", width, True) if every or not number else []
    made += norm("features_norm", widths[-1], True) if c.flag("feat_proj_layer_norm") else []
    made += matrix("features", hidden, widths[-1], True)
    size, groups = c.whole("num_conv_pos_embeddings"), c.whole("num_conv_pos_embedding_groups")
    if hidden % groups:
        raise ParseError(f"config: num_conv_pos_embedding_groups {groups} does not divide hidden_size {hidden}")
    made += [Tensor("places", CONVOLUTION, (hidden, hidden // groups, size)), Tensor("places_bias", BIAS, (hidden,))]
    return [*made, Tensor("places_scale", OTHER, (1, 1, size))]


def _masks(c: Reader) -> bool:
    return c.number_or("mask_time_prob", 0.05) > 0 or c.number_or("mask_feature_prob", 0.0) > 0
