"""The same data out of a wheel, an editable install and a bare checkout; one clear sentence where it is broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable

import pytest

from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.matrix import load as loading
from cudadoctor.matrix.compile import INDEX, SECTIONS, load_toml, section, stamp, toml_files, write

BUILD_WHEEL = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
# The build hook as an editable build calls it; the rest of such a build is not ours.
BUILD_EDITABLE = """
import runpy
hook = runpy.run_path("scripts/hatch_build.py")["MakeReady"]
hook(".", {}, None, None, "", "wheel").initialize("editable", {})
print("done")
"""

# Asked in a fresh interpreter: where the data came from, and an answer out of each section.
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
from cudadoctor.matrix import load_matrix
matrix = load_matrix()
print(matrix.revision)
print(matrix.gpu("RTX 4090").capability)
print(matrix.torch_release("2.14.1").companions["torchvision"])
print(matrix.driver_serves("535.183.01", "linux", "12.8").answer)
print(matrix.distribution("ubuntu", "", "24.04").title)
print("toml" if {"tomllib", "tomli"} & set(sys.modules) else "json")
"""


@pytest.fixture()
def checkout(root: Path, tmp_path: Path) -> Path:
    """A copy of what a build needs of this checkout."""
    copy = tmp_path / "checkout"
    hidden = shutil.ignore_patterns("__pycache__", ".compiled", "compiled")
    for name in ("cudadoctor", "compat", "scripts"):
        shutil.copytree(root / name, copy / name, ignore=hidden)
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (root / name).exists():
            shutil.copy(root / name, copy / name)
        else:
            (copy / name).write_text("", encoding="utf-8")
    return copy


