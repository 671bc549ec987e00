"""Real examinations from the command line: this machine, its recording, and what is never loaded on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import Run

import cudadoctor

ROOT = Path(cudadoctor.__file__).parent.parent

NEVER = {
    "torch",
    "requests",
    "importlib.metadata",
    "asyncio",
    "rich",
    "xml",
    "packaging.requirements",
    "concurrent.futures",
}


def test_check_of_this_machine_comes_to_a_verdict(run: Run) -> None:
    result = run("check", "--format", "json")
    document = json.loads(result.out)
    assert result.exit == document["exit"] in (0, 1, 3)
    assert result.err == ""
    assert document["facts"]["examination.kind"]["value"] == "live"
    assert not [entry for entry in document["outcomes"] if entry["status"] == "crash"]


def test_a_recording_is_judged_as_the_machine_was(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    recorded = run("facts", "--record", str(folder))
    assert recorded.exit == 0 and (folder / "machine.json").is_file()
    here = json.loads(recorded.out)["facts"]
    there = json.loads(run("facts", "--replay", str(folder)).out)["facts"]
    for facts in (here, there):
        del facts["examination.kind"]
    # What changes from one moment to the next may differ; what the verdict rests on may not.
    assert set(here) == set(there)
    for name in ("system.distribution", "pci.gpus", "python.version", "torch.version", "driver.smi_path"):
        assert here.get(name) == there.get(name)
    assert run("check", "--replay", str(folder)).exit == run("check").exit


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--replay", "no/such/folder"], "no/such/folder"),
        (
            ["--python", "no/such/python"],
            "there is no file 'no/such/python'; --python takes the path of an interpreter",
        ),
        (["--python", "2.9"], "there is no Python '2.9' on PATH"),
    ],
)
def test_a_machine_that_is_not_there(run: Run, arguments: list[str], says: str) -> None:
    result = run("check", *arguments)
    assert (result.exit, result.out) == (2, "")
    assert result.err.startswith("cudadoctor: error: ") and result.err.count("\n") == 1
    assert says in result.err


def test_a_broken_recording(run: Run, tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("{")
    result = run("check", "--replay", str(tmp_path))
    assert (result.exit, result.out) == (2, "") and result.err.count("\n") == 1


def test_another_interpreter(run: Run) -> None:
    document = json.loads(run("facts", "--python", sys.executable).out)
    assert document["facts"]["python.chosen_by"]["value"] == "--python"
    assert document["facts"]["python.version"]["value"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize("arguments", [["check"], ["check", "--format", "json"], ["facts"]], ids=" ".join)
def test_what_is_slow_is_never_imported(arguments: list[str]) -> None:
    script = f"""
import sys
from cudadoctor.cli import main
sys.argv[1:] = {arguments!r}
try:
    main()
finally:
    print("\\nLOADED", *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "cudadoctor.probes.examine" in loaded
    assert not loaded & NEVER
    assert not [name for name in loaded if name.startswith("cudadoctor.reports")], "only a pasted text needs them"


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_nothing_is_written(tmp_path: Path) -> None:
    """HOME and the working folder stay as they are, and a HOME that cannot be written to is no matter."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    environment = {
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(here),
    }
    done = subprocess.run(
        [sys.executable, "-m", "cudadoctor", "check"], cwd=here, env=environment, capture_output=True, timeout=120
    )
    assert done.returncode in (0, 1, 3) and done.stderr == b""
    assert list(home.iterdir()) == [] and list(here.iterdir()) == []
