"""Language models that see or hear: a tower, a projector and a decoder.

The layers are those of the decoder; what belongs to the tower and the projector are tensors outside of them, named
vision_... (audio_...) and projector_...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import NORM, OTHER, Architecture, Tensor
from cudadoctor.parse.errors import ParseError

from .blocks import matrix, norm
from .reader import Reader
from .towers import tower
from .vision import Tower

# Family -> the decoder and the tower where the config does not say.
FAMILIES: dict[str, tuple[str, str]] = {
    "llava": ("llama", "clip_vision_model"),
    "llava_next": ("llama", "clip_vision_model"),
    "gemma3": ("gemma3_text", "siglip_vision_model"),
    "paligemma": ("gemma", "siglip_vision_model"),
    "mistral3": ("mistral", "pixtral"),
    "idefics3": ("llama", "idefics3_vision"),
    "smolvlm": ("llama", "smolvlm_vision"),
    "qwen2_vl": ("qwen2", "qwen2_vl"),
    "qwen2_5_vl": ("qwen2", "qwen2_5_vl"),
    "qwen3_vl": ("qwen3", "qwen3_vl"),
    "qwen3_vl_moe": ("qwen3_moe", "qwen3_vl"),
    "qwen3_5": ("qwen3_5_text", "qwen3_5"),
    "qwen3_5_moe": ("qwen3_5_moe_text", "qwen3_5"),
    "llama4": ("llama4_text", "llama4_vision_model"),
    "mllama": ("mllama_text_model", "mllama_vision_model"),
    "llava_onevision": ("qwen2", "siglip_vision_model"),
    "internvl": ("qwen2", "internvl_vision"),
    "glm4v": ("glm4v_text", "glm4v_vision"),
    "glm4v_moe": ("glm4v_moe_text", "glm4v_vision"),
    "kimi_k25": ("deepseek_v3", "kimi_k25_vision"),
    "aya_vision": ("cohere2", "siglip_vision_model"),
    "cohere2_vision": ("cohere2", "siglip_vision_model"),
    "lfm2_vl": ("lfm2", "siglip2_vision_model"),
    "qwen2_audio": ("qwen2", "whisper"),
    "voxtral": ("llama", "whisper"),
}
_LLAVA_TOWER = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
_LLAVA_TOWER.update(image_size=336, patch_size=14)
# The decoder inside, where it is called after the whole.
_TEXT = {"qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3"}
_TEXT.update(qwen3_vl_moe_text="qwen3_moe", qwen2_vl="qwen2", qwen2_5_vl="qwen2")
_HEARS = ("qwen2_audio", "voxtral")
# Their classes take one tensor for embedding and head where nothing is said.
_TIED = ("internvl", "kimi_k25", "aya_vision", "cohere2_vision", "lfm2_vl")


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    from . import read as read_any

    c = Reader(config, None, where)
    default_text, default_tower = FAMILIES[family]
    hears = family in _HEARS
    text, image = c.part("text_config"), c.part("audio_config" if hears else "vision_config")
    inner = dict(text.config) if text.config else {k: v for k, v in config.items() if k != "vision_config"}
    said = inner.get("model_type")
    called = _TEXT.get(said, said) if isinstance(said, str) and said != family else default_text
    if config.get("tie_word_embeddings") is not None and family not in ("gemma3",):
        inner["tie_word_embeddings"] = config["tie_word_embeddings"]
    elif family in _TIED:
        inner.setdefault("tie_word_embeddings", True)
    decoder = read_any(name, called, inner, text.where if text.config else where)
    if family in ("llava", "llava_next") and not image.config:
        image = Reader(_LLAVA_TOWER, None, image.where)
    kind = image.text("model_type", default_tower)
    seen = tower(kind, image.config, image.where)
    extra = [*seen.tensors("audio_" if hears else "vision_"), *_projector(family, c, image, seen, decoder.hidden)]
    return decoder._replace(family=family, tensors=(*decoder.tensors, *extra))


def _projector(family: str, c: Reader, image: Reader, seen: Tower, hidden: int) -> list[Tensor]:
    if family in ("llava", "llava_next", "llava_onevision"):
        bias = c.flag("multimodal_projector_bias", True)
        chosen = c.value("vision_feature_layer")
        wide = seen.hidden * (len(chosen) if isinstance(chosen, list) else 1)
        made = matrix("projector_1", hidden, wide, bias) + matrix("projector_2", hidden, hidden, bias)
        return made + ([Tensor("image_newline", OTHER, (hidden,))] if family != "llava" else [])
    if family == "gemma3":
        return [Tensor("projector", OTHER, (seen.hidden, hidden)), Tensor("projector_norm", NORM, (seen.hidden,))]
    if family == "paligemma":
        return matrix("projector", hidden, seen.hidden, True)
    if family == "mistral3":
        bias, merged = c.flag("multimodal_projector_bias"), c.whole_or("spatial_merge_size", 2, 64) ** 2
        made = norm("projector_norm", seen.hidden) + matrix("projector_merge", seen.hidden, seen.hidden * merged)
        return made + matrix("projector_1", hidden, seen.hidden, bias) + matrix("projector_2", hidden, hidden, bias)
    if family in ("idefics3", "smolvlm"):
        return matrix("projector", hidden, seen.hidden * c.whole_or("scale_factor", 2, 64) ** 2)
    if family == "llama4":
        return matrix("projector", hidden, image.whole_or("vision_output_dim", 7680))
    if family == "mllama":
        return matrix("projector", hidden, image.whole_or("vision_output_dim", 7680), True)
    if family == "internvl":
        ratio = c.number_or("downsample_ratio", 0.5)
        wide = seen.hidden * int(1 / ratio if ratio else 1) ** 2
        made = norm("projector_norm", wide, True) + matrix("projector_1", hidden, wide, True)
        return made + matrix("projector_2", hidden, hidden, True)
    if family == "kimi_k25":
        wide = c.whole_or("projection_hidden_size", 1152)
        joined = wide
        for side in image.wholes("merge_kernel_size", least=1, longest=2) or (2, 2):
            joined *= side
        made = norm("projector_norm", wide, True) + matrix("projector_1", joined, joined, True)
        return made + matrix("projector_2", hidden, joined, True)
    if family in ("aya_vision", "cohere2_vision"):
        wide = seen.hidden * c.whole_or("downsample_factor", 2, 64) ** 2
        middle = c.whole_or("alignment_intermediate_size", 36864 if family == "cohere2_vision" else hidden)
        made = norm("projector_norm", wide, True) if family == "aya_vision" else []
        return made + matrix("projector_1", middle, wide, True) + matrix("projector_2", hidden, middle // 2, True)
    if family == "lfm2_vl":
        wide, middle = (
            seen.hidden * c.whole_or("downsample_factor", 2, 64) ** 2,
            c.whole_or("projector_hidden_size", 2560),
        )
        bias = c.flag("projector_bias", True)
        made = norm("projector_norm", wide, True) if c.flag("projector_use_layernorm", True) else []
        return made + matrix("projector_1", middle, wide, bias) + matrix("projector_2", hidden, middle, bias)
    if family == "qwen2_audio":
        return matrix("projector", hidden, seen.hidden, True)
    if family == "voxtral":
        part = seen.block.feed_forward
        assert part is not None
        return matrix("projector_1", hidden, part.intermediate) + matrix("projector_2", hidden, hidden)
    if family.startswith(("qwen", "glm")):
        return []
    raise ParseError(f"config: the projector of {family!a} is not known")
