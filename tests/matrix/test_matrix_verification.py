"""The rows of compat/torch/ against what the wheels on PyPI said when they were last read (compat/verification.json).

No network: scripts/verify_matrix.py reads the wheels, and keeps what it read.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cudadoctor.matrix import Matrix


@pytest.fixture(scope="module")
def verify(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_matrix", root / "scripts" / "verify_matrix.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@pytest.fixture(scope="module")
def report(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "compat" / "verification.json").read_text("ascii"))
    return found


# -- the report


def test_no_row_disagrees_with_its_wheel(verify: ModuleType, matrix: Matrix, report: dict[str, Any]) -> None:
    assert [str(one) for one in verify.compare(matrix, report)] == []


def test_the_report_speaks_of_many_years_and_two_architectures(matrix: Matrix, report: dict[str, Any]) -> None:
    read = {(wheel["torch"], wheel["platform"]) for wheel in report["wheels"]}
    assert {torch for torch, _ in read} == set(matrix.torch_versions())
    for platform in ("linux-x86_64", "linux-aarch64"):
        assert len({torch for torch, where in read if where == platform}) >= 10
    years = {wheel["date"][:4] for wheel in report["wheels"]}
    assert len(years) >= 7


def test_the_report_is_not_older_than_the_rows(matrix: Matrix, report: dict[str, Any]) -> None:
    """Whoever dates a row anew has read its wheel anew: scripts/verify_matrix.py --write."""
    for release in matrix.torch_releases():
        assert release.checked <= report["read"], release.version


def test_the_code_itself_was_looked_at_for_every_cuda_version_of_the_default_index(report: dict[str, Any]) -> None:
    defaults = {(wheel["cuda"], wheel["platform"]) for wheel in report["wheels"] if wheel.get("cuda")}
    looked = {(wheel["cuda"], wheel["platform"]): wheel["code"] for wheel in report["wheels"] if wheel.get("code")}
    assert set(looked) == defaults
    assert all(code["fatbins"] >= 3 for code in looked.values())


def test_few_of_the_bytes_were_read(report: dict[str, Any]) -> None:
    for wheel in report["wheels"]:
        assert wheel["fetched"] < wheel["bytes"]
    assert sum(wheel["fetched"] for wheel in report["wheels"]) < sum(wheel["bytes"] for wheel in report["wheels"]) / 10


def test_the_page_was_written_from_the_figures(verify: ModuleType, root: Path, report: dict[str, Any]) -> None:
    assert (root / "compat" / "verification.md").read_text("utf-8") == verify.page(report)
    assert (root / "compat" / "verification.json").read_text("ascii") == verify.dumped(report)


def test_no_host_of_an_index_is_named(root: Path) -> None:
    for name in ("verification.json", "verification.md"):
        assert "http" not in (root / "compat" / name).read_text("utf-8")


# -- that it would find something: a wheel that says otherwise


def wheel_of(report: dict[str, Any], torch: str, platform: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        wheel for wheel in report["wheels"] if (wheel["torch"], wheel["platform"]) == (torch, platform)
    )
    return found


def says(column: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda wheel: wheel.update({column: value})


@pytest.mark.parametrize(
    ("torch", "platform", "change", "column"),
    [
        ("2.14.1", "linux-x86_64", says("cuda", "13.2"), "default variant"),
        ("2.14.1", "windows-x86_64", says("cuda", "13.0"), "default variant"),
        ("2.14.1", "linux-x86_64", says("requires_python", ">=3.11"), "requires_python"),
        ("2.14.1", "macos-arm64", says("pythons", ["3.12"]), "pythons"),
        ("2.14.1", "linux-x86_64", says("sass", ["75", "80"]), "sass"),
        ("2.14.1", "linux-aarch64", says("ptx", ["120"]), "ptx"),
        ("2.15.0", "linux-aarch64", says("code", {"sass": ["sm_90"], "ptx": []}), "sass"),
        ("2.14.1", "linux-x86_64", says("glibc_tag", "2.34"), "glibc"),
        ("2.6.0", "linux-x86_64", says("glibc_symbols", "2.28"), "glibc"),
        ("2.6.0", "linux-aarch64", says("cxx11_abi", False), "cxx11_abi"),
        ("1.12.1", "linux-x86_64", says("executable_stack", []), "glibc_below"),
        ("2.14.1", "linux-x86_64", says("date", "2026-10-01"), "date"),
        ("2.14.1", "linux-x86_64", lambda wheel: wheel["requires"].update(triton="==3.9.0"), "companions.triton"),
        ("2.14.1", "linux-x86_64", lambda wheel: wheel["requires"].pop("nvidia-cudnn-cu13"), "nvidia.cudnn"),
        ("2.15.0", "linux-aarch64", lambda wheel: wheel["announced"].update({"13.0 aarch64": ["80"]}), "cu130 sass"),
        ("2.14.1", "windows-x86_64", says("broken", "has no METADATA"), "pythons on PyPI"),
        ("2.14.1", "windows-x86_64", says("torch", "2.14.9"), "the release"),
    ],
)
def test_a_wheel_that_says_otherwise_is_told(
    verify: ModuleType,
    matrix: Matrix,
    report: dict[str, Any],
    torch: str,
    platform: str,
    change: Callable[[dict[str, Any]], None],
    column: str,
) -> None:
    other = copy.deepcopy(report)
    change(wheel_of(other, torch, platform))
    assert column in {one.column for one in verify.compare(matrix, other)}


@pytest.mark.parametrize(
    ("version", "requires"),
    [("0.29.1", "==2.15.0"), ("0.24.1", "==2.9.0")],
    ids=["takes another", "is bound to another"],
)
def test_a_companion_that_takes_another_torch_is_told(
    verify: ModuleType, matrix: Matrix, report: dict[str, Any], version: str, requires: str
) -> None:
    other = copy.deepcopy(report)
    for row in other["companions"]:
        if row["package"] == "torchvision" and row["version"] == version:
            row["torch"] = requires
    assert "companions.torchvision" in {one.column for one in verify.compare(matrix, other)}


def test_a_disagreement_is_remembered_and_settled(verify: ModuleType) -> None:
    report: dict[str, Any] = {"read": "2026-12-01", "history": []}
    found = verify.Disagreement("2.6.0", "linux-aarch64", "cxx11_abi", "False", "True")
    verify.remember(report, [found])
    assert report["history"] == [{"found": "2026-12-01", "what": list(found), "settled": False}]
    verify.remember({**report, "read": "2026-12-02"}, [])
    assert report["history"] == [{"found": "2026-12-01", "what": list(found), "settled": True}]


# -- reading the index's page


@pytest.mark.parametrize(
    ("tag", "platform", "glibc"),
    [
        ("manylinux_2_28_x86_64", "linux-x86_64", "2.28"),
        ("manylinux1_x86_64", "linux-x86_64", None),
        ("manylinux2014_aarch64", "linux-aarch64", "2.17"),
        ("manylinux_2_17_aarch64.manylinux2014_aarch64", "linux-aarch64", "2.17"),
        ("win_amd64", "windows-x86_64", None),
        ("win_arm64", None, None),
        ("macosx_14_0_arm64", "macos-arm64", None),
    ],
)
def test_platform_tags(verify: ModuleType, tag: str, platform: str | None, glibc: str | None) -> None:
    assert verify.platform_of(tag) == platform
    assert verify.glibc_of(tag) == glibc


def test_what_the_rows_have_no_word_for_is_left_out(verify: ModuleType) -> None:
    names = [
        "torch-2.14.1-cp313-cp313t-manylinux_2_28_x86_64.whl",
        "torch-2.14.1-cp312-none-macosx_14_0_arm64.whl",
        "torch-2.14.0rc1-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-1.6.0-cp38-cp38-manylinux1_x86_64.whl",
        "torch-2.14.1-cp312-cp312-win_arm64.whl",
        "torch-2.14.1.tar.gz",
    ]
    found = verify.listed([{"filename": name} for name in names])
    assert [(one.torch, one.platform, one.python) for one in found] == [
        ("2.14.1", "linux-x86_64", "3.13t"),
        ("2.14.1", "macos-arm64", "3.12"),
    ]
