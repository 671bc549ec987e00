"""`check` as a person runs it, on live machines: what it says of a driver that fails in each way, of the real torch,
and among surroundings that break other tools.

The machine around it is made (a card, a loaded module, device nodes), NVML is the stand-in library through the real
nvidia-ml-py, and nvidia-smi is the distribution's own.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.parts import clean_environ
from bench.roots import Entry, nvidia_module, pci_gpu
from bench.venvs import Venv, activated
from bench.wheels import torch_wheel

import cudadoctor

ROOT = Path(cudadoctor.__file__).parent.parent

Doctor = list[str]
Done = subprocess.CompletedProcess[str]

A100 = {**pci_gpu(device="0x20b2", class_="0x030200"), **nvidia_module("535.183.01")}
TWO_A100 = {**A100, **pci_gpu("0000:02:00.0", "0x20b2", class_="0x030200")}


class Scenario(NamedTuple):
    """What NVML plays, the cards and the loaded module; the root cause, the exit status, words of the first line."""

    name: str
    cards: dict[str, Entry]
    module: str
    cause: str
    exit: int
    says: str


SCENARIOS = [
    Scenario(
        "two_gpus",
        TWO_A100,
        "535.183.01",
        "",
        0,
        "torch 2.9.1+cu126 runs on 2x NVIDIA A100-SXM4-80GB, driver 535.183.01",
    ),
    Scenario("one_gpu_lost", TWO_A100, "535.183.01", "CD113", 1, "GPU 1 has fallen off the bus"),
    Scenario("mismatch_18", A100, "535.183.01", "CD105", 1, "module 535.183.01, library 535.261.03"),
    Scenario("no_driver_9", A100, "535.183.01", "CD106", 1, "the NVIDIA driver does not answer"),
    Scenario("no_permission_4", A100, "535.261.03", "CD111", 1, "the NVIDIA driver refuses this user"),
    # A library that is older than nvidia-ml-py: what it lacks is asked in the older way, and only its age is a fault.
    Scenario(
        "missing_symbol", pci_gpu(device="0x1b06"), "470.256.02", "CD303", 1, "driver 470.256.02 is too old for it"
    ),
]


@pytest.fixture
def patient(venv_with: Callable[..., Venv]) -> Venv:
    return venv_with(torch_wheel("2.9.1", "cu126", archs=["50", "60", "70", "75", "80", "86", "90"]))


def first_lines(done: Done) -> str:
    return " ".join(done.stdout.partition("\n\n")[0].split())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_what_nvml_answers_decides_the_verdict(
    scenario: Scenario, doctor: Doctor, patient: Venv, fake_root: Any, fake_nvml: Any, real_nvidia_smi: Any
) -> None:
    machine = fake_root(scenario.cards, nvidia_module(scenario.module))
    environment = clean_environ(fake_nvml(scenario.name), {"PATH": real_nvidia_smi("535")}, activated(patient))
    done = machine.run([*doctor, "check"], env=environment)
    assert done.stderr == ""
    assert scenario.says in first_lines(done), done.stdout
    assert done.returncode == scenario.exit
    report = json.loads(machine.run([*doctor, "check", "--format", "json"], env=environment).stdout)
    assert report["root_causes"][:1] == ([scenario.cause] if scenario.cause else [])
    assert report["exit"] == scenario.exit


def test_a_driver_that_hangs_is_named_within_the_deadline(
    doctor: Doctor, patient: Venv, fake_root: Any, fake_nvml: Any, real_nvidia_smi: Any
) -> None:
    environment = clean_environ(fake_nvml("hang"), {"PATH": real_nvidia_smi("535")}, activated(patient))
    begun = time.monotonic()
    done = fake_root(A100).run([*doctor, "check", "--timeout", "4"], env=environment)
    assert time.monotonic() - begun < 25  # the library itself hangs for two minutes
    assert first_lines(done) == "FAIL the NVIDIA driver did not answer in time: it hangs"
    assert done.returncode == 1


# -- the real torch -------------------------------------------------------------------------------------------------


def outcome(done: Done, rule: str) -> Any:
    return next(entry for entry in json.loads(done.stdout)["outcomes"] if entry["rule"] == rule)


def test_the_cpu_build_of_the_real_torch_is_a_fault_beside_a_gpu_and_none_without(
    doctor: Doctor, real_torch_venv: Venv, fake_root: Any, fake_nvml: Any
) -> None:
    environment = clean_environ(fake_nvml("two_gpus"), activated(real_torch_venv))
    beside = fake_root(TWO_A100).run([*doctor, "check", "--format", "json"], env=environment)
    assert json.loads(beside.stdout)["root_causes"] == ["CD302"]
    assert outcome(beside, "CD302")["status"] == "fail"
    assert beside.returncode == 1

    without = fake_root().run([*doctor, "check", "--format", "json"], env=clean_environ(activated(real_torch_venv)))
    assert outcome(without, "CD302")["status"] == "skip"
    assert json.loads(without.stdout)["root_causes"] == ["CD501"]


# -- surroundings ---------------------------------------------------------------------------------------------------

SURROUNDINGS: dict[str, dict[str, str]] = {
    "cp1252": {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    "LC_ALL=C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "a HOME that cannot be written to": {"HOME": "/proc/1"},
    "no PATH": {"PATH": ""},
}


@pytest.mark.parametrize("environment", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_hostile_surroundings_change_no_verdict(
    environment: dict[str, str], doctor: Doctor, patient: Venv, fake_root: Any, fake_nvml: Any
) -> None:
    """The patient's Python has no pip either."""
    done = fake_root(TWO_A100).run(
        [*doctor, "check", "--python", patient.python], env={**clean_environ(fake_nvml("two_gpus")), **environment}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert first_lines(done).startswith("OK torch 2.9.1+cu126 runs on 2x NVIDIA A100-SXM4-80GB")


def test_nvidia_smi_that_sleeps_is_not_waited_for(
    doctor: Doctor, patient: Venv, fake_root: Any, fake_nvml: Any, fake_program: Any
) -> None:
    environment = clean_environ(fake_nvml("two_gpus"), {"PATH": fake_program("nvidia-smi", sleep=120)})
    begun = time.monotonic()
    done = fake_root(TWO_A100).run([*doctor, "check", "--python", patient.python], env=environment)
    assert time.monotonic() - begun < 40
    assert done.returncode == 0
    assert "nvidia-smi did not end in time" in done.stdout


def test_what_nvidia_smi_says_on_standard_output_while_it_fails_is_told(
    doctor: Doctor, fake_root: Any, fake_program: Any
) -> None:
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    path = fake_program("nvidia-smi", stdout=words + "\n", exit=9)
    done = fake_root(pci_gpu(driver=None)).run([*doctor, "check"], env={"PATH": path})
    assert done.returncode == 1
    assert words in " ".join(done.stdout.split())


# -- what bad input leaves behind -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--facts", "broken.json", "-o", "report.txt"],
        ["check", "--replay", "nowhere", "-o", "report.txt"],
        ["check", "--select", "CD999", "-o", "report.txt"],
        ["facts", "--record", "kept", "--python", "no/such/python"],
        ["explain", "CD999", "-o", "page.txt"],
        ["fix", "--gpu", "RTX 5909", "-o", "plan.txt"],
        ["fix", "--gpu", "RTX 4090", "--driver", "newest", "-o", "plan.txt"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence_and_writes_nothing(doctor: Doctor, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    environment = clean_environ(PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [*doctor, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("cudadoctor: error: ") and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["broken.json"]
