"""What helps: each change alone, in the order of its cost, and the first combination that fits."""

from __future__ import annotations

import re
from typing import Any

import plain_sums
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_sums import GIB, ids

from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, Change
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.change_kinds import CHANGES, spreads
from cudadoctor.fit.changes import cost, each_alone, variants_of
from cudadoctor.fit.cure import cure
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.fit.target import Machine, Target
from cudadoctor.fit.targets import target_of_name, target_of_size
from cudadoctor.fit.workload import FULL, INFER, LORA, QLORA, Lora, Sharding, Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once

ORDER = {"none": 0, "a little": 1, "some": 2, "much": 3}


def sums(matrix: Matrix, target: Target) -> Sums:
    return Sums(matrix, target, plain_sums.estimate)


def alone(matrix: Matrix, target: Target, workload: Workload, weights: str = "bf16") -> dict[str, Change]:
    setting = Setting(plain_sums.model(weights=weights), workload)
    return {change.id: change for change in each_alone(sums(matrix, target), setting)}


# -- the data and the code speak of the same changes


def test_each_change_has_its_row_and_each_row_its_change(matrix: Matrix) -> None:
    assert set(matrix.changes()) == set(CHANGES)


def test_each_line_is_of_a_change_and_each_change_is_written_somewhere(matrix: Matrix) -> None:
    assert {row["change"] for row in matrix.raw("changes")["line"]} == set(CHANGES)


def test_each_demand_is_asked_for(matrix: Matrix) -> None:
    asked = {*CHANGES, *(f"{change}-{name}" for change in CHANGES for name in matrix.frameworks_of_changes())}
    asked |= {"bf16", "transformers", "vllm", "llama.cpp"}
    assert {row["feature"] for row in matrix.raw("changes")["demand"]} <= asked


def test_lines_speak_of_numbers_that_there_are(matrix: Matrix) -> None:
    known = {"batch", "steps", "context", "all", "rank", "gpus", "chunk", "layers", "gib", "host", "moved", "method"}
    known |= {"compute", "storage", "task", "experts", "unchecked"}
    for row in matrix.raw("changes")["line"]:
        for line in row["lines"]:
            named = set(re.findall(r"(?<!\{)\{(\w+)\}(?!\})", line))
            assert named <= known, line


# -- how each is written

ALONE = [
    # framework, workload, change, line
    (
        Workload(method=FULL, batch=8, context=2048),
        {
            "expandable-segments": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "fused-loss": "TrainingArguments(use_liger_kernel=True)",
            "smaller-batch": "TrainingArguments(per_device_train_batch_size=1, gradient_accumulation_steps=8)",
            "checkpointing": "TrainingArguments(gradient_checkpointing=True, "
            'gradient_checkpointing_kwargs={"use_reentrant": False})',
            "optimizer-8bit": 'TrainingArguments(optim="adamw_bnb_8bit")',
            "optimizer-paged": 'TrainingArguments(optim="paged_adamw_8bit")',
            "lora": 'get_peft_model(model, LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM"))',
            "qlora": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", '
            "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)",
            "shorter-sequences": "SFTConfig(max_length=1024), or tokenizer(..., truncation=True, max_length=1024)",
            "offload-optimizer": "accelerate launch --use_deepspeed --zero_stage 2 --offload_optimizer_device cpu "
            "train.py",
        },
    ),
    (
        Workload(method=FULL, batch=8, context=2048, framework="axolotl"),
        {
            "smaller-batch": "micro_batch_size: 1",
            "checkpointing": "gradient_checkpointing: true",
            "optimizer-8bit": "optimizer: adamw_bnb_8bit",
            "shorter-sequences": "sequence_len: 1024",
        },
    ),
    (
        Workload(method=FULL, batch=8, context=2048, framework="torchtune"),
        {
            "chunked-loss": "loss=torchtune.modules.loss.LinearCrossEntropyLoss",
            "checkpointing": "enable_activation_checkpointing=True",
            "optimizer-paged": "optimizer=bitsandbytes.optim.PagedAdamW8bit",
        },
    ),
    (
        Workload(batch=4, context=8192, engine="vllm"),
        {
            "kv-8bit": "--kv-cache-dtype fp8",
            "weights-fp8": "--quantization fp8",
            "smaller-prefill": "--max-num-batched-tokens 512",
            "fewer-sequences": "--max-num-seqs 1",
            "shorter-context": "--max-model-len 4096",
        },
    ),
    (
        Workload(batch=2, context=8192, engine="llama.cpp"),
        {
            "kv-8bit": "-fa on -ctk q8_0 -ctv q8_0",
            "kv-4bit": "-fa on -ctk q4_0 -ctv q4_0",
            "smaller-prefill": "-ub 128",
            "fewer-sequences": "-np 1 -c 8192",
            "shorter-context": "-c 8192",  # 4096 for each of two sequences
        },
    ),
    (
        Workload(batch=2, context=8192),
        {
            "weights-int8": "from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_8bit=True))",
            "smaller-prefill": "model.generate(..., prefill_chunk_size=256)",
        },
    ),
]


