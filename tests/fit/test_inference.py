"""What inference needs: published measurements, the moments of a run, and what more never makes less."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.fit.catalogue import find
from cudadoctor.fit.config import model_of_config
from cudadoctor.fit.inference import inference
from cudadoctor.fit.need import ACTIVATIONS, BUFFERS, CACHED, CONTEXT, KV_CACHE, PARTS, Need, Term
from cudadoctor.fit.workload import WEIGHTS, Sharding, Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError

pytestmark = pytest.mark.once

GB, GIB, MIB = 10**9, 1 << 30, 1 << 20


def needs(matrix: Matrix, name: str, weights: str = "", **given: Any) -> Need:
    model = find(matrix, name)
    return inference(matrix, model._replace(weights=weights or model.weights), Workload(**given))


def term(need: Need, name: str) -> Term:
    found = [one for one in need.terms if one.name == name]
    assert len(found) == 1, [one.name for one in need.terms]
    return found[0]


# What torch.cuda.max_memory_allocated() was, in GiB: Qwen's speed benchmark of Qwen2.5, transformers 4.46 with flash
# attention on an A100, 2048 tokens generated; the column is the prompt.
QWEN25 = [
    ("qwen2.5-0.5b", "bf16", {1: 0.97, 6144: 1.23, 14336: 1.60, 30720: 2.34}, 1.6),
    ("qwen2.5-1.5b", "bf16", {1: 2.95, 6144: 3.43, 14336: 4.16, 30720: 5.62}, 1.0),
    ("qwen2.5-1.5b", "awq", {1: 1.51, 6144: 1.63, 14336: 2.36, 30720: 3.82}, 1.0),
    ("qwen2.5-3b", "bf16", {1: 5.95, 6144: 6.59, 14336: 7.47, 30720: 9.30}, 0.8),
    ("qwen2.5-3b", "gptq-int8", {1: 3.38, 6144: 3.98, 14336: 4.89, 30720: 6.72}, 1.0),
    ("qwen2.5-7b", "bf16", {1: 14.38, 6144: 15.38, 14336: 16.91, 30720: 19.97}, 0.3),
    ("qwen2.5-7b", "gptq-int4", {1: 5.52, 6144: 6.52, 14336: 8.05, 30720: 11.11}, 1.2),
    ("qwen2.5-14b", "bf16", {1: 28.08, 6144: 29.50, 14336: 31.95, 30720: 36.85}, 0.2),
    ("qwen2.5-32b", "bf16", {1: 61.58, 6144: 63.72, 14336: 67.31, 30720: 74.47}, 0.2),
    ("qwen2.5-32b", "awq", {1: 18.67, 6144: 20.81, 14336: 24.39, 30720: 31.56}, 0.4),
    ("qwen2.5-72b", "gptq-int4", {1: 39.91, 6144: 42.50, 14336: 46.86}, 0.5),
]


@pytest.mark.parametrize(("name", "weights", "measured", "percent"), QWEN25, ids=[f"{r[0]}-{r[1]}" for r in QWEN25])
def test_qwen25_with_transformers(
    matrix: Matrix, name: str, weights: str, measured: dict[int, float], percent: float
) -> None:
    for prompt, gib in measured.items():
        found = needs(
            matrix,
            name,
            weights,
            context=prompt + 2048,
            prompt=prompt,
            framework="transformers-4.46",
            attention="flash",
        ).allocated
        assert found.expected / GIB == pytest.approx(gib, rel=percent / 100), prompt
        assert found.low / GIB - 0.005 <= gib <= found.high / GIB + 0.005, prompt


# litgpt's tutorials, in GB: falcon-7b on one GPU, a short prompt, 256 tokens.
LITGPT = [("fp32", 28.95), ("bf16", 14.50), ("nf4", 5.72), ("nf4-dq", 5.38), ("int8", 8.70)]


@pytest.mark.parametrize(("weights", "gb"), LITGPT, ids=[row[0] for row in LITGPT])
def test_falcon_with_litgpt(matrix: Matrix, weights: str, gb: float) -> None:
    """Head and embedding are two tensors there, the head is quantised, too, and what quantises on the GPU needs the
    largest matrix beside in 16 bits."""
    found = needs(matrix, "falcon-7b", weights, context=272, prompt=16, framework="litgpt")
    assert found.allocated.expected / GB == pytest.approx(gb, rel=0.005)
    assert found.peak == ("prefill" if weights in ("fp32", "bf16") else "loading")


def test_several_gpus_one_after_the_other(matrix: Matrix) -> None:
    """Qwen2.5-72B on three A100, the sum over the GPUs: on each of them lives what passes through its layers."""
    found = needs(matrix, "qwen2.5-72b", context=32768, prompt=30720, framework="transformers-4.46", attention="flash",
                  sharding=Sharding("pp", 3))  # fmt: skip
    assert found.all_gpus.expected / GIB == pytest.approx(164.79, rel=0.002)
    assert found.gpus == 3


def test_the_numbers_of_an_8b_model(matrix: Matrix) -> None:
    """Term by term, as --explain shows it."""
    found = needs(matrix, "llama-3.1-8b", context=4096)
    assert [(one.part, one.name, one.bytes) for one in found.terms if one.part not in (CACHED, CONTEXT)] == [
        ("weights", "32 layers", 13_959_168_000),
        ("weights", "embedding", 128256 * 4096 * 2),
        ("weights", "output head", (128256 + 1) * 4096 * 2),
        ("buffers", "cuBLAS workspace", 8 * MIB + 128 * 1024),
        ("buffers", "rests of blocks", 0),
        ("kv_cache", "32 layers, 4,096 tokens", 512 * MIB),
        ("activations", "one layer's intermediate results", 4096 * (3 * 14336 + 4 * 4096) * 2),
    ]
    assert term(found, "32 layers, 4,096 tokens").numbers == "32 x 1 x 4,096 x 2,048 x 2"
    assert term(found, "one layer's intermediate results").numbers == "4,096 x (3 x 14,336 + 4 x 4,096) x 2"
    assert found.peak == "prefill"
    assert found.kv_bytes_per_token == 131072
    assert found.assumed == ("The whole context passes at once, as a prompt.",)


def test_weights_alone(matrix: Matrix) -> None:
    found = needs(matrix, "llama-3.1-8b", method=WEIGHTS)
    assert found.allocated.expected == found.device.expected
    assert found.allocated.high < found.device.high  # blocks are not full
    assert found.allocated.expected == 2 * 8_030_261_248
    assert 0.99 * found.allocated.expected < found.allocated.low < found.allocated.expected < found.allocated.high


def test_a_short_prompt_peaks_while_decoding(matrix: Matrix) -> None:
    assert needs(matrix, "llama-3.1-8b", context=4096, prompt=16).peak == "decoding"


# ------------------------------------------------------------------------------------------------ versions


def test_before_4_45_the_logits_of_all_tokens_were_computed(matrix: Matrix) -> None:
    """4096 tokens x 152064 words x (2 + 4) bytes: 3.5 GiB that today's version does not need."""
    old, new = (needs(matrix, "qwen2.5-7b", framework=f"transformers-{one}").allocated for one in ("4.44", "4.45"))
    assert old.expected - new.expected > 2 * GIB
    assert needs(matrix, "qwen2.5-7b", framework="transformers==4.44.2").peak == "logits of the prompt"


