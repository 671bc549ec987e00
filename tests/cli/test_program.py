"""The commands that are printed call cudadoctor as it was called, so that they can be pasted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cudadoctor import bundle
from cudadoctor.cli._program import program

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths and quotes of POSIX")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed command in the bin folder of an environment that is not active."""
    command = tmp_path / "env" / "bin" / "cudadoctor"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", "/home/me")
    return command


def called(monkeypatch: pytest.MonkeyPatch, word: str) -> str:
    monkeypatch.setattr(sys, "argv", [word, "check"])
    return program()


def test_by_its_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "env/bin/cudadoctor") == "env/bin/cudadoctor"
    assert called(monkeypatch, "/opt/my env/bin/cudadoctor") == '"/opt/my env/bin/cudadoctor"'


def test_by_its_name(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{installed.parent}:/usr/bin")
    assert called(monkeypatch, str(installed)) == "cudadoctor"  # what a shell makes of the name
    assert called(monkeypatch, "env/bin/cudadoctor") == "cudadoctor"


def test_another_one_stands_before_it_on_the_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{installed.parent}:/usr/bin")
    assert called(monkeypatch, "/opt/other/bin/cudadoctor") == "/opt/other/bin/cudadoctor"


def test_as_a_module(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/home/me/proj/.venv/bin/python")
    main = "/home/me/proj/.venv/lib/python3.12/site-packages/cudadoctor/__main__.py"
    assert called(monkeypatch, main) == "~/proj/.venv/bin/python -m cudadoctor"


@pytest.fixture
def one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """cudadoctor as one file in a shared folder, run by the python3 of PATH."""
    file = tmp_path / "shared tools" / "cudadoctor.pyz"
    file.parent.mkdir()
    file.write_text("#!/usr/bin/env python3\n")
    file.chmod(0o755)
    for folder in ("bin", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python3.11").write_text(f"#!/bin/sh\necho {folder}\n")
        (tmp_path / folder / "python3.11").chmod(0o755)
        (tmp_path / folder / "python3").symlink_to("python3.11")
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(bundle, "_archive", str(file))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python3"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin")
    monkeypatch.setenv("HOME", "/home/me")
    return file


def test_one_file_by_its_path(one_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "./cudadoctor.pyz") == "./cudadoctor.pyz"
    assert called(monkeypatch, "cudadoctor.pyz") == "./cudadoctor.pyz"  # `python3 cudadoctor.pyz`: the same
    assert called(monkeypatch, str(one_file)) == f'"{one_file}"'
    (one_file.parent.parent / "link.pyz").symlink_to(one_file)
    assert called(monkeypatch, "../link.pyz") == "../link.pyz"


def test_one_file_that_may_not_be_executed(one_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_file.chmod(0o644)
    assert called(monkeypatch, "cudadoctor.pyz") == "python3 cudadoctor.pyz"


def test_one_file_by_another_python_than_its_first_line_finds(one_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = one_file.parent.parent
    monkeypatch.setattr(sys, "executable", f"{root}/other/python3")
    assert called(monkeypatch, "./cudadoctor.pyz") == f"{root}/other/python3 ./cudadoctor.pyz"
    monkeypatch.setattr(sys, "executable", f"{root}/bin/python3.11")  # what python3 beside it leads to
    assert called(monkeypatch, "./cudadoctor.pyz") == "./cudadoctor.pyz"
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.setattr(sys, "executable", f"{root}/other/python3")
    assert called(monkeypatch, "./cudadoctor.pyz") == "~/other/python3 ./cudadoctor.pyz"


def test_a_module_of_one_file_that_another_program_runs(one_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "/usr/lib/python3/pytest") == "cudadoctor"


def test_by_another_program(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "/usr/lib/python3/pytest") == "cudadoctor"
