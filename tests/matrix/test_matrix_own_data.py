"""The user's own copy of the data: taken when it fits, else the shipped one, and never a failed check."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from cudadoctor.actions.update_matrix import write
from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.matrix import load as loading
from cudadoctor.matrix.compile import SECTIONS
from cudadoctor.matrix.load import UPDATED_SECTIONS, data_folder, load_shipped


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that CUDADOCTOR_DATA names."""
    monkeypatch.setenv("CUDADOCTOR_DATA", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Matrix]:
    """Loads as a new process does."""

    def load() -> Matrix:
        monkeypatch.setattr(loading, "_loaded", None)
        return load_matrix()

    return load


def sections(**changes: Any) -> dict[str, dict[str, Any]]:
    shipped = load_shipped()
    return {name: changes.get(name, shipped.raw(name)) for name in UPDATED_SECTIONS}


def put(data: Path, **index: Any) -> Path:
    """An update with one driver branch more, its index changed as told."""
    branches = load_shipped().raw("driver_branches")
    row = {**branches["branch"][0], "name": "R999", "linux": 999, "first_linux": "999.10"}
    found = sections(driver_branches={**branches, "branch": [row, *branches["branch"]]})
    base = load_shipped().revision
    folder = data / "matrix"
    write(str(folder), found, base, f"{base}+20991231", "2099-12-31T12:00:00Z", 1)
    if index:
        path = folder / "index.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **index}))
    return folder


def test_an_update_goes_before_what_it_covers_and_nothing_else(data: Path, fresh: Callable[[], Matrix]) -> None:
    folder = put(data)
    matrix, shipped = fresh(), load_shipped()
    assert matrix.origin == ("updated", "2099-12-31T12:00:00Z", str(folder), None)
    assert matrix.branches()[0].name == "R999" and shipped.branches()[0].name != "R999"
    assert matrix.revision == shipped.revision + "+20991231"
    assert matrix.checked == "2099-12-31"
    for name in set(SECTIONS) - {"meta", *UPDATED_SECTIONS}:
        assert matrix.raw(name) == shipped.raw(name)
    # Addresses are never taken from there.
    assert matrix.index_url("cu126") == shipped.index_url("cu126")


def test_without_one_the_shipped_data_counts_and_says_so(data: Path, fresh: Callable[[], Matrix]) -> None:
    matrix = fresh()
    assert matrix.origin == ("shipped", None, None, None)
    assert matrix.revision == load_shipped().revision


def test_looking_for_one_that_is_not_there_is_one_stat(
    data: Path, fresh: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = os.stat

    def stat(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
        if str(path).startswith(str(data)):
            asked.append(str(path))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "stat", stat)
    fresh()
    assert asked == [str(data / "matrix" / "index.json")]
    assert not data.exists()


def damaged(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (path,) = folder.rglob(name)
        path.write_bytes(change(path.read_bytes()))

    return damage


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: next(folder.rglob(name)).unlink()


ODD = {
    "an index that is no JSON": (damaged("index.json", lambda data: data[:-20]), "its index is damaged"),
    "an empty index": (damaged("index.json", lambda data: b""), "its index is damaged"),
    "an index of rubbish": (damaged("index.json", lambda data: b"[" * 100_000), "its index is damaged"),
    "a section that is cut off": (damaged("torch.json", lambda data: data[:-1]), "torch.json is damaged"),
    "a section of the same length": (
        damaged("driver_branches.json", lambda data: data.replace(b"R999", b"R998")),
        "driver_branches.json is damaged",
    ),
    "a section that is missing": (without("cuda_toolkits.json"), "cuda_toolkits.json is missing"),
    "a section that is huge": (damaged("torch.json", lambda data: data * 200), "torch.json is too large"),
}


@pytest.mark.parametrize("what", ODD)
def test_a_damaged_update_is_left_with_the_reason(data: Path, fresh: Callable[[], Matrix], what: str) -> None:
    damage, reason = ODD[what]
    folder = put(data)
    damage(folder)
    matrix = fresh()
    assert matrix.origin == ("shipped", None, str(folder), reason)
    assert matrix.branches() == load_shipped().branches()
    assert matrix.revision == load_shipped().revision


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({"format": "cudadoctor.matrix-update/2"}, "its layout is one that this cudadoctor does not read"),
        ({"schema": 2}, "its tables are laid out for another cudadoctor"),
        ({"based_on": "2026.1.0"}, "it was made on top of data 2026.1.0, and this cudadoctor brings "),
        ({"based_on": None}, "it was made on top of data None"),
        ({"folder": ".."}, "its index is damaged"),
        ({"folder": "/etc"}, "its index is damaged"),
        ({"folder": ""}, "its index is damaged"),
        ({"updated": 7}, "its index is damaged"),
        ({"files": {}}, "its index is damaged"),
        ({"files": {"torch": {}, "driver_branches": {}, "cuda_toolkits": {}}}, "json is damaged"),
        ({"files": {"torch": 1, "driver_branches": 1, "cuda_toolkits": 1}}, "json is damaged"),
        ({"files": {"torch": {}, "driver_branches": {}, "cuda_toolkits": {}, "distributions": {}}}, "index is damaged"),
    ],
)
def test_an_update_that_does_not_fit_is_left_with_the_reason(
    data: Path, fresh: Callable[[], Matrix], index: dict[str, Any], words: str
) -> None:
    folder = put(data, **index)
    matrix = fresh()
    assert matrix.origin.kind == "shipped" and matrix.origin.path == str(folder)
    assert words in str(matrix.origin.reason)
    assert matrix.branches() == load_shipped().branches()