def _build(checkout: Path, code: str) -> Path:
    pytest.importorskip("hatchling")
    dist = checkout / "dist"
    done = subprocess.run(
        [sys.executable, "-c", code, str(dist)], cwd=checkout, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return dist / done.stdout.split()[-1]


def _ask(place: Path, python: str = sys.executable) -> list[str]:
    done = subprocess.run([python, "-I", "-c", ASK, str(place)], cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


EXPECTED = ["8.9", "0.29.1", "yes", "Ubuntu"]


@pytest.mark.real_part("hatchling")
def test_a_wheel_carries_the_compiled_data_and_nothing_else_of_it(checkout: Path, tmp_path: Path) -> None:
    wheel = _build(checkout, BUILD_WHEEL)
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(place)
    compiled = {name.rsplit("/", 1)[1] for name in names if name.startswith("cudadoctor/matrix/compiled/")}
    assert compiled == {INDEX, *(f"{name}.json" for name in SECTIONS if name != "meta")}
    uncompiled = [name for name in names if name.endswith(".toml") or "/.compiled/" in name]
    assert uncompiled == ["cudadoctor/recipes/policy/preflight.toml"]  # a policy is no data of ours
    answers = _ask(place)
    assert answers[1:5] == EXPECTED and answers[5] == "json"
    assert not (checkout / "compat" / ".compiled").exists(), "a wheel build leaves the checkout as it was"


@pytest.mark.real_part("hatchling")
def test_a_wheel_is_read_out_of_its_zip_too(checkout: Path) -> None:
    assert _ask_zip(_build(checkout, BUILD_WHEEL))[1:5] == EXPECTED


def _ask_zip(wheel: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-I", "-c", ASK, str(wheel)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.mark.real_part("hatchling")
@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_the_oldest_and_the_newest_python_read_the_wheel(
    checkout: Path, tmp_path: Path, real_python: Callable[[str], str], version: str
) -> None:
    with zipfile.ZipFile(_build(checkout, BUILD_WHEEL)) as archive:
        archive.extractall(tmp_path / "site")
    assert _ask(tmp_path / "site", real_python(version))[1:6] == [*EXPECTED, "json"]


@pytest.mark.real_part("hatchling")
def test_an_editable_install_reads_json_until_the_data_is_edited(checkout: Path) -> None:
    _build(checkout, BUILD_EDITABLE)
    assert (checkout / "compat" / ".compiled" / INDEX).exists()
    before = _ask(checkout)
    assert before[1:6] == [*EXPECTED, "json"]
    meta = checkout / "compat" / "meta.toml"
    meta.write_text(meta.read_text("utf-8").replace(before[0], "2099.1.0"), encoding="utf-8")
    after = _ask(checkout)
    assert after[0] == "2099.1.0" and after[5] == "toml"


@pytest.mark.real_part("hatchling")
def test_broken_data_breaks_the_build_and_says_where(checkout: Path) -> None:
    pytest.importorskip("hatchling")
    path = checkout / "compat" / "power_plans.toml"
    path.write_text(path.read_text("utf-8").replace('kind = "saver"', 'kind = "thrifty"', 1), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", BUILD_WHEEL, "dist"], cwd=checkout, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "power_plans: plan" in done.stderr and "thrifty" in done.stderr


def test_a_bare_checkout_reads_the_toml(checkout: Path) -> None:
    answers = _ask(checkout)
    assert answers[1:5] == EXPECTED and answers[5] == "toml"


def test_a_checkout_never_reads_what_a_build_left_in_the_package(checkout: Path) -> None:
    left = checkout / "cudadoctor" / "matrix" / "compiled"
    left.mkdir()
    write(str(checkout / "compat"), str(left), with_stamp=False)
    meta = checkout / "compat" / "meta.toml"
    before = load_toml(str(meta))["revision"]
    meta.write_text(meta.read_text("utf-8").replace(before, "2099.1.0"), encoding="utf-8")
    assert _ask(checkout)[0] == "2099.1.0"


# -- equal, and stale only when it is


def test_json_and_toml_are_equal(compat: str, tmp_path: Path) -> None:
    written = write(compat, str(tmp_path), with_stamp=True)
    assert set(written) == {INDEX, *(f"{name}.json" for name in SECTIONS if name != "meta")}
    for name in SECTIONS:
        if name == "meta":
            stored = json.loads((tmp_path / INDEX).read_text("utf-8"))["meta"]
        else:
            stored = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        assert stored == section(compat, name), name
    assert all((tmp_path / name).read_bytes().isascii() for name in written)


def _copy_of(compat: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compat, tmp_path / "compat", ignore=shutil.ignore_patterns(".compiled")))


@pytest.mark.parametrize(
    "edit",
    [
        lambda compat: (compat / "meta.toml").write_text("x = 1\n", encoding="utf-8"),
        lambda compat: (compat / "torch" / "2.99.toml").write_text("", encoding="utf-8"),
        lambda compat: (compat / "torch" / "2.0.toml").unlink(),
        lambda compat: os.utime(compat / "gpus.toml", (1, 1)),
    ],
    ids=["changed", "added", "removed", "touched"],
)
def test_an_edit_of_any_file_is_noticed_without_reading_it(
    compat: str, tmp_path: Path, edit: Callable[[Path], Any]
) -> None:
    copy = _copy_of(compat, tmp_path)
    before = stamp(str(copy))
    assert before == stamp(str(copy))
    edit(copy)
    assert before != stamp(str(copy))


def test_only_what_is_asked_for_is_read(compat: str) -> None:
    asked: list[str] = []

    def reading(name: str) -> dict[str, Any]:
        asked.append(name)
        return section(compat, name)

    matrix = Matrix(reading)
    assert matrix.driver_serves("580.95.05", "linux", "13.0").answer == "yes"
    assert asked == ["meta", "cuda_toolkits"]
    matrix.gpu("RTX 4090")
    matrix.gpu("RTX 5090")
    assert asked == ["meta", "cuda_toolkits", "gpus"]


def test_the_matrix_is_loaded_once_a_process() -> None:
    assert load_matrix() is load_matrix()


# -- broken


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'"text"'])
def test_a_damaged_section_is_one_sentence(compat: str, tmp_path: Path, content: bytes) -> None:
    write(compat, str(tmp_path), with_stamp=False)
    (tmp_path / "gpus.json").write_bytes(content)
    index = (tmp_path / INDEX).read_bytes()
    matrix = Matrix(loading._from_json(index, lambda name: (tmp_path / name).read_bytes()))
    assert matrix.driver_serves("580.95.05", "linux", "13.0").answer == "yes", "the other sections still answer"
    with pytest.raises(MatrixError, match=r"^The compatibility data is damaged \(gpus\.json\): install .* again\.$"):
        matrix.gpu("RTX 4090")


def test_a_missing_section_is_one_sentence(compat: str, tmp_path: Path) -> None:
    write(compat, str(tmp_path), with_stamp=False)
    index = (tmp_path / INDEX).read_bytes()
    matrix = Matrix(loading._from_json(index, lambda name: None))
    with pytest.raises(MatrixError, match=r"lacks torch\.json: install cudadoctor again\.$"):
        matrix.torch_release("2.14.1")


@pytest.mark.parametrize(
    ("section_name", "data", "ask"),
    [
        ("driver_branches", {"checked": "2026-11-30", "branch": [{"name": "R580"}]}, lambda m: m.branches()),
        ("driver_branches", {"checked": "2026-11-30"}, lambda m: m.branch_of("580.95", "linux")),
        ("torch", {"2.14": {"checked": "2026-11-30", "release": [{}]}}, lambda m: m.torch_release("2.14.0")),
        ("cuda_toolkits", {"checked": "2026-11-30", "floor": 7}, lambda m: m.floor(12, "linux")),
    ],
)
def test_data_without_its_columns_is_one_sentence(
    compat: str, section_name: str, data: dict[str, Any], ask: Callable[[Matrix], Any]
) -> None:
    matrix = Matrix(lambda name: data if name == section_name else section(compat, name))
    with pytest.raises(MatrixError, match=r"^The compatibility data is damaged \(.*\): install cudadoctor again\.$"):
        ask(matrix)


def test_another_schema_is_refused(compat: str) -> None:
    with pytest.raises(MatrixError, match="has schema 2, this version of cudadoctor reads schema 1"):
        Matrix(lambda name: {**section(compat, name), "schema": 2})


def test_a_folder_without_data_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"^The compatibility data in compat/meta cannot be read: .*\.$"):
        load_matrix(str(tmp_path))


def test_toml_that_is_none_is_one_sentence(compat: str, tmp_path: Path) -> None:
    copy = _copy_of(compat, tmp_path)
    (copy / "gpus.toml").write_text("name = \n", encoding="utf-8")
    with pytest.raises(MatrixError, match=r"^The compatibility data in compat/gpus cannot be read: .*line 1"):
        load_matrix(str(copy)).gpu("RTX 4090")


def test_an_installation_without_any_data_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loading, "_HERE", str(tmp_path / "cudadoctor" / "matrix"))
    monkeypatch.setattr(loading, "_loaded", None)
    with pytest.raises(MatrixError, match=r"^The compatibility data is missing from this installation: .*\.$"):
        load_matrix()


def test_every_toml_file_is_read_by_some_section(compat: str) -> None:
    for name in toml_files(compat):
        assert name.split("/")[0] in SECTIONS, name
        assert load_toml(f"{compat}/{name}.toml")
