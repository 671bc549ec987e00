"""The sizes of published GGUF files, from the architecture alone.

Of each file: what llama.cpp's quantizer makes of the tensors, and the tokenizer's words, which the file holds, too.
"""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.config import model_of_config
from cudadoctor.fit.quantisation import scheme, weight_bytes
from cudadoctor.matrix import Matrix, load_matrix

pytestmark = pytest.mark.once

# Bytes of the metadata: words, their kinds or scores, and the merges of the byte-pair encoders.
LLAMA2, LLAMA3, MISTRAL3, TEKKEN, QWEN, GEMMA = 730_000, 7_835_000, 760_000, 7_885_000, 5_960_000, 6_450_000
TINYLLAMA, GRANITE, SMOLLM, OLMO, CL100K, HARMONY = 1_710_000, 1_740_000, 1_780_000, 1_780_000, 3_565_000, 13_010_000

_LLAMA = {"model_type": "llama", "tie_word_embeddings": False}


def llama(hidden: int, layers: int, heads: int, intermediate: int, words: int, **more: Any) -> dict[str, Any]:
    return {
        **_LLAMA,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "intermediate_size": intermediate,
        "vocab_size": words,
        **more,
    }


def phi3(hidden: int, layers: int, heads: int, kv_heads: int, intermediate: int, words: int) -> dict[str, Any]:
    shape = llama(hidden, layers, heads, intermediate, words)
    return {**shape, "model_type": "phi3", "num_key_value_heads": kv_heads}


def gemma3(hidden: int, layers: int, heads: int, kv_heads: int, intermediate: int, words: int) -> dict[str, Any]:
    shape = llama(hidden, layers, heads, intermediate, words, tie_word_embeddings=True, head_dim=256)
    return {**shape, "model_type": "gemma3_text", "num_key_value_heads": kv_heads, "sliding_window": 512}


def gpt_oss(layers: int, experts: int) -> dict[str, Any]:
    shape = llama(2880, layers, 64, 2880, 201088, head_dim=64, sliding_window=128)
    return {**shape, "model_type": "gpt_oss", "num_local_experts": experts, "num_experts_per_tok": 4}


# Those that are not looked up in the catalogue: what stands there is tried by other tests.
CONFIGS: dict[str, dict[str, Any]] = {
    "mistral-small-2409": llama(6144, 56, 48, 16384, 32768, head_dim=128),
    "granite-3.0-8b": llama(4096, 40, 32, 12800, 49155, tie_word_embeddings=True),
    # Its head is its embedding, and the file holds both.
    "granite-3.0-2b": llama(2048, 40, 32, 8192, 49155),
    "minitron-8b": llama(4096, 40, 32, 11520, 131072, head_dim=128),
    "phi-3.5-mini": phi3(3072, 32, 32, 32, 8192, 32064),
    "phi-3-medium": phi3(5120, 40, 40, 10, 17920, 32064),
    "phi-4": phi3(5120, 40, 40, 10, 17920, 100352),
    "phi-3.5-moe": {
        **llama(4096, 32, 32, 6400, 32064),
        "model_type": "phimoe",
        "num_local_experts": 16,
        "num_experts_per_tok": 2,
        "attention_bias": True,
        "lm_head_bias": True,
    },
    "stablelm-2-12b": {
        **llama(5120, 40, 32, 13824, 100352),
        "model_type": "stablelm",
        "qk_layernorm": True,
        "use_parallel_residual": True,
    },
    "gpt-oss-20b": gpt_oss(24, 32),
    "gpt-oss-120b": gpt_oss(36, 128),
    "gemma-3-270m": gemma3(640, 18, 4, 1, 2048, 262144),
    "gemma-3-1b": gemma3(1152, 26, 4, 1, 6912, 262144),
    "gemma-3-4b": gemma3(2560, 34, 8, 4, 10240, 262208),
    "gemma-3-12b": gemma3(3840, 48, 16, 8, 15360, 262208),
    "gemma-2-2b": {**gemma3(2304, 26, 8, 4, 9216, 256000), "model_type": "gemma2"},
    "olmoe-1b-7b": {
        **llama(2048, 16, 16, 1024, 50304),
        "model_type": "olmoe",
        "num_key_value_heads": 16,
        "num_experts": 64,
        "num_experts_per_tok": 8,
    },
}

