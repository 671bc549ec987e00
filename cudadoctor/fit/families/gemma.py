"""Gemma 3n and Gemma 4: layers that use the keys and values of earlier ones, embeddings for each layer, towers for
images and sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    CONVOLUTION,
    DECODER,
    EMBEDDING,
    FULL,
    NORM,
    OTHER,
    POSITION,
    WINDOW,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .decoders import Traits, feed_forward_of, outer_tensors, qk_norms, read_experts, tie, windows
from .reader import MOST_WORDS, Reader
from .vision import Tower

_TEXT = {"tie_word_embeddings": True, "head_dim": 256, "sliding_window": 512, "hidden_size_per_layer_input": 256}
_TEXT.update(vocab_size_per_layer_input=262144, num_attention_heads=8)
_3N = {**_TEXT, "vocab_size": 262400, "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 35}
_3N.update(num_key_value_heads=2, num_kv_shared_layers=15, sliding_window_pattern=5, max_position_embeddings=32768)
_3N.update(altup_num_inputs=4, laurel_rank=64)
_4 = {**_TEXT, "vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30}
_4.update(num_key_value_heads=4, sliding_window_pattern=6, max_position_embeddings=131072, global_head_dim=512)
_UNIFIED = {**_4, "hidden_size_per_layer_input": 0}

FAMILIES: dict[str, Mapping[str, Any]] = {
    "gemma3n_text": _3N,
    "gemma4_text": _4,
    "gemma4_unified_text": _UNIFIED,
    "gemma3n": {},
    "gemma4": {},
    "gemma4_unified": {},
}
_IMAGES_OF_4 = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12}
_IMAGES_OF_4.update(head_dim=64, patch_size=16, position_embedding_size=10240)
_PATCHES = {"mm_embed_dim": 3840, "mm_posemb_size": 1120, "output_proj_dims": 3840, "patch_size": 16}
_PATCHES.update(pooling_kernel_size=3)
_SOUND_OF_4: dict[str, Any] = {
    "hidden_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "output_proj_dims": 1536,
}
_SOUND_OF_4.update(conv_kernel_size=5, subsampling_conv_channels=(128, 32))
_SOUND_OF_3N: dict[str, Any] = {
    "hidden_size": 1536,
    "conf_num_hidden_layers": 12,
    "conf_num_attention_heads": 8,
    "vocab_size": 128,
}
_SOUND_OF_3N.update(conf_conv_kernel_size=5, sscp_conv_channel_size=(128, 32))
# MobileNet-V5, the tower of Gemma 3n, which timm builds by its name alone, of about 0.3 billion parameters. Not counted
# and not looked up: what totals of E2B and E4B, as they are remembered, leave for it, both the same.
_MOBILENET = ("mobilenetv5_300m_enc", 294_126_912)


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    if family.endswith("_text"):
        return _decoder(name, family, Reader(config, FAMILIES[family], where))
    c = Reader(config, None, where)
    text = c.part("text_config", FAMILIES[family + "_text"])
    decoder = _decoder(name, family, text)
    extra: list[Tensor] = []
    for key in ("vision_config", "audio_config"):
        # Gemma 3n has both towers whatever it is told, Gemma 4 those that it is told of.
        if family == "gemma3n" or c.value(key) is not None:
            extra += _tower(family, key, c.part(key), decoder.hidden)
    return decoder._replace(tensors=(*decoder.tensors, *extra))


# -- the decoder


def _decoder(name: str, family: str, c: Reader) -> Architecture:
    hidden, count = c.hidden, c.layers
    heads, kv_heads, head_dim = c.heads(hidden)
    third = family.startswith("gemma3n")
    seen = windows(c, count)
    if not third:
        seen[-1] = 0  # its class sees to it
    own = count - c.whole_or("num_kv_shared_layers", 0, count, least=0)
    widths = _widths(c, count, own)
    per_layer = c.whole("hidden_size_per_layer_input", least=0)
    experts = read_experts(_experts(c)) if c.flag("enable_moe_block") else None
    wide = c.whole("global_head_dim") if not third else head_dim
    one_key = c.flag("attention_k_eq_v")
    few = c.whole_or("num_global_key_value_heads", kv_heads) if one_key else kv_heads

    made: dict[tuple[int, bool, int], Block] = {}

    def block(window: int, keeps: bool, width: int) -> Block:
        attention = Attention(
            *(WINDOW if window else FULL, heads, kv_heads if window else few, head_dim if window else wide),
            window=window,
            qk_norm=True,
        )
        bias = c.flag("attention_bias")
        tensors = attention_tensors(hidden, attention, bias, bias) + qk_norms("head", attention)
        if not keeps:  # it attends to what an earlier layer keeps
            tensors = [one for one in tensors if one.name not in ("k", "v", "k_bias", "v_bias", "k_norm")]
            attention = attention._replace(kv_heads=0)
        elif one_key and not window:
            tensors = [one for one in tensors if one.name not in ("v", "v_bias")]
        part = FeedForward(width, True)
        tensors += feed_forward_tensors(hidden, width, True)
        norms = 4
        if per_layer:
            tensors += matrix("per_layer_gate", per_layer, hidden) + matrix("per_layer_projection", hidden, per_layer)
            norms += 1
        if third:
            tensors += _altup(c, hidden)
            norms += 1
        if experts is not None:
            tensors += feed_forward_of(c, hidden, experts, packed=True)
            tensors += [Tensor("router_scale", OTHER, (hidden,)), Tensor("expert_scale", OTHER, (experts.experts,))]
            part = experts._replace(shared=width)
            norms += 3
        return Block(attention, part, (*tensors, *norm("norm", hidden, copies=norms)), norms)

    blocks = []
    for number in range(count):
        key = (seen[number], number < own, widths[number])
        if key not in made:
            made[key] = block(*key)
        blocks.append(made[key])
    outside = outer_tensors(c, hidden, Traits())
    if per_layer:
        rows = c.whole("vocab_size_per_layer_input", MOST_WORDS)
        outside.append(Tensor("per_layer_embedding", EMBEDDING, (rows, count * per_layer)))
        outside += matrix("per_layer_inputs", count * per_layer, hidden) + norm("per_layer_norm", per_layer)
    if third:
        outside += matrix("altup_projection", hidden, hidden, copies=2 * (c.whole("altup_num_inputs", 64) - 1))
    return build(name, DECODER, family, hidden, c.vocabulary, blocks, outside, tie(c), c.max_context)


def _widths(c: Reader, count: int, own: int) -> list[int]:
    """Of the feed-forward part of each layer."""
    if isinstance(c.value("intermediate_size"), (list, tuple)):
        listed = c.wholes("intermediate_size", least=1) or []
        if len(listed) < count:
            raise ParseError(f"config: intermediate_size names {len(listed)} layers, num_hidden_layers is {count}")
        return listed[:count]
    width = c.whole("intermediate_size")
    return [width * (2 if c.flag("use_double_wide_mlp") and number >= own else 1) for number in range(count)]


def _experts(c: Reader) -> Reader:
    return Reader({**c.config, "num_experts_per_tok": c.value("top_k_experts")}, c.defaults, c.where)


def _altup(c: Reader, hidden: int) -> list[Tensor]:
    """Several streams of the hidden state, of which a layer works on one; and a narrow path beside the attention."""
    streams, rank = c.whole("altup_num_inputs", 64), c.whole("laurel_rank")
    made = [Tensor("altup_scale", OTHER, (hidden,)), *matrix("altup_correction", streams, streams)]
    made += matrix("altup_prediction", streams * streams, streams) + matrix("altup_router", streams, hidden)
    return made + norm("altup_norm", hidden) + matrix("laurel_in", rank, hidden) + matrix("laurel_out", hidden, rank)


# -- the towers, and what brings their vectors to the decoder's width


def _tower(family: str, key: str, c: Reader, hidden: int) -> list[Tensor]:
    sees = key == "vision_config"
    prefix = "vision_" if sees else "audio_"
    if family == "gemma3n":
        if sees:
            called = c.text("architecture", _MOBILENET[0])
            if called != _MOBILENET[0]:
                raise ParseError(f"config: the vision tower {called[:40]!a} is not known")
            made = [Tensor("vision_tower", OTHER, (_MOBILENET[1],))]
        else:
            made = list(_sound(Reader(c.config, _SOUND_OF_3N, c.where), "conf_").tensors(prefix))
        wide = c.whole_or("hidden_size", 2048 if sees else 1536)
        made.append(Tensor(prefix + "embedding", EMBEDDING, (c.whole_or("vocab_size", 128), wide)))
        made += norm(prefix + "embedding_norm", wide, copies=2)
    elif family == "gemma4_unified":
        made, wide = _patches(Reader(c.config, _PATCHES, c.where)) if sees else ([], c.whole_or("audio_embed_dim", 640))
    else:
        reader = Reader(c.config, _IMAGES_OF_4 if sees else _SOUND_OF_4, c.where)
        made = (_images(reader) if sees else _sound(reader)).tensors(prefix)
        wide = reader.hidden if sees else reader.whole("output_proj_dims")
    return [*made, *matrix(prefix + "projection", hidden, wide)]


def _images(c: Reader) -> Tower:
    hidden = c.hidden
    heads = c.whole("num_attention_heads")
    attention = Attention(
        FULL, heads, c.whole_or("num_key_value_heads", heads), c.head_dim(hidden, heads), qk_norm=True
    )
    bias, part = c.flag("attention_bias"), FeedForward(c.whole("intermediate_size"), True)
    tensors = attention_tensors(hidden, attention, bias, bias) + qk_norms("head", attention)
    tensors += feed_forward_tensors(hidden, part.intermediate, True) + norm("norm", hidden, copies=4)
    outside = [Tensor("position_embedding", POSITION, (2, c.whole("position_embedding_size"), hidden))]
    outside += matrix("patch_embedding", hidden, 3 * c.whole("patch_size", 4096) ** 2)
    return Tower(hidden, Block(attention, part, tuple(tensors), 4, True, "encoder"), c.layers, tuple(outside), 0)


def _patches(c: Reader) -> tuple[list[Tensor], int]:
    """No tower at all: patches are brought to a width, and given a place."""
    wide, patch = c.whole("mm_embed_dim"), 3 * (c.whole("patch_size", 4096) * c.whole("pooling_kernel_size", 64)) ** 2
    made = [Tensor("vision_positions", POSITION, (c.whole("mm_posemb_size"), 2, wide))]
    made += norm("vision_norm", patch, True) + norm("vision_norm", wide, True, 2)
    return made + matrix("patch_embedding", wide, patch, True), c.whole("output_proj_dims")


def _sound(c: Reader, prefix: str = "") -> Tower:
    """A conformer: feed-forward, attention, convolution, feed-forward."""
    hidden, heads = c.hidden, c.whole(prefix + "num_attention_heads")
    if hidden % heads:
        raise ParseError(f"config: {heads} heads do not divide the {hidden} channels of the audio tower")
    attention, part = Attention(FULL, heads, heads, hidden // heads), FeedForward(4 * hidden, False)
    tensors = attention_tensors(hidden, attention) + matrix("relative_k", hidden, hidden)
    tensors += 2 * feed_forward_tensors(hidden, part.intermediate, False)
    tensors += matrix("conv_in", 2 * hidden, hidden) + matrix("conv_out", hidden, hidden)
    tensors.append(Tensor("convolution", CONVOLUTION, (hidden, 1, c.whole(prefix + "conv_kernel_size", 1024))))
    tensors += [Tensor("head_scale", OTHER, (hidden // heads,)), Tensor("norm", NORM, (hidden,), 9)]
    channels = c.wholes("sscp_conv_channel_size" if prefix else "subsampling_conv_channels", least=1, longest=2) or []
    if len(channels) != 2:
        raise ParseError("config: the audio tower does not have two convolutions")
    first, second = channels
    outside = [Tensor("convolution", CONVOLUTION, (first, 1, 3, 3)), *norm("convolution_norm", first)]
    outside += [Tensor("convolution", CONVOLUTION, (second, first, 3, 3)), *norm("convolution_norm", second)]
    outside += matrix("audio_in", hidden, second * (32 if prefix else first // 4))  # 128 bands of sound, halved twice
    if not prefix:
        outside += matrix("audio_out", c.whole("output_proj_dims"), hidden, True)
    block = Block(attention, part, tuple(tensors), 9, True, "encoder")
    return Tower(hidden, block, c.whole(prefix + "num_hidden_layers", 4096), tuple(outside), 0)
