"""All probes of the patient's Python together: a recording tells what the machine told, and nothing is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench.parts import clean_environ
from bench.wheels import companion_wheel, torch_wheel

from cudadoctor.probes.examine import examine
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.record import RecordingSystem
from cudadoctor.system.replay import ReplaySystem

PROBES = ("interpreter", "packages", "torch_build", "pip_settings", "libraries", "toolkits")


def live(variables: dict[str, str]) -> LiveSystem:
    system = LiveSystem(time.monotonic() + 30)
    system._environment = variables
    return system


@pytest.fixture
def patient(venv_with: Any) -> Any:
    return venv_with(
        torch_wheel("2.9.1", "cu126", local=False),
        companion_wheel("torchvision", "0.24.1", "cu126", "2.9.1"),
        python="3.11",
    )


def test_a_replay_gives_the_facts_of_the_recorded_machine(patient: Any, tmp_path: Path) -> None:
    variables = {**clean_environ(), "VIRTUAL_ENV": str(patient.root), "LD_LIBRARY_PATH": str(tmp_path)}
    recording = RecordingSystem(live(variables))
    recorded = examine(recording, PROBES)  # type: ignore[arg-type]
    recording.write(str(tmp_path / "machine"))
    replayed = examine(ReplaySystem(str(tmp_path / "machine")), PROBES)  # type: ignore[arg-type]
    names = {name for name in recorded if name.startswith(("python.", "package", "torch.", "pip.", "toolkit.", "libr"))}
    assert {"python.executable", "package.torch.version", "torch.sass", "pip.index_url", "toolkit.found"} <= names
    for name in sorted(names):
        assert replayed[name].state == recorded[name].state, name
        assert replayed[name].value == recorded[name].value, name


def test_nothing_heavy_is_imported_to_read_an_environment(patient: Any) -> None:
    """Start-up time is a feature: each of these costs more than all that is read."""
    code = (
        "import sys, time\n"
        "from cudadoctor.probes.examine import load\n"
        "from cudadoctor.system.live import LiveSystem\n"
        "system = LiveSystem(time.monotonic() + 30)\n"
        f"for name in {PROBES!r}: load(name).function(system)\n"
        "heavy = {'torch', 'requests', 'importlib.metadata', 'asyncio', 'rich', 'xml', 'packaging', 'pathlib',\n"
        "         'subprocess', 'concurrent.futures', 'email', 'configparser', 'tomllib', 'ntpath'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=clean_environ({"VIRTUAL_ENV": str(patient.root), "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_reading_an_environment_writes_nothing(patient: Any) -> None:
    def state() -> set[tuple[str, int]]:
        return {(path, os.lstat(path).st_mtime_ns) for path in map(str, Path(patient.root).rglob("*"))}

    before = state()
    examine(live({**clean_environ(), "VIRTUAL_ENV": str(patient.root)}), PROBES)  # type: ignore[arg-type]
    assert state() == before
