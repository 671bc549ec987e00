"""More work never needs less, and what is advertised as saving memory never needs more. Asked of many workloads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.need import BUFFERS, CACHED, CONTEXT, Need
from cudadoctor.fit.workload import FULL, LORA, QLORA, Lora, Sharding, Workload
from cudadoctor.matrix import Matrix, load_matrix

pytestmark = pytest.mark.once

MATRIX: Matrix = load_matrix()
NAMES = ("llama-3.2-1b", "qwen2.5-7b", "mistral-7b-v0.3", "qwen3-30b-a3b", "mixtral-8x7b", "smollm2-1.7b")
MODELS: dict[str, Model] = {name: find(MATRIX, name) for name in NAMES}

models = st.sampled_from(NAMES)


def made(**fields: Any) -> Workload:
    return Workload(**fields)


workloads = st.fixed_dictionaries(
    {
        "method": st.sampled_from((FULL, LORA, QLORA)),
        "batch": st.integers(1, 16),
        "context": st.sampled_from((256, 1000, 2048, 8192)),
        "framework": st.sampled_from(("", "litgpt", "torchtune", "axolotl", "peft")),
        "attention": st.sampled_from(("flash", "sdpa", "eager")),
        "precision": st.sampled_from(("bf16", "mixed", "fp32")),
        "optimizer": st.sampled_from(("adamw", "adamw_8bit", "sgd", "adafactor", "paged_adamw_8bit")),
        "checkpointing": st.sampled_from(("none", "full", "selective", "full_offload")),
        "loss": st.sampled_from(("plain", "upcast", "fp32", "bf16", "chunked", "fused")),
        "lora": st.sampled_from((Lora(8), Lora(16, dropout=0.05), Lora(64, ("q", "v"), width=2), Lora(16, ("all",)))),
        "accumulation": st.booleans(),
        "variable_length": st.booleans(),
        "optimizer_in_backward": st.booleans(),
        "stated": st.just(frozenset(("ce", "precision"))),
    }
).map(lambda fields: made(**fields))


def need(name: str, workload: Workload, weights: str = "") -> Need:
    model = MODELS[name]
    kind = weights or ("nf4" if workload.method == QLORA else "bf16")
    return estimate(MATRIX, model._replace(weights=kind), workload)


def levels(found: Need) -> tuple[int, ...]:
    """All that somebody may compare with a card."""
    return (
        *(level.expected for level in (found.allocated, found.reserved, found.device)),
        *(found.device.high, found.device.low, found.host.expected),
    )


def assert_no_less(more: Need, less: Need) -> None:
    for larger, smaller in zip(levels(more), levels(less)):
        assert larger >= smaller - 64, (levels(more), levels(less), more.peak, less.peak)


@settings(max_examples=25, deadline=None)
@given(models, workloads, st.integers(1, 8))
def test_a_larger_batch(name: str, workload: Workload, more: int) -> None:
    assert_no_less(need(name, workload._replace(batch=workload.batch + more)), need(name, workload))


@settings(max_examples=25, deadline=None)
@given(models, workloads, st.integers(1, 5000))
def test_longer_sequences(name: str, workload: Workload, more: int) -> None:
    assert_no_less(need(name, workload._replace(context=workload.context + more)), need(name, workload))


@settings(max_examples=20, deadline=None)
@given(models, workloads, st.integers(1, 100))
def test_a_higher_rank(name: str, workload: Workload, more: int) -> None:
    workload = workload._replace(method=LORA)
    higher = workload.lora._replace(rank=workload.lora.rank + more)
    assert_no_less(need(name, workload._replace(lora=higher)), need(name, workload))


@settings(max_examples=15, deadline=None)
@given(workloads)
def test_more_parameters_of_one_line(workload: Workload) -> None:
    larger, smaller = (find(MATRIX, name) for name in ("qwen3-14b", "qwen3-8b"))
    kind = "nf4" if workload.method == QLORA else "bf16"
    needs = [estimate(MATRIX, model._replace(weights=kind), workload) for model in (larger, smaller)]
    assert_no_less(*needs)


@settings(max_examples=15, deadline=None)
@given(models, workloads)
def test_more_bits(name: str, workload: Workload) -> None:
    lora, qlora = workload._replace(method=LORA), workload._replace(method=QLORA)
    assert need(name, lora).device.expected > 0
    assert_no_less(need(name, qlora, "int8"), need(name, qlora, "nf4"))


SAVES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("checkpointing", {"checkpointing": "none"}, {"checkpointing": "full"}),
    ("selective checkpointing", {"checkpointing": "none"}, {"checkpointing": "selective"}),
    ("offloaded checkpoints", {"checkpointing": "full"}, {"checkpointing": "full_offload"}),
    ("flash attention", {"attention": "eager"}, {"attention": "flash"}),
    ("scaled dot-product attention", {"attention": "eager"}, {"attention": "sdpa"}),
    ("a fused optimizer", {"fused_optimizer": False}, {"fused_optimizer": True}),
    ("fused kernels", {"fused_kernels": False}, {"fused_kernels": True}),
    ("the step within the backward pass", {"accumulation": False, "optimizer_in_backward": False},
     {"accumulation": False, "optimizer_in_backward": True}),
    ("no accumulation", {"accumulation": True}, {"accumulation": False}),
    ("an optimizer of 8 bits", {"optimizer": "adamw"}, {"optimizer": "adamw_8bit"}),
    ("a paged optimizer", {"optimizer": "adamw_8bit"}, {"optimizer": "paged_adamw_8bit"}),
    ("expandable segments", {"expandable_segments": False}, {"expandable_segments": True}),
    ("offloaded states", {"offload": "none"}, {"offload": "optimizer"}),
    ("everything offloaded", {"offload": "optimizer"}, {"offload": "all"}),
)  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [row[1:] for row in SAVES], ids=[row[0] for row in SAVES])
@settings(max_examples=12, deadline=None)
@given(name=models, workload=workloads)
def test_what_saves(before: dict[str, Any], after: dict[str, Any], name: str, workload: Workload) -> None:
    without, with_it = need(name, workload._replace(**before)), need(name, workload._replace(**after))
    for level in ("allocated", "reserved", "device"):
        assert getattr(with_it, level).expected <= getattr(without, level).expected + 64, (level, with_it.peak)


@settings(max_examples=15, deadline=None)
@given(models, workloads)
def test_a_fused_loss(name: str, workload: Workload) -> None:
    # Of a handful of tokens it needs more: it holds a gradient of the head, which is as large as their logits.
    workload = workload._replace(context=8192, optimizer_in_backward=False)
    fused, plain = (need(name, workload._replace(loss=loss)) for loss in ("fused", "plain"))
    assert fused.allocated.expected <= plain.allocated.expected


@settings(max_examples=25, deadline=None)
@given(models, workloads, st.sampled_from(("zero1", "zero2", "zero3", "fsdp", "tp", "pp")), st.sampled_from((2, 3, 8)))
def test_more_gpus(name: str, workload: Workload, kind: str, degree: int) -> None:
    """Beyond the buffers that it names, and what NCCL takes, sharding never needs more on one GPU."""

    def own(found: Need) -> int:
        return sum(term.bytes for term in found.terms if term.part not in (BUFFERS, CONTEXT, CACHED))

    fewer, more = (need(name, workload._replace(sharding=Sharding(kind, number))) for number in (degree, degree * 2))
    rounded_up = len(more.terms) * degree * 2 * 200
    assert own(more) <= own(fewer) + rounded_up
    named = sum(term.bytes for term in more.terms if term.part == BUFFERS)
    assert more.allocated.expected <= fewer.allocated.expected + named + rounded_up


@settings(max_examples=25, deadline=None)
@given(models, workloads, st.sampled_from((1, 4)))
def test_terms_add_up(name: str, workload: Workload, gpus: int) -> None:
    found = need(name, workload._replace(sharding=Sharding("fsdp" if gpus > 1 else "none", gpus)))
    by_part: dict[str, int] = {}
    for term in found.terms:
        assert 0 <= term.low <= term.bytes <= term.high or term.bytes == 0
        assert term.formula
        assert term.numbers
        assert term.source
        (term.formula + term.numbers + term.source).encode("ascii")
        by_part[term.part] = by_part.get(term.part, 0) + term.bytes
    cached, context = by_part.pop("cached", 0), by_part.pop("context", 0)
    assert sum(by_part.values()) == found.allocated.expected
    assert found.allocated.expected + cached == found.reserved.expected
    assert found.reserved.expected + context == found.device.expected
    assert found.all_gpus.expected == gpus * found.allocated.expected
    for level in (found.allocated, found.reserved, found.device, found.all_gpus, found.host):
        assert 0 <= level.low <= level.expected <= level.high


@pytest.mark.parametrize("method", [FULL, LORA])
def test_each_level_holds_the_one_before(matrix: Matrix, method: str) -> None:
    """Nothing is allocated that is not reserved, nothing reserved that nvidia-smi does not show: bounds included."""
    need = estimate(matrix, find(matrix, "glm-4-9b"), Workload(method=method, context=257))
    for one, next_one in ((need.allocated, need.reserved), (need.reserved, need.device)):
        assert all(less <= more for less, more in zip(one, next_one))