@pytest.mark.parametrize(
    ("workload", "lines"), ALONE, ids=[case[0].framework or case[0].engine + "-" + case[0].method for case in ALONE]
)
def test_a_change_is_written_as_the_framework_wants_it(
    matrix: Matrix, workload: Workload, lines: dict[str, str]
) -> None:
    found = alone(matrix, plain_sums.target(4), workload)
    assert {name: found[name].lines[0] for name in lines} == lines


def test_what_is_sharded_is_offloaded_and_quantised_in_its_own_words(matrix: Matrix) -> None:
    workload = Workload(method=LORA, sharding=Sharding("fsdp", 2))
    found = alone(matrix, plain_sums.target(2, 2), workload)
    assert "--fsdp_offload_params true --num_processes 2" in found["offload-all"].lines[0]
    assert "bnb_4bit_quant_storage=torch.bfloat16" in found["qlora"].lines[0]
    single = alone(matrix, plain_sums.target(2), Workload(method=LORA))
    assert "--zero_stage 3" in single["offload-all"].lines[0]
    assert "quant_storage" not in single["qlora"].lines[0]


@pytest.mark.parametrize("framework", ["transformers", "axolotl", "llama-factory", "ms-swift", "torchtune", "litgpt"])
def test_no_change_is_offered_in_words_of_another_framework(matrix: Matrix, framework: str) -> None:
    found = alone(matrix, plain_sums.target(4), Workload(method=FULL, batch=8, framework=framework))
    assert found
    for change in found.values():
        written = matrix.change_lines(change.id, framework)
        assert written is not None
        assert len(change.lines) == len(written.lines)


def test_what_a_change_costs_and_who_says_so_stand_beside_it(matrix: Matrix) -> None:
    found = alone(matrix, plain_sums.target(4), Workload(method=FULL, batch=8))
    change = found["checkpointing"]
    assert (change.quality, change.speed) == ("none", "some")
    assert change.why.startswith("activations are worked out again")
    assert "training_args.py" in change.source and change.source.endswith("(2026-11-30)")
    assert "{" not in "".join(change.title for change in found.values())


# -- in the order of their cost


@pytest.mark.parametrize("method", [INFER, FULL, LORA, QLORA])
@pytest.mark.parametrize("engine", ["transformers", "vllm", "llama.cpp"])
def test_changes_come_by_quality_then_speed_then_bytes(matrix: Matrix, method: str, engine: str) -> None:
    weights = "nf4-dq" if method == QLORA else "bf16"
    found = list(alone(matrix, plain_sums.target(6), Workload(method=method, batch=4, engine=engine), weights).values())
    assert found
    keys = [
        (3 in (ORDER[change.quality], ORDER[change.speed]), ORDER[change.quality], ORDER[change.speed], -change.saves)
        for change in found
    ]
    assert keys == sorted(keys)
    assert all(change.saves > 0 for change in found)


