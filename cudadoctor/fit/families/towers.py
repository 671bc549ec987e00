"""What turns images and sound into vectors for a decoder: the towers that are no models of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    EMBEDDING,
    FULL,
    NORM,
    OTHER,
    POSITION,
    Attention,
    FeedForward,
    Tensor,
)

from .blocks import Block, attention_tensors, feed_forward_tensors, matrix, norm
from .reader import MOST_LAYERS, MOST_TOKENS, Reader
from .vision import Tower, patches_of, side_of
from .vision import tower as tower_of_a_model

_WHISPER = {"num_mel_bins": 128, "encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120}
_WHISPER.update(hidden_size=1280, max_source_positions=1500)
_HEADS = ("num_attention_heads", "encoder_attention_heads")
_INTERN = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_INTERN.update(image_size=448, patch_size=14, num_channels=3)
_MLLAMA = {"hidden_size": 1280, "num_hidden_layers": 32, "num_global_layers": 8, "attention_heads": 16}
_MLLAMA.update(intermediate_size=5120, image_size=448, patch_size=14, num_channels=3, max_num_tiles=4)
_GLM = {"depth": 24, "hidden_size": 1536, "num_heads": 12, "in_channels": 3, "image_size": 336, "patch_size": 14}
_GLM.update(spatial_merge_size=2, temporal_patch_size=2, out_hidden_size=4096, intermediate_size=13696)
_MOON = {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "intermediate_size": 4304}
_MOON.update(patch_size=14, pos_emb_height=64, pos_emb_width=64)
_SIGLIP2 = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_SIGLIP2.update(patch_size=16, num_channels=3, num_patches=256)

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "whisper": _WHISPER,
    "internvl_vision": _INTERN,
    "mllama_vision_model": _MLLAMA,
    "glm4v_vision": _GLM,
    "kimi_k25_vision": _MOON,
    "siglip2_vision_model": _SIGLIP2,
}
# How the configs call them besides.
_ALSO_CALLED = {
    "qwen2_audio_encoder": "whisper",
    "voxtral_encoder": "whisper",
    "glm4v": "glm4v_vision",
    "glm4v_moe": "glm4v_vision",
    "glm4v_moe_vision": "glm4v_vision",
    "kimi_k25": "kimi_k25_vision",
    "moonvit3d": "kimi_k25_vision",
}


def tower(kind: str, config: Mapping[str, Any], where: str = "") -> Tower:
    """ParseError where such a tower is not known."""
    kind = _ALSO_CALLED.get(kind, kind)
    if kind not in DEFAULTS:
        return tower_of_a_model(kind, config, where)
    read = {
        "whisper": _whisper,
        "internvl_vision": _intern,
        "mllama_vision_model": _mllama,
        "glm4v_vision": _glm,
        "kimi_k25_vision": _moon,
        "siglip2_vision_model": _siglip2,
    }[kind]
    return read(Reader(config, DEFAULTS[kind], where))


def _attention(c: Reader, hidden: int, key: str = "num_attention_heads", packed: bool = False) -> Attention:
    heads = c.whole(key)
    return Attention(FULL, heads, heads, c.head_dim(hidden, heads), packed=packed)


def _tower(
    c: Reader, attention: Attention, part: FeedForward, tensors: list[Tensor], outside: list[Tensor], layers: int
) -> Tower:
    return Tower(c.hidden, Block(attention, part, tuple(tensors), 2, False, "encoder"), layers, tuple(outside), 0)


def _plain(c: Reader, hidden: int, width: int, attention: Attention, bias: bool = True) -> list[Tensor]:
    """A layer as that of ViT."""
    made = attention_tensors(hidden, attention, bias, bias) + feed_forward_tensors(hidden, width, False, True)
    return made + norm("norm", hidden, True, 2)


def _patch(c: Reader, hidden: int) -> Tensor:
    size = side_of(c, "patch_size")
    return Tensor("patch_embedding", CONVOLUTION, (hidden, c.whole_or("num_channels", 3), size, size))


def _whisper(c: Reader) -> Tower:
    """The encoder of Whisper, as audio models have it."""
    hidden, width = c.hidden, c.whole_or("intermediate_size", c.whole("encoder_ffn_dim"))
    attention = _attention(c, hidden, next(key for key in _HEADS if c.value(key) is not None))
    tensors = [one for one in _plain(c, hidden, width, attention) if one.name != "k_bias"]
    outside = [
        Tensor("convolution_1", CONVOLUTION, (hidden, c.whole("num_mel_bins"), 3)),
        Tensor("convolution_2", CONVOLUTION, (hidden, hidden, 3)),
        Tensor("convolution_bias", BIAS, (hidden,), 2),
        Tensor("source_positions", POSITION, (c.whole("max_source_positions", MOST_TOKENS), hidden)),
        *norm("final_norm", hidden, True),
    ]
    layers = c.whole_or("num_hidden_layers", c.whole("encoder_layers", MOST_LAYERS), MOST_LAYERS)
    return _tower(c, attention, FeedForward(width, False), tensors, outside, layers)


def _intern(c: Reader) -> Tower:
    hidden, width = c.hidden, c.whole("intermediate_size")
    attention, rms = _attention(c, hidden), c.text("norm_type", "layer_norm") == "rms_norm"
    tensors = attention_tensors(hidden, attention, c.flag("attention_bias"), True)
    tensors += feed_forward_tensors(hidden, width, False, True) + norm("norm", hidden, not rms, 2)
    tensors.append(Tensor("layer_scale", NORM, (hidden,), 2))
    if c.flag("use_qk_norm"):
        tensors.append(Tensor("qk_norm", NORM, (hidden,), 2))
    outside = [_patch(c, hidden), Tensor("patch_embedding_bias", BIAS, (hidden,))]
    outside.append(Tensor("class_embedding", OTHER, (1, 1, hidden), 2 if c.flag("use_mask_token") else 1))
    if c.flag("use_absolute_position_embeddings", True):
        outside.append(Tensor("position_embedding", POSITION, (patches_of(c) + 1, hidden)))
    if not c.flag("use_mean_pooling", True):
        outside += norm("final_norm", hidden, True)
    return _tower(c, attention, FeedForward(width, False), tensors, outside, c.layers)


def _mllama(c: Reader) -> Tower:
    """Tiles of an image, each with a place of its own; two stacks of layers, the second of which is gated."""
    hidden, width = c.hidden, c.whole("intermediate_size")
    attention = _attention(c, hidden, "attention_heads")
    tensors = _plain(c, hidden, width, attention, False)
    rows, tiles = patches_of(c) + 1, c.whole("max_num_tiles")
    shapes = c.value("supported_aspect_ratios")
    ratios = len(shapes) + 1 if isinstance(shapes, (list, tuple)) and len(shapes) < 4096 else 9
    outside = [_patch(c, hidden), Tensor("class_embedding", OTHER, (hidden,))]
    outside += [Tensor("position_embedding", POSITION, (rows, hidden)), Tensor("gate", OTHER, (1,), 3)]
    outside.append(Tensor("tile_embedding", EMBEDDING, (ratios, tiles * rows * hidden)))
    outside.append(Tensor("tile_position", EMBEDDING, (ratios, tiles * hidden), 2))
    outside += norm("final_norm", hidden, True, 2)
    gated = c.whole("num_global_layers", MOST_LAYERS, least=0)
    outside += [Tensor("gate", OTHER, (1,), 2 * gated)] if gated else []
    return _tower(c, attention, FeedForward(width, False), tensors, outside, c.layers + gated)


def _glm(c: Reader) -> Tower:
    """With the merger, which joins four patches to one token."""
    hidden, out, bias = c.hidden, c.whole("out_hidden_size"), c.flag("attention_bias")
    attention = _attention(c, hidden, "num_heads", packed=True)
    # Its layers are as wide as its vectors for the decoder, its merger as wide as the config says.
    tensors = attention_tensors(hidden, attention, bias, bias) + feed_forward_tensors(hidden, out, True)
    tensors += norm("norm", hidden, copies=2)
    size, joined = side_of(c, "patch_size"), c.whole("spatial_merge_size", 64)
    patch = (hidden, c.whole("in_channels"), side_of(c, "temporal_patch_size"), size, size)
    outside = [Tensor("patch_embedding", CONVOLUTION, patch), Tensor("patch_embedding_bias", BIAS, (hidden,))]
    outside.append(Tensor("position_embedding", POSITION, (patches_of(c), hidden)))
    outside += norm("final_norm", hidden, copies=2)
    outside += [
        Tensor("downsample", CONVOLUTION, (out, hidden, joined, joined)),
        Tensor("downsample_bias", BIAS, (out,)),
    ]
    outside += matrix("merger", out, out) + norm("merger_norm", out, True)
    outside += feed_forward_tensors(out, c.whole("intermediate_size"), True, prefix="merger_")
    return _tower(c, attention, FeedForward(out, True), tensors, outside, c.whole("depth", MOST_LAYERS))


def _moon(c: Reader) -> Tower:
    hidden, width = c.hidden, c.whole("intermediate_size")
    attention = _attention(c, hidden)
    outside = [_patch(c, hidden), Tensor("patch_embedding_bias", BIAS, (hidden,)), *norm("final_norm", hidden, True)]
    places = (c.whole("pos_emb_height"), c.whole("pos_emb_width"), hidden)
    outside.append(Tensor("position_embedding", POSITION, places))
    return _tower(
        *(c, attention, FeedForward(width, False), _plain(c, hidden, width, attention), outside, c.layers),
    )


def _siglip2(c: Reader) -> Tower:
    """Of images of any shape: patches are a matrix, their places a table."""
    hidden, width = c.hidden, c.whole("intermediate_size")
    attention, patch = _attention(c, hidden), c.whole("num_channels") * side_of(c, "patch_size") ** 2
    outside = matrix("patch_embedding", hidden, patch, True) + norm("final_norm", hidden, True)
    outside.append(Tensor("position_embedding", POSITION, (c.whole("num_patches", MOST_TOKENS), hidden)))
    if c.flag("vision_use_head", True):
        outside += [Tensor("probe", OTHER, (1, 1, hidden)), *matrix("pool_qkv", 3 * hidden, hidden, True)]
        outside += [*matrix("pool_o", hidden, hidden, True), *norm("pool_norm", hidden, True)]
        outside += feed_forward_tensors(hidden, width, False, True, prefix="pool_")
    return _tower(
        *(c, attention, FeedForward(width, False), _plain(c, hidden, width, attention), outside, c.layers),
    )