# Model, metadata, publisher, and the files' bytes (GB: as the publisher's table rounds them).
PUBLISHED = [
    (
        "llama-3.2-1b", LLAMA3, "bartowski",
        "IQ3_M 657289344 IQ4_XS 743141504 Q3_K_L 732524672 Q4_0 773025920 Q4_K_S 775647360 Q4_K_M 807694464 "
        "Q5_K_S 892563584 Q5_K_M 911503488 Q6_K 1021800576 Q8_0 1321083008 fp16 2479595360",
    ),
    (
        "llama-3.2-3b", LLAMA3, "unsloth, bartowski",
        "IQ3_M 1599668768 IQ4_NL 1917190592 IQ4_XS 1829110208 Q2_K 1363935680 Q3_K_S 1542848960 Q3_K_M 1687159232 "
        "Q4_0 1921909184 Q4_1 2093351360 Q4_K_S 1928200640 Q4_K_M 2019377696 Q5_K_S 2269512128 Q5_K_M 2322153920 "
        "Q6_K 2643853856 Q8_0 3421899296 fp16 6433687616",
    ),
    (
        "llama-3.1-8b", LLAMA3, "bartowski",
        "Q2_K 3179136416 Q3_K_M 4018922912 Q4_K_M 4920739232 Q5_K_M 5732992416 Q6_K 6596011424 Q8_0 8540775840",
    ),
    (
        "llama-3.1-70b", LLAMA3, "bartowski",
        "Q2_K 26375113632 Q3_K_S 30.91GB IQ3_M 31.94GB Q3_K_M 34267499424 Q3_K_L 37.14GB IQ4_XS 37.90GB Q4_0 40.12GB "
        "Q4_K_S 40.35GB Q4_K_M 42520398752 Q5_K_S 48657451936 Q5_K_M 49.95GB Q6_K 57.89GB Q8_0 74.98GB",
    ),
    ("tinyllama-1.1b", TINYLLAMA, "TheBloke", "Q4_K_M 668788096"),
    ("smollm2-1.7b", SMOLLM, "bartowski", "Q4_K_M 1055609824"),
    (
        "mistral-7b-v0.3", MISTRAL3, "MaziyarPanahi",
        "IQ1_M 1757663392 Q2_K 2722877600 Q3_K_M 3522941088 Q4_K_M 4372811936 Q5_K_M 5136175264 Q6_K 5947248800 "
        "Q8_0 7702565024",
    ),
    (
        "mistral-nemo-12b", TEKKEN, "bartowski",
        "Q2_K 4791051392 Q3_K_M 6083093632 Q4_K_M 7477208192 Q5_K_M 8727635072 Q6_K 10056213632 Q8_0 13022372992",
    ),
    (
        "mistral-small-24b", TEKKEN, "bartowski",
        "Q2_K 8890324672 Q3_K_M 11474081472 Q4_K_M 14333908672 Q5_K_M 16763983552 Q6_K 19345938112 Q8_0 25054779072",
    ),
    (
        "mistral-small-2409", MISTRAL3, "bartowski",
        "Q2_K 8272098304 Q3_K_M 10756830208 Q4_K_M 13341242368 Q5_K_M 15722558464 Q6_K 18252706816 Q8_0 23640552448",
    ),
    (
        "minitron-8b", TEKKEN, "bartowski",
        "Q2_K 3333392064 Q3_K_M 4209149632 Q4_K_M 5145298624 Q5_K_M 6001460928 Q6_K 6911133376 Q8_0 8948844224",
    ),
    # Eight experts, to whom the quantizer gives more bits elsewhere.
    (
        "mixtral-8x7b", LLAMA2, "MaziyarPanahi",
        "Q2_K 17309173632 Q3_K_M 22544394112 Q4_K_M 28446410624 Q5_K_M 33227523968 Q6_K 38378760064 Q8_0 49624262528",
    ),
    (
        "mixtral-8x22b", LLAMA2, "bartowski",
        "Q2_K 52.10GB IQ3_XS 58.22GB Q3_K_S 61.49GB IQ3_S 61.49GB IQ3_M 64.49GB Q3_K_M 67.78GB Q3_K_L 72.57GB "
        "Q4_K_S 80.47GB Q4_K_M 85.58GB Q5_K_S 96.97GB Q5_K_M 99.96GB",
    ),
    (
        "qwen2.5-3b", QWEN, "bartowski",
        "Q2_K 1274756256 Q3_K_M 1590475936 Q4_K_M 1929903264 Q5_K_M 2224815264 Q6_K 2538159264 Q8_0 3285476512",
    ),
    (
        "qwen2.5-7b", QWEN, "Qwen, bartowski",
        "Q2_K 3015940800 Q3_K_M 3808391872 Q4_0 4431390720 Q4_K_M 4683074240 Q5_0 5315176576 Q5_K_M 5444831936 "
        "Q6_K 6254199488 Q8_0 8098525888 fp16 15237853184",
    ),
    (
        "qwen2.5-14b", QWEN, "Qwen, bartowski",
        "Q2_K 5770498176 Q3_K_M 7339204736 Q4_0 8517725856 Q4_K_M 8988110976 Q5_0 10266554048 Q5_K_M 10508873856 "
        "Q6_K 12124684416 Q8_0 15701598336 fp16 29547716864",
    ),
    (
        "qwen2.5-32b", QWEN, "Qwen, bartowski",
        "Q2_K 12313099136 Q3_K_M 15935048576 Q4_0 18640231072 Q4_K_M 19851336576 Q5_0 22638254272 "
        "Q5_K_M 23262157696 Q6_K 26886155136 Q8_0 34820885376 fp16 65535971488",
    ),
    (
        "qwen3-0.6b", QWEN, "unsloth",
        "IQ4_NL 381566656 IQ4_XS 367804096 Q2_K 296238784 Q3_K_S 323075776 Q3_K_M 347127488 Q4_0 382156480 "
        "Q4_1 409091776 Q4_K_S 383270592 Q4_K_M 396705472 Q5_K_S 436616896 Q5_K_M 444415680 Q6_K 495107776 "
        "Q8_0 639447744 bf16 1198182848",
    ),
    (
        "qwen3-1.7b", QWEN, "unsloth",
        "IQ4_NL 1054423616 IQ4_XS 1010383424 Q2_K 777796160 Q3_K_S 867252800 Q3_K_M 939539008 Q4_0 1056782912 "
        "Q4_1 1142504000 Q4_K_S 1060190784 Q4_K_M 1107409472 Q5_K_S 1230584384 Q5_K_M 1257880128 Q6_K 1417755200 "
        "Q8_0 1834426944 bf16 3447349568",
    ),
    ("qwen3-4b", QWEN, "unsloth", "Q4_K_M 2497281120"),
    (
        "qwen3-8b", QWEN, "unsloth",
        "IQ4_NL 4793625088 IQ4_XS 4581288448 Q2_K 3281734144 Q3_K_S 3769612800 Q3_K_M 4124162560 Q4_0 4787333632 "
        "Q4_1 5247756800 Q4_K_S 4802013696 Q4_K_M 5027785216 Q5_K_S 5720762880 Q5_K_M 5851113984 Q6_K 6725900800 "
        "Q8_0 8709519872 bf16 16388045056",
    ),
    (
        "qwen3-14b", QWEN, "Qwen",
        "Q4_K_M 9001752960 Q5_0 10263894400 Q5_K_M 10514569568 Q6_K 12121937248 Q8_0 15698533728",
    ),
    (
        "qwen3-32b", QWEN, "unsloth",
        "IQ4_NL 18679495328 IQ4_XS 17714805408 Q2_K 12344652448 Q3_K_S 14389739168 Q3_K_M 15971778208 "
        "Q4_0 18703088288 Q4_1 20636523168 Q4_K_S 18771245728 Q4_K_M 19762150048 Q5_K_S 22635494048 "
        "Q5_K_M 23214832288 Q6_K 26883307168 Q8_0 34817719968 bf16 65531575936",
    ),
    # 128 experts, in one tensor a layer.
    (
        "qwen3-30b-a3b", QWEN, "unsloth",
        "IQ4_NL 17310782016 IQ4_XS 16378073664 Q2_K 11258610240 Q3_K_S 13292468800 Q3_K_M 14711847488 "
        "Q4_0 17379988032 Q4_1 19192500800 Q4_K_S 17456009792 Q4_K_M 18556686912 Q5_K_S 21080511040 "
        "Q5_K_M 21725581888 Q6_K 25092532800 Q8_0 32483932736 bf16 61095803424",
    ),
    (
        "granite-3.0-2b", GRANITE, "bartowski",
        "Q2_K 1011275040 Q3_K_L 1400625056 Q4_K_M 1601919680 Q5_K_M 1874025920 Q6_K 2163138816 Q8_0 2801069184",
    ),
    (
        "granite-3.0-8b", GRANITE, "bartowski",
        "Q2_K 3103588576 Q3_K_L 4349427936 Q4_K_M 4942856416 Q5_K_M 5797445856 Q6_K 6705447136 Q8_0 8684244096",
    ),
    # Queries, keys and values in one matrix.
    (
        "phi-3.5-mini", LLAMA2, "bartowski",
        "IQ1_M 917106176 IQ2_M 1316395296 IQ3_XS 1625175840 IQ3_M 1855600416 IQ4_XS 2059853088 Q2_K 1416204576 "
        "Q3_K_S 1681798944 Q3_K_M 1955477280 Q3_K_L 2087597856 Q4_0 2182468896 Q4_K_S 2188760352 Q4_K_M 2393232672 "
        "Q5_K_S 2641474848 Q5_K_M 2815276320 Q6_K 3135853344 Q8_0 4061222688 fp32 15285057024",
    ),
    (
        "phi-3-medium", LLAMA2, "bartowski",
        "Q2_K 5143000448 Q3_K_M 6923411328 Q4_K_M 8566821248 Q5_K_M 10074190208 Q6_K 11453817728 Q8_0 14834712448",
    ),
    (
        "phi-4", CL100K, "bartowski",
        "Q2_K 5547348416 Q3_K_M 7363269056 Q4_K_M 9053114816 Q5_K_M 10604188096 Q6_K 12030251456 Q8_0 15580500416",
    ),
    ("phi-3.5-moe", LLAMA2, "bartowski", "Q4_K_M 25345994592"),
    (
        "stablelm-2-12b", CL100K, "second-state",
        "Q2_K 4698894176 Q3_K_M 5993885536 Q4_K_M 7367642976 Q5_K_M 8627900256 Q6_K 9966923616 Q8_0 12907687776",
    ),
    # Rows of 640 numbers are no whole number of blocks of 256: other types take their place.
    (
        "gemma-3-270m", GEMMA, "unsloth",
        "IQ4_NL 241964064 IQ4_XS 240858144 Q2_K 237079584 Q3_K_S 236710944 Q3_K_M 241964064 Q4_0 241574944 "
        "Q4_1 247677984 Q4_K_S 249889824 Q4_K_M 253115424 Q5_K_S 257999904 Q5_K_M 260027424 Q6_K 282975264 "
        "Q8_0 291546144 fp16 542835488",
    ),
    ("gemma-3-1b", GEMMA, "ggml-org", "Q4_K_M 806058240"),
    ("gemma-3-4b", GEMMA, "ggml-org", "Q4_K_M 2489757856 Q8_0 4130226336"),
    ("gemma-3-12b", GEMMA, "ggml-org", "Q4_K_M 7300574976"),
    (
        "gemma-2-2b", GEMMA, "bartowski",
        "IQ3_M 1393561440 IQ4_XS 1566250848 Q3_K_L 1550436192 Q4_K_S 1638651744 Q4_K_M 1708582752 Q5_K_S 1882543968 "
        "Q5_K_M 1923278688 Q6_K 2151393120 Q8_0 2784495456 fp32 10463413856",
    ),
    ("olmoe-1b-7b", OLMO, "allenai", "Q4_K_M 4213511776"),
    ("gpt-oss-20b", HARMONY, "ggml-org", "MXFP4_MOE 12109566624"),
    ("gpt-oss-120b", HARMONY, "ggml-org", "MXFP4_MOE 63387346208"),
]  # fmt: skip