def test_layers_go_to_the_memory_that_there_is_or_a_quarter_more_than_they_take(matrix: Matrix) -> None:
    # Half of the weights, 8e9 bytes, and the twentieth that is kept beside: 8.4e9 x 5 / 4 are 9.8 GiB.
    found = alone(matrix, plain_sums.target(4), Workload())["offload-layers"]
    assert found.saves == 8_400_000_000
    assert '"cpu": "9GiB"' in found.lines[0]
    known = plain_sums.target(4, machine=Machine(memory_available=40 * GIB))
    assert '"cpu": "40GiB"' in alone(matrix, known, Workload())["offload-layers"].lines[0]


def test_a_rank_becomes_8_and_a_context_no_shorter_than_256(matrix: Matrix) -> None:
    card = plain_sums.target(4)
    assert alone(matrix, card, Workload(method=LORA, batch=1, lora=Lora(64)))["lora-rank"].lines == ("LoraConfig(r=8)",)
    assert "lora-rank" not in alone(matrix, card, Workload(method=LORA, batch=1, lora=Lora(8)))
    short = alone(matrix, card, Workload(method=LORA, context=300))["shorter-sequences"].lines[0]
    assert short.startswith("SFTConfig(max_length=256)")
    for workload in (Workload(method=LORA, context=256), Workload(context=256)):
        assert not {"shorter-sequences", "shorter-context"} & set(alone(matrix, card, workload))


def test_what_is_ten_times_slower_comes_after_fewer_bits(matrix: Matrix) -> None:
    found = ids(list(alone(matrix, plain_sums.target(6), Workload()).values()))
    assert found.index("weights-4bit") < found.index("offload-layers")
    assert cost(matrix.changes()["offload-layers"]) > cost(matrix.changes()["weights-4bit"])


# -- only what applies


