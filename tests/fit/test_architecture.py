"""What a config means: how many parameters, of what shapes, and what each layer keeps. Broken ones: one sentence."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from typing import Any

import pytest
from family_configs import CASES, UNET
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.fit import families
from cudadoctor.fit.architecture import (
    DECODER,
    DIFFUSION,
    ENCODER,
    ENCODER_DECODER,
    EXPERT,
    FULL,
    LATENT,
    LINEAR,
    MATRIX,
    SPEECH,
    VISION,
    WINDOW,
    Architecture,
)
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.config import architecture_of_config, model_of_config
from cudadoctor.fit.kv_cache import cache
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError

pytestmark = pytest.mark.once

# Total and, where a token does not pass them all, active parameters: what the makers and the Hub's model pages give.
PUBLISHED = [
    ("llama-2-7b", 6_738_415_616, None),
    ("llama-2-70b", 68_976_648_192, None),
    ("llama-3.1-8b", 8_030_261_248, None),
    ("llama-3.1-405b", 405_853_388_800, None),
    ("llama-3.2-1b", 1_235_814_400, None),
    ("mistral-7b-v0.3", 7_248_023_552, None),
    ("mistral-nemo-12b", 12_247_782_400, None),
    ("mixtral-8x7b", 46_702_792_704, 12_879_925_248),
    ("qwen-7b", 7_721_324_544, None),
    ("qwen2.5-7b", 7_615_616_512, None),
    ("qwen2-vl-7b", 8_291_375_616, None),
    ("qwen2.5-vl-7b", 8_292_166_656, None),
    ("qwen3-8b", 8_190_735_360, None),
    ("qwen3-30b-a3b", 30_532_122_624, 3_353_032_704),
    ("qwen3-235b-a22b", 235_093_634_560, 22_190_763_520),
    ("gemma-2b", 2_506_172_416, None),
    ("gemma-2-27b", 27_227_128_320, None),
    ("gemma-3-1b", 999_885_952, None),
    ("gemma-3-4b", 4_300_079_472, None),
    ("gemma-3-12b", 12_187_325_040, None),
    ("gemma-3-27b", 27_432_406_640, None),
    # Their files hold what is no parameter, too: a number a layer, and two rows to scale the vectors of an image.
    ("gemma-4-12b", 11_959_730_224 - 48, None),
    ("gemma-4-26b-a4b", 25_805_936_206 - 30 - 2 * 1152, 4_395_322_672),
    ("gemma-4-31b", 31_273_088_876 - 60 - 2 * 1152, None),
    ("llama-3.2-11b-vision", 10_670_220_835, None),
    ("qwen3-vl-2b", 2_127_532_032, None),
    ("qwen3-vl-4b", 4_437_815_808, None),
    ("qwen3-vl-8b", 8_767_123_696, None),
    ("qwen3-vl-30b-a3b", 31_070_754_032, 3_891_664_112),
    ("internvl3-2b", 2_088_957_440, None),
    ("internvl3-8b", 7_944_373_760, None),
    ("hunyuan-a13b", 80_393_183_232, 12_747_448_320),
    ("apertus-8b", 8_053_338_176, None),
    ("kimi-linear-48b-a3b", 49_122_681_728 - 26 * 256, 3_484_453_248),
    ("dinov2-giant", 1_136_480_768, None),
    ("wav2vec2-base-960h", 94_396_320, None),
    ("phi-2", 2_779_683_840, None),
    ("phi-3-mini", 3_821_079_552, None),
    ("phi-4", 14_659_507_200, None),
    ("deepseek-v2-lite", 15_706_484_224, 2_661_150_208),
    ("deepseek-v3", 671_026_404_352, 37_552_282_624),
    ("gpt-oss-20b", 20_914_757_184, 4_187_440_704),
    ("gpt-oss-120b", 116_829_156_672, 5_711_982_912),
    ("glm-4-9b", 9_399_951_360, None),
    ("chatglm3-6b", 6_243_584_000, None),
    ("falcon-7b", 6_921_720_704, None),
    ("falcon-40b", 41_303_293_952, None),
    ("starcoder2-15b", 15_655_899_136, None),
    ("gpt2", 124_439_808, None),
    ("gpt2-xl", 1_557_611_200, None),
    ("gpt-j-6b", 6_050_882_784, None),
    ("bert-base-uncased", 109_482_240, None),
    ("bert-large-uncased", 335_141_888, None),
    ("distilbert-base-uncased", 66_362_880, None),
    ("roberta-base", 124_645_632, None),
    ("all-minilm-l6-v2", 22_713_216, None),
    ("vit-base-patch16-224", 86_567_656, None),
    ("clip-vit-base-patch32", 151_277_313, None),
    ("clip-vit-large-patch14", 427_616_513, None),
    ("t5-small", 60_506_624, None),
    ("t5-3b", 2_851_598_336, None),
    ("flan-t5-base", 247_577_856, None),
    ("flan-t5-xxl", 11_135_332_352, None),
    ("whisper-tiny", 37_760_640, None),
    ("whisper-large-v3", 1_543_490_560, None),
    ("whisper-large-v3-turbo", 808_878_080, None),
    ("sd-1.5-unet", 859_520_964, None),
    ("sdxl-base-unet", 2_567_463_684, None),
    ("sd3-medium-transformer", 2_028_328_000, None),
    ("flux.1-dev-transformer", 11_901_408_320, None),
    ("mamba-2.8b", 2_768_345_600, None),
]


@pytest.mark.parametrize(("name", "parameters", "active"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_counts(matrix: Matrix, name: str, parameters: int, active: int | None) -> None:
    shape = find(matrix, name).architecture
    assert shape.parameters == parameters
    assert shape.active_parameters == (active or parameters)


def named(shape: Architecture, name: str) -> set[tuple[int, ...]]:
    return {tensor.shape for tensor in shape.tensors if tensor.name == name}


# -- what layers are


def kinds(shape: Architecture) -> str:
    """One letter a layer: f full, w window, l latent, s state; a capital where it has experts, - without attention."""
    letters = {FULL: "f", WINDOW: "w", LATENT: "l", LINEAR: "s"}
    said = ""
    for run in shape.layers:
        letter = letters[run.attention.kind] if run.attention is not None else "-"
        with_experts = run.feed_forward is not None and run.feed_forward.experts
        said += (letter.upper() if with_experts else letter) * run.number
    return said


def test_gemma_3_looks_at_everything_in_each_sixth_layer(matrix: Matrix) -> None:
    shape = find(matrix, "gemma-3-27b").architecture
    assert kinds(shape) == "wwwwwf" * 10 + "ww"
    assert {run.attention.window for run in shape.layers if run.attention} == {0, 1024}
    assert [run.first for run in shape.layers][:4] == [0, 5, 6, 11]


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("llama-3.1-8b", "f" * 32),
        ("mistral-7b-v0.1", "w" * 32),
        ("mistral-7b-v0.3", "f" * 32),
        ("gemma-2-2b", "wf" * 13),
        ("gpt-oss-20b", "WF" * 12),
        ("command-r7b", "wwwf" * 8),
        ("deepseek-v3", "lll" + "L" * 58),
        ("mixtral-8x7b", "F" * 32),
        ("qwen3-next-80b-a3b", "SSSF" * 12),
        ("jamba-v0.1", "sSsSfSsS" * 4),
        ("mamba-2.8b", "s" * 64),
        ("qwen2.5-7b", "f" * 28),
    ],
)
def test_what_each_layer_sees(matrix: Matrix, name: str, layers: str) -> None:
    assert kinds(find(matrix, name).architecture) == layers


def test_grouped_queries(matrix: Matrix) -> None:
    attention = find(matrix, "llama-3.1-8b").architecture.layers[0].attention
    assert attention is not None
    assert (attention.heads, attention.kv_heads, attention.head_dim) == (32, 8, 128)
    assert (attention.query_width, attention.kv_width) == (4096, 1024)


def test_heads_may_be_wider_than_the_model(matrix: Matrix) -> None:
    shape = find(matrix, "qwen3-0.6b").architecture
    assert shape.hidden == 1024
    assert named(shape, "q") == {(2048, 1024)}
    assert named(shape, "o") == {(1024, 2048)}


def test_latent_attention_caches_one_narrow_vector(matrix: Matrix) -> None:
    attention = find(matrix, "deepseek-v3").architecture.layers[0].attention
    assert attention is not None
    assert attention.kind == LATENT
    assert (attention.kv_rank, attention.rope_dim, attention.q_rank) == (512, 64, 1536)
    assert (attention.head_dim, attention.value_dim) == (192, 128)
    assert attention.kv_rank + attention.rope_dim == 576


def test_experts_are_counted_apart(matrix: Matrix) -> None:
    shape = find(matrix, "mixtral-8x7b").architecture
    part = shape.layers[0].feed_forward
    assert part is not None
    assert (part.experts, part.experts_per_token, part.intermediate) == (8, 2, 14336)
    of_experts = [tensor for tensor in shape.tensors if tensor.role == EXPERT]
    assert sum(tensor.elements for tensor in of_experts) == 32 * 8 * 3 * 4096 * 14336
    assert {tensor.copies for tensor in of_experts} == {32 * 8}


def test_shared_experts_are_matrices_like_others(matrix: Matrix) -> None:
    shape = find(matrix, "deepseek-v2-lite").architecture
    part = shape.layers[1].feed_forward
    assert part is not None
    assert part.shared == 2 * 1408
    assert {tensor.role for tensor in shape.tensors if tensor.name == "shared_up"} == {MATRIX}


def test_packed_matrices_are_one_tensor(matrix: Matrix) -> None:
    shape = find(matrix, "phi-3-mini").architecture
    assert named(shape, "qkv") == {(9216, 3072)}
    assert named(shape, "gate_up") == {(16384, 3072)}
    assert not named(shape, "q")
    assert not named(shape, "gate")


@pytest.mark.parametrize(
    ("name", "tied"), [("llama-3.1-8b", False), ("llama-3.2-1b", True), ("gemma-2b", True), ("gpt2", True)]
)
def test_a_tied_head_is_no_tensor_of_its_own(matrix: Matrix, name: str, tied: bool) -> None:
    shape = find(matrix, name).architecture
    assert shape.tied is tied
    assert named(shape, "output") == (set() if tied else {(shape.vocabulary, shape.hidden)})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("llama-3.1-8b", DECODER),
        ("mamba-2.8b", DECODER),
        ("llava-1.5-7b", DECODER),
        ("bert-base-uncased", ENCODER),
        ("t5-xxl-encoder", ENCODER),
        ("t5-base", ENCODER_DECODER),
        ("bart-large", ENCODER_DECODER),
        ("whisper-small", SPEECH),
        ("vit-base-patch16-224", VISION),
        ("clip-vit-base-patch32", VISION),
        ("sdxl", DIFFUSION),
        ("flux.1-dev", DIFFUSION),
    ],
)
def test_what_kind_a_model_is_of(matrix: Matrix, name: str, kind: str) -> None:
    assert find(matrix, name).architecture.kind == kind


def test_both_sides_of_whisper_are_counted_from_nought(matrix: Matrix) -> None:
    shape = find(matrix, "whisper-large-v3-turbo").architecture
    sides = [(run.side, run.first, run.number, run.cross is not None) for run in shape.layers]
    assert sides == [("encoder", 0, 32, False), ("decoder", 0, 4, True)]
    assert shape.tokens_per_item == 1500
    assert shape.max_context == 448


def test_a_vision_tower_lies_outside_of_the_layers(matrix: Matrix) -> None:
    shape = find(matrix, "gemma-3-4b").architecture
    tower = [tensor for tensor in shape.tensors if tensor.name.startswith("vision_")]
    assert all(tensor.layers is None for tensor in tower)
    text = sum(tensor.elements for tensor in shape.tensors if not tensor.name.startswith(("vision_", "projector")))
    assert text == 3_880_263_168
    assert shape.layer_count == 34


@pytest.mark.parametrize("case", CASES, ids=[one.name for one in CASES])
def test_the_tensors_of_every_family_hang_together(case: Any) -> None:
    shape = architecture_of_config(case.config, case.name)
    assert shape.parameters == sum(math.prod(tensor.shape) * tensor.copies for tensor in shape.tensors)
    assert 0 < shape.active_parameters <= shape.parameters
    for tensor in shape.tensors:
        assert min(tensor.shape) > 0
        if tensor.layers is not None:
            assert tensor.copies % shape.layers[tensor.layers].number == 0
    counted: dict[str, int] = {}
    for run in shape.layers:
        assert run.first == counted.get(run.side, 0)
        counted[run.side] = run.first + run.number


# -- what a config leaves out


def test_what_is_left_out_is_what_the_class_takes() -> None:
    gemma = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}
    shape = architecture_of_config({**gemma, "sliding_window": 1024}, "gemma-3-4b")
    assert shape.parameters == 3_880_263_168
    assert shape.tied


def test_null_is_not_left_out() -> None:
    shape = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 160}
    config = {"model_type": "mistral", **shape, "vocab_size": 1000, "num_key_value_heads": 4}
    assert kinds(architecture_of_config(config, "x")) == "ww"
    assert kinds(architecture_of_config({**config, "sliding_window": None}, "x")) == "ff"


def test_without_model_type_the_class_tells() -> None:
    config = {"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024}
    assert architecture_of_config({**config, "vocab_size": 50257}, "x").parameters == 124_439_808


# -- how the weights are stored

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}


def compressed(**weights: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


STORED = [
    ({"torch_dtype": "bfloat16"}, "bf16"),
    ({"torch_dtype": "float16"}, "fp16"),
    ({"dtype": "float32"}, "fp32"),
    ({"torch_dtype": "torch.float16"}, "fp16"),
    ({"text_config": {"torch_dtype": "float16"}}, "fp16"),
    ({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}, "gptq-int4"),
    ({"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 128}}, "gptq-int8"),
    ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, "awq"),
    ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8"),
    ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
    ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "nvfp4"),
    ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "nf4"),
    ({"quantization_config": {"load_in_4bit": True, "bnb_4bit_use_double_quant": True}}, "nf4-dq"),
    ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, "int8"),
    ({"quantization_config": compressed(type="float", num_bits=8, strategy="channel")}, "fp8-channel"),
    ({"quantization_config": compressed(type="int", num_bits=4, strategy="group", group_size=128)}, "w4a16"),
    ({"quantization_config": compressed(type="int", num_bits=8, strategy="channel")}, "w8a8"),
]


@pytest.mark.parametrize(("said", "weights"), STORED, ids=[row[1] for row in STORED])
def test_how_a_config_says_its_weights_are_stored(matrix: Matrix, said: dict[str, Any], weights: str) -> None:
    from cudadoctor.fit.quantisation import scheme

    model = model_of_config({**LLAMA, **said}, "x")
    assert model.weights == weights == scheme(matrix, weights).name
    assert model.notes == ()


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({}, "its config does not say the type of its weights: 16 bits a number are assumed"),
        (
            {"quantization_config": {"quant_method": "quip", "bits": 2}},
            "its weights are quantised by 'quip' in a way that is not known: counted as if they were not",
        ),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": 3}},
            "its weights are quantised by 'gptq' in a way that is not known: counted as if they were not",
        ),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}},
            "its scales are shared by 32 numbers; groups of 128 are counted",
        ),
    ],
)
def test_what_is_assumed_is_said(said: dict[str, Any], note: str) -> None:
    assert model_of_config({**LLAMA, **said}, "x").notes == (note,)


# -- configs that are broken

MOE = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 5, "moe_intermediate_size": 64}
BROKEN = [
    ({"num_hidden_layers": 10**30}, "config: num_hidden_layers is not between 1 and 4096: 1" + "0" * 30),
    ({"num_hidden_layers": "32"}, "config: num_hidden_layers is not a whole number: '32'"),
    ({"num_hidden_layers": 0}, "config: num_hidden_layers is not between 1 and 4096: 0"),
    ({"num_hidden_layers": True}, "config: num_hidden_layers is not a whole number: True"),
    ({"num_hidden_layers": None}, "config: num_hidden_layers is missing"),
    ({"hidden_size": -4096}, "config: hidden_size is not between 1 and 16777216: -4096"),
    ({"hidden_size": math.nan}, "config: hidden_size is not a whole number: nan"),
    ({"hidden_size": math.inf}, "config: hidden_size is not a whole number: inf"),
    ({"hidden_size": 4096.5}, "config: hidden_size is not a whole number: 4096.5"),
    ({"hidden_size": [4096] * 10**6}, "config: hidden_size is not a whole number: a list of 1000000"),
    (
        {"num_attention_heads": 33, "num_key_value_heads": 11},
        "config: num_attention_heads 33 does not divide hidden_size 4096, and no head_dim is given",
    ),
    ({"num_key_value_heads": 7}, "config: num_attention_heads 32 cannot be shared out to num_key_value_heads 7"),
    (
        {"layer_types": ["full_attention"], "sliding_window": 8},
        "config: layer_types names 1 layers, num_hidden_layers is 32",
    ),
    ({"tie_word_embeddings": "no"}, "config: tie_word_embeddings is not true or false: 'no'"),
    ({"quantization_config": "gptq"}, "config: quantization_config is not an object"),
    (
        {"hidden_size": 1 << 24, "intermediate_size": 1 << 24, "num_hidden_layers": 4096},
        "config: it describes a model of 6.3e+18 parameters, more than any has",
    ),
    (MOE, "config: a token visits 5 experts, but there are 4"),
    (
        {"model_type": "supernova"},
        "config: the architecture 'supernova' is not known (32 layers, 4096 of hidden width, 128256 words): "
        "give a file of its weights, or a size such as 7b",
    ),
    (
        {"model_type": "nova_vl", "text_config": {"model_type": "llama"}},
        "config: the architecture 'nova_vl' is not known; its text_config alone, a llama, would be",
    ),
    ({"model_type": 7}, "config: model_type is not a text"),
    ({"model_type": "x" * 10**6}, "config: the architecture '" + "x" * 57 + "...' is not known"),
    ({"model_type": None}, "config: model_type is missing: this is not the config.json of a model"),
    (
        {"model_type": None, "architectures": ["NovaForCausalLM"]},
        "config: model_type is missing, and the class 'NovaForCausalLM' is not known",
    ),
    (
        {"model_type": "llava", "vision_config": {"model_type": "nova_tower"}, "text_config": LLAMA},
        "config: the vision tower 'nova_tower' is not known",
    ),
    (
        {"model_type": "llava", "vision_config": [], "text_config": LLAMA},
        "config: vision_config is not an object: a list of 0",
    ),
    (
        {"model_type": "gemma3", "text_config": {**LLAMA, "model_type": "gemma3_text", "num_hidden_layers": -1}},
        "config: text_config.num_hidden_layers is not between 1 and 4096: -1",
    ),
    (
        {"model_type": "nemotron_h", "hybrid_override_pattern": "M" * 5000},
        "config: hybrid_override_pattern does not say",
    ),
]


@pytest.mark.parametrize(("changes", "says"), BROKEN, ids=[row[1][8:60] for row in BROKEN])
def test_a_broken_config_is_told_in_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ParseError) as error:
        model_of_config({**LLAMA, **changes}, "x")
    assert str(error.value).startswith(says)
    assert len(str(error.value)) < 200
    assert str(error.value).isascii()


OTHER_FILES = [
    ({"peft_type": "LORA", "r": 16}, "this is a config of an adapter: give the config of its base model"),
    ({"tokenizer_class": "LlamaTokenizer"}, "this is a config of a tokenizer: give config.json of the model"),
    ({"bos_token_id": 1, "temperature": 0.6}, "this is a config for generation: give config.json of the model"),
    (
        {"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]},
        "this is the model_index.json of a 'FluxPipeline': give config.json of its denoiser",
    ),
    ({}, "config: model_type is missing: this is not the config.json of a model"),
]


@pytest.mark.parametrize(("config", "says"), OTHER_FILES, ids=[row[1][:40] for row in OTHER_FILES])
def test_files_that_lie_beside_a_config_are_told_apart(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ParseError) as error:
        model_of_config(config, "x")
    assert str(error.value) == says


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


def test_depth_costs_nothing() -> None:
    with pytest.raises(ParseError):
        model_of_config({**LLAMA, "hidden_size": nested(50_000)}, "x")
    assert model_of_config({**LLAMA, "rope_scaling": nested(50_000)}, "x").architecture.layer_count == 32


def test_ten_million_blocks_are_not_counted_one_by_one() -> None:
    with pytest.raises(ParseError, match="layers_per_block is not a list of whole numbers between 1 and 128"):
        model_of_config({**UNET, "_class_name": "UNet2DConditionModel", "layers_per_block": [2, 10**7, 2]}, "x")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-4, 4),
    st.integers(),
    st.sampled_from(
        [10**30, -1, 0, 1, 7, 4096, math.nan, math.inf, -0.5, 2.0, "", "auto", "llama", [], {}, [1], [[]], {"a": 1}]
    ),
    st.text(max_size=5),
    st.lists(st.integers(-2, 9), max_size=4),
    st.lists(st.text(max_size=4), max_size=4),
)


@given(st.data())
def test_whatever_stands_in_a_config_it_is_read_or_refused(data: st.DataObject) -> None:
    config = dict(data.draw(st.sampled_from(CASES)).config)
    keys = st.sampled_from(sorted(key for key in config if key not in ("model_type", "_class_name")) or ["hidden_size"])
    for _ in range(data.draw(st.integers(1, 4))):
        config[data.draw(keys)] = data.draw(VALUES)
    try:
        shape = architecture_of_config(config, "x")
    except ParseError as error:
        assert str(error).isascii()
        assert "\n" not in str(error)
    else:
        assert 0 < shape.active_parameters <= shape.parameters


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "llama"}, "num_hidden_layers and hidden_size are missing"),
        ({"model_type": "llama", "vocab_size": 32000, "hidden_size": 64}, "num_hidden_layers is missing"),
        ({"model_type": "gemma3"}, "num_hidden_layers and hidden_size are missing"),
        ({"_class_name": "FluxTransformer2DModel"}, "num_layers and attention_head_dim are missing"),
    ],
)
def test_a_config_without_its_sizes_is_no_config(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ParseError) as error:
        model_of_config(config, "x")
    assert str(error.value) == f"config: {says}: this is not all of a config.json"


@pytest.mark.parametrize(
    ("layers", "shared", "width", "published"), [(30, 10, 8192, 5_439_438_272), (35, 15, 16384, 7_849_978_192)]
)
def test_gemma_3n_has_what_its_files_hold(layers: int, shared: int, width: int, published: int) -> None:
    text = {"hidden_size": 2048, "num_hidden_layers": layers, "num_kv_shared_layers": shared}
    config = {"model_type": "gemma3n", "text_config": {**text, "intermediate_size": width}}
    # The files have keys and values for the layers, too, that use those of earlier ones: they are not loaded.
    unused = shared * (2 * 2 * 256 * 2048 + 256)
    assert architecture_of_config(config, "x").parameters == published - unused


def test_layers_that_use_the_keys_of_earlier_ones_keep_none(matrix: Matrix) -> None:
    text = {"hidden_size": 2048, "num_hidden_layers": 35, "vocab_size": 262400}
    model = model_of_config({"model_type": "gemma3n", "text_config": text, "dtype": "bfloat16"}, "x")
    # Of twenty layers with a cache of their own four see everything, sixteen a window of 512; two heads of 256.
    assert cache(matrix, model, Workload(context=8192), 8192).total == (4 * 8192 + 16 * 512) * 2 * 2 * 256 * 2


def test_what_a_config_leaves_to_its_class_is_said() -> None:
    # Saved configs inside of others leave out what is as the class has it: so does that of LLaVA 1.5.
    config = {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}, "dtype": "float16"}
    assert model_of_config(config, "x").notes == (
        "its config leaves out what its class takes: num_hidden_layers 32, hidden_size 4096",
    )
    without_words = {key: value for key, value in LLAMA.items() if key != "vocab_size"}
    assert model_of_config({**without_words, "dtype": "float16"}, "x").notes == (
        "its config leaves out what its class takes: vocab_size 32000",
    )


def test_a_file_of_families_has_those_that_it_is_said_to_have() -> None:
    """Which file a family is in stands in a list, so that none has to be imported to look."""
    seen: set[str] = set()
    for file in dict.fromkeys(families._FILE_OF.values()):
        listed = [family for family, one in families._FILE_OF.items() if one == file]
        held = importlib.import_module(f"{families.__name__}.{file}").FAMILIES
        assert [family for family in held if family not in seen] == listed
        seen.update(listed)


def test_no_file_of_families_is_imported_for_one_that_is_not_known() -> None:
    program = "import sys\nfrom cudadoctor.fit.families import is_known\nassert not is_known('x')\n"
    program += "print([name for name in sys.modules if name.startswith('cudadoctor.fit.families.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_layer_may_keep_a_state_beside_keys_and_values(matrix: Matrix) -> None:
    config = {**LLAMA, "model_type": "falcon_h1", "mamba_d_ssm": 1024, "mamba_d_state": 256, "mamba_n_heads": 128}
    model = model_of_config({**config, "dtype": "bfloat16"}, "x")
    attention = model.architecture.layers[0].attention
    assert attention is not None and attention.kind == FULL
    # 32 layers: the state of the recurrence in fp32 once, keys and values of 8 heads in 16 bits for each token.
    assert attention.state == 1024 * 256 + (1024 + 2 * 256) * 4
    assert cache(matrix, model, Workload(), 100).total == 32 * (attention.state * 4 + 100 * 2 * 8 * 128 * 2)


def test_attention_that_chooses_its_tokens_keeps_what_it_chooses_by(matrix: Matrix) -> None:
    config = dict(next(case for case in CASES if case.name == "deepseek_v32").config)
    model = model_of_config({**config, "dtype": "bfloat16"}, "x")
    assert kinds(model.architecture) == "lLL"
    assert cache(matrix, model, Workload(), 100).total == 3 * 100 * (16 + 8 + 14) * 2
