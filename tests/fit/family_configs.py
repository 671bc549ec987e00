"""Small configs of every family, odd in their numbers so that two that are mixed up do not come out alike.

Each is compared with the class that transformers or diffusers has for it: tests/fit/test_architecture_of_classes.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Config = dict[str, Any]


class Case(NamedTuple):
    name: str
    config: Config
    class_name: str
    """Empty: the one that transformers itself takes for such a config."""


CASES: list[Case] = []


def case(family: str, *parts: Config, class_name: str = "", **keys: Any) -> None:
    kind = "_class_name" if family[0].isupper() else "model_type"
    config: Config = {kind: family}
    for part in (*parts, keys):
        config.update(part)
    nth = sum(one.config[kind] == family for one in CASES if kind in one.config)
    CASES.append(Case(f"{family} {nth + 1}" if nth else family, config, class_name))


def without(config: Config, *keys: str) -> Config:
    return {key: value for key, value in config.items() if key not in keys}


# -- decoders

GQA = {
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 20,
    "intermediate_size": 160,
    "vocab_size": 1000,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
PLAIN_GQA = without(GQA, "head_dim")
MHA = without(PLAIN_GQA, "num_key_value_heads")
OLD = {"n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": 64, "vocab_size": 1000}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
LOCAL_EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2}
ROUTED = {
    "n_routed_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "n_shared_experts": 2,
    "n_group": 1,
    "topk_group": 1,
}
LATENT = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10}

case("llama", GQA)
case("llama", GQA, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
case("llama", PLAIN_GQA)
case("llama")
case("mistral", GQA, sliding_window=16)
case("mistral")
case("ministral", GQA)
case("mixtral", GQA, LOCAL_EXPERTS)
case("qwen2", PLAIN_GQA)
case("qwen3", GQA)
case("qwen2_moe", PLAIN_GQA, EXPERTS, shared_expert_intermediate_size=72)
case(
    *("qwen2_moe", PLAIN_GQA, EXPERTS),
    shared_expert_intermediate_size=72,
    decoder_sparse_step=2,
    mlp_only_layers=[0],
)
case("qwen3_moe", GQA, EXPERTS)
case("qwen3_moe", GQA, EXPERTS, mlp_only_layers=[1])
case("gemma", GQA)
case("gemma2", GQA)
case("gemma3_text", GQA)
case("gemma3_text")
case("vaultgemma", GQA)
case("phi", PLAIN_GQA)
case("phi", PLAIN_GQA, qk_layernorm=True)
case("phi3", PLAIN_GQA)
case("phimoe", PLAIN_GQA, LOCAL_EXPERTS, attention_bias=True, lm_head_bias=True)
case("glm", GQA)
case("glm4", GQA)
case("glm4_moe", GQA, ROUTED, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True)
case("gpt_oss", GQA, LOCAL_EXPERTS)
case("olmo", PLAIN_GQA)
case("olmo2", PLAIN_GQA)
case("olmo3", PLAIN_GQA)
case("olmoe", PLAIN_GQA, without(EXPERTS, "moe_intermediate_size"))
case("cohere", PLAIN_GQA, use_qk_norm=True)
case("cohere2", PLAIN_GQA)
case("granite", PLAIN_GQA, attention_bias=True)
case("granitemoe", PLAIN_GQA, LOCAL_EXPERTS)
case("granitemoeshared", PLAIN_GQA, LOCAL_EXPERTS, shared_intermediate_size=72)
case("exaone", PLAIN_GQA)
case("exaone4", PLAIN_GQA)
case("stablelm", PLAIN_GQA)
case("stablelm", PLAIN_GQA, use_qkv_bias=True, qk_layernorm=True, use_parallel_residual=True)
case("starcoder2", PLAIN_GQA)
case("starcoder2", PLAIN_GQA, use_bias=False, tie_word_embeddings=False)
case("gpt_bigcode", OLD)
case("gpt_bigcode", OLD, multi_query=False, n_inner=200)
FALCON = without(MHA, "intermediate_size")
case("falcon", FALCON)
case("falcon", FALCON, new_decoder_architecture=True, num_kv_heads=2)
case("falcon", FALCON, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, ffn_hidden_size=160)
case("falcon", FALCON, multi_query=False, parallel_attn=False, bias=True, alibi=True)
case("gpt2", OLD)
case("gpt2", OLD, n_inner=200, tie_word_embeddings=False)
case("gpt2")
case(
    *("gpt_neo", {"hidden_size": 96, "num_layers": 4, "num_heads": 6, "vocab_size": 1000}),
    max_position_embeddings=64,
    attention_types=[[["global", "local"], 2]],
)
case("gpt_neox", MHA)
case("gpt_neox", MHA, attention_bias=False, tie_word_embeddings=True)
case("gptj", OLD, rotary_dim=8)
case("codegen", {**OLD, "n_head": 8}, rotary_dim=8)
OPT = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6, "ffn_dim": 160, "vocab_size": 1000}
case("opt", OPT, max_position_embeddings=64, word_embed_proj_dim=96)
case("opt", OPT, max_position_embeddings=64, word_embed_proj_dim=32, do_layer_norm_before=False)
case("bloom", {"hidden_size": 96, "n_layer": 3, "n_head": 6, "vocab_size": 1000})
case("mpt", {"d_model": 96, "n_heads": 6, "n_layers": 3, "vocab_size": 1000, "max_seq_len": 64, "expansion_ratio": 3})
case(
    *("dbrx", {"d_model": 96, "n_heads": 6, "n_layers": 3, "vocab_size": 1000, "max_seq_len": 64}),
    attn_config={"kv_n_heads": 2, "rope_theta": 10000.0},
    ffn_config={"hidden_size": 96, "ffn_hidden_size": 48, "moe_num_experts": 5, "moe_top_k": 2},
)
case("nemotron", GQA)
case("persimmon", MHA)
case("persimmon", MHA, qk_layernorm=False)
case("biogpt", MHA)
case(
    *("xglm", {"d_model": 96, "ffn_dim": 160, "num_layers": 3, "attention_heads": 6, "vocab_size": 1000}),
    max_position_embeddings=64,
)
case("smollm3", PLAIN_GQA)
case("helium", PLAIN_GQA, head_dim=16)
case("arcee", GQA)
case("seed_oss", GQA)
case("ernie4_5", GQA)
case("ernie4_5", GQA, use_bias=True)
case(
    *("ernie4_5_moe", PLAIN_GQA, {"moe_num_experts": 5, "moe_k": 2, "moe_intermediate_size": 48}),
    moe_num_shared_experts=2,
    moe_layer_start_index=1,
    moe_layer_end_index=2,
)
case("minimax_m2", GQA, LOCAL_EXPERTS)
case("hunyuan_v1_dense", GQA)
case("dots1", PLAIN_GQA, ROUTED, first_k_dense_replace=1)
case("apertus", PLAIN_GQA)
case("solar_open", GQA, ROUTED)
case("bitnet", PLAIN_GQA)
case("llama4_text", GQA, LOCAL_EXPERTS, intermediate_size_mlp=200)
case("llama4_text", GQA, LOCAL_EXPERTS, intermediate_size_mlp=200, interleave_moe_layer_step=2)
case("internlm3", GQA)
case("hunyuan_v1_moe", GQA, num_experts=5, moe_topk=2)
case("cwm", GQA)
case("exaone_moe", PLAIN_GQA, EXPERTS, num_shared_experts=2, first_k_dense_replace=2)
case("afmoe", GQA, EXPERTS, num_shared_experts=2, num_dense_layers=2)
case("flex_olmo", PLAIN_GQA, without(EXPERTS, "moe_intermediate_size"))
case("mellum", GQA, EXPERTS)
case("hy_v3", GQA, EXPERTS, num_shared_experts=2)
case("jais2", GQA)

# -- Gemma 3n and 4

BY_LAYER = {"vocab_size_per_layer_input": 900, "hidden_size_per_layer_input": 12}
SEVEN = ["sliding_attention", "full_attention", *["sliding_attention"] * 3, "full_attention", "full_attention"]
TWICE = {**GQA, "num_hidden_layers": 7, "layer_types": SEVEN, "global_head_dim": 28, "sliding_window": 16}
case("gemma3n_text", GQA, BY_LAYER, num_hidden_layers=7, num_kv_shared_layers=2, laurel_rank=7, layer_types=SEVEN)
case("gemma3n_text", GQA, BY_LAYER, num_hidden_layers=3, num_kv_shared_layers=0, intermediate_size=[160, 176, 192])
case("gemma3n_text")
case("gemma4_text", TWICE, BY_LAYER, num_kv_shared_layers=2, use_double_wide_mlp=True)
case("gemma4_text", TWICE, EXPERTS, enable_moe_block=True, top_k_experts=2, hidden_size_per_layer_input=0)
case("gemma4_text", TWICE, attention_k_eq_v=True, num_global_key_value_heads=1, hidden_size_per_layer_input=0)
case("gemma4_text", GQA, num_hidden_layers=7)
case("gemma4_text")
case("gemma4_unified_text", TWICE, attention_k_eq_v=True, num_global_key_value_heads=1)
GEMMA4_TOWERS = {
    "vision_config": {
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "head_dim": 12,
        "num_key_value_heads": 4,
        "patch_size": 7,
        "position_embedding_size": 30,
    },
    "audio_config": {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "output_proj_dims": 40,
        "conv_kernel_size": 3,
        "subsampling_conv_channels": [24, 10],
    },
}
case("gemma4", GEMMA4_TOWERS, text_config={**TWICE, **BY_LAYER, "model_type": "gemma4_text"})
case("gemma4", text_config={"model_type": "gemma4_text", "hidden_size": 96}, vision_config={}, audio_config=None)
case("gemma4")
case(
    *("gemma4_unified", {"vision_config": {"mm_embed_dim": 40, "output_proj_dims": 40, "patch_size": 3}}),
    text_config={**TWICE, "model_type": "gemma4_unified_text"},
    audio_config={"audio_embed_dim": 24},
)

# -- latent attention

case("deepseek_v2", MHA, ROUTED, LATENT, first_k_dense_replace=1)
case("deepseek_v2", MHA, ROUTED, {**LATENT, "q_lora_rank": None}, first_k_dense_replace=0)
case("deepseek_v3", MHA, ROUTED, LATENT, first_k_dense_replace=1)
case("deepseek_v3", MHA, ROUTED, LATENT, first_k_dense_replace=2, attention_bias=True)
INDEX = {"index_n_heads": 3, "index_head_dim": 14}
case("deepseek_v32", MHA, ROUTED, LATENT, INDEX, first_k_dense_replace=1)
case("glm_moe_dsa", MHA, ROUTED, LATENT, INDEX, first_k_dense_replace=1)
case("glm_moe_dsa", MHA, ROUTED, LATENT, INDEX, num_hidden_layers=7, index_topk_freq=2)
case("youtu", MHA, LATENT)
case("minicpm3", MHA, LATENT)
case("mistral4", MHA, ROUTED, LATENT, first_k_dense_replace=0)
case("glm4_moe_lite", MHA, ROUTED, LATENT, first_k_dense_replace=1)

# -- states of fixed size, and hybrids

SMALL = {"hidden_size": 96, "num_hidden_layers": 3, "vocab_size": 1000}
MAMBA = {"mamba_d_state": 8, "mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_d_head": 12, "mamba_n_heads": 16}
DELTA = {"linear_key_head_dim": 10, "linear_value_head_dim": 14, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
case("mamba", SMALL)
case("mamba", SMALL, state_size=8, use_bias=True, time_step_rank=7, tie_word_embeddings=False)
case("falcon_mamba", SMALL)
case("mamba2", SMALL, num_heads=16, head_dim=12, n_groups=2, state_size=8)
case("qwen3_next", GQA, EXPERTS, DELTA, num_hidden_layers=5, shared_expert_intermediate_size=72)
case("qwen3_5_text", GQA, DELTA, num_hidden_layers=5)
case("qwen3_5_moe_text", GQA, EXPERTS, DELTA, num_hidden_layers=5, shared_expert_intermediate_size=72)
case("jamba", PLAIN_GQA, num_experts=4, num_experts_per_tok=2, num_hidden_layers=9)
case("jamba", PLAIN_GQA, num_experts=1, num_experts_per_tok=1, num_hidden_layers=9)
case("bamba", PLAIN_GQA, MAMBA, attn_layer_indices=[1])
MIXED = ["mamba", "attention", "mamba"]
case("granitemoehybrid", PLAIN_GQA, MAMBA, LOCAL_EXPERTS, shared_intermediate_size=72, layer_types=MIXED)
case(
    *("granitemoehybrid", PLAIN_GQA, MAMBA, {"num_local_experts": 0, "num_experts_per_tok": 0}),
    shared_intermediate_size=72,
    layer_types=MIXED,
)
case("falcon_h1", PLAIN_GQA, MAMBA, mamba_d_ssm=192)
case("falcon_h1", GQA, MAMBA, mamba_d_ssm=192, mamba_rms_norm=True)
NEMOTRON = {"ssm_state_size": 8, "mamba_num_heads": 16, "mamba_head_dim": 12, "n_groups": 2, "num_hidden_layers": 5}
case("nemotron_h", GQA, NEMOTRON, hybrid_override_pattern="M-M*-")
case(
    *("nemotron_h", GQA, NEMOTRON, {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1}),
    hybrid_override_pattern="MEM*E",
    moe_intermediate_size=40,
    moe_shared_expert_intermediate_size=56,
)
CONVOLUTIONS = ["conv", "full_attention", "conv"]
case("lfm2", PLAIN_GQA, layer_types=CONVOLUTIONS, block_multiple_of=16)
case("lfm2", PLAIN_GQA, layer_types=CONVOLUTIONS, block_auto_adjust_ff_dim=False)
case(
    *("lfm2_moe", PLAIN_GQA, EXPERTS, {"num_experts": 4, "moe_intermediate_size": 40}),
    num_dense_layers=1,
    layer_types=CONVOLUTIONS,
)

KIMI = {
    **MHA,
    **EXPERTS,
    **without(LATENT, "q_lora_rank"),
    "num_hidden_layers": 5,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
KDA = {"head_dim": 14, "num_heads": 4, "short_conv_kernel_size": 3}
case("kimi_linear", KIMI, linear_attn_config={**KDA, "full_attn_layers": [2], "kda_layers": [1, 3, 4, 5]})
case("kimi_linear", KIMI, linear_attn_config=KDA, n_shared_experts=2, first_k_dense_replace=2)
case("minimax", GQA, LOCAL_EXPERTS)
case("minimax", GQA, LOCAL_EXPERTS, layer_types=["linear_attention", "linear_attention", "full_attention"])
ZAMBA = {**MHA, "mamba_d_state": 8, "n_mamba_heads": 16, "mamba_ngroups": 2, "adapter_rank": 5, "num_hidden_layers": 6}
MIXED_IN = ["mamba", "hybrid", "mamba", "hybrid", "hybrid", "mamba"]
case("zamba2", ZAMBA, layers_block_type=MIXED_IN)
case("zamba2", ZAMBA, layers_block_type=MIXED_IN, num_mem_blocks=2, use_shared_attention_adapter=True)
case("zamba2", hidden_size=96, num_hidden_layers=54, vocab_size=1000)
case("recurrent_gemma", MHA, num_key_value_heads=1, num_hidden_layers=4)
case("recurrent_gemma", MHA, lru_width=120, conv1d_width=3, attention_bias=True)
case("rwkv", SMALL)
case("rwkv", SMALL, attention_hidden_size=104, intermediate_size=200)

# -- encoders of text

BERT = without(MHA, "pad_token_id")
DISTILBERT = {"dim": 96, "n_layers": 3, "n_heads": 6, "hidden_dim": 160}
DISTILBERT.update(vocab_size=1000, max_position_embeddings=64)
THREE = {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
for family, stem in (
    *(("bert", "Bert"), ("roberta", "Roberta"), ("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert")),
    *(("distilbert", "DistilBert"), ("electra", "Electra"), ("albert", "Albert"), ("mpnet", "MPNet")),
    *(("deberta", "Deberta"), ("deberta-v2", "DebertaV2"), ("modernbert", "ModernBert")),
):
    small = DISTILBERT if family == "distilbert" else MHA if family == "modernbert" else BERT
    case(family, small, class_name=stem + "Model")
    for head in ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"):
        case(family, small, THREE, architectures=[stem + head], class_name=stem + head)
case("bert", class_name="BertModel")
case("bert", BERT, architectures=["BertForPreTraining"], class_name="BertForPreTraining")
RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
case("deberta", BERT, RELATIVE)
case("deberta-v2", BERT, RELATIVE, position_buckets=16, norm_rel_ebd="layer_norm", share_att_key=True)
case("deberta-v2", BERT, RELATIVE, pos_att_type="p2c|c2p", conv_kernel_size=3)

# -- encoders with decoders

T5 = {"d_model": 96, "d_ff": 160, "d_kv": 12, "num_layers": 2, "num_heads": 6, "vocab_size": 1000}
case("t5", T5)
case("t5", T5, feed_forward_proj="gated-gelu", num_decoder_layers=3)
case("t5", T5, architectures=["T5EncoderModel"], class_name="T5EncoderModel")
case("mt5", T5)
case("umt5", T5)
case("umt5", T5, architectures=["UMT5EncoderModel"], class_name="UMT5EncoderModel")
case("longt5", T5)
BART = {
    "d_model": 96,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 160,
    "decoder_ffn_dim": 176,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
}
case("bart", BART, class_name="BartForConditionalGeneration")
case("mbart", BART, class_name="MBartForConditionalGeneration")
case("pegasus", BART, class_name="PegasusForConditionalGeneration")
case("marian", BART, class_name="MarianMTModel")
case("m2m_100", BART, class_name="M2M100ForConditionalGeneration")
case("blenderbot", BART, class_name="BlenderbotForConditionalGeneration")
case(
    *("whisper", BART, {"num_mel_bins": 20, "max_source_positions": 50, "max_target_positions": 30}),
    class_name="WhisperForConditionalGeneration",
)

# -- speech

WAV = {**without(MHA, "max_position_embeddings"), "conv_dim": [24, 20, 28], "conv_kernel": [10, 3, 2]}
WAV.update(
    conv_stride=[5, 2, 2], num_feat_extract_layers=3, num_conv_pos_embeddings=14, num_conv_pos_embedding_groups=8
)
for family, stem in (("wav2vec2", "Wav2Vec2"), ("hubert", "Hubert"), ("wavlm", "WavLM")):
    case(family, WAV, class_name=stem + "Model")
    case(
        *(family, WAV, {"feat_extract_norm": "layer", "conv_bias": True, "do_stable_layer_norm": True}),
        architectures=[stem + "ForCTC"],
        class_name=stem + "ForCTC",
    )
    name = stem + "ForSequenceClassification"
    case(family, WAV, THREE, architectures=[name], class_name=name, classifier_proj_size=40)
    case(family, class_name=stem + "Model")

# -- images

VIT = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 7,
}
TEXT = {**without(VIT, "image_size", "patch_size"), "vocab_size": 1000}
for family, stem in (("vit", "ViT"), ("deit", "DeiT"), ("dinov2", "Dinov2")):
    case(family, VIT, class_name=stem + "Model")
    name = stem + "ForImageClassification"
    case(family, VIT, THREE, architectures=[name], class_name=name)
case("dinov2", VIT, use_swiglu_ffn=True, class_name="Dinov2Model")
case("dinov2_with_registers", VIT, num_register_tokens=3, class_name="Dinov2WithRegistersModel")
case("clip", text_config=TEXT, vision_config=VIT, projection_dim=40)
case("clip")
case("siglip", text_config=TEXT, vision_config=VIT)
case("siglip")
case("clip_text_model", TEXT)
case(
    *("clip_text_model", TEXT, {"projection_dim": 40}),
    architectures=["CLIPTextModelWithProjection"],
    class_name="CLIPTextModelWithProjection",
)
case("clip_vision_model", VIT)
case("siglip_text_model", TEXT, class_name="SiglipTextModel")
case("siglip_vision_model", VIT)
case("pixtral", VIT, head_dim=12)

# -- language models that see

LLAMA, MISTRAL = {**GQA, "model_type": "llama"}, {**GQA, "model_type": "mistral"}
CLIP_TOWER, SIGLIP_TOWER = {**VIT, "model_type": "clip_vision_model"}, {**VIT, "model_type": "siglip_vision_model"}
QWEN_TOWER = {"depth": 2, "num_heads": 4, "patch_size": 7}
case("llava", text_config=LLAMA, vision_config=CLIP_TOWER)
case("llava_next", text_config=MISTRAL, vision_config=SIGLIP_TOWER)
case("gemma3", text_config={**GQA, "model_type": "gemma3_text"}, vision_config=SIGLIP_TOWER, mm_tokens_per_image=4)
case("gemma3")
case(
    "paligemma",
    text_config={**GQA, "model_type": "gemma"},
    vision_config={**SIGLIP_TOWER, "vision_use_head": False, "projection_dim": 96},
    projection_dim=96,
)
case(
    "mistral3",
    text_config=MISTRAL,
    vision_config={**VIT, "model_type": "pixtral", "head_dim": 12},
    tie_word_embeddings=False,
)
case("idefics3", text_config=LLAMA, vision_config={**VIT, "model_type": "idefics3_vision"}, scale_factor=2)
case("smolvlm", text_config=LLAMA, vision_config={**VIT, "model_type": "smolvlm_vision"}, scale_factor=4)
case(
    "qwen2_vl",
    text_config={**PLAIN_GQA, "model_type": "qwen2_vl_text"},
    vision_config={**QWEN_TOWER, "embed_dim": 48, "hidden_size": 96, "mlp_ratio": 2},
)
case(
    "qwen2_5_vl",
    text_config={**PLAIN_GQA, "model_type": "qwen2_5_vl_text"},
    vision_config={**QWEN_TOWER, "hidden_size": 48, "out_hidden_size": 96, "intermediate_size": 80},
)
QWEN3_TOWER = {
    **QWEN_TOWER,
    "hidden_size": 48,
    "out_hidden_size": 96,
    "intermediate_size": 80,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [0],
}
case("qwen3_vl", text_config={**GQA, "model_type": "qwen3_vl_text"}, vision_config=QWEN3_TOWER)
case("qwen3_vl_moe", text_config={**GQA, **EXPERTS, "model_type": "qwen3_vl_moe_text"}, vision_config=QWEN3_TOWER)

case("llava")
case(
    "qwen3_5",
    text_config={**GQA, **DELTA, "model_type": "qwen3_5_text"},
    vision_config=without(QWEN3_TOWER, "deepstack_visual_indexes"),
)
case(
    "qwen3_5_moe",
    text_config={**GQA, **EXPERTS, **DELTA, "model_type": "qwen3_5_moe_text"},
    vision_config=without(QWEN3_TOWER, "deepstack_visual_indexes"),
)

case(
    "llama4",
    text_config={**GQA, **LOCAL_EXPERTS, "model_type": "llama4_text", "intermediate_size_mlp": 200},
    vision_config={
        **VIT,
        "intermediate_size": 192,
        "vision_output_dim": 56,
        "projector_input_dim": 56,
        "projector_output_dim": 56,
        "pixel_shuffle_ratio": 0.5,
    },
)

MLLAMA = {"attention_heads": 4, "num_global_layers": 1, "vision_output_dim": 144, "max_num_tiles": 3}
case(
    "mllama",
    text_config={**without(PLAIN_GQA, "num_hidden_layers"), "num_hidden_layers": 5, "cross_attention_layers": [1, 3]},
    vision_config={
        **without(VIT, "num_attention_heads"),
        **MLLAMA,
        "intermediate_layers_indices": [0, 1],
        "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]],
    },
)
case("mllama")
INTERN_TOWER = {**without(VIT, "image_size", "patch_size"), "image_size": [28, 28], "patch_size": [7, 7]}
QWEN = {**PLAIN_GQA, "model_type": "qwen2"}
case("internvl", text_config=QWEN, vision_config=INTERN_TOWER)
case(
    *("internvl", {"text_config": QWEN, "tie_word_embeddings": False}),
    vision_config={**INTERN_TOWER, "norm_type": "rms_norm", "use_qk_norm": True, "use_mean_pooling": False},
)
case("internvl")
case("llava_onevision", text_config=QWEN, vision_config={**SIGLIP_TOWER, "vision_use_head": False})
GLM_TOWER = {"depth": 2, "hidden_size": 48, "num_heads": 4, "image_size": 28, "patch_size": 7, "out_hidden_size": 96}
GLM_TOWER.update(intermediate_size=200)
case("glm4v", text_config={**PLAIN_GQA, "model_type": "glm4v_text"}, vision_config=GLM_TOWER)
case("glm4v")
case("glm4v_moe", text_config={**GQA, **ROUTED, "model_type": "glm4v_moe_text"}, vision_config=GLM_TOWER)
MOON_TOWER = {**without(VIT, "image_size"), "pos_emb_height": 5, "pos_emb_width": 6}
case(
    *("kimi_k25", {"text_config": {**MHA, **ROUTED, **LATENT, "model_type": "deepseek_v3"}}),
    vision_config=MOON_TOWER,
    projection_hidden_size=48,
    tie_word_embeddings=False,
)
case("aya_vision", text_config={**PLAIN_GQA, "model_type": "cohere2"}, vision_config=SIGLIP_TOWER)
case(
    *("cohere2_vision", {"text_config": {**PLAIN_GQA, "model_type": "cohere2"}}),
    vision_config=SIGLIP_TOWER,
    alignment_intermediate_size=80,
)
case(
    *("lfm2_vl", {"text_config": {**PLAIN_GQA, "layer_types": CONVOLUTIONS, "model_type": "lfm2"}}),
    vision_config={**without(VIT, "image_size"), "num_patches": 9},
    projector_hidden_size=40,
)
EAR = {"d_model": 48, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 80}
EAR.update(num_mel_bins=20, max_source_positions=50)
case("qwen2_audio", text_config=QWEN, audio_config=EAR)
case(
    *("voxtral", {"text_config": LLAMA}),
    audio_config={**TEXT, "num_mel_bins": 20, "max_source_positions": 50, "head_dim": 12},
)

# -- denoisers

UNET = {
    "sample_size": 16,
    "block_out_channels": [32, 64, 64],
    "cross_attention_dim": 40,
    "attention_head_dim": 4,
    "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
    "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"],
}
case("UNet2DConditionModel", UNET)
case(
    *("UNet2DConditionModel", UNET, {"use_linear_projection": True, "attention_head_dim": [2, 4, 8]}),
    transformer_layers_per_block=[1, 2, 3],
    addition_embed_type="text_time",
    addition_time_embed_dim=8,
    projection_class_embeddings_input_dim=60,
    in_channels=9,
    layers_per_block=3,
)
case("UNet2DConditionModel", cross_attention_dim=768)
MMDIT = {
    "sample_size": 32,
    "num_layers": 3,
    "attention_head_dim": 8,
    "num_attention_heads": 6,
    "joint_attention_dim": 40,
    "caption_projection_dim": 48,
    "pooled_projection_dim": 20,
    "pos_embed_max_size": 24,
}
case("SD3Transformer2DModel", MMDIT)
case("SD3Transformer2DModel", MMDIT, dual_attention_layers=[0], qk_norm="rms_norm")
case("SD3Transformer2DModel", MMDIT, dual_attention_layers=[0, 1, 2], out_channels=5)
FLUX = {
    "num_layers": 2,
    "num_single_layers": 3,
    "attention_head_dim": 16,
    "num_attention_heads": 3,
    "joint_attention_dim": 40,
    "pooled_projection_dim": 20,
    "in_channels": 12,
    "axes_dims_rope": [4, 6, 6],
}
case("FluxTransformer2DModel", FLUX)
case("FluxTransformer2DModel", FLUX, guidance_embeds=True)
case("FluxTransformer2DModel", FLUX, out_channels=6, num_single_layers=0)
case("QwenImageTransformer2DModel", without(FLUX, "num_single_layers", "pooled_projection_dim"), out_channels=4)
case("QwenImageTransformer2DModel")
case(
    *("WanTransformer3DModel", {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 3}),
    ffn_dim=100,
    text_dim=40,
    freq_dim=32,
)
case("WanTransformer3DModel")
WAN = {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 3, "ffn_dim": 100, "text_dim": 40}
case("WanTransformer3DModel", WAN, image_dim=24, added_kv_proj_dim=48, in_channels=36)
case("WanTransformer3DModel", WAN, image_dim=24, added_kv_proj_dim=40, pos_embed_seq_len=14, cross_attn_norm=False)
case(
    *("PixArtTransformer2DModel", {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 3}),
    sample_size=32,
    cross_attention_dim=48,
    caption_channels=40,
    use_additional_conditions=False,
)
