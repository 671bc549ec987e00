"""What root does to a GPU or its service: the commands name the GPU that is meant, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.matrix import load_matrix
from cudadoctor.model import ParseError
from cudadoctor.plan.context import Context
from cudadoctor.plan.plan import Options
from cudadoctor.plan.remedies import spell_out
from cudadoctor.testing import Machine, container, linux

TWO = linux().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2", index=1)
FEDORA = TWO.set({"system.distribution": "fedora", "system.distribution_like": [], "system.distribution_version": "42"})

Case = tuple[str, Machine, dict[str, Any], "tuple[str, ...] | None"]

COMMANDS: list[Case] = [
    ("reset-gpu", TWO, {"index": 1}, ("sudo", "nvidia-smi", "--gpu-reset", "-i", "1")),
    ("reset-gpu", TWO, {}, ("sudo", "nvidia-smi", "--gpu-reset")),
    ("reset-gpu", container(), {"index": 0}, None),
    ("set-compute-mode", TWO, {"indexes": [1]}, ("sudo", "nvidia-smi", "-i", "1", "-c", "DEFAULT")),
    ("set-compute-mode", TWO, {"indexes": [0, 1]}, ("sudo", "nvidia-smi", "-c", "DEFAULT")),
    ("switch-mig-off", TWO, {"indexes": [0]}, ("sudo", "nvidia-smi", "-i", "0", "-mig", "0")),
    (
        "install-fabric-manager",
        TWO,
        {"version": "550.54.15"},
        ("sudo", "apt-get", "install", "nvidia-fabricmanager-550"),
    ),
    ("install-fabric-manager", TWO, {}, None),
    ("install-fabric-manager", FEDORA, {"version": "550.54.15"}, None),
]


def spelled(machine: Machine, kind: str, parameters: dict[str, Any]) -> list[Any]:
    context = Context(machine.facts, load_matrix(), Options(), [kind])
    return [draft.step for draft in spell_out(kind, context, parameters)]


@pytest.mark.parametrize(("kind", "machine", "parameters", "argv"), COMMANDS)
def test_the_command(kind: str, machine: Machine, parameters: dict[str, Any], argv: Any) -> None:
    (step,) = spelled(machine, kind, parameters)
    if argv is None:
        assert step.argv is None and step.instructions
    else:
        assert [word for word in step.argv if word != "-y"] == list(argv)
        assert step.safety == "careful" and "root" in step.needs


@pytest.mark.parametrize("index", [-1, 999, "0; reboot", True])
def test_only_the_number_of_a_gpu_goes_into_a_command(index: Any) -> None:
    with pytest.raises(ParseError):
        spelled(TWO, "reset-gpu", {"index": index})


def test_a_version_that_is_none_goes_into_no_command() -> None:
    with pytest.raises(ParseError):
        spelled(TWO, "install-fabric-manager", {"version": "550; reboot"})


def test_hmm_is_switched_off_before_the_module_is_loaded_anew() -> None:
    steps = spelled(linux(), "disable-uvm-hmm", {})
    assert [step.id for step in steps] == ["disable-uvm-hmm", "unload-nvidia-uvm", "load-nvidia_uvm"]
    assert "uvm_disable_hmm=1" in " ".join(steps[0].argv)