def test_since_4_50_weights_are_cut_out_of_one_block(matrix: Matrix) -> None:
    old = term(needs(matrix, "qwen2.5-3b", framework="transformers-4.49"), "rests of blocks")
    assert old.bytes == pytest.approx(108 * MIB, rel=0.05)
    assert term(needs(matrix, "qwen2.5-3b", framework="transformers-4.50"), "rests of blocks").bytes == 0
    assert term(needs(matrix, "qwen2.5-3b"), "rests of blocks").bytes == 0


def test_autogptq_unpacks_one_matrix_at_a_time(matrix: Matrix) -> None:
    old = needs(matrix, "qwen2.5-7b", "gptq-int4", framework="transformers-4.46")
    assert term(old, "buffer of ExLlama").bytes == 2 * 18944 * 3584
    assert term(needs(matrix, "qwen2.5-7b", "gptq-int4"), "buffer of ExLlama").bytes == 0


def test_an_awq_file_of_a_tied_model_brings_the_head_along(matrix: Matrix) -> None:
    found = needs(matrix, "qwen2.5-1.5b", "awq", context=16, prompt=8)
    assert found.peak == "loading"
    assert term(found, "output head, until it is tied").bytes == 151936 * 1536 * 2
    # An 8-bit file of a tied model keeps it.
    assert term(needs(matrix, "qwen2.5-1.5b", "fp8"), "output head").bytes == 151936 * 1536 * 2 + 1536 * 2


# ------------------------------------------------------------------------------------------------ attention


def test_scores_are_quadratic_without_a_fused_kernel(matrix: Matrix) -> None:
    found = needs(matrix, "llama-3.1-8b", context=4096, attention="eager")
    assert term(found, "scores of attention").bytes == 32 * 4096 * 4096 * 10
    for attention in ("sdpa", "flash"):
        names = [one.name for one in needs(matrix, "llama-3.1-8b", context=4096, attention=attention).terms]
        assert "scores of attention" not in names


