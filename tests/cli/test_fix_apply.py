"""`fix` on a live machine: an environment with a CPU build, a GPU by the fake NVML, a wheel index on loopback."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.index import WheelIndex
from bench.parts import clean_environ
from bench.venvs import Venv, activated
from bench.wheels import torch_wheel

Doctor = list[str]
MakeVenv = Callable[..., Venv]


class Patient:
    """A live machine whose environment holds torch 2.6.0+cpu and whose driver is of the 12.x days."""

    def __init__(self, doctor: Doctor, venv: Venv, environment: Mapping[str, str], folder: Path) -> None:
        self.doctor = doctor
        self.venv = venv
        self.environment = environment
        self.folder = folder

    def fix(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.doctor, "fix", *options],
            env=clean_environ(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def typed(self, keys: Sequence[str], *options: str) -> tuple[int, str]:
        """`fix` on a terminal; each of `keys` is typed at a question. Gives the exit status and the screen."""
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(self.doctor[0], [*self.doctor, "fix", *options], clean_environ(self.environment))
        screen, waiting = b"", list(keys)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            ready, _, _ = select.select([terminal], [], [], 5)
            if not ready:
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            screen += data
            if waiting and screen.rstrip().endswith(b"[y/N]:"):
                os.write(terminal, waiting.pop(0).encode() + b"\n")
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), screen.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.fixture
def patient(doctor: Doctor, wheel_index: WheelIndex, venv_with: MakeVenv, fake_nvml: Any, tmp_path: Path) -> Patient:
    wheel_index.add_torch("2.6.0", "cu126", pythons=["3.12"])
    venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
    nvml = fake_nvml("healthy_4090")
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {**clean_environ(nvml, wheel_index.as_internet(), activated(venv)), "HOME": str(folder)}
    return Patient(doctor, venv, environment, folder)


def installs(text: str) -> bool:
    return '"torch==2.6.0+cu126" --index-url https://download.pytorch.org/whl/cu126' in text


def test_without_a_terminal_it_only_prints(patient: Patient) -> None:
    ended = patient.fix()
    assert ended.returncode == 1 and installs(ended.stdout)
    assert ended.stderr == ""
    assert patient.venv.torch_build() == ("2.6.0+cpu", None)
    assert list(patient.folder.iterdir()) == []  # nothing was written to HOME


def test_apply_runs_the_safe_steps_and_checks_again(patient: Patient) -> None:
    ended = patient.fix("--apply")
    assert patient.venv.torch_build() == ("2.6.0+cu126", "12.6"), ended.stdout + ended.stderr
    before, _, after = ended.stdout.partition("Checked again:")
    assert installs(before) and "  done      Install torch 2.6.0+cu126" in before
    assert "torch 2.6.0+cu126" in after
    assert "is built without CUDA" not in after


def test_applied_twice_it_has_no_torch_to_install(patient: Patient) -> None:
    patient.fix("--apply")
    again = patient.fix("--print")
    assert again.stdout and not installs(again.stdout)
    assert patient.venv.torch_build() == ("2.6.0+cu126", "12.6")


def test_a_step_that_fails_stops_the_plan_and_is_named(patient: Patient, wheel_index: WheelIndex) -> None:
    wheel_index.broken["/whl/cu126/"] = 503
    ended = patient.fix("--apply")
    assert ended.returncode == 1
    assert "FAILED    Install torch 2.6.0+cu126 (it ended with exit status 1)" in ended.stdout
    assert "Nothing was undone." in ended.stdout
    assert patient.venv.torch_build() == ("2.6.0+cpu", None)


def test_a_yes_on_a_terminal_runs_the_step(patient: Patient) -> None:
    _, screen = patient.typed(["y"])
    # The terminal may echo the key before click has written the blank that ends its question.
    assert re.search(r"Install torch 2\.6\.0\+cu126: run it now\? \[y/N\]: ?y", screen)
    assert "Checked again:" in screen
    assert patient.venv.torch_build() == ("2.6.0+cu126", "12.6")


@pytest.mark.parametrize("key", ["", "n"])
def test_anything_else_does_not(patient: Patient, key: str) -> None:
    status, screen = patient.typed([key])
    assert status == 1
    assert "not done  Install torch 2.6.0+cu126" in screen
    assert "Checked again:" not in screen
    assert patient.venv.torch_build() == ("2.6.0+cpu", None)


def test_ctrl_c_at_a_question_tells_what_was_done(patient: Patient) -> None:
    status, screen = patient.typed(["\x03"])
    assert status == 130
    assert "not done  Install torch 2.6.0+cu126" in screen
    assert patient.venv.torch_build() == ("2.6.0+cpu", None)


def test_print_asks_nothing_on_a_terminal_either(patient: Patient) -> None:
    status, screen = patient.typed([], "--print")
    assert status == 1 and installs(screen) and "[y/N]" not in screen


def test_json_of_the_live_machine(patient: Patient) -> None:
    ended = patient.fix("--format", "json")
    document = json.loads(ended.stdout)
    assert document["exit"] == ended.returncode == 1
    assert document["choice"]["version"] == "2.6.0+cu126"
    assert patient.venv.torch_build() == ("2.6.0+cpu", None)
