"""Rows of --spec: the keys of published measurements, and of the command line's options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.spec import FILE, read_row
from cudadoctor.fit.workload import ALLOCATED, DEVICE, FULL, INFER, LORA, QLORA, RESERVED, WEIGHTS, Lora, Sharding
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model.fact import ParseError


def is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, list))


MEASUREMENTS = json.loads((Path(__file__).parent / "measurements.json").read_text("utf-8"))["vectors"]
MATRIX = load_matrix()


def test_a_model_alone_is_run(matrix: Matrix) -> None:
    question = read_row(matrix, {"model": "llama-3.1-8b"})
    assert question.workload.method == INFER
    assert question.level == DEVICE
    assert question.per_gpu
    assert question.model.architecture.name == "llama-3.1-8b"


# row -> fields of the workload
READ: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"method": "full", "optimizer": "adamw_bf16", "foreach": True}, {"method": FULL, "optimizer": "adamw"}),
    ({"method": "full", "fused": True}, {"fused_kernels": True, "fused_optimizer": False}),
    ({"method": "full", "compile": True}, {"fused_kernels": True}),
    ({"method": "full", "optimizer": "adamw_torch_fused"}, {"fused_optimizer": True}),
    ({"method": "full", "quant": "fp32"}, {"precision": "fp32"}),
    ({"method": "full", "precision": "bf16-mixed"}, {"precision": "mixed"}),
    ({"method": "lora", "quant": "nf4"}, {"method": QLORA}),
    ({"method": "lora", "quant": "bf16", "seq": 512}, {"method": LORA, "context": 512}),
    ({"method": "weights_only", "quant": "gguf:Q4_K_M", "batch": 0}, {"method": WEIGHTS, "batch": 1}),
    ({"prompt": 6144, "gen": 2048}, {"context": 8192, "prompt": 6144}),
    ({"method": "full", "parallel": "zero3", "n_gpus": 4}, {"sharding": Sharding("zero3", 4)}),
    ({"method": "full", "n_gpus": 4}, {"sharding": Sharding("ddp", 4)}),
    ({"tp": 8}, {"sharding": Sharding("tp", 8)}),
    ({"method": "full", "cpu_offload": True}, {"offload": "all"}),
    ({"method": "full", "gradient-checkpointing": True}, {"checkpointing": "full"}),
    ({"method": "full", "ckpt": "selective"}, {"checkpointing": "selective"}),
    ({"method": "full", "ce": "hf_old"}, {"loss": "upcast"}),
    ({"method": "full", "loss": "liger"}, {"loss": "fused"}),
    ({"method": "full", "attn": "flash_attention_2"}, {"attention": "flash"}),
    ({"method": "full", "data": "variable length truncated"}, {"variable_length": True}),
    ({"framework": "vllm 0.6.3"}, {"engine": "vllm"}),
    ({"framework": "llama.cpp"}, {"engine": "llama.cpp"}),
)


@pytest.mark.parametrize(("row", "fields"), READ, ids=[json.dumps(row[0]) for row in READ])
def test_what_a_row_says(matrix: Matrix, row: dict[str, Any], fields: dict[str, Any]) -> None:
    workload = read_row(matrix, {"model": "llama-3.1-8b", **row}).workload
    assert {name: getattr(workload, name) for name in fields} == fields


TARGETS = (
    (["qkv_fused", "o", "gate", "up", "down"], ("qkv", "o", "gate", "up", "down")),
    ("q_proj,v_proj", ("q", "v")),
    ("all-linear", ("all",)),
    (["all", "head"], ("all", "head")),
    (["c_attn", "mlp"], ("qkv", "gate", "up", "down")),
)


@pytest.mark.parametrize(("said", "read"), TARGETS, ids=str)
def test_targets_by_the_names_of_classes(matrix: Matrix, said: Any, read: tuple[str, ...]) -> None:
    row = {"model": "llama-3.1-8b", "method": "lora", "lora_targets": said}
    assert read_row(matrix, row).workload.lora.targets == read


# Adapters are fp32 in peft, and as wide as the model where the framework makes its own.
@pytest.mark.parametrize(("framework", "width"), [("", 4), ("ms-swift", 4), ("litgpt", 2), ("torchtune", 2)])
def test_width_of_adapters(matrix: Matrix, framework: str, width: int) -> None:
    row = {"model": "llama-3.1-8b", "method": "lora", "framework": framework or None}
    assert read_row(matrix, row).workload.lora.width == width


LEVELS = (
    ("allocated", ALLOCATED), ("allocated?", ALLOCATED), ("peak active", ALLOCATED), ("peak memory", ALLOCATED),
    ("reserved", RESERVED), ("nvidia-smi/reserved", DEVICE), ("nvidia-smi", DEVICE), ("device", DEVICE),
    ("file size", FILE), (None, DEVICE),
)  # fmt: skip


@pytest.mark.parametrize(("metric", "level"), LEVELS)
def test_what_is_asked_about(matrix: Matrix, metric: Any, level: str) -> None:
    assert read_row(matrix, {"model": "llama-3.1-8b", "metric": metric}).level == level


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"modell": "x"}, "The key 'modell' is not known: model is meant, perhaps."),
    ({"optimzer": "sgd"}, "optimizer is meant"),
    ({"zzz": 1}, "The key 'zzz' is not known; known are model"),
    ({"method": "prune"}, "The method 'prune' is none of"),
    ({"method": "full", "quant": "nf4"}, "cannot be trained in full"),
    ({"seq": 128, "context": 256}, "contradicts"),
    ({"method": "infer", "seq": 100, "prompt": 200}, "longer than the context"),
    ({"batch": "many"}, "is to be a number from 1"),
    ({"batch": 1.5}, "a whole number"),
    ({"batch": float("nan")}, "is to be a number"),
    ({"batch": 10**30}, "is to be a number from 1"),
    # Nothing at all is no batch and no rank: what is usual must not take its place.
    ({"batch": 0}, "batch is to be a number from 1"),
    ({"seq": 0}, "seq is to be a number from 1"),
    ({"n_gpus": 0}, "n_gpus is to be a number from 1"),
    ({"vram": 0}, "vram is to be the GiB of a GPU"),
    ({"method": "lora", "lora_r": 0}, "lora_r is to be a number from 1"),
    # Who forgets the method must not get the answer to another question.
    ({"lora_r": 16}, "The key lora_r is about training: add method full, lora or qlora."),
    ({"gradient_checkpointing": True}, "The key ckpt is about training"),
    ({"method": "full", "kv_dtype": "fp8"}, "The key kv_dtype is about running a model"),
    ({"batch": True}, "is to be a number"),
    ({"per_gpu": "yes"}, "true or false"),
    ({"attn": "fast"}, "none of flash, sdpa and eager"),
    ({"method": "full", "ckpt": "maybe"}, "none of none, full"),
    ({"parallel": "fsdp"}, "the key n_gpus is missing"),
    ({"parallel": "ring", "n_gpus": 2}, "none of none, ddp"),
    ({"method": "full", "parallel": "fsdp", "n_gpus": 8, "tp": 2}, "only one of them is counted"),
    ({"metric": "vibes"}, "The metric 'vibes'"),
    ({"method": "lora", "lora_targets": []}, "list of names"),
    ({"method": "lora", "lora_targets": 7}, "list of names"),
    ({"arch": "big"}, "is to be an object"),
    ({"quant": 4}, "to be a name"),
)


@pytest.mark.parametrize(("row", "sentence"), REFUSED, ids=[ascii(row[0])[:50] for row in REFUSED])
def test_what_is_not_understood_is_said_in_one_sentence(matrix: Matrix, row: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_row(matrix, {"model": "llama-3.1-8b", **row})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("row", [None, 3, "llama", [], {}], ids=repr)
def test_what_is_no_question(matrix: Matrix, row: Any) -> None:
    with pytest.raises(ParseError):
        read_row(matrix, row)


def test_a_model_that_the_catalogue_has_not_by_its_dimensions(matrix: Matrix) -> None:
    arch = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "intermediate": 128, "vocab": 100}
    question = read_row(matrix, {"model": "no-such-model-at-all", "arch": arch})
    assert question.model.architecture.hidden == 64
    assert question.model.architecture.layer_count == 2


def test_a_path_may_be_read_by_whoever_asks(matrix: Matrix) -> None:
    model = read_row(matrix, {"model": "llama-3.1-8b"}).model
    asked = []
    question = read_row(matrix, {"model": "./my/model"}, lambda text: asked.append(text) or model)  # type: ignore[func-returns-value]
    assert asked == ["./my/model"]
    assert question.model.architecture == model.architecture


def test_a_measurement_may_carry_remarks(matrix: Matrix) -> None:
    question = read_row(matrix, {"model": "llama-3.1-8b", "id": "x1", "weather": "sunny"})
    assert question.notes == ("the key 'weather' is not known and was left out",)
    with pytest.raises(ParseError, match="optimizer is meant"):
        read_row(matrix, {"model": "llama-3.1-8b", "id": "x1", "optimzer": "sgd"})


# What somebody wrote beside a measurement -> what of it is taken.
UNREAD: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"attn": "ring"}, {"attention": "sdpa"}),
    ({"ckpt": "every2"}, {"checkpointing": "none"}),
    ({"ce": "focal"}, {"loss": "plain"}),
    ({"optimizer": "ademamix_8bit"}, {"optimizer": "adamw_8bit"}),
    ({"optimizer": "paged_something_8bit"}, {"optimizer": "paged_adamw_8bit"}),
    ({"optimizer": "dist_muon"}, {"optimizer": "muon"}),
    ({"parallel": "fsdp+tp", "n_gpus": 8}, {"sharding": Sharding("fsdp", 8)}),
    ({"parallel": "zero3_offload", "n_gpus": 8}, {"sharding": Sharding("zero3", 8)}),
    ({"precision": "int8"}, {"precision": "bf16"}),
    ({"lora_targets": ["adapters"]}, {"lora": Lora()}),
    ({"method": "dora"}, {"method": LORA}),
    ({"method": "prune", "seq": None}, {"method": INFER}),
    ({"method": "prune", "seq": 512}, {"method": FULL}),
)
# The same, where it is understood after all.
READ_OF_THEM: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"attn": "flash3"}, {"attention": "flash"}),
    ({"accum": 16}, {"accumulation": True}),
    ({"accum": "no"}, {"accumulation": False}),
    ({"parallel": "FSDP2", "n_gpus": 2}, {"sharding": Sharding("fsdp", 2)}),
    ({"lora_targets": "attention"}, {"lora": Lora(targets=("q", "k", "v", "o"))}),
    ({"optimizer": "AdamW_bnb_8bit"}, {"optimizer": "adamw_8bit"}),
)


@pytest.mark.parametrize(
    ("row", "fields", "notes"),
    [(*one, 1) for one in UNREAD] + [(*one, 0) for one in READ_OF_THEM],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) and all(map(is_plain, value.values())) else "",
)
def test_a_measurement_in_words_of_its_own(
    matrix: Matrix, row: dict[str, Any], fields: dict[str, Any], notes: int
) -> None:
    """Nothing is lost for a word that is not known: what is usual is taken, said, and allowed for."""
    asked = {"id": "x", "model": "llama-3.1-8b", "method": "lora", "seq": 512, **row}
    workload = read_row(matrix, asked).workload
    assert {name: getattr(workload, name) for name in fields} == fields
    assert len(workload.unread) == notes, workload.unread
    model = read_row(matrix, asked).model
    need, plain = estimate(matrix, model, workload), estimate(matrix, model, workload._replace(unread=()))
    assert need.assumed[len(plain.assumed) :] == workload.unread
    assert (need.device.high > plain.device.high) is (need.device.low < plain.device.low) is bool(notes)


PROGRAMS = (
    ("transformers", "huggingface/peft method_comparison/MetaMathQA", "peft (transformers)"),
    ("", "axolotl-ai-cloud/axolotl examples", "axolotl (transformers)"),
    ("transformers 4.40", "hiyouga/LLaMA-Factory wiki", "llama-factory (transformers 4.40)"),
    ("ms-swift 2.x / transformers", "huggingface/peft", "ms-swift 2.x / transformers"),
    ("transformers", "huggingface.co/docs/transformers", "transformers"),
)


@pytest.mark.parametrize(("framework", "source", "found"), PROGRAMS, ids=[row[1] for row in PROGRAMS])
def test_the_source_names_the_program_that_trained(matrix: Matrix, framework: str, source: str, found: str) -> None:
    row = {"model": "llama-3.2-1b", "method": "lora", "framework": framework, "source": source}
    assert read_row(matrix, row).workload.framework == found


def test_a_measurement_taken_after_the_prompt(matrix: Matrix) -> None:
    """Rows that say so are about what stands then, not about what lives for a moment while the prompt passes."""
    row = {"id": "x", "model": "qwen3-0.6b", "prompt": 30_720, "gen": 2048, "framework": "transformers-4.51"}
    after = read_row(matrix, {**row, "impl": "no_prefill"})
    assert after.workload.prefill_chunk == 1
    assert read_row(matrix, {**row, "impl": "count_prefill"}).workload.prefill_chunk == 0
    need = estimate(matrix, after.model, after.workload)
    assert need.peak == "decoding"
    assert read_row(matrix, {**row, "impl": "no_prefill", "chunk": 512}).workload.prefill_chunk == 512


def test_of_two_keys_of_one_meaning_a_measurement_has_the_plain_one(matrix: Matrix) -> None:
    question = read_row(matrix, {"id": "x", "model": "llama-3.2-1b", "seq": 512, "max_seq_len": 1024})
    assert question.workload.context == 512 and len(question.workload.unread) == 1


def test_a_measurement_names_a_quantisation_by_its_bits(matrix: Matrix) -> None:
    asked = read_row(matrix, {"id": "x", "model": "llama-3.1-8b", "quant": "exl9-4bit"})
    assert asked.model.weights == "gptq-int4" and asked.workload.unread
    with pytest.raises(ParseError, match="exl9"):
        read_row(matrix, {"model": "llama-3.1-8b", "quant": "exl9-4bit"})


def test_dimensions_decide_which_part_of_a_model_is_meant(matrix: Matrix) -> None:
    """Gemma 3 with the part that sees, and without."""
    arch = {"layers": 34, "hidden": 2560, "params": 3_880_263_168}
    whole = read_row(matrix, {"id": "x", "model": "gemma-3-4b"}).model.architecture
    text = read_row(matrix, {"id": "x", "model": "gemma-3-4b", "arch": arch}).model.architecture
    assert (whole.parameters, text.parameters) == (4_300_079_472, 3_880_263_168)


def test_dimensions_that_tell_less_than_all_leave_the_size(matrix: Matrix) -> None:
    arch = {"layers": 19, "hidden": 3072, "vocab": None, "params": 7_000_000_000}
    question = read_row(matrix, {"id": "x", "model": "no-such-model", "arch": arch})
    assert question.model.architecture.parameters == pytest.approx(7e9, rel=0.02)
    assert len(question.workload.unread) == 1


def test_feed_forward_parts_without_gates_are_told_by_the_count(matrix: Matrix) -> None:
    arch = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "intermediate": 256, "vocab": 100}
    gated = read_row(matrix, {"id": "x", "model": "none-such", "arch": arch}).model.architecture
    plain = gated.parameters - 2 * 64 * 256
    found = read_row(matrix, {"id": "x", "model": "none-such", "arch": {**arch, "params": plain}}).model.architecture
    assert found.parameters < gated.parameters


def test_a_card_is_named_or_measured(matrix: Matrix) -> None:
    question = read_row(matrix, {"model": "llama-3.1-8b", "gpu": "RTX 4090", "vram": 24})
    assert question.gpu == "RTX 4090"
    assert question.vram == 24 * 2**30


@pytest.mark.once
def test_every_published_measurement_can_be_asked_for() -> None:
    for row in MEASUREMENTS:
        question = read_row(MATRIX, row)
        assert question.id == row["id"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from(sorted({key for row in MEASUREMENTS for key in row} | {"kv_dtype", "gpu", "vram", "tp"}))


@pytest.mark.once
@settings(max_examples=150, deadline=None)
@given(st.dictionaries(keys | st.text(max_size=10), values, max_size=6))
def test_any_object_is_read_or_refused_in_one_sentence(row: dict[str, Any]) -> None:
    try:
        read_row(MATRIX, {"model": "llama-3.2-1b", **row})
    except ParseError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 700
        str(error).encode("ascii")
