"""Encoders of images: ViT and its relatives, and CLIP and SigLIP, which read text beside."""

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
    VISION,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import ParseError

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .encoders import labels
from .reader import MOST_TOKENS, Reader

_VIT = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_VIT.update(image_size=224, patch_size=16, num_channels=3, qkv_bias=True)
_CLIP_TEXT = {"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12}
_CLIP_TEXT.update(num_attention_heads=8, max_position_embeddings=77)
_SIGLIP_TEXT = {"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
_SIGLIP_TEXT.update(num_attention_heads=12, max_position_embeddings=64)
_PIXTRAL = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
_PIXTRAL.update(image_size=1024, patch_size=16, num_channels=3)
_QWEN_VISION = {"depth": 32, "num_heads": 16, "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2}
_QWEN_VISION.update(temporal_patch_size=2)
_IDEFICS = {**_VIT, "hidden_size": 1152, "num_attention_heads": 16, "patch_size": 32}

FAMILIES: dict[str, Mapping[str, Any]] = {
    "vit": _VIT,
    "deit": _VIT,
    "dinov2": {**_VIT, "patch_size": 14, "mlp_ratio": 4, "use_mask_token": True},
    "dinov2_with_registers": {**_VIT, "mlp_ratio": 4, "num_register_tokens": 4},
    "clip": {},
    "siglip": {},
    "clip_text_model": _CLIP_TEXT,
    "clip_vision_model": {**_VIT, "patch_size": 32},
    "siglip_text_model": _SIGLIP_TEXT,
    "siglip_vision_model": {**_VIT, "vision_use_head": True},
    "pixtral": _PIXTRAL,
    "idefics3_vision": _IDEFICS,
    "smolvlm_vision": _IDEFICS,
    "qwen2_vl": {**_QWEN_VISION, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4},
    "qwen2_5_vl": {**_QWEN_VISION, "hidden_size": 3584, "intermediate_size": 3420, "out_hidden_size": 3584},
    "qwen3_vl": {
        **_QWEN_VISION,
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "patch_size": 16,
        "out_hidden_size": 3584,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [8, 16, 24],
    },
}
FAMILIES["qwen3_5"] = {**FAMILIES["qwen3_vl"], "deepstack_visual_indexes": []}
FAMILIES["llama4_vision_model"] = {
    **_VIT,
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "intermediate_size": 5632,
    "image_size": 448,
    "patch_size": 14,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
}
# How the configs of the towers call themselves.
_ALSO_CALLED = {
    "qwen2_vl_vision": "qwen2_vl",
    "qwen2_5_vl_vision": "qwen2_5_vl",
    "qwen3_vl_vision": "qwen3_vl",
    "qwen3_vl_moe": "qwen3_vl",
    "qwen3_vl_moe_vision": "qwen3_vl",
    "qwen3_5_vision": "qwen3_5",
    "qwen3_5_moe": "qwen3_5",
    "qwen3_5_moe_vision": "qwen3_5",
    "idefics3": "idefics3_vision",
    "smolvlm": "smolvlm_vision",
}


class Tower(NamedTuple):
    """What turns an image (or a text) into vectors of width `out`: alike layers, and what lies around them."""

    hidden: int
    block: Block
    layers: int
    outside: tuple[Tensor, ...]
    tokens: int
    """Of one image at the default size; 0: it depends on the image."""

    def tensors(self, prefix: str) -> list[Tensor]:
        """All of them, as what lies beside another model's layers."""
        inside = [one._replace(copies=one.copies * self.layers) for one in self.block.tensors]
        return [one._replace(name=prefix + one.name) for one in (*self.outside, *inside)]


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    if family in ("clip", "siglip"):
        return _pair(name, family, Reader(config, None, where))
    made = tower(family, config, where)
    return build(
        *(name, VISION, family, made.hidden, 0, [made.block] * made.layers, made.outside),
        tokens_per_item=made.tokens,
    )


def tower(family: str, config: Mapping[str, Any], where: str = "") -> Tower:
    """ParseError where such a tower is not known."""
    family = _ALSO_CALLED.get(family, family)
    if family not in FAMILIES or family in ("clip", "siglip"):
        raise ParseError(f"config: the vision tower {family!a} is not known")
    c = Reader(config, FAMILIES[family], where)
    if family in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5"):
        return _qwen("qwen3_vl" if family == "qwen3_5" else family, c)
    if family == "llama4_vision_model":
        return _llama4(c)
    if family == "pixtral":
        return _pixtral(c)
    if family.endswith("_text_model"):
        return _text(family, c)
    return _vit(family, c)


def _layer(
    c: Reader, hidden: int, bias: bool = True, gated: bool = False
) -> tuple[Attention, FeedForward, list[Tensor]]:
    heads = c.whole("num_attention_heads")
    attention = Attention(FULL, heads, heads, c.head_dim(hidden, heads))
    width = c.whole_or("intermediate_size", 4 * hidden)
    part = FeedForward(width, gated)
    tensors = attention_tensors(hidden, attention, bias, True) + feed_forward_tensors(hidden, width, gated, True)
    return attention, part, tensors + norm("norm", hidden, True, 2)


def side_of(c: Reader, key: str) -> int:
    found = c.value(key)
    if isinstance(found, list) and found:
        return Reader({key: found[0]}, None, c.where).whole(key)
    return c.whole(key)


def patches_of(c: Reader) -> int:
    return (side_of(c, "image_size") // side_of(c, "patch_size")) ** 2


def _vit(family: str, c: Reader) -> Tower:
    hidden, patch, patches = c.hidden, side_of(c, "patch_size"), patches_of(c)
    siglip, clip = family in ("siglip_vision_model", "idefics3_vision", "smolvlm_vision"), family == "clip_vision_model"
    dino, gated = family.startswith("dinov2"), False
    if dino:
        width, gated = int(hidden * c.number_or("mlp_ratio", 4)), c.flag("use_swiglu_ffn")
        if gated:  # two thirds of it, in steps of eight
            width = (int(width * 2 / 3) + 7) // 8 * 8
        c = Reader({**c.config, "intermediate_size": width}, c.defaults, c.where)
    attention, part, tensors = _layer(c, hidden, c.flag("qkv_bias", True), gated)
    rows = patches if siglip else patches + (2 if family == "deit" else 1)
    outside = [
        Tensor("patch_embedding", CONVOLUTION, (hidden, c.whole("num_channels"), patch, patch)),
        Tensor("position_embedding", POSITION, (rows, hidden)),
    ]
    if not clip:
        outside.append(Tensor("patch_embedding_bias", BIAS, (hidden,)))
    if not siglip:
        outside.append(Tensor("class_embedding", OTHER, (hidden,), 2 if family == "deit" else 1))
    if dino:
        tensors.append(Tensor("layer_scale", NORM, (hidden,), 2))
        outside += [Tensor("mask_token", OTHER, (1, hidden))] if c.flag("use_mask_token", True) else []
        registers = c.whole_or("num_register_tokens", 0, least=0)
        outside += [Tensor("register_tokens", OTHER, (1, registers, hidden))] if registers else []
    outside += norm("final_norm", hidden, True, 2 if clip else 1)
    if family == "siglip_vision_model" and c.flag("vision_use_head"):
        outside += [Tensor("probe", OTHER, (1, 1, hidden)), *matrix("pool_qkv", 3 * hidden, hidden, True)]
        outside += [*matrix("pool_o", hidden, hidden, True), *norm("pool_norm", hidden, True)]
        outside += feed_forward_tensors(hidden, part.intermediate, False, True, prefix="pool_")
    if dino or family in ("vit", "deit"):
        classes = c.texts("architectures") or [""]
        if classes and "ImageClassification" in classes[0]:
            outside += matrix("classifier", labels(c), 2 * hidden if dino else hidden, True)
        elif not dino:
            outside += matrix("pooler", hidden, hidden, True)
    return Tower(hidden, Block(attention, part, tuple(tensors), 2, False, "encoder"), c.layers, tuple(outside), rows)


def _text(family: str, c: Reader) -> Tower:
    hidden = c.hidden
    attention, part, tensors = _layer(c, hidden)
    outside = [
        Tensor("token_embedding", EMBEDDING, (c.vocabulary, hidden)),
        Tensor("position_embedding", POSITION, (c.whole("max_position_embeddings", MOST_TOKENS), hidden)),
        *norm("final_norm", hidden, True),
    ]
    if family == "siglip_text_model":
        outside += matrix("head", c.whole_or("projection_size", hidden), hidden, True)
    elif "CLIPTextModelWithProjection" in (c.texts("architectures") or ()):
        outside += matrix("projection", c.whole_or("projection_dim", 512), hidden)
    return Tower(hidden, Block(attention, part, tuple(tensors), 2, False, "encoder"), c.layers, tuple(outside), 0)


def _pair(name: str, family: str, c: Reader) -> Architecture:
    """CLIP and SigLIP: the tower for images has the layers, that for texts lies beside it."""
    image, text = c.part("vision_config"), c.part("text_config")
    seen = tower(f"{family}_vision_model", image.config, image.where)
    said = tower(f"{family}_text_model", text.config, text.where)
    outside = [*seen.outside, *said.tensors("text_")]
    outside.append(Tensor("logit_scale", OTHER, (1,), 1 if family == "clip" else 2))
    if family == "clip":
        width = c.whole_or("projection_dim", 512)
        outside += matrix("projection", width, seen.hidden) + matrix("text_projection", width, said.hidden)
    words = text.whole_or("vocab_size", int(FAMILIES[f"{family}_text_model"]["vocab_size"]), 1 << 27)
    return build(
        *(name, VISION, family, seen.hidden, words, [seen.block] * seen.layers, outside), tokens_per_item=seen.tokens
    )


def _pixtral(c: Reader) -> Tower:
    hidden, patch = c.hidden, side_of(c, "patch_size")
    heads = c.whole("num_attention_heads")
    attention = Attention(FULL, heads, heads, c.head_dim(hidden, heads))
    part = FeedForward(c.whole("intermediate_size"), True)
    tensors = attention_tensors(hidden, attention) + feed_forward_tensors(hidden, part.intermediate, True)
    tensors += norm("norm", hidden, copies=2)
    outside = [Tensor("patch_embedding", CONVOLUTION, (hidden, c.whole("num_channels"), patch, patch))]
    outside += norm("embedding_norm", hidden)
    return Tower(hidden, Block(attention, part, tuple(tensors), 2, True, "encoder"), c.layers, tuple(outside), 0)


def _llama4(c: Reader) -> Tower:
    hidden, patch = c.hidden, side_of(c, "patch_size")
    attention, part, tensors = _layer(c, hidden)
    patches = patches_of(c)
    outside = matrix("patch_embedding", hidden, c.whole("num_channels") * patch * patch)
    outside += [
        Tensor("class_embedding", OTHER, (hidden,)),
        Tensor("position_embedding", POSITION, (patches + 1, hidden)),
    ]
    outside += norm("final_norm", hidden, True, 2)
    inner, out = c.whole("projector_input_dim"), c.whole("projector_output_dim")
    outside += matrix("adapter_1", inner, part.intermediate) + matrix("adapter_2", out, out)
    return Tower(hidden, Block(attention, part, tuple(tensors), 2, False, "encoder"), c.layers, tuple(outside), 0)


def _qwen(family: str, c: Reader) -> Tower:
    """The towers of Qwen-VL: the merger, which joins four patches to one token, belongs to them."""
    hidden = c.whole("embed_dim") if family == "qwen2_vl" else c.whole("hidden_size")
    out = c.whole("hidden_size") if family == "qwen2_vl" else c.whole("out_hidden_size")
    heads, layers = c.whole("num_heads"), c.whole("depth", 4096)
    attention = Attention(FULL, heads, heads, c.head_dim(hidden, heads), packed=True)
    gated = family == "qwen2_5_vl"
    width = int(hidden * c.number_or("mlp_ratio", 4)) if family == "qwen2_vl" else c.whole("intermediate_size")
    part = FeedForward(width, gated)
    tensors = attention_tensors(hidden, attention, True, True) + feed_forward_tensors(hidden, width, gated, True)
    tensors += norm("norm", hidden, not gated, 2)
    size, joined = c.whole("patch_size"), hidden * c.whole("spatial_merge_size", 64) ** 2
    outside: list[Tensor] = [
        Tensor(
            "patch_embedding", CONVOLUTION, (hidden, c.whole("in_channels"), c.whole("temporal_patch_size"), size, size)
        )
    ]
    if family == "qwen3_vl":
        outside.append(Tensor("patch_embedding_bias", BIAS, (hidden,)))
        outside.append(Tensor("position_embedding", POSITION, (c.whole("num_position_embeddings"), hidden)))
        deep = len(c.wholes("deepstack_visual_indexes") or ())
        if deep:
            outside += norm("deep_norm", joined, True, deep)
            outside += matrix("deep_up", joined, joined, True, deep) + matrix("deep_down", out, joined, True, deep)
    outside += norm("merger_norm", hidden, not gated)
    outside += matrix("merger_up", joined, joined, True) + matrix("merger_down", out, joined, True)
    return Tower(hidden, Block(attention, part, tuple(tensors), 2, gated, "encoder"), layers, tuple(outside), 0)