@pytest.mark.parametrize(
    ("change", "workload", "target", "offered"),
    [
        ("expandable-segments", Workload(method=FULL), plain_sums.target(24), True),
        ("expandable-segments", Workload(method=FULL), plain_sums.target(24, system="windows"), False),
        ("expandable-segments", Workload(method=FULL), plain_sums.target(24, system="wsl"), False),
        ("expandable-segments", Workload(method=FULL), plain_sums.target(24, system=""), True),
        ("expandable-segments", Workload(method=FULL, expandable_segments=True), plain_sums.target(24), False),
        ("expandable-segments", Workload(engine="llama.cpp"), plain_sums.target(24), False),
        ("kv-8bit", Workload(engine="vllm"), plain_sums.target(24, capability="8.9"), True),
        ("kv-8bit", Workload(engine="vllm"), plain_sums.target(24, capability="8.6"), False),
        ("kv-8bit", Workload(engine="vllm"), plain_sums.target(24, capability=""), True),
        ("kv-8bit", Workload(engine="llama.cpp"), plain_sums.target(24, capability="6.1"), True),
        ("kv-8bit", Workload(engine="transformers"), plain_sums.target(24), False),
        ("kv-8bit", Workload(engine="vllm", kv="fp8"), plain_sums.target(24), False),
        ("weights-fp8", Workload(engine="vllm"), plain_sums.target(24, capability="8.0"), True),
        ("weights-fp8", Workload(engine="vllm"), plain_sums.target(24, capability="7.5"), False),
        ("weights-int8", Workload(), plain_sums.target(24, capability="7.5"), True),
        ("weights-int8", Workload(), plain_sums.target(24, capability="7.0"), False),
        ("weights-q4", Workload(engine="llama.cpp"), plain_sums.target(4, capability="5.2"), True),
        ("weights-q4", Workload(engine="vllm"), plain_sums.target(4), False),
        ("optimizer-paged", Workload(method=FULL), plain_sums.target(24, system="wsl"), False),
        ("optimizer-paged", Workload(method=FULL), plain_sums.target(24), True),
        ("optimizer-8bit", Workload(method=FULL), plain_sums.target(24, capability="5.2"), False),
        ("smaller-batch", Workload(method=FULL, batch=1), plain_sums.target(24), False),
        ("smaller-batch", Workload(batch=8), plain_sums.target(24), False),
        ("fewer-sequences", Workload(method=FULL, batch=8), plain_sums.target(24), False),
        ("lora", Workload(method=LORA), plain_sums.target(24), False),
        ("checkpointing", Workload(method=FULL, checkpointing="full"), plain_sums.target(24), False),
        ("checkpointing", Workload(method=FULL, checkpointing="selective"), plain_sums.target(24), True),
        ("flash-attention", Workload(method=FULL, attention="eager"), plain_sums.target(24), True),
        ("flash-attention", Workload(method=FULL, attention="eager", precision="fp32"), plain_sums.target(24), False),
        ("all-gpus", Workload(), plain_sums.target(24), False),
        ("all-gpus", Workload(), plain_sums.target(24, 24), True),
        ("all-gpus", Workload(method=FULL), plain_sums.target(24, 24), False),
        ("shard", Workload(method=FULL), plain_sums.target(24, 24), True),
        ("shard", Workload(method=FULL), plain_sums.target(24), False),
        ("shard", Workload(method=FULL, sharding=Sharding("fsdp", 2)), plain_sums.target(24, 24), False),
        ("optimizer-8bit", Workload(method=FULL, sharding=Sharding("ddp", 2)), plain_sums.target(24, 24), True),
        ("optimizer-8bit", Workload(method=FULL, sharding=Sharding("fsdp", 2)), plain_sums.target(24, 24), False),
        ("offload-optimizer", Workload(method=FULL, sharding=Sharding("fsdp", 2)), plain_sums.target(24, 24), False),
        # Into what memory? That of the machine, where it is known.
        ("offload-optimizer", Workload(method=FULL), plain_sums.target(24, machine=Machine()), True),
        (
            "offload-optimizer",
            Workload(method=FULL),
            plain_sums.target(24, machine=Machine(memory_available=100 * GIB)),
            True,
        ),
        (
            "offload-optimizer",
            Workload(method=FULL),
            plain_sums.target(24, machine=Machine(memory_available=32 * GIB)),
            False,
        ),
    ],
)
def test_only_what_works_there_is_offered(
    matrix: Matrix, change: str, workload: Workload, target: Target, offered: bool
) -> None:
    assert (change in alone(matrix, target, workload)) is offered


@pytest.mark.parametrize(
    ("family", "offered"), [("llama", True), ("qwen3_moe", True), ("bloom", False), ("gpt2", False)]
)
def test_a_fused_loss_exists_for_some_models(matrix: Matrix, family: str, offered: bool) -> None:
    setting = Setting(plain_sums.model(family=family), Workload(method=FULL))
    found = ids(each_alone(sums(matrix, plain_sums.target(24)), setting))
    assert ("fused-loss" in found) is offered


@pytest.mark.parametrize(
    ("name", "lora", "absent"),
    [
        ("llama-3.2-1b", 'LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")', ()),
        ("t5-base", 'LoraConfig(r=16, target_modules="all-linear", task_type="SEQ_2_SEQ_LM")', ("packing",)),
        ("bert-base-uncased", 'LoraConfig(r=16, target_modules="all-linear")', ("packing", "fused-loss")),
        ("vit-base-patch16-224", 'LoraConfig(r=16, target_modules="all-linear")', ("packing", "shorter-sequences")),
    ],
)
def test_a_model_gets_the_words_of_its_kind(matrix: Matrix, name: str, lora: str, absent: tuple[str, ...]) -> None:
    workload = Workload(method=FULL, batch=1, context=512, variable_length=True)
    known = Sums(matrix, plain_sums.target(1))
    found = {change.id: change for change in each_alone(known, Setting(find(matrix, name), workload))}
    assert lora in found["lora"].lines[0]
    assert not set(absent) & set(found)