FILES = [
    (name, metadata, mixture, size)
    for name, metadata, _, files in PUBLISHED
    for mixture, size in zip(files.split()[::2], files.split()[1::2])
]
TOLERANCE = 0.005

_matrix: Matrix = load_matrix()
_models: dict[str, Model] = {}


def model(name: str) -> Model:
    if name not in _models:
        _models[name] = model_of_config(CONFIGS[name], name) if name in CONFIGS else find(_matrix, name)
    return _models[name]


def size_of(text: str) -> float:
    return float(text[:-2]) * 1e9 if text.endswith("GB") else float(text)


@pytest.mark.parametrize(("name", "metadata", "mixture", "size"), FILES, ids=lambda value: str(value))
def test_a_published_file(name: str, metadata: int, mixture: str, size: str) -> None:
    counted = weight_bytes(_matrix, model(name)._replace(weights=scheme(_matrix, mixture).name)) + metadata
    assert counted == pytest.approx(size_of(size), rel=TOLERANCE)


# llama.cpp's own table of Llama 3.1 8B: bits of a parameter, to the fourth digit. (Its IQ4_NL and IQ4_XS were made
# without an importance matrix, as nobody publishes them.)
LLAMA_31_8B = {
    "IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403, "IQ2_M": 2.9294,
    "IQ3_XXS": 3.2548, "IQ3_XS": 3.4977, "IQ3_S": 3.6606, "IQ3_M": 3.7628, "Q2_K_S": 2.9697, "Q2_K": 3.1593,
    "Q3_K_S": 3.6429, "Q3_K_L": 4.2979, "Q4_K_S": 4.6672, "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036,
    "Q6_K": 6.5633, "Q8_0": 8.5008,
}  # fmt: skip


@pytest.mark.parametrize(("mixture", "bits"), LLAMA_31_8B.items())
def test_the_bits_of_a_parameter_that_llama_cpp_prints(mixture: str, bits: float) -> None:
    found = model("llama-3.1-8b")._replace(weights=mixture)
    assert weight_bytes(_matrix, found) * 8 / found.architecture.parameters == pytest.approx(bits, abs=0.0001)


def test_most_files_are_met_to_the_last_kilobyte() -> None:
    """What is left beside the tensors is the same in every file of a model: the tokenizer. So no type was guessed."""
    exact = 0
    for name, _, _, files in PUBLISHED:
        words = files.split()
        left = [
            int(size) - weight_bytes(_matrix, model(name)._replace(weights=scheme(_matrix, mixture).name))
            for mixture, size in zip(words[::2], words[1::2])
            if not size.endswith("GB") and not mixture.startswith(("fp", "bf"))
        ]
        middle = sorted(left)[len(left) // 2] if left else 0
        exact += sum(abs(rest - middle) < 100_000 for rest in left)
    assert exact >= 190