def test_what_belongs_to_somebody_else_is_left(
    data: Path, fresh: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(data)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid() == 0:  # root's own counts for everybody; so give it away
        os.chown(data / "matrix" / "index.json", 4242, 4242)
    assert fresh().origin.reason == "it belongs to another user"


def test_a_folder_that_cannot_be_looked_into_is_left(data: Path, fresh: Callable[[], Matrix]) -> None:
    data.parent.mkdir(exist_ok=True)
    data.symlink_to(data)  # turns in a circle
    matrix = fresh()
    assert matrix.origin.kind == "shipped" and "cannot be read" in str(matrix.origin.reason)


def test_a_file_where_the_folder_would_be_is_left_with_the_reason(
    data: Path, fresh: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    data.write_text("")
    assert fresh().origin == ("shipped", None, str(data), "CUDADOCTOR_DATA is ignored: it names no folder")
    monkeypatch.chdir(data.parent)
    monkeypatch.setenv("CUDADOCTOR_DATA", "relative")
    assert str(fresh().origin.reason).startswith("CUDADOCTOR_DATA is ignored: it names no folder that is there")


def test_data_of_a_named_folder_says_so(compat: str, data: Path) -> None:
    put(data)
    assert load_matrix(compat).origin == ("files", None, compat, None)
    assert load_matrix(compat).branches() == load_shipped().branches()


def test_an_installation_without_data_is_an_error_with_an_update_too(
    data: Path, fresh: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(data)
    monkeypatch.setattr(loading, "_HERE", str(tmp_path / "cudadoctor" / "matrix"))
    with pytest.raises(MatrixError, match="is missing from this installation"):
        fresh()


@pytest.mark.parametrize("value", ["", "shipped", "Shipped", "SHIPPED"])
def test_it_can_be_ruled_out(
    data: Path, fresh: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    put(data)
    monkeypatch.setenv("CUDADOCTOR_DATA", value)
    assert fresh().origin == ("shipped", None, None, None)


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDADOCTOR_DATA")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert data_folder() == "/home/me/.local/share/cudadoctor"
    monkeypatch.setenv("XDG_DATA_HOME", "/srv/me")
    assert data_folder() == "/srv/me/cudadoctor"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert data_folder() == "/home/me/.local/share/cudadoctor"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_folder() == "/home/me/Library/Application Support/cudadoctor"
    monkeypatch.setenv("CUDADOCTOR_DATA", "/elsewhere")
    assert data_folder() == "/elsewhere"


def test_a_writer_that_breaks_leaves_the_update_before(
    data: Path, fresh: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cudadoctor.actions.update_matrix import UpdateError

    put(data)
    before = sorted(path.name for path in (data / "matrix").iterdir())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    base = load_shipped().revision
    with pytest.raises(UpdateError, match=r"^cannot write .*: No space left on device$"):
        write(str(data / "matrix"), sections(), base, base + "+21000101", "2100-01-01T00:00:00Z", 1)
    monkeypatch.undo()
    monkeypatch.setenv("CUDADOCTOR_DATA", str(data))
    assert sorted(path.name for path in (data / "matrix").iterdir()) == before
    assert fresh().revision.endswith("+20991231")


def test_a_copy_of_the_folder_serves_elsewhere(
    data: Path, fresh: Callable[[], Matrix], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For machines without a network: what one has fetched can be carried to the others."""
    put(data)
    shutil.copytree(data, tmp_path / "carried")
    monkeypatch.setenv("CUDADOCTOR_DATA", str(tmp_path / "carried"))
    assert fresh().origin.kind == "updated"