@pytest.mark.parametrize(
    ("changes", "offered"),
    [({}, True), ({"accumulation": True}, False), ({"method": LORA}, False), ({"optimizer_in_backward": True}, False)],
    ids=str,
)
def test_a_step_within_the_backward_pass_cannot_accumulate(
    matrix: Matrix, changes: dict[str, Any], offered: bool
) -> None:
    workload = Workload(method=FULL, batch=1, context=512, framework="torchtune")._replace(**changes)
    found = each_alone(Sums(matrix, plain_sums.target(8)), Setting(find(matrix, "llama-3.2-1b"), workload))
    assert ("optimizer-in-backward" in ids(found)) is offered


def test_inference_is_spread_as_its_engine_can(matrix: Matrix) -> None:
    """vLLM gives each GPU as many heads as the others; the rest share out whole layers."""
    of_14_heads = Setting(find(matrix, "qwen2.5-0.5b"), Workload(engine="vllm"))
    assert spreads(of_14_heads, 8) == [Sharding("tp", 2)]
    of_32_heads = Setting(find(matrix, "llama-3.1-8b"), Workload(engine="vllm"))
    assert spreads(of_32_heads, 9) == [Sharding("tp", number) for number in (2, 4, 8)]
    layers = of_14_heads._replace(workload=Workload())
    assert spreads(layers, 3) == [Sharding("pp", 2), Sharding("pp", 3)]
    assert len(spreads(layers, 100)) == 23  # of 24 layers
    assert spreads(layers, 1) == []


def test_bitsandbytes_leaves_experts_as_they_are(matrix: Matrix) -> None:
    mixture = find(matrix, "qwen3-30b-a3b")
    for workload in (Workload(), Workload(method=LORA)):
        found = ids(each_alone(Sums(matrix, plain_sums.target(24)), Setting(mixture, workload)))
        assert found
        assert not {"weights-4bit", "weights-int8", "qlora"} & set(found)
    vllm = ids(each_alone(Sums(matrix, plain_sums.target(24)), Setting(mixture, Workload(engine="vllm"))))
    assert "weights-4bit" in vllm


def test_fewer_bits_come_before_layers_in_the_machines_memory(matrix: Matrix) -> None:
    target = target_of_name(matrix, "RTX 4090")
    setting = Setting(find(matrix, "mixtral-8x7b"), Workload(engine="llama.cpp"))
    found = cure(Sums(matrix, target), setting)
    assert found is not None
    assert "weights-q4" in ids(found.changes)
    assert ids(found.changes)[-1] == "offload-layers"
    assert found.changes[-1].saves < 8 * GIB


def test_what_is_quantised_already_is_not_quantised_while_it_loads(matrix: Matrix) -> None:
    assert "weights-4bit" not in alone(matrix, plain_sums.target(4), Workload(), "int8")
    assert "weights-fp8" not in alone(matrix, plain_sums.target(4), Workload(engine="vllm"), "awq")
    # A file of fewer bits can always be taken instead.
    found = alone(matrix, plain_sums.target(4), Workload(engine="llama.cpp"), "q5_k_m")
    assert "weights-q4" in found and "weights-q6" not in found


# -- the first combination that fits


def combination(matrix: Matrix, target: Target, workload: Workload, weights: str = "bf16") -> list[str]:
    found = cure(sums(matrix, target), Setting(plain_sums.model(weights=weights), workload))
    return ids(found.changes) if found is not None else []