def test_a_window_needs_a_mask_without_flash_attention(matrix: Matrix) -> None:
    found = term(needs(matrix, "gemma-3-4b", context=8192), "mask of the window")
    assert found.bytes == 3 * 8192**2
    assert "mask of the window" not in [one.name for one in needs(matrix, "gemma-3-4b", context=100).terms]


def test_where_sdpa_knows_no_sinks_it_is_not_used(matrix: Matrix) -> None:
    """gpt-oss has a sink for each head: without flash attention every score is computed."""
    found = term(needs(matrix, "gpt-oss-20b", context=4096), "scores of attention")
    assert found.bytes == 64 * 4096 * 4096 * 10
    flash = needs(matrix, "gpt-oss-20b", context=4096, attention="flash")
    assert "scores of attention" not in [one.name for one in flash.terms]


def test_until_the_first_answer_a_window_keeps_the_whole_prompt(matrix: Matrix) -> None:
    """transformers cuts the cache of such a layer by a view: the memory goes when the next token comes."""
    found = needs(matrix, "gpt-oss-20b", context=8192)
    assert found.peak == "prefill"
    assert sum(one.bytes for one in found.terms if one.part == KV_CACHE) == 8192 * 48 * 1024


# ------------------------------------------------------------------------------------------------ other kinds of models


def test_whisper_keeps_what_its_encoder_said(matrix: Matrix) -> None:
    found = needs(matrix, "whisper-tiny", context=4096)
    assert found.assumed[0] == "The encoder sees 1,500 tokens, the decoder writes up to 448."
    across = [one for one in needs(matrix, "whisper-large-v3").terms if one.name == "32 layers, 1,500 tokens"]
    assert across[0].bytes == 32 * 1500 * 2 * 1280 * 2


def test_t5_adds_a_bias_to_its_scores(matrix: Matrix) -> None:
    """The bias of its positions is added to each of them."""
    found = needs(matrix, "t5-small", context=4096, attention="sdpa")
    assert term(found, "scores of attention").bytes == 8 * 4096 * 4096 * 3


def test_an_encoder_sees_no_more_than_it_has_positions_for(matrix: Matrix) -> None:
    found = needs(matrix, "bert-base-uncased", context=100_000)
    assert found.peak == "one pass"
    assert term(found, "one layer's intermediate results").numbers.startswith("512 x (2 x 3,072 + 4 x 768)")
    assert not [one for one in found.terms if one.part == KV_CACHE]


def test_an_image_is_so_many_tokens(matrix: Matrix) -> None:
    found = needs(matrix, "vit-base-patch16-224", batch=8)
    assert found.assumed == ("One item is 197 tokens: the default size.",)
    assert term(found, "one layer's intermediate results").numbers.startswith("1,576 x (")


def test_a_denoiser_says_what_is_left_out(matrix: Matrix) -> None:
    found = needs(matrix, "sd3-medium-transformer")
    assert found.assumed[0].startswith("Text encoders and the VAE are not counted")
    assert found.terms[0].bytes > 3 * GIB


