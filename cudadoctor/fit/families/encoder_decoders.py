"""Encoders and decoders that work together: T5, BART, Whisper and their relatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    EMBEDDING,
    ENCODER,
    ENCODER_DECODER,
    FULL,
    HEAD,
    OTHER,
    POSITION,
    SPEECH,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)

from .blocks import Block, attention_tensors, build, feed_forward_tensors, norm
from .reader import MOST_LAYERS, MOST_TOKENS, Reader

_T5 = {"tie_word_embeddings": True, "relative_attention_num_buckets": 32, "feed_forward_proj": "relu", "d_kv": 64}
_T5.update(vocab_size=32128, hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8)
_MT5 = {**_T5, "vocab_size": 250112, "feed_forward_proj": "gated-gelu", "intermediate_size": 1024}
_MT5.update(num_hidden_layers=8, num_attention_heads=6)
_BART = {"tie_word_embeddings": True, "vocab_size": 50265, "hidden_size": 1024, "max_position_embeddings": 1024}
_BART.update(encoder_layers=12, encoder_attention_heads=16, encoder_ffn_dim=4096)
_BART.update(decoder_layers=12, decoder_attention_heads=16, decoder_ffn_dim=4096)
_WHISPER = {**_BART, "vocab_size": 51865, "hidden_size": 384, "num_mel_bins": 80, "max_source_positions": 1500}
_WHISPER.update(encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, max_target_positions=448)
_WHISPER.update(decoder_layers=4, decoder_attention_heads=6, decoder_ffn_dim=1536)

FAMILIES: dict[str, Mapping[str, Any]] = {
    "t5": _T5,
    "mt5": _MT5,
    "umt5": _MT5,
    "longt5": _T5,
    "bart": _BART,
    "mbart": _BART,
    "pegasus": _BART,
    "marian": {**_BART, "vocab_size": 58101},
    "m2m_100": {**_BART, "vocab_size": 128112},
    "blenderbot": _BART,
    "whisper": _WHISPER,
}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    if family in ("t5", "mt5", "umt5", "longt5"):
        return _t5(name, family, c)
    return _bart(name, family, c)


def _t5(name: str, family: str, c: Reader) -> Architecture:
    hidden, width = c.hidden, c.whole("intermediate_size")
    gated = c.text("feed_forward_proj").startswith("gated")
    heads = c.whole("num_attention_heads")
    attention = Attention(FULL, heads, heads, c.whole("d_kv"))
    part = FeedForward(width, gated)
    position = [Tensor("position_bias", OTHER, (c.whole("relative_attention_num_buckets"), heads))]

    def blocks(side: str, count: int) -> list[Block]:
        cross = attention if side == "decoder" else None
        norms = 3 if cross else 2
        tensors = attention_tensors(hidden, attention) + feed_forward_tensors(hidden, width, gated)
        tensors += norm("norm", hidden, copies=norms)
        if cross:
            tensors += attention_tensors(hidden, attention, prefix="cross_")
        made = Block(attention, part, tuple(tensors), norms, True, side, cross)
        first = made._replace(tensors=(*made.tensors, *position))
        return [first] * count if family == "umt5" else [first] + [made] * (count - 1)

    encoder = blocks("encoder", c.layers)
    outside = [Tensor("token_embedding", EMBEDDING, (c.vocabulary, hidden)), *norm("final_norm", hidden)]
    tied = c.flag("tie_word_embeddings")
    if any(one.endswith("EncoderModel") for one in c.texts("architectures") or ()):
        return build(name, ENCODER, family, hidden, c.vocabulary, encoder, outside, True, c.max_context)
    decoder = blocks("decoder", c.whole_or("num_decoder_layers", c.layers, MOST_LAYERS))
    outside += norm("final_norm", hidden)
    if not tied:
        outside.append(Tensor("output", HEAD, (c.vocabulary, hidden)))
    return build(
        *(name, ENCODER_DECODER, family, hidden, c.vocabulary, [*encoder, *decoder], outside, tied, c.max_context)
    )


def _bart(name: str, family: str, c: Reader) -> Architecture:
    hidden = c.hidden
    speech = family == "whisper"

    def attention(side: str) -> Attention:
        heads = c.whole(f"{side}_attention_heads")
        return Attention(
            FULL, heads, heads, Reader({**c.config, "head_dim": None}, None, c.where).head_dim(hidden, heads)
        )

    def projections(kind: Attention, prefix: str = "") -> list[Tensor]:
        made = attention_tensors(hidden, kind, True, True, prefix)
        # Whisper's keys have no bias: it would cancel out in the softmax.
        return [one for one in made if not (speech and one.name == prefix + "k_bias")]

    def blocks(side: str) -> list[Block]:
        own = attention(side)
        cross = own if side == "decoder" else None
        part = FeedForward(c.whole(f"{side}_ffn_dim"), False)
        norms = 3 if cross else 2
        tensors = projections(own) + feed_forward_tensors(hidden, part.intermediate, False, True)
        tensors += norm("norm", hidden, True, norms) + (projections(cross, "cross_") if cross else [])
        count = c.whole(f"{side}_layers", MOST_LAYERS)
        return [Block(own, part, tuple(tensors), norms, False, side, cross)] * count

    outside = [Tensor("token_embedding", EMBEDDING, (c.vocabulary, hidden))]
    sides = 2
    if speech:
        outside += [
            Tensor("convolution_1", CONVOLUTION, (hidden, c.whole("num_mel_bins"), 3)),
            Tensor("convolution_2", CONVOLUTION, (hidden, hidden, 3)),
            Tensor("convolution_bias", BIAS, (hidden,), 2),
            Tensor("source_positions", POSITION, (c.whole("max_source_positions", MOST_TOKENS), hidden)),
            Tensor("position_embedding", POSITION, (c.whole("max_target_positions", MOST_TOKENS), hidden)),
        ]
    elif family != "m2m_100":  # its positions are computed
        rows = c.whole("max_position_embeddings", MOST_TOKENS) + (2 if family in ("bart", "mbart") else 0)
        outside.append(Tensor("position_embedding", POSITION, (rows, hidden), sides))
    if family in ("bart", "mbart"):
        outside += norm("embedding_norm", hidden, True, sides)
    if family not in ("bart", "marian"):
        outside += norm("final_norm", hidden, True, sides)
    tied = c.flag("tie_word_embeddings")
    if not tied:
        outside.append(Tensor("output", HEAD, (c.vocabulary, hidden)))
    kind = SPEECH if speech else ENCODER_DECODER
    longest = c.whole("max_target_positions", MOST_TOKENS) if speech else c.max_context
    return build(
        *(name, kind, family, hidden, c.vocabulary, [*blocks("encoder"), *blocks("decoder")], outside, tied, longest),
        tokens_per_item=c.whole("max_source_positions", MOST_TOKENS) if speech else 0,
    )
