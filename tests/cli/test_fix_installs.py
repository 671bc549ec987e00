"""The printed command, word for word, through the real pip and uv against a wheel index on loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from bench.index import WheelIndex
from bench.parts import clean_environ
from bench.venvs import Venv
from bench.wheels import companion_wheel, tiny_wheel, torch_wheel
from fix_bench import Doctor, facts_of, paste, plan, stock

from cudadoctor.model import Fact
from cudadoctor.testing import GONE, linux

# What runs the printed commands is a Python of its own, whichever runs the doctor.
pytestmark = pytest.mark.once

MakeVenv = Callable[..., Venv]

# An RTX 4090 on a driver of the 12.x days, so that cu126 is the answer.
PATIENT = linux().driver("550.54.14", "12.4")


@pytest.fixture
def index(wheel_index: WheelIndex) -> WheelIndex:
    return stock(wheel_index)


def test_a_cpu_build_is_really_replaced(doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any) -> None:
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    document = plan(doctor, facts_of(venv, PATIENT), tmp_path)
    assert (document["choice"]["torch"], document["choice"]["variant"]) == ("2.6.0", "cu126")
    lines = paste(document, index.as_internet())
    assert lines == [
        f'{venv.python} -m pip install "torch==2.6.0+cu126" --index-url https://download.pytorch.org/whl/cu126'
    ]
    assert venv.torch_build() == ("2.6.0+cu126", "12.6")
    assert any("download.pytorch.org /whl/cu126/torch" in request for request in index.requests)


def test_an_empty_environment_gets_the_newest_that_runs(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any
) -> None:
    venv = venv_with(python="3.12", pip=True)
    document = plan(doctor, facts_of(venv, PATIENT), tmp_path)
    paste(document, index.as_internet())
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")
    assert venv.installed()["torchvision"] == "0.29.1+cu126"


def test_companions_that_are_cpu_builds_come_along(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any
) -> None:
    venv = venv_with(
        torch_wheel("2.6.0", "cpu", python="3.12"),
        companion_wheel("torchvision", "0.21.0", "cpu", "2.6.0", python="3.12"),
        companion_wheel("torchaudio", "2.6.0", "cpu", "2.6.0", python="3.12"),
        python="3.12",
        pip=True,
    )
    paste(plan(doctor, facts_of(venv, PATIENT), tmp_path), index.as_internet())
    found = venv.installed()
    assert (found["torch"], found["torchvision"], found["torchaudio"]) == (
        "2.6.0+cu126",
        "0.21.0+cu126",
        "2.6.0+cu126",
    )


def test_the_undo_takes_it_back(doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any) -> None:
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    document = plan(doctor, facts_of(venv, PATIENT), tmp_path)
    paste(document, index.as_internet())
    undo = document["steps"][0]["undo"]
    ended = subprocess.run(
        ["sh", "-ec", undo], env=clean_environ(index.as_internet()), timeout=300, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr
    assert venv.torch_build() == ("2.6.0+cpu", None)


def test_a_pin_alone_would_not_have_replaced_it(index: WheelIndex, venv_with: MakeVenv) -> None:
    """Why the command names the build: pip takes 2.6.0+cpu for a 2.6.0."""
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    venv.run("-m", "pip", "install", "torch==2.6.0", "--index-url", index.whl("cu126"), env=index.pip_environment())
    assert venv.torch_build() == ("2.6.0+cpu", None)


def test_an_index_that_names_no_builds_takes_an_uninstall(
    doctor: Doctor, wheel_index: WheelIndex, venv_with: MakeVenv, tmp_path: Any
) -> None:
    """CPU wheels for aarch64 carry no +cpu there: the CUDA build of the same version has to go first."""
    wheel_index.add("cpu", torch_wheel("2.14.1", "cpu", python="3.12", local=False))
    venv = venv_with(torch_wheel("2.14.1", "cu126", python="3.12"), python="3.12", pip=True)
    facts = facts_of(venv, linux().no_gpu().set({"system.arch": "aarch64"}))
    document = plan(doctor, facts, tmp_path, "--torch", "2.14.1+cpu")
    assert [step["id"] for step in document["steps"] if step["kind"] == "install"] == [
        "uninstall-torch",
        "install-torch",
    ]
    installs = {"steps": [step for step in document["steps"] if step["kind"] == "install"]}
    paste(installs, wheel_index.as_internet())
    assert venv.installed()["torch"] == "2.14.1"


@pytest.mark.parametrize("start", ["cpu", "nothing"])
def test_uv(doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, real_uv: str, tmp_path: Any, start: str) -> None:
    wheels = [torch_wheel("2.6.0", "cpu", python="3.12")] if start == "cpu" else []
    venv = venv_with(*wheels, python="3.12")
    facts = facts_of(venv, PATIENT).updated(
        {"python.pip": Fact("absent"), "python.uv_environment": Fact("known", True, "pyvenv.cfg")}
    )
    document = plan(doctor, facts, tmp_path)
    assert document["steps"][0]["argv"][:3] == ["uv", "pip", "install"]
    environment = {**index.as_internet(), "PATH": f"{real_uv.rpartition('/')[0]}:/usr/bin:/bin"}
    # A person's own default index must not win over the one that the command names.
    environment["UV_DEFAULT_INDEX"] = "https://mirror.example/simple"
    paste(document, environment)
    assert venv.torch_build() == (("2.6.0" if start == "cpu" else "2.14.1") + "+cu126", "12.6")


def test_a_mirror_stands_in_for_pytorchs_index(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any
) -> None:
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    document = plan(doctor, facts_of(venv, PATIENT), tmp_path, "--mirror", index.mirror)
    assert document["choice"]["index_url"] == f"{index.mirror}/cu126"
    paste(document, index.pip_environment())
    assert venv.torch_build() == ("2.6.0+cu126", "12.6")


def test_pip_is_fetched_where_it_is_missing(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any
) -> None:
    venv = venv_with(python="3.12")
    facts = facts_of(venv, PATIENT).updated({"python.pip": Fact("absent")})
    document = plan(doctor, facts, tmp_path)
    assert [step["id"] for step in document["steps"]] == ["install-pip", "install-torch"]
    paste(document, index.as_internet())
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")


def test_a_python_that_the_system_owns_is_left_alone(
    doctor: Doctor,
    index: WheelIndex,
    real_python: Callable[[str], str],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = real_python("3.12")
    facts = PATIENT.no_torch().set(
        {"python.executable": system, "python.version": "3.12.1", "python.externally_managed": True}
    )
    document = plan(doctor, facts.set({"python.environment": "system"}).facts, tmp_path)
    monkeypatch.chdir(tmp_path)
    paste(document, index.as_internet())
    made = Venv(tmp_path / ".venv")
    assert made.torch_build() == ("2.14.1+cu126", "12.6")


def test_the_requirements_form_installs_the_same(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any
) -> None:
    venv = venv_with(torch_wheel("2.14.1", "cpu", python="3.12"), python="3.12", pip=True)
    command = [*doctor, "fix", "--print", "--gpu", "RTX 4090", "--driver", "550.54.14", "--format", "requirements"]
    ended = subprocess.run(command, env=clean_environ(), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    (tmp_path / "requirements.txt").write_text(ended.stdout)
    installed = venv.run("-m", "pip", "install", "-r", str(tmp_path / "requirements.txt"), env=index.as_internet())
    assert installed.returncode == 0, installed.stderr
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")


def test_other_packages_stay(doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Any) -> None:
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), tiny_wheel("numpy", "1.26.4"), python="3.12", pip=True)
    paste(plan(doctor, facts_of(venv, PATIENT.set({"python.others_with_torch": GONE})), tmp_path), index.as_internet())
    assert venv.installed()["numpy"] == "1.26.4"
