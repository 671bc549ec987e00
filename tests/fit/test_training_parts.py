"""The parts that training is summed up of, each reckoned by hand: logits, states of optimizers, shares of several GPUs,
and how far a sum may be off."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.fit.architecture import EMBEDDING, MATRIX, NORM, Tensor
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.interval import spread, total, widened
from cudadoctor.fit.loss import logits
from cudadoctor.fit.need import ACTIVATIONS, WEIGHTS, Interval, Term
from cudadoctor.fit.optimizers import largest, optimizer, state_bytes
from cudadoctor.fit.sharding import Shares, layer_parameters, outside_parameters, share_of, shares
from cudadoctor.fit.workload import FULL, Sharding, Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once

# -- logits of 1000 tokens (two sequences) and 10 words

# loss, what is special -> bytes a token and word, and those that the allocator keeps beside
LOGITS: tuple[tuple[str, dict[str, Any], float, float], ...] = (
    ("plain", {}, 12, 2),
    ("plain", {"holds": True}, 14, 0),
    ("plain", {"capped": True}, 14, 0),  # the result of tanh
    ("plain", {"width": 4}, 14, 0),  # fp32 logits
    ("upcast", {"holds": True}, 16, 0),
    ("bf16", {}, 6, 0),
    ("bf16", {"width": 4}, 12, 0),
    ("bf16", {"autocast": True}, 12, 4),
    ("chunked_logits", {}, 4 + 4 * 0.256, 0),  # of 128 tokens of each sequence beside
    ("fused", {}, 0.3, 0),
)


@pytest.mark.parametrize(("loss", "special", "live", "kept"), LOGITS, ids=[f"{r[0]} {r[1]}" for r in LOGITS])
def test_logits_and_what_the_loss_makes_of_them(
    matrix: Matrix, loss: str, special: dict[str, Any], live: float, kept: float
) -> None:
    said = {"width": 2, "autocast": False, "holds": False, "capped": False, **special}
    found = logits(matrix.losses()[loss], 1000, 2, 10, **said)
    assert (found.live, found.kept) == (round(live * 10_000), round(kept * 10_000))


def test_a_chunk_is_no_longer_than_its_sequence(matrix: Matrix) -> None:
    found = logits(matrix.losses()["chunked_logits"], 100, 2, 10, 2, False, False, False)
    assert found.live == 8 * 100 * 10


# -- states of optimizers


def test_adafactor_keeps_a_row_and_a_column_of_each_matrix(matrix: Matrix) -> None:
    rule = optimizer(matrix, "adafactor")
    assert state_bytes(rule, [((100, 50), 3)], 2) == 3 * 4 * (100 + 50)
    assert state_bytes(rule, [((50,), 3)], 2) == 3 * 4 * 50


def test_states_of_embeddings_may_be_wider(matrix: Matrix) -> None:
    rule = optimizer(matrix, "adamw_8bit")
    assert rule.wide_embeddings == 8
    assert state_bytes(rule, [((64, 64), 1)], 2, wide=0) == round(rule.bytes * 4096)
    assert state_bytes(rule, [((64, 64), 1)], 2, wide=1024) == round(rule.bytes * 3072) + 8 * 1024
    assert state_bytes(rule, [((64, 64), 1)], 2, wide=9999) == 8 * 4096


def test_the_largest_tensor_is_one_of_many_alike() -> None:
    assert largest([Tensor("q", MATRIX, (10, 10), 32, 0), Tensor("embedding", EMBEDDING, (50, 10))]) == 500
    assert largest([]) == 0


# -- several GPUs

SHARES = (
    ("none", Shares()),
    ("ddp", Shares()),
    ("zero1", Shares(states=4)),
    ("zero2", Shares(gradients=4, states=4)),
    ("zero3", Shares(4, 4, 4)),
    ("fsdp", Shares(4, 4, 4)),
    ("tp", Shares(tensor=4)),
    ("pp", Shares(stages=4, flights=4)),
)


@pytest.mark.parametrize(("kind", "parts"), SHARES, ids=[row[0] for row in SHARES])
def test_what_is_divided_among_four(kind: str, parts: Shares) -> None:
    assert shares(Sharding(kind, 4)) == parts


IN_A_LAYER, OUTSIDE = Tensor("q", MATRIX, (10, 10), 32, 0), Tensor("embedding", EMBEDDING, (50, 10))
NORMS = Tensor("norm", NORM, (10,), 32, 0)


@pytest.mark.parametrize(
    ("tensor", "parts", "left"),
    [
        (IN_A_LAYER, Shares(), 1001),
        (IN_A_LAYER, Shares(tensor=4), 251),  # no byte is lost in rounding
        (IN_A_LAYER, Shares(stages=4), 251),
        (IN_A_LAYER, Shares(4, 4, 4), 1001),  # FSDP's are divided as one, elsewhere
        (OUTSIDE, Shares(tensor=4), 251),
        (OUTSIDE, Shares(stages=4), 1001),  # the first stage has all of the embedding
        (NORMS, Shares(tensor=4), 1001),
        (NORMS, Shares(stages=4), 251),
    ],
)
def test_the_share_of_one_gpu(tensor: Tensor, parts: Shares, left: int) -> None:
    assert share_of(tensor, 1001, parts) == left


def test_parameters_of_one_layer_and_of_none(matrix: Matrix) -> None:
    shape = find(matrix, "llama-3.2-1b").architecture
    layer = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048
    assert layer_parameters(shape) == layer
    assert outside_parameters(shape.tensors) == 128_256 * 2048 + 2048
    assert 16 * layer + outside_parameters(shape.tensors) == shape.parameters


def test_a_stage_holds_its_layers_and_the_micro_batches_of_all_stages(matrix: Matrix) -> None:
    model = find(matrix, "llama-3.2-1b")
    said: dict[str, Any] = {"batch": 2, "context": 2048, "stated": frozenset(("ce", "precision"))}
    one, stage = (
        {(term.part, term.name): term.bytes for term in estimate(matrix, model, workload).terms}
        for workload in (Workload(FULL, **said), Workload(FULL, sharding=Sharding("pp", 4), **said))
    )
    outside = outside_parameters(model.architecture.tensors)
    assert stage[WEIGHTS, "weights"] == 2 * (4 * layer_parameters(model.architecture) + outside)
    # A quarter of the layers, four times.
    key = (ACTIVATIONS, "activations of all layers")
    assert stage[key] == one[key]


# -- how far a sum may be off


def term(low: int, expected: int, high: int) -> Term:
    return Term("part", "name", expected, "", "", "", low, high)


def test_terms_err_independently_of_each_other() -> None:
    assert spread(100, 0.9, 1.2) == (90, 120)
    assert total([term(97, 100, 106), term(96, 100, 108)]) == Interval(195, 200, 210)
    assert total([]) == Interval(0, 0, 0)
    assert total([term(-5, 1, 1)]).low == 0


def test_a_level_errs_beside_its_terms() -> None:
    assert widened(Interval(97, 100, 106), 0.04, 0.08) == Interval(95, 100, 110)
    assert widened(Interval(100, 100, 100), 0.0, 0.0) == Interval(100, 100, 100)
