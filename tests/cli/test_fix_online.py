"""`fix --online`: the index is asked for exactly these wheels; what it lacks is replaced, what it cannot say stays."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.index import WheelIndex
from bench.parts import clean_environ
from bench.venvs import Venv
from bench.wheels import companion_wheel, tiny_wheel, torch_wheel
from fix_bench import Doctor, facts_of, stock

from cudadoctor.testing import linux

MakeVenv = Callable[..., Venv]

# The newest torch for a driver of the 12.x days is cu126 of 2.14.1; cu129 of 2.13.0 runs as well.
OLD_DRIVER = ["--gpu", "RTX 4090", "--driver", "550.54.14", "--os", "linux", "--arch", "x86_64", "--python", "3.12"]


def ask(doctor: Doctor, index: WheelIndex, *options: str, through: str = "internet") -> dict[str, Any]:
    environment = index.as_internet() if through == "internet" else index.pip_environment()
    command = [*doctor, "fix", "--print", "--format", "json", "--online", *options]
    ended = subprocess.run(command, env=clean_environ(environment), capture_output=True, text=True, timeout=90)
    assert ended.returncode in (0, 1, 3), ended.stderr
    assert ended.stderr == ""
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def chosen(document: dict[str, Any]) -> str:
    version: str = document["choice"]["version"]
    return version


@pytest.fixture
def index(wheel_index: WheelIndex) -> WheelIndex:
    return stock(wheel_index)


def test_it_is_there(doctor: Doctor, index: WheelIndex) -> None:
    document = ask(doctor, index, *OLD_DRIVER)
    assert document["online"]["state"] == "confirmed"
    assert chosen(document) == "2.14.1+cu126"
    # Exactly these wheels were asked for, and none was downloaded.
    assert [path for path in index.requests if path.endswith("/torch/")] == ["download.pytorch.org /whl/cu126/torch/"]
    assert document["download_bytes"] is not None


def test_the_download_is_what_the_server_says_where_nothing_else_is_known(doctor: Doctor, index: WheelIndex) -> None:
    wheels = [
        torch_wheel("2.1.2", "cpu", python="3.11"),
        companion_wheel("torchvision", "0.16.2", "cpu", "2.1.2", python="3.11"),
    ]
    index.add("cpu", *wheels)
    options = ["--gpu", "none", "--os", "linux", "--arch", "x86_64", "--python", "3.11", "--torch", "2.1.2"]
    document = ask(doctor, index, *options)
    assert document["online"]["state"] == "confirmed"
    assert document["download_bytes"] >= sum(len(wheel.data) for wheel in wheels)


def test_what_is_not_there_is_replaced_by_the_next(doctor: Doctor, wheel_index: WheelIndex) -> None:
    wheel_index.add_torch("2.13.0", "cu129", torchvision="0.28.0", pythons=["3.12"])
    document = ask(doctor, wheel_index, *OLD_DRIVER)
    assert chosen(document) == "2.13.0+cu129"
    assert document["online"]["state"] == "replaced"
    assert "2.14.1+cu126 is not there" in document["online"]["message"]
    assert "torch==2.13.0+cu129" in document["steps"][0]["argv"]
    assert any("is not on the index (asked just now)" in line for line in document["choice"]["reasons"])
    assert "2.14.1+cu126" not in [other["version"] for other in document["alternatives"]]


def test_another_python_is_not_there(doctor: Doctor, wheel_index: WheelIndex) -> None:
    wheel_index.add_torch("2.14.1", "cu126", torchvision="0.29.1", pythons=["3.13"])
    wheel_index.add_torch("2.13.0", "cu129", torchvision="0.28.0", pythons=["3.12"])
    assert chosen(ask(doctor, wheel_index, *OLD_DRIVER)) == "2.13.0+cu129"


def test_nothing_that_runs_is_there(doctor: Doctor, wheel_index: WheelIndex) -> None:
    wheel_index.add("cu126", tiny_wheel("filelock", "1.0"))
    document = ask(doctor, wheel_index, *OLD_DRIVER)
    assert document["online"]["state"] == "missing"
    assert document["exit"] == 3
    assert document["verdict"].endswith("(a wrong or a filtered mirror?)")
    # No lesser build that the index does not have either.
    assert chosen(document) == "2.14.1+cu126"


def test_a_companion_that_nobody_asked_for_may_be_missing(doctor: Doctor, wheel_index: WheelIndex) -> None:
    wheel_index.add_torch("2.14.1", "cu126", pythons=["3.12"])
    document = ask(doctor, wheel_index, *OLD_DRIVER)
    assert document["choice"]["companions"] == {}
    assert document["online"]["state"] == "confirmed"
    assert "no torchvision 0.29.1+cu126" in document["online"]["message"]


def test_a_mirror_is_asked_in_its_place(doctor: Doctor, index: WheelIndex) -> None:
    document = ask(doctor, index, *OLD_DRIVER, "--mirror", index.mirror, through="loopback")
    assert document["online"]["state"] == "confirmed"
    assert not any("download.pytorch.org" in request for request in index.requests)


def test_a_flat_mirror(doctor: Doctor, index: WheelIndex) -> None:
    options = ["--mirror", index.flat_mirror, "--mirror-layout", "flat"]
    document = ask(doctor, index, *OLD_DRIVER, *options, through="loopback")
    assert document["online"]["state"] == "confirmed"
    assert document["choice"]["index_layout"] == "flat"


TROUBLE = [
    ("the server is down", {"/whl/cu126/torch/": 503}),
    ("the server wants a password", {"/whl/cu126/torch/": 401}),
]


@pytest.mark.parametrize("broken", [row[1] for row in TROUBLE], ids=[row[0] for row in TROUBLE])
def test_trouble_leaves_the_offline_plan(doctor: Doctor, index: WheelIndex, broken: dict[str, int]) -> None:
    index.broken.update(broken)
    document = ask(doctor, index, *OLD_DRIVER)
    assert document["online"]["state"] == "not-confirmed"
    assert document["exit"] == 0
    assert chosen(document) == "2.14.1+cu126"
    assert document["steps"][0]["argv"]
    assert "\n" not in document["online"]["message"]


def test_no_network_at_all(doctor: Doctor, tmp_path: Path) -> None:
    # A port on which nobody listens: the connection is refused at once.
    command = [*doctor, "fix", "--print", "--online", *OLD_DRIVER, "--mirror", "http://127.0.0.1:9/whl"]
    ended = subprocess.run(command, env=clean_environ(), capture_output=True, text=True, timeout=90)
    assert ended.returncode == 0
    assert ended.stdout.startswith("OK    not confirmed: torch 2.14.1+cu126 for GeForce RTX 4090")
    assert "nothing of this is confirmed" in " ".join(ended.stdout.split())


def test_a_page_of_another_kind_is_none(doctor: Doctor, index: WheelIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a hotel's network puts in its place: neither "there" nor "not there"."""
    monkeypatch.setattr(index, "page", lambda name, project: "<html><form action='/login'>Sign in</form></html>")
    document = ask(doctor, index, *OLD_DRIVER)
    assert document["online"]["state"] == "not-confirmed"
    assert chosen(document) == "2.14.1+cu126"


def test_what_is_installed_and_right_is_not_asked_for(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Path
) -> None:
    venv = venv_with(torch_wheel("2.14.1", "cu126", python="3.12"), python="3.12", pip=True)
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(facts_of(venv, linux().driver("550.54.14", "12.4")).to_json()))
    document = ask(doctor, index, "--facts", str(file))
    assert document["online"] is None
    assert index.requests == []
