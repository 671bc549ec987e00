"""Which index an interpreter's pip takes packages from: asked of the real pip."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Callable

import pytest
from bench.venvs import Venv

from cudadoctor.actions.fetch import FetchError
from cudadoctor.actions.pip_index import pip_index


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "shared"))


def test_the_environments_own_pip_conf_counts(venv_with: Callable[..., Venv]) -> None:
    venv = venv_with(pip=True)
    text = (
        "[global]\nindex-url = https://me:secret@mirror.example/simple\ncert = /etc/company.pem\nproxy = proxy:3128\n"
    )
    (venv.root / "pip.conf").write_text(text)
    assert pip_index(venv.python) == (
        "https://me:secret@mirror.example/simple",
        True,
        "/etc/company.pem",
        "proxy:3128",
    )


def test_a_variable_goes_before_it(venv_with: Callable[..., Venv], monkeypatch: pytest.MonkeyPatch) -> None:
    venv = venv_with(pip=True)
    (venv.root / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.example/simple")
    assert pip_index(venv.python).url == "https://variable.example/simple"


@pytest.mark.parametrize("pip", [True, False], ids=["pip", "no pip: the one that Python brings"])
def test_without_settings_pip_tells_its_own_default(venv_with: Callable[..., Venv], pip: bool) -> None:
    found = pip_index(venv_with(pip=pip).python)
    assert found.url.startswith("https://") and found.url.rstrip("/").endswith("/simple")
    assert not found.is_configured


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("index-url = https://download.pytorch.org/whl/cu126\n", "PyTorch's index of one variant"),
        ("index-url = file:///srv/packages/simple\n", "no web address (file:///srv/packages/simple)"),
        ("no-index = true\n", "pip is set to use no index"),
    ],
)
def test_what_does_not_tell_the_default_is_said(venv_with: Callable[..., Venv], settings: str, words: str) -> None:
    venv = venv_with(pip=True)
    (venv.root / "pip.conf").write_text("[global]\n" + settings)
    with pytest.raises(FetchError) as caught:
        pip_index(venv.python)
    assert words in str(caught.value) and "--index-url" in str(caught.value)


def test_a_password_is_not_shown(venv_with: Callable[..., Venv]) -> None:
    venv = venv_with(pip=True)
    (venv.root / "pip.conf").write_text("[global]\nindex-url = https://me:s3cret@mirror.example/whl/cu126\n")
    with pytest.raises(FetchError) as caught:
        pip_index(venv.python)
    assert "s3cret" not in str(caught.value) and "mirror.example" in str(caught.value)


def test_no_such_interpreter() -> None:
    with pytest.raises(FetchError, match=r"/no/python cannot be run to ask its pip: name the index with --index-url$"):
        pip_index("/no/python")


def test_an_interpreter_without_any_pip(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(FetchError, match="has no pip that could tell its default index"):
        pip_index(str(program))
