"""Families of models: the config of each to an Architecture with all its tensors.

One file a group of families. A file has FAMILIES, by the model_type of a Hugging Face config or the _class_name of a
diffusers one, and read(name, family, config, where); it is imported when a config asks for one of its families.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import Architecture
from cudadoctor.parse.errors import ParseError

# Which file knows what, so that none is imported to look.
_FILES = {
    "decoders": """
        llama mistral ministral ministral3 mixtral qwen qwen2 qwen3 qwen2_moe qwen3_moe gemma gemma2 gemma3_text
        vaultgemma phi phi3 phimoe glm glm4 glm4_moe glm4v_text glm4v_moe_text chatglm gpt_oss olmo olmo2 olmo3
        olmoe cohere cohere2 granite granitemoe granitemoeshared exaone exaone4 stablelm starcoder2 gpt_bigcode
        falcon gpt2 gpt_neo gpt_neox gptj codegen opt bloom mpt dbrx nemotron persimmon biogpt xglm smollm3 helium
        arcee seed_oss ernie4_5 ernie4_5_moe minimax_m2 hunyuan_v1_dense hunyuan_v1_moe cwm exaone_moe afmoe
        flex_olmo mellum hy_v3 jais2 dots1 apertus solar_open bitnet mllama_text_model llama4_text baichuan internlm
        internlm2 internlm3 minicpm yi Yi aquila xverse code_llama
    """,
    "latent": """
        deepseek_v2 deepseek_v3 deepseek_v32 glm_moe_dsa youtu kimi_k2 mistral4 minicpm3 glm4_moe_lite
    """,
    "gemma": """
        gemma3n_text gemma4_text gemma4_unified_text gemma3n gemma4 gemma4_unified
    """,
    "multimodal": """
        llava llava_next gemma3 paligemma mistral3 idefics3 smolvlm qwen2_vl qwen2_5_vl qwen3_vl qwen3_vl_moe
        qwen3_5 qwen3_5_moe llama4 mllama llava_onevision internvl glm4v glm4v_moe kimi_k25 aya_vision
        cohere2_vision lfm2_vl qwen2_audio voxtral
    """,
    "encoders": """
        bert roberta xlm-roberta camembert distilbert mpnet electra albert deberta deberta-v2 modernbert
    """,
    "encoder_decoders": """
        t5 mt5 umt5 longt5 bart mbart pegasus marian m2m_100 blenderbot whisper
    """,
    "vision": """
        vit deit dinov2 dinov2_with_registers clip siglip clip_text_model clip_vision_model siglip_text_model
        siglip_vision_model pixtral idefics3_vision smolvlm_vision llama4_vision_model
    """,
    "speech": """
        wav2vec2 hubert wavlm
    """,
    "diffusion": """
        UNet2DConditionModel SD3Transformer2DModel FluxTransformer2DModel QwenImageTransformer2DModel
        WanTransformer3DModel PixArtTransformer2DModel
    """,
    "hybrids": """
        mamba falcon_mamba mamba2 qwen3_next qwen3_5_text qwen3_5_moe_text jamba bamba granitemoehybrid falcon_h1
        nemotron_h lfm2 lfm2_moe
    """,
    "recurrent": """
        kimi_linear minimax zamba2 recurrent_gemma rwkv
    """,
}
_FILE_OF = {family: file for file, families in _FILES.items() for family in families.split()}


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    """`where` is the part of a larger config that this is. ParseError where the family is not known, or the config is
    broken."""
    if family not in _FILE_OF:
        raise ParseError(f"the architecture {family[:60]!a} is not known")
    file = importlib.import_module(f"{__name__}.{_FILE_OF[family]}")
    made: Architecture = file.read(name, family, config, where)
    return made


def is_known(family: str) -> bool:
    return family in _FILE_OF


def known() -> tuple[str, ...]:
    """Every family, in the order of the files."""
    return tuple(family for families in _FILES.values() for family in families.split())