def test_a_guessed_model_is_uncertain(matrix: Matrix) -> None:
    from cudadoctor.fit.typical import model_of_size

    found = inference(matrix, model_of_size(matrix, "7b"), Workload())
    assert found.assumed[0].endswith("a typical model of that size, not a certain one.")
    assert found.allocated.low < 0.95 * found.allocated.expected


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "tensorrt"}, "engine 'tensorrt' is none of"),
        ({"sharding": Sharding("magic", 2)}, "sharding 'magic' is none of"),
        ({"kv": "int3"}, "int3"),
        ({"batch": 0}, "one sequence or more"),
    ],
)
def test_what_cannot_be_counted_is_one_sentence(matrix: Matrix, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ParseError, match=said) as caught:
        needs(matrix, "llama-3.1-8b", **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
def test_engines_of_text_run_no_images(matrix: Matrix, engine: str) -> None:
    with pytest.raises(ParseError, match="is not counted"):
        needs(matrix, "vit-base-patch16-224", engine=engine)


# ------------------------------------------------------------------------------------------------ what always holds

NAMES = ["llama-3.1-8b", "qwen2.5-0.5b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-v2-lite", "gemma-3-4b", "falcon-7b"]
VARIED = ("batch", "context", "engine", "framework", "attention", "prefill_chunk", "sharding")
# Widest first.
PLAIN_WEIGHTS = ["fp32", "bf16", "gptq-int8", "nf4", "nf4-dq"]

workloads = st.builds(
    lambda *values: Workload()._replace(**dict(zip(VARIED, values))),
    st.integers(1, 32),
    st.integers(1, 100_000),
    st.sampled_from(["transformers", "vllm", "llama.cpp"]),
    st.sampled_from(["", "transformers-4.30", "transformers-4.46", "litgpt", "vllm-0.6.3"]),
    st.sampled_from(["sdpa", "flash", "eager"]),
    st.sampled_from([0, 1, 512, 8192]),
    st.sampled_from([Sharding(), Sharding("tp", 2), Sharding("tp", 8), Sharding("pp", 4)]),
)


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(NAMES), workload=workloads, more=st.integers(1, 5000))
def test_more_never_needs_less(matrix: Matrix, name: str, workload: Workload, more: int) -> None:
    model = find(matrix, name)

    def device(workload: Workload) -> int:
        return inference(matrix, model, workload).device.expected

    here = device(workload)
    assert device(workload._replace(batch=workload.batch + 1)) >= here
    assert device(workload._replace(context=workload.context + more)) >= here
    assert device(workload._replace(prompt=1)) <= here
    if workload.engine != "vllm":  # which profiles its default, however few tokens there are
        assert device(workload._replace(prefill_chunk=1)) <= here


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(NAMES), workload=workloads)
def test_chunks_of_a_prompt_never_need_more(matrix: Matrix, name: str, workload: Workload) -> None:
    model = find(matrix, name)
    whole = inference(matrix, model, workload._replace(prefill_chunk=0)).device.expected
    assert inference(matrix, model, workload._replace(prefill_chunk=256)).device.expected <= whole


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(NAMES), workload=workloads, wider=st.integers(0, 3))
def test_more_bits_never_need_less(matrix: Matrix, name: str, workload: Workload, wider: int) -> None:
    model = find(matrix, name)
    sizes = [
        inference(matrix, model._replace(weights=one), workload._replace(method=WEIGHTS)).allocated.expected
        for one in PLAIN_WEIGHTS[wider : wider + 2]
    ]
    assert sizes == sorted(sizes, reverse=True)
    cached = [
        inference(matrix, model, workload._replace(kv=one)).device.expected for one in ("fp32", "bf16", "fp8", "Q4_0")
    ]
    assert cached == sorted(cached, reverse=True)


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(NAMES), workload=workloads)
def test_more_gpus_never_need_more_of_each(matrix: Matrix, name: str, workload: Workload) -> None:
    model = find(matrix, name)
    for kind in ("tp", "pp"):
        two, four = (
            inference(matrix, model, workload._replace(sharding=Sharding(kind, gpus))).allocated.expected
            for gpus in (2, 4)
        )
        assert four <= two
        assert two <= inference(matrix, model, workload._replace(sharding=Sharding())).allocated.expected


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(NAMES), workload=workloads)
def test_terms_add_up(matrix: Matrix, name: str, workload: Workload) -> None:
    found = inference(matrix, find(matrix, name), workload)
    order = [PARTS.index(one.part) for one in found.terms]
    inside = [one for one, place in zip(found.terms, order) if place <= PARTS.index(BUFFERS)]
    assert sum(one.bytes for one in inside) == found.allocated.expected
    kept = sum(one.bytes for one in found.terms if one.part == CACHED)
    assert found.reserved.expected == found.allocated.expected + kept
    assert found.device.expected == sum(one.bytes for one in found.terms)
    for level in (found.allocated, found.reserved, found.device, found.all_gpus, found.host):
        assert 0 <= level.low <= level.expected <= level.high
    assert found.allocated.expected <= found.reserved.expected <= found.device.expected
    assert found.all_gpus.expected >= found.allocated.expected
    for one in found.terms:
        assert 0 <= one.low <= one.bytes <= one.high, one
        assert one.formula and one.numbers and (one.formula + one.numbers + one.name).isascii()


def test_an_odd_config_is_counted_like_any_other(matrix: Matrix) -> None:
    """Heads wider than the hidden state divided by their number, one head of keys and values."""
    model = model_of_config(
        {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 5, "head_dim": 96,
         "num_key_value_heads": 1, "intermediate_size": 1000, "vocab_size": 999},
        "odd",
    )  # fmt: skip
    found = inference(matrix, model, Workload(context=100))
    assert found.kv_bytes_per_token == 3 * 2 * 96 * 2
    # Its queries take more than its feed-forward part.
    act = next(one for one in found.terms if one.part == ACTIVATIONS)
    assert act.bytes == 100 * max(3 * 1000 + 4 * 512, 3 * 512 + 4 * 480 + 2 * 96, 8 * 512) * 2