@pytest.mark.parametrize(
    ("title", "target", "workload", "changes"),
    [
        ("it fits already", plain_sums.target(24), Workload(), []),
        ("nothing is known", Target("none"), Workload(), []),
        ("nothing helps enough", plain_sums.target(1), Workload(engine="vllm"), []),
        ("what costs nothing", plain_sums.target(17.7), Workload(context=1024), ["expandable-segments"]),
        ("the prompt in pieces", plain_sums.target(21), Workload(context=16384), ["smaller-prefill"]),
        ("8 bits for 10 GiB", plain_sums.target(10), Workload(context=2048, engine="llama.cpp"), ["weights-q8"]),
        ("6 bits, not 5", plain_sums.target(8.5), Workload(context=2048, engine="llama.cpp"), ["weights-q6"]),
        (
            "milder bits, and a smaller prefill for them",
            plain_sums.target(7),
            Workload(context=2048, engine="llama.cpp"),
            ["smaller-prefill", "weights-q5"],
        ),
        ("4 bits for 6 GiB", plain_sums.target(6.2), Workload(context=1024, engine="llama.cpp"), ["weights-q4"]),
        ("the other card", plain_sums.target(12, 12), Workload(context=2048), ["all-gpus"]),
        (
            "training: what is free, then fewer at once",
            plain_sums.target(90),
            Workload(method=FULL, batch=8),
            ["fused-loss", "smaller-batch"],
        ),
    ],
)
def test_the_cheapest_that_fits_is_found(
    matrix: Matrix, title: str, target: Target, workload: Workload, changes: list[str]
) -> None:
    assert combination(matrix, target, workload) == changes, title


WORKLOADS = [
    *(Workload(batch=4, context=8192, engine=engine) for engine in ("transformers", "vllm", "llama.cpp")),
    *(Workload(method=method, batch=8, context=4096) for method in (FULL, LORA)),
    Workload(method=FULL, batch=8, context=4096, framework="torchtune"),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: f"{workload.method}-{workload.engine}")
@pytest.mark.parametrize("gib", [3, 5, 8, 12, 16, 24, 40, 80])
def test_a_combination_fits_needs_each_of_its_changes_and_adds_up(
    matrix: Matrix, gib: float, workload: Workload
) -> None:
    known = sums(matrix, plain_sums.target(gib))
    setting = Setting(plain_sums.model(), workload)
    found = cure(known, setting)
    if found is None:
        return
    before = known.need(setting)
    assert before is not None
    assert found.verdict in (FITS, TIGHT)
    assert found.available == known.room(setting)
    if found.verdict == FITS:
        assert found.need.high <= gib * GIB
    assert sum(change.saves for change in found.changes) == before.device.expected - found.need.expected
    end = setting
    for change in found.changes:
        variants = variants_of(known, end, change.id)
        end = next((one for one in variants if known.fits(one)), variants[-1])
    whole = (end.workload.batch, end.workload.context, end.workload.gpu_layers or 0)
    for left_out in found.changes:
        rest = [change.id for change in found.changes if change is not left_out]
        after = setting
        for name in rest:
            variants = variants_of(known, after, name)
            if variants:
                after = next((one for one in variants if known.fits(one)), variants[-1])
        kept = (after.workload.batch, after.workload.context, after.workload.gpu_layers or 0)
        assert known.verdict(after) != found.verdict or kept != whole, f"{left_out.id} is not needed"


def test_the_batch_is_no_smaller_than_it_has_to_be(matrix: Matrix) -> None:
    known = sums(matrix, plain_sums.target(100))
    found = cure(known, Setting(plain_sums.model(), Workload(method=FULL, batch=16, context=512, loss="fused")))
    assert found is not None
    assert ids(found.changes) == ["smaller-batch"]
    assert "per_device_train_batch_size=8, gradient_accumulation_steps=2" in found.changes[0].lines[0]


