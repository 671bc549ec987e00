"""How fast decoding and loading can be at most: division, and what is divided."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.fit.catalogue import find
from cudadoctor.fit.speed import bytes_read, speed
from cudadoctor.fit.target import Card, Machine
from cudadoctor.fit.workload import Sharding, Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once

H100 = Card("NVIDIA H100 80GB HBM3", 80 << 30, 79 << 30, 3.35e12, source="NVIDIA's data sheet")


def test_an_embedding_is_looked_up_and_a_head_is_read(matrix: Matrix) -> None:
    """Llama 3.1 8B: of 8.03 billion parameters the embedding's 0.53 are not read, but for one row."""
    weights, kept = bytes_read(matrix, find(matrix, "llama-3.1-8b"), Workload(context=4096))
    assert weights == 2 * (8_030_261_248 - 128256 * 4096)
    assert kept == 4096 * 131072


def test_a_head_that_is_the_embedding_is_read(matrix: Matrix) -> None:
    weights, _ = bytes_read(matrix, find(matrix, "qwen2.5-0.5b"), Workload())
    assert weights == 2 * 494_032_768


def test_only_the_chosen_experts_are_read(matrix: Matrix) -> None:
    """12.9 of 46.7 billion."""
    weights, _ = bytes_read(matrix, find(matrix, "mixtral-8x7b"), Workload())
    assert weights == 2 * (12_879_925_248 - 32000 * 4096)


def test_a_window_bounds_what_is_read(matrix: Matrix) -> None:
    model = find(matrix, "gpt-oss-20b")
    short, long = (bytes_read(matrix, model, Workload(context=one))[1] for one in (128, 131072))
    assert short == 128 * 48 * 1024
    assert long == (131072 + 128) * 24 * 1024


def test_the_encoder_has_run_before(matrix: Matrix) -> None:
    model = find(matrix, "whisper-tiny")
    weights, kept = bytes_read(matrix, model, Workload(context=448))
    assert weights < 4 * model.architecture.parameters * 0.85
    assert kept == 4 * 4 * 768 * (448 + 1500)


def test_a_ceiling(matrix: Matrix) -> None:
    found = speed(matrix, find(matrix, "llama-3.1-8b"), Workload(context=4096), H100, Machine(disk="nvme"))
    assert found.tokens == pytest.approx(215.5, abs=0.1)
    assert found.formula.startswith("3,350 GB/s / (15,009,849,344 + 536,870,912) bytes a token: a ceiling")
    assert found.source == "NVIDIA's data sheet"


@pytest.mark.parametrize(("kind", "times"), [("none", 1), ("pp", 1), ("tp", 4)])
def test_only_split_matrices_are_read_at_once(matrix: Matrix, kind: str, times: int) -> None:
    model = find(matrix, "llama-3.1-70b")
    one, four = (
        speed(matrix, model, Workload(sharding=each), H100, Machine()).tokens
        for each in (Sharding(), Sharding(kind, 4))
    )
    assert one is not None and four == pytest.approx(times * one)


@pytest.mark.parametrize(
    ("disk", "low", "high"),
    [("nvme", 2.3, 11), ("ssd", 29, 54), ("hdd", 64, 201), ("network", 8, 322)],
)
def test_loading_16_gb(matrix: Matrix, disk: str, low: float, high: float) -> None:
    found = speed(matrix, find(matrix, "llama-3.1-8b"), Workload(), None, Machine(disk=disk))
    assert found.load_seconds is not None
    assert list(found.load_seconds) == pytest.approx([low, high], rel=0.03)
    assert disk in found.load_formula


def test_no_disk_is_faster_than_the_bus(matrix: Matrix) -> None:
    """Files in the machine's memory still cross PCIe: at worst four lanes of the third generation."""
    found = speed(matrix, find(matrix, "llama-3.1-8b"), Workload(), None, Machine(disk="memory"))
    assert found.load_seconds is not None and found.load_seconds[0] >= 16_060_522_496 / 63.1e9


@pytest.mark.parametrize(
    ("name", "given", "card", "disk"),
    [
        ("llama-3.1-8b", {}, None, ""),
        ("llama-3.1-8b", {}, H100._replace(bandwidth=None), ""),
        ("llama-3.1-8b", {"method": "full"}, H100, ""),
        ("bert-base-uncased", {}, H100, ""),
        ("vit-base-patch16-224", {}, H100, "tape"),
    ],
)
def test_what_is_not_known_is_not_said(matrix: Matrix, name: str, given: dict[str, Any], card: Card, disk: str) -> None:
    found = speed(matrix, find(matrix, name), Workload(**given), card, Machine(disk=disk))
    assert found.tokens is None
    assert found.load_seconds is None
    assert "not known" in found.load_formula


def test_a_smaller_model_is_never_slower(matrix: Matrix) -> None:
    model = find(matrix, "llama-3.1-8b")
    rates = [
        speed(matrix, model._replace(weights=one), Workload(kv=kv), H100, Machine()).tokens or 0
        for one, kv in [("fp32", "bf16"), ("bf16", "bf16"), ("fp8", "bf16"), ("fp8", "fp8"), ("nf4", "fp8")]
    ]
    assert rates == sorted(rates)
