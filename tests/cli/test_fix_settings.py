"""What a person has set for pip or uv does not turn the printed command aside: the real ones, with the real files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.index import WheelIndex
from bench.venvs import Venv
from bench.wheels import torch_wheel
from fix_bench import Doctor, facts_of, paste, plan, stock

from cudadoctor.model import Fact, Facts, known
from cudadoctor.testing import linux

MakeVenv = Callable[..., Venv]

PYTORCH = "https://download.pytorch.org/whl"
PATIENT = linux().driver("550.54.14", "12.4")


def with_settings(facts: Facts, source: str, **settings: Any) -> Facts:
    """The facts as the probe gives them for settings that stand in `source`."""
    changes: dict[str, Fact[Any]] = {
        f"pip.{name}" if not name.startswith("uv_") else f"uv.{name[3:]}": known(value, source)
        for name, value in settings.items()
    }
    return facts.updated({**changes, "pip.configured_by": known([source], source)})


# pip.conf's line, the same as facts, and a word that the command has for it.
PIP_FILES: list[tuple[str, str, dict[str, Any], str]] = [
    ("no index", "no-index = true", {"no_index": True}, "PIP_NO_INDEX=0"),
    ("the user's own folder", "user = true", {"user": True}, "--no-user"),
    ("another folder", "target = {folder}/target", {"target": "{folder}/target"}, "PIP_CONFIG_FILE=/dev/null"),
    (
        "constraints that want another torch",
        "constraint = {folder}/constraints.txt",
        {"constraints": ["{folder}/constraints.txt"], "constraint_pins": ["torch==2.6.0"]},
        "PIP_CONSTRAINT=/dev/null",
    ),
    (
        "an extra index with the CPU builds",
        f"extra-index-url = {PYTORCH}/cpu",
        {"extra_index_urls": [f"{PYTORCH}/cpu"]},
        "",
    ),
    ("PyTorch's CPU index as the index", f"index-url = {PYTORCH}/cpu", {"index_url": f"{PYTORCH}/cpu"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("line", "settings", "word"), [row[1:] for row in PIP_FILES], ids=[r[0] for r in PIP_FILES])
def test_pip_conf(
    doctor: Doctor,
    wheel_index: WheelIndex,
    venv_with: MakeVenv,
    tmp_path: Path,
    line: str,
    settings: dict[str, Any],
    word: str,
) -> None:
    index = stock(wheel_index)
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    (tmp_path / "constraints.txt").write_text("torch==2.6.0\n")
    file = venv.root / "pip.conf"
    file.write_text(f"[global]\n{line.format(folder=tmp_path)}\n")
    settings = {
        name: [text.format(folder=tmp_path) for text in value]
        if isinstance(value, list)
        else value.format(folder=tmp_path)
        if isinstance(value, str)
        else value
        for name, value in settings.items()
    }
    facts = with_settings(facts_of(venv, PATIENT), str(file), **settings)
    document = plan(doctor, facts, tmp_path, "--torch", "2.14.1")
    environment = index.as_internet()
    del environment["PIP_CONFIG_FILE"]
    lines = paste(document, environment)
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")
    assert word in lines[0]
    # What goes against somebody's will is not for cudadoctor to run.
    against = "no_index" in settings or "constraints" in settings
    assert document["steps"][0]["safety"] == ("careful" if against else "safe")


# Variables of pip, the same as facts.
PIP_VARIABLES: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"PIP_NO_INDEX": "1"}, {"no_index": True}),
    ({"PIP_USER": "1"}, {"user": True}),
    ({"PIP_TARGET": "/nowhere"}, {"target": "/nowhere"}),
    ({"PIP_EXTRA_INDEX_URL": f"{PYTORCH}/cu130"}, {"extra_index_urls": [f"{PYTORCH}/cu130"]}),
    ({"PIP_REQUIRE_VIRTUALENV": "1"}, {"require_virtualenv": True}),
]


@pytest.mark.parametrize(("variables", "settings"), PIP_VARIABLES, ids=[next(iter(row[0])) for row in PIP_VARIABLES])
def test_pip_variables(
    doctor: Doctor,
    wheel_index: WheelIndex,
    venv_with: MakeVenv,
    tmp_path: Path,
    variables: dict[str, str],
    settings: dict[str, Any],
) -> None:
    index = stock(wheel_index)
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    facts = with_settings(facts_of(venv, PATIENT), f"${next(iter(variables))}", **settings)
    document = plan(doctor, facts, tmp_path, "--torch", "2.14.1")
    paste(document, {**index.as_internet(), **variables})
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")


def test_an_extra_index_has_another_build_of_a_version_without_its_build(
    doctor: Doctor, wheel_index: WheelIndex, venv_with: MakeVenv, tmp_path: Path
) -> None:
    """CPU wheels for aarch64 carry no +cpu: beside an extra index, pip would take the CUDA build of that version."""
    index = stock(wheel_index)
    index.add("cpu", torch_wheel("2.14.0", "cpu", python="3.12", local=False))
    index.add("cu130", torch_wheel("2.14.0", "cu130", python="3.12"))
    venv = venv_with(python="3.12", pip=True)
    facts = with_settings(
        facts_of(venv, linux().no_gpu().set({"system.arch": "aarch64"})),
        "$PIP_EXTRA_INDEX_URL",
        extra_index_urls=[f"{PYTORCH}/cu130"],
    )
    document = plan(doctor, facts, tmp_path, "--torch", "2.14.0+cpu")
    installs = {"steps": [step for step in document["steps"] if step["id"] == "install-torch"]}
    environment = {**index.as_internet(), "PIP_EXTRA_INDEX_URL": f"{PYTORCH}/cu130"}
    # torchvision is not on this index for that Python: torch alone is what the test is about.
    argv = [word for word in installs["steps"][0]["argv"] if not word.startswith("torchvision")]
    paste({"steps": [{**installs["steps"][0], "argv": argv}]}, environment)
    assert venv.torch_build() == ("2.14.0+cpu", None)


UV: list[tuple[str, dict[str, str], str, dict[str, Any]]] = [
    ("an extra index", {"UV_EXTRA_INDEX_URL": f"{PYTORCH}/cpu"}, "", {}),
    ("another index", {"UV_INDEX": f"{PYTORCH}/cpu"}, "", {}),
    ("another default index", {"UV_DEFAULT_INDEX": "https://mirror.example/simple"}, "", {}),
    ("an index in a file", {}, f'[[index]]\nurl = "{PYTORCH}/cpu"\n', {}),
    ("a torch backend", {"UV_TORCH_BACKEND": "cpu"}, "", {"uv_torch_backend": "cpu"}),
    ("a torch backend in a file", {}, '[pip]\ntorch-backend = "cpu"\n', {"uv_torch_backend": "cpu"}),
    ("a last day", {"UV_EXCLUDE_NEWER": "2026-10-01"}, "", {"uv_exclude_newer": "2026-10-01"}),
    ("a last day in a file", {}, 'exclude-newer = "2026-10-01"\n', {"uv_exclude_newer": "2026-10-01"}),
]


@pytest.mark.parametrize(("variables", "file", "settings"), [row[1:] for row in UV], ids=[row[0] for row in UV])
def test_uv(
    doctor: Doctor,
    wheel_index: WheelIndex,
    venv_with: MakeVenv,
    real_uv: str,
    tmp_path: Path,
    variables: Mapping[str, str],
    file: str,
    settings: dict[str, Any],
) -> None:
    index = stock(wheel_index)
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12")
    config = tmp_path / "config" / "uv" / "uv.toml"
    config.parent.mkdir(parents=True)
    config.write_text(file)
    source = f"${next(iter(variables))}" if variables else str(config)
    made_by_uv = {"python.pip": Fact("absent"), "python.uv_environment": known(True, "pyvenv.cfg")}
    facts = with_settings(facts_of(venv, PATIENT).updated(made_by_uv), source, **settings)
    document = plan(doctor, facts, tmp_path, "--torch", "2.14.1")
    environment = {
        **index.as_internet(),
        "PATH": f"{real_uv.rpartition('/')[0]}:/usr/bin:/bin",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        **variables,
    }
    del environment["UV_NO_CONFIG"]
    if "UV_DEFAULT_INDEX" in variables:
        # That index is not to be had; PyTorch's own has all that its torch requires.
        index.broken["/simple/"] = 503
    paste(document, environment)
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")
