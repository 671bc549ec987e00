"""The commands that are printed call cudadoctor as it was called, so that they can be pasted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

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


def test_by_another_program(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "/usr/lib/python3/pytest") == "cudadoctor"
