"""The files keep to their columns, and the schema refuses a slip. What must hold across files: invariants."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.matrix import Matrix, cuda_of_variant, numbers, torch_key
from cudadoctor.matrix.compile import FOLDERS, SECTIONS, check, load_toml
from cudadoctor.matrix.schema import TABLES, check_file


def test_every_file_keeps_to_its_columns_and_names_its_sources(compat: str) -> None:
    assert check(compat) == []


def test_every_section_has_a_schema() -> None:
    assert set(TABLES) | {"meta"} == set(SECTIONS)
    assert set(FOLDERS) < set(SECTIONS)


def test_every_answer_carries_a_source_and_a_day(matrix: Matrix) -> None:
    rows: list[Any] = [
        *matrix.floors(),
        *matrix.toolkits(),
        *matrix.branches(),
        *matrix.architectures(),
        *matrix.gpus(),
        *matrix.torch_releases(),
        *(build for release in matrix.torch_releases() for variant in release.variants for build in variant.builds),
        *matrix.power_plans(),
        *matrix.xids(),
        *matrix.pins("vllm"),
    ]
    assert len(rows) > 800
    for row in rows:
        assert row.source.strip(), row
        assert numbers(row.checked.replace("-", ".")), row
        assert "2020" <= row.checked <= matrix.checked, row


def test_variants_come_cpu_first_then_by_cuda(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        names = [variant.name for variant in release.variants]
        assert names == sorted(names, key=lambda name: numbers(cuda_of_variant(name) or "0") or ())


def test_releases_come_in_the_order_of_versions(matrix: Matrix) -> None:
    versions = [torch_key(row.version) for row in matrix.torch_releases()]
    assert versions == sorted(versions, key=lambda item: item or (), reverse=True)
    assert [row.version for row in matrix.torch_releases()] == list(matrix.torch_versions())


def test_most_pci_ids_lie_in_the_range_of_a_chip(matrix: Matrix) -> None:
    ranges = matrix.raw("pci_chips")["chip"]
    ids = [pci for gpu in matrix.gpus() for pci in gpu.pci]
    inside = [pci for pci in ids if any(row["first"] <= pci <= row["last"] for row in ranges)]
    assert len(inside) > len(ids) * 0.8


# -- the schema itself refuses what would otherwise be lost without a word


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"checked": "yesterday"}, "is not a date"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"plan": []}, "plan has no rows"),
        ({"sources": {"microsoft": "x", "unused": "y"}}, "used by no row"),
        ({"sources": {}}, "is not in [sources]"),
        ({"source": None}, "has no source"),
        ({"plan": [{"guid": "not-a-guid", "name": "Balanced", "kind": "balanced"}]}, "is not a GUID"),
        ({"plan": [{"name": "Balanced", "kind": "balanced"}]}, "guid is missing"),
        (
            {"plan": [{"guid": "381b4222-f694-41f0-9685-ff5bb260df2e", "name": "x", "kind": "fast"}]},
            "is not performance",
        ),
        ({"plan": [{"guid": "381b4222-f694-41f0-9685-ff5bb260df2e", "name": "x", "knd": "x"}]}, "unknown column 'knd'"),
    ],
)
def test_a_slip_in_the_data_is_an_error(compat: str, change: dict[str, Any], says: str) -> None:
    data = {**load_toml(f"{compat}/power_plans.toml"), **change}
    if data.get("source") is None:
        del data["source"]
    problems = check_file("power_plans", data)
    assert any(says in problem for problem in problems), problems


def test_a_file_that_no_schema_knows_is_an_error() -> None:
    assert check_file("weather", {}) == ["weather: no such file is known"]


def test_a_future_schema_is_refused(compat: str) -> None:
    meta = {**load_toml(f"{compat}/meta.toml"), "schema": 2}
    assert any("schema" in problem for problem in check_file("meta", meta))
