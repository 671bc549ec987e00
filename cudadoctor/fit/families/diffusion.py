"""Denoisers of image and video models, from the config.json of diffusers: UNets and transformers.

The VAE and the text encoders of a pipeline are models of their own and are not part of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    DIFFUSION,
    FULL,
    NORM,
    OTHER,
    POSITION,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .reader import MOST_LAYERS, MOST_TOKENS, Reader

_MOST_BLOCKS = 128  # at one level of a UNet: with more, reading a hostile config would take its time
_UNET = {"sample_size": 64, "in_channels": 4, "out_channels": 4, "layers_per_block": 2, "cross_attention_dim": 1280}
_FREQUENCIES = 256  # of the sinusoids that a time step is embedded as, in every transformer of diffusers

FAMILIES: dict[str, Mapping[str, Any]] = {
    "UNet2DConditionModel": {
        **_UNET,
        "block_out_channels": [320, 640, 1280, 1280],
        "down_block_types": [*["CrossAttnDownBlock2D"] * 3, "DownBlock2D"],
        "up_block_types": ["UpBlock2D", *["CrossAttnUpBlock2D"] * 3],
        "attention_head_dim": 8,
        "transformer_layers_per_block": 1,
    },
    "SD3Transformer2DModel": {
        "sample_size": 128,
        "patch_size": 2,
        "in_channels": 16,
        "out_channels": 16,
        "num_layers": 18,
        "attention_head_dim": 64,
        "num_attention_heads": 18,
        "joint_attention_dim": 4096,
        "caption_projection_dim": 1152,
        "pooled_projection_dim": 2048,
    },
    "FluxTransformer2DModel": {
        "patch_size": 1,
        "in_channels": 64,
        "num_layers": 19,
        "num_single_layers": 38,
        "attention_head_dim": 128,
        "num_attention_heads": 24,
        "joint_attention_dim": 4096,
        "pooled_projection_dim": 768,
    },
    "QwenImageTransformer2DModel": {
        "patch_size": 2,
        "in_channels": 64,
        "out_channels": 16,
        "num_layers": 60,
        "attention_head_dim": 128,
        "num_attention_heads": 24,
        "joint_attention_dim": 3584,
    },
    "WanTransformer3DModel": {
        "in_channels": 16,
        "out_channels": 16,
        "num_layers": 40,
        "attention_head_dim": 128,
        "num_attention_heads": 40,
        "text_dim": 4096,
        "freq_dim": 256,
        "ffn_dim": 13824,
        "patch_size": [1, 2, 2],
    },
    "PixArtTransformer2DModel": {
        "sample_size": 128,
        "patch_size": 2,
        "in_channels": 4,
        "out_channels": 8,
        "num_layers": 28,
        "attention_head_dim": 72,
        "num_attention_heads": 16,
        "cross_attention_dim": 1152,
        "caption_channels": 4096,
    },
}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    if family == "UNet2DConditionModel":
        return _unet(name, c)
    if family == "WanTransformer3DModel":
        return _wan(name, c)
    if family == "PixArtTransformer2DModel":
        return _pixart(name, c)
    return _joint(name, family, c)


def _time(name: str, out: int, into: int) -> list[Tensor]:
    return matrix(name + "_1", out, into, True) + matrix(name + "_2", out, out, True)


def _heads(c: Reader) -> tuple[Attention, int]:
    heads = c.whole("num_attention_heads")
    width = c.whole("attention_head_dim")
    return Attention(FULL, heads, heads, width), heads * width


# -- transformers in which image and text meet


def _joint(name: str, family: str, c: Reader) -> Architecture:
    """SD3, Flux and Qwen-Image: image and text have matrices of their own and attend to each other."""
    attention, hidden = _heads(c)
    sd3, flux = family == "SD3Transformer2DModel", family == "FluxTransformer2DModel"
    if sd3 and c.whole("caption_projection_dim") != hidden:
        raise ParseError(f"config: caption_projection_dim is not the width of the model, {hidden}")
    normed = c.value("qk_norm") is not None if sd3 else True
    attention = attention._replace(qk_norm=normed)
    count = c.whole("num_layers", MOST_LAYERS)
    dual = set(c.wholes("dual_attention_layers") or ()) if sd3 else set()
    part = FeedForward(4 * hidden, False)
    norms = [Tensor("q_norm", NORM, (attention.head_dim,)), Tensor("k_norm", NORM, (attention.head_dim,))]

    def block(number: int) -> Block:
        last = sd3 and number == count - 1  # its text goes nowhere
        steps = 9 if number in dual else 6
        tensors = matrix("modulation", steps * hidden, hidden, True)
        tensors += matrix("text_modulation", (2 if last else 6) * hidden, hidden, True)
        tensors += attention_tensors(hidden, attention, True, True)
        text = attention_tensors(hidden, attention, True, True, prefix="text_")
        tensors += [one for one in text if not (last and one.name.startswith("text_o"))]
        tensors += feed_forward_tensors(hidden, 4 * hidden, False, True)
        tensors += [] if last else feed_forward_tensors(hidden, 4 * hidden, False, True, prefix="text_")
        tensors += [one._replace(copies=2) for one in norms] if normed else []
        if number in dual:
            tensors += attention_tensors(hidden, attention, True, True, prefix="dual_") + (norms if normed else [])
        return Block(attention, part, tuple(tensors), 0, False)

    blocks = [block(number) for number in range(count)]
    if flux:
        single = matrix("modulation", 3 * hidden, hidden, True)
        single += [one for one in attention_tensors(hidden, attention, True) if one.name != "o"]
        single += matrix("up", 4 * hidden, hidden, True) + matrix("down", hidden, 5 * hidden, True) + norms
        blocks += [Block(attention, part, tuple(single), 0, False)] * c.whole("num_single_layers", MOST_LAYERS, least=0)
    channels = c.whole("in_channels")
    size = c.whole("patch_size", 64)
    words = c.whole("joint_attention_dim")
    outside = _time("time", hidden, _FREQUENCIES)
    if not family.startswith("Qwen"):
        outside += _time("pooled_text", hidden, c.whole("pooled_projection_dim"))
    else:
        outside += [Tensor("text_norm", NORM, (words,))]
    if flux and c.flag("guidance_embeds"):
        outside += _time("guidance", hidden, _FREQUENCIES)
    outside += matrix("text_in", hidden, words, True)
    if sd3:
        outside.append(Tensor("patch_embedding", CONVOLUTION, (hidden, channels, size, size)))
        outside.append(Tensor("patch_embedding_bias", BIAS, (hidden,)))
    else:
        outside += matrix("image_in", hidden, channels, True)
    out = c.whole_or("out_channels", channels) * size * size
    outside += matrix("out_modulation", 2 * hidden, hidden, True) + matrix("image_out", out, hidden, True)
    # Latents of 128 x 128 are an image of 1024 x 1024; two by two of them are a token.
    tokens = (c.whole("sample_size") // size) ** 2 if sd3 else 64 * 64
    return build(name, DIFFUSION, family, hidden, 0, blocks, outside, tokens_per_item=tokens)


def _wan(name: str, c: Reader) -> Architecture:
    attention, hidden = _heads(c)
    attention = attention._replace(qk_norm=True)
    width = c.whole("ffn_dim")
    tensors = [Tensor("modulation", OTHER, (1, 6, hidden))]
    tensors += attention_tensors(hidden, attention, True, True) + norm("q_norm", hidden) + norm("k_norm", hidden)
    tensors += attention_tensors(hidden, attention, True, True, prefix="cross_")
    tensors += norm("cross_q_norm", hidden) + norm("cross_k_norm", hidden)
    tensors += norm("norm", hidden, True) if c.flag("cross_attn_norm", True) else []
    sees = c.whole_or_none("added_kv_proj_dim")
    if sees is not None:  # keys and values of an image beside those of the text
        tensors += matrix("cross_image_k", hidden, sees, True) + matrix("cross_image_v", hidden, sees, True)
        tensors += norm("cross_image_k_norm", hidden)
    tensors += feed_forward_tensors(hidden, width, False, True)
    block = Block(attention, FeedForward(width, False), tuple(tensors), 1, False, cross=attention)
    sizes = c.wholes("patch_size", least=1, longest=3) or [1, 2, 2]
    volume = 1
    for one in sizes:
        volume *= one
    outside = [
        Tensor("out_modulation", OTHER, (1, 2, hidden)),
        Tensor("patch_embedding", CONVOLUTION, (hidden, c.whole("in_channels"), *sizes)),
        Tensor("patch_embedding_bias", BIAS, (hidden,)),
        *_time("time", hidden, c.whole("freq_dim")),
        *matrix("time_projection", 6 * hidden, hidden, True),
        *_time("text", hidden, c.whole("text_dim")),
        *matrix("image_out", c.whole("out_channels") * volume, hidden, True),
    ]
    image, places = c.whole_or_none("image_dim"), c.whole_or_none("pos_embed_seq_len", MOST_TOKENS)
    if image is not None:
        outside += norm("image_norm", image, True) + matrix("image_up", image, image, True)
        outside += matrix("image_down", hidden, image, True) + norm("image_norm", hidden, True)
        outside += [Tensor("image_positions", POSITION, (1, places, image))] if places is not None else []
    blocks = [block] * c.whole("num_layers", MOST_LAYERS)
    return build(name, DIFFUSION, "WanTransformer3DModel", hidden, 0, blocks, outside)


def _pixart(name: str, c: Reader) -> Architecture:
    attention, hidden = _heads(c)
    if c.value("use_additional_conditions") is True:
        raise ParseError("config: PixArtTransformer2DModel with use_additional_conditions is not known")
    words, size = c.whole("cross_attention_dim"), c.whole("patch_size", 64)
    tensors = [Tensor("modulation", OTHER, (6, hidden)), *attention_tensors(hidden, attention, True, True)]
    tensors += attention_tensors(hidden, attention, True, True, prefix="cross_", source=words)
    tensors += feed_forward_tensors(hidden, 4 * hidden, False, True)
    block = Block(attention, FeedForward(4 * hidden, False), tuple(tensors), 0, False, cross=attention)
    outside = [
        Tensor("out_modulation", OTHER, (2, hidden)),
        Tensor("patch_embedding", CONVOLUTION, (hidden, c.whole("in_channels"), size, size)),
        Tensor("patch_embedding_bias", BIAS, (hidden,)),
        *_time("time", hidden, _FREQUENCIES),
        *matrix("time_projection", 6 * hidden, hidden, True),
        *_time("text", hidden, c.whole("caption_channels")),
        *matrix("image_out", size * size * c.whole("out_channels"), hidden, True),
    ]
    tokens = (c.whole("sample_size") // size) ** 2
    blocks = [block] * c.whole("num_layers", MOST_LAYERS)
    return build(name, DIFFUSION, "PixArtTransformer2DModel", hidden, 0, blocks, outside, tokens_per_item=tokens)


# -- UNets


class _UNet:
    """Collects the tensors on the way down and up, and one Block a transformer layer (with that level's width)."""

    def __init__(self, c: Reader) -> None:
        self.time = 4 * (c.wholes("block_out_channels", least=1, longest=16) or [0])[0]
        self.cross = c.whole("cross_attention_dim")
        self.linear = c.flag("use_linear_projection")
        self.outside: list[Tensor] = []
        self.blocks: list[Block] = []

    def convolution(self, out: int, into: int, size: int = 3) -> None:
        self.outside.append(Tensor("convolution", CONVOLUTION, (out, into, size, size)))
        self.outside.append(Tensor("convolution_bias", BIAS, (out,)))

    def resnet(self, out: int, into: int) -> None:
        self.outside += norm("norm", into, True) + norm("norm", out, True)
        self.convolution(out, into)
        self.outside += matrix("time_projection", out, self.time, True)
        self.convolution(out, out)
        if into != out:
            self.convolution(out, into, 1)

    def transformer(self, width: int, depth: int, heads: int) -> None:
        if width % heads:
            raise ParseError(f"config: {heads} heads do not divide the {width} channels of a level")
        self.outside += norm("norm", width, True)
        for name in ("projection_in", "projection_out"):
            if self.linear:
                self.outside += matrix(name, width, width, True)
            else:
                self.convolution(width, width, 1)
        attention = Attention(FULL, heads, heads, width // heads)
        tensors = attention_tensors(width, attention, False, True) + norm("norm", width, True, 3)
        tensors += attention_tensors(width, attention, False, True, "cross_", self.cross)
        tensors += feed_forward_tensors(width, 4 * width, True, True, packed=True)
        self.blocks += [
            Block(attention, FeedForward(4 * width, True), tuple(tensors), 3, False, cross=attention)
        ] * depth


def _each(c: Reader, key: str, count: int, most: int = _MOST_BLOCKS) -> list[int]:
    """A number for each level: one for all, or a list."""
    found = c.value(key)
    if isinstance(found, list):
        listed = c.wholes(key, most, least=1, longest=16) or []
        if len(listed) != count:
            raise ParseError(f"config: {key} has {len(listed)} entries, block_out_channels {count}")
        return listed
    return [c.whole(key, most)] * count


def _unet(name: str, c: Reader) -> Architecture:
    for key in ("encoder_hid_dim", "class_embed_type", "num_class_embeds", "reverse_transformer_layers_per_block"):
        if c.value(key) is not None:
            raise ParseError(f"config: UNet2DConditionModel with {key} is not known")
    widths = c.wholes("block_out_channels", least=1, longest=16) or []
    down, up = c.texts("down_block_types", 16) or [], c.texts("up_block_types", 16) or []
    count = len(widths)
    if not widths or len(down) != count or len(up) != count:
        raise ParseError("config: block_out_channels, down_block_types and up_block_types differ in length")
    for kind in (*down, *up):
        if kind not in ("DownBlock2D", "UpBlock2D", "CrossAttnDownBlock2D", "CrossAttnUpBlock2D"):
            raise ParseError(f"config: a UNet with {kind[:40]!a} is not known")
    # What is called attention_head_dim is the number of heads: an old slip that the configs keep.
    key = "num_attention_heads" if c.value("num_attention_heads") is not None else "attention_head_dim"
    heads = _each(c, key, count, MOST_LAYERS)
    depth, layers = _each(c, "transformer_layers_per_block", count), _each(c, "layers_per_block", count)
    made = _UNet(c)
    made.convolution(widths[0], c.whole("in_channels"))
    made.outside += _time("time", made.time, widths[0])
    if c.value("addition_embed_type") == "text_time":
        made.outside += _time("addition", made.time, c.whole("projection_class_embeddings_input_dim"))
    elif c.value("addition_embed_type") is not None:
        raise ParseError(f"config: addition_embed_type {c.value('addition_embed_type')!a:.40} is not known")
    before = widths[0]
    for level, width in enumerate(widths):
        for number in range(layers[level]):
            made.resnet(width, before if number == 0 else width)
            if down[level].startswith("Cross"):
                made.transformer(width, depth[level], heads[level])
        if level < count - 1:
            made.convolution(width, width)
        before = width
    made.resnet(widths[-1], widths[-1])
    made.transformer(widths[-1], depth[-1], heads[-1])
    made.resnet(widths[-1], widths[-1])
    for step, level in enumerate(reversed(range(count))):
        width, skipped = widths[level], widths[max(level - 1, 0)]
        for number in range(layers[level] + 1):
            into = before if number == 0 else width
            made.resnet(width, into + (skipped if number == layers[level] else width))
            if up[step].startswith("Cross"):
                made.transformer(width, depth[level], heads[level])
        if step < count - 1:
            made.convolution(width, width)
        before = width
    made.outside += norm("final_norm", widths[0], True)
    made.convolution(c.whole("out_channels"), widths[0])
    side = c.whole("sample_size")
    return build(
        *(name, DIFFUSION, "UNet2DConditionModel", widths[-1], 0, made.blocks, made.outside),
        tokens_per_item=side * side,
    )