def test_a_context_is_cut_only_where_nothing_else_helps_and_no_more_than_needed(matrix: Matrix) -> None:
    workload = Workload(method=QLORA, batch=1, context=32768, checkpointing="full_offload", loss="fused")
    known = sums(matrix, plain_sums.target(8))
    found = cure(known, Setting(plain_sums.model(weights="nf4-dq"), workload))
    assert found is not None
    assert found.changes[-1].id == "shorter-sequences"
    tokens = int(re.findall(r"max_length=(\d+)", found.changes[-1].lines[0])[0])
    assert tokens % 256 == 0 and 1024 < tokens < 32768


def test_where_nothing_surely_fits_what_may_fit_is_told(matrix: Matrix) -> None:
    known = sums(matrix, plain_sums.target(2.6))
    found = cure(known, Setting(plain_sums.model(), Workload(context=256, engine="vllm", prompt=64)))
    assert found is not None
    assert found.verdict == TIGHT
    assert found.need.expected <= 2.6 * GIB < found.need.high


# -- with the real estimators

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-7b", "qwen3-30b-a3b", "mistral-7b-v0.3", "qwen2.5-32b")
CARDS = ("RTX 4060", "RTX 3090", "RTX 4090x2", "T4", "A100 80GB", "H100x8")


@st.composite
def real_settings(draw: st.DrawFn) -> tuple[str, str, Workload]:
    method = draw(st.sampled_from((INFER, FULL, LORA, QLORA)))
    workload = Workload(
        method=method,
        batch=draw(st.sampled_from((1, 2, 8))),
        context=draw(st.sampled_from((512, 4096, 16384))),
        engine=draw(st.sampled_from(("transformers", "vllm", "llama.cpp"))) if method == INFER else "transformers",
        attention=draw(st.sampled_from(("eager", "sdpa", "flash"))),
        precision=draw(st.sampled_from(("bf16", "mixed"))),
        checkpointing=draw(st.sampled_from(("none", "full"))),
        lora=Lora(rank=draw(st.sampled_from((8, 64)))),
        variable_length=draw(st.booleans()),
    )
    return draw(st.sampled_from(MODELS)), draw(st.sampled_from(CARDS)), workload


@settings(max_examples=40)
@given(real_settings())
def test_each_suggestion_lowers_the_need_by_what_it_says(matrix: Matrix, drawn: tuple[str, str, Workload]) -> None:
    name, card, workload = drawn
    known = Sums(matrix, target_of_name(matrix, card), estimate)
    model = find(matrix, name)
    if workload.method == QLORA:
        model = model._replace(weights="nf4-dq")
    setting = Setting(model, workload)
    before = known.need(setting)
    if before is None:
        return
    for change in each_alone(known, setting):
        after = [estimate(matrix, *variant).device.expected for variant in variants_of(known, setting, change.id)]
        assert change.saves > 0
        assert before.device.expected - change.saves in after, change.id
        assert "{" not in change.title
        assert change.lines
    found = cure(known, setting)
    if found is None:
        return
    assert sum(change.saves for change in found.changes) == before.device.expected - found.need.expected
    assert known.verdict(setting) in (TIGHT, DOES_NOT_FIT)
    assert found.available is not None
    assert (found.need.high if found.verdict == FITS else found.need.expected) <= found.available


def test_preparing_for_4_bits_turns_checkpointing_on_as_a_question_for_it_does(matrix: Matrix) -> None:
    """What is promised is what `--train qlora` answers; who wants no checkpointing is told how to have it so."""
    known = sums(matrix, target_of_size(12))
    for stated, kept in ((frozenset[str](), "full"), (frozenset(("ckpt",)), "none")):
        setting = Setting(plain_sums.model(), Workload(method=LORA, context=512, stated=stated))
        assert [found.workload.checkpointing for found in variants_of(known, setting, "qlora")] == [kept]
        (change,) = (change for change in each_alone(known, setting) if change.id == "qlora")
        assert ("use_gradient_checkpointing=False" in change.lines[1]) is (kept == "none")
