"""What the real nvidia-smi of several drivers prints, on a stand-in NVML, read as a pasted text.

The values are those of the scenario, so that table, tree, XML and CSV must agree with it and with each other.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from bench.fixtures import FakeNvml
from bench.parts import clean_environ

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import Facts
from cudadoctor.reports import read_report

ERAS = ("470", "535", "550")
MIB = 1 << 20

Run = Callable[..., str]


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


@pytest.fixture
def smi(fake_nvml: FakeNvml, real_nvidia_smi: Callable[[str], str]) -> Run:
    """`smi("535", "throttled", "-q")`: what it prints."""

    def run(era: str, scenario: str, *arguments: str) -> str:
        folder = real_nvidia_smi(era)
        done = subprocess.run(
            [f"{folder}/nvidia-smi", *arguments],
            env=clean_environ(fake_nvml(scenario)),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout + done.stderr

    return run


def told(facts: Facts, *names: str) -> dict[str, Any]:
    return {name: facts.value(name) for name in names}


# Of the scenario "throttled": what each way of asking can say.
HOT = {
    "gpu.count": 2,
    "gpu.0.temperature": 94,
    "gpu.1.temperature": 61,
    "gpu.0.performance_state": 2,
    "gpu.0.power": 201.0,
    "gpu.0.utilization": 100,
    "gpu.0.memory_used": 21033 * MIB,
    "gpu.0.compute_mode": "default",
    "driver.smi_version": "535.183.01",
}
DETAILS = {
    "gpu.0.name": "NVIDIA GeForce RTX 3090",
    "gpu.0.throttle_reasons": ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown"],
    "gpu.1.throttle_reasons": ["hw_slowdown", "hw_power_brake_slowdown"],
    "gpu.0.clock_sm": 420,
    "gpu.1.clock_sm": 315,
    "gpu.0.pcie_width": 16,
    "gpu.1.pcie_width": 4,
}
QUERY = (
    "index,name,driver_version,temperature.gpu,pstate,power.draw,utilization.gpu,memory.used,compute_mode,"
    "clocks.sm,pcie.link.width.current,clocks_throttle_reasons.active"
)


@pytest.mark.parametrize("era", ERAS)
class TestOneMachine:
    def test_table(self, matrix: Matrix, smi: Run, era: str) -> None:
        facts = read_report([("r", smi(era, "throttled"))], matrix).facts
        assert told(facts, *HOT) == {**HOT, "gpu.0.power": 201.0}
        # The stand-in lists processes for R470's way of asking alone.
        assert [row["pid"] for row in facts["gpu.0.processes"].get()] == ([5150] if era == "470" else [])
        assert facts["system.os"].value == "linux"

    @pytest.mark.parametrize("arguments", [("-q",), ("-q", "-x")], ids=["text", "XML"])
    def test_tree(self, matrix: Matrix, smi: Run, era: str, arguments: tuple[str, ...]) -> None:
        facts = read_report([("r", smi(era, "throttled", *arguments))], matrix).facts
        assert told(facts, *HOT, *DETAILS) == {**HOT, **DETAILS}
        listed = [{"pid": 5150, "memory": 20480 * MIB, "name": "python"}]
        assert facts["gpu.0.processes"].get() == (listed if era == "470" else [])

    @pytest.mark.parametrize("form", ["csv", "csv,nounits", "csv,noheader", "csv,noheader,nounits"])
    def test_csv(self, matrix: Matrix, smi: Run, era: str, form: str) -> None:
        arguments = (f"--query-gpu={QUERY}", f"--format={form}")
        text = f"$ nvidia-smi {' '.join(arguments)}\n{smi(era, 'throttled', *arguments)}"
        facts = read_report([("r", text)], matrix).facts
        assert told(facts, *HOT, *DETAILS) == {**HOT, **DETAILS}

    def test_list(self, matrix: Matrix, smi: Run, era: str) -> None:
        facts = read_report([("r", smi(era, "throttled", "-L"))], matrix).facts
        assert facts["gpu.count"].value == 2
        assert [gpu["name"] for gpu in facts["smi.gpus"].get()] == ["NVIDIA GeForce RTX 3090"] * 2

    def test_all_of_it_in_one_text(self, matrix: Matrix, smi: Run, era: str) -> None:
        text = "\n".join(smi(era, "throttled", *arguments) for arguments in ((), ("-L",), ("-q",), ("-q", "-x")))
        reading = read_report([("r", text)], matrix)
        assert told(reading.facts, *HOT, *DETAILS) == {**HOT, **DETAILS}
        assert not [note for note in reading.notes if "says" in note]  # nowhere does it contradict itself


@pytest.mark.parametrize("era", ("535", "550"))
@pytest.mark.parametrize("arguments", [(), ("-q",), ("-q", "-x")], ids=["table", "text", "XML"])
def test_mig(matrix: Matrix, smi: Run, era: str, arguments: tuple[str, ...]) -> None:
    facts = read_report([("r", smi(era, "mig", *arguments))], matrix).facts
    assert told(facts, "gpu.0.mig_mode", "gpu.1.mig_mode", "gpu.0.memory_total") == {
        "gpu.0.mig_mode": True,
        "gpu.1.mig_mode": True,
        "gpu.0.memory_total": 81559 * MIB,  # the card's, not that of an instance
    }


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("arguments", [(), ("-L",), ("-q",)], ids=["table", "list", "tree"])
def test_a_lost_gpu(matrix: Matrix, smi: Run, era: str, arguments: tuple[str, ...]) -> None:
    facts = read_report([("r", smi(era, "one_gpu_lost", *arguments))], matrix).facts
    entries = {gpu["index"]: gpu["lost"] for gpu in facts.value("smi.gpus", [])}
    assert entries.get(1) is True or facts.value("driver.smi_failure") == "gpu-lost"
    assert facts.value("gpu.0.lost") is not True


FAILURES = {
    "no_driver_9": "no-driver",
    "mismatch_18": "mismatch",
    "no_permission_4": "permission",
    "nvml_unknown_error": "unknown-error",
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("scenario", FAILURES)
def test_failures(matrix: Matrix, smi: Run, era: str, scenario: str) -> None:
    text = smi(era, scenario)
    facts = read_report([("r", f"I ran nvidia-smi:\n{text}\nWhat now?")], matrix).facts
    assert facts.value("driver.smi_failure") == FAILURES[scenario], text
    assert facts["driver.smi_version"].is_unknown and facts["smi.gpus"].is_unknown
