"""Recorded machines, examined and judged as a whole: each folder here is one.

`machine.json` is the recording (format: `cudadoctor/system/recording.py`), written by hand unless its `about` says
otherwise. `expected.json` says what must come out: `root_causes` in order, the exit status, and `fine`, the rules that
must not fail whatever else is found. `expected.txt` is what `check` prints, and `expected-report.json` the heart of its
JSON: the verdict, every outcome that is not a pass, and the plan. These two are written anew by

    CUDADOCTOR_WRITE_EXPECTED=1 python -m pytest tests/machines

and belong to the change that alters them: read the difference before it is committed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.cli import main
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix.load import load_matrix
from cudadoctor.model import CRASH, FAIL, Facts
from cudadoctor.model.catalogue import fits, spec_of
from cudadoctor.model.report import Report, exit_status
from cudadoctor.probes.examine import examine
from cudadoctor.system.replay import ReplaySystem

HERE = Path(__file__).parent
MACHINES = sorted(path.parent.name for path in HERE.glob("*/machine.json"))
WRITE = os.environ.get("CUDADOCTOR_WRITE_EXPECTED") == "1"

# What a machine may be silent about: nobody recorded it, or a recording by hand cannot say it.
KEYS = {"root_causes", "exit", "fine"}

_cache: dict[str, tuple[Facts, Report]] = {}


def judged(name: str) -> tuple[Facts, Report]:
    if name not in _cache:
        facts = examine(ReplaySystem(str(HERE / name)))
        _cache[name] = facts, diagnose(facts, load_matrix())
    return _cache[name]


def expected(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HERE / name / "expected.json").read_text("utf-8"))
    assert set(document) == KEYS, f"{name}/expected.json must have {sorted(KEYS)}"
    return document


def test_there_are_the_machines_that_the_project_promises() -> None:
    assert len(MACHINES) >= 14


@pytest.mark.parametrize("name", MACHINES)
def test_root_causes_and_exit_status(name: str) -> None:
    _, report = judged(name)
    wanted = expected(name)
    failed = [f"{o.rule} {o.severity}: {o.message}" for o in report.outcomes if o.status == FAIL]
    assert list(report.root_causes) == wanted["root_causes"], failed
    assert exit_status(report.outcomes) == wanted["exit"], failed


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_false_is_said_beside_it(name: str) -> None:
    _, report = judged(name)
    fine = set(expected(name)["fine"])
    false = [f"{o.rule}: {o.message}" for o in report.outcomes if o.status == FAIL and o.rule in fine]
    assert not false
    assert not [f"{o.rule}: {o.message}" for o in report.outcomes if o.status == CRASH]


@pytest.mark.parametrize("name", MACHINES)
def test_every_probe_comes_to_its_end(name: str) -> None:
    facts, _ = judged(name)
    assert facts["examination.failed"].get() == []
    assert facts["examination.timed_out"].get() == []


@pytest.mark.parametrize("name", MACHINES)
def test_facts_are_of_the_catalogue_and_survive_json(name: str) -> None:
    facts, _ = judged(name)
    for fact_name, fact in facts.items():
        spec = spec_of(fact_name)
        assert spec is not None, f"{fact_name} is not in the catalogue"
        assert not fact.is_known or fits(spec, fact.value), f"{fact_name} is a {spec.type}, not {fact.value!r}"
        assert not fact.is_unknown or fact.reason, f"{fact_name} is unknown without a reason"
    assert Facts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


def printed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    # The report repeats the recording's path, which must not be that of this checkout.
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(sys, "argv", ["cudadoctor", *arguments])
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CLICOLOR_FORCE"):
        monkeypatch.delenv(variable, raising=False)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert captured.err == ""
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out


def compare(path: Path, text: str) -> None:
    if WRITE:
        path.write_text(text, "utf-8")
    assert path.is_file(), f"{path.name} is missing; see the head of this file for how it is written"
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("name", MACHINES)
def test_what_check_prints(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = printed(["check", "--replay", name], monkeypatch, capsys)
    assert code == expected(name)["exit"]
    compare(HERE / name / "expected.txt", text)


@pytest.mark.parametrize("name", MACHINES)
def test_what_check_says_to_programs(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = printed(["check", "--replay", name, "--format", "json"], monkeypatch, capsys)
    document = json.loads(text)
    assert code == document["exit"] == expected(name)["exit"]
    assert document["root_causes"] == expected(name)["root_causes"]
    heart = {
        "exit": document["exit"],
        "root_causes": document["root_causes"],
        "outcomes": [_short(outcome) for outcome in document["outcomes"] if outcome["status"] != "pass"],
        "plan": document["plan"],
    }
    compare(HERE / name / "expected-report.json", json.dumps(heart, indent=2, ensure_ascii=False) + "\n")


def _short(outcome: dict[str, Any]) -> dict[str, Any]:
    keys = ("rule", "status", "severity", "certainty", "blame", "message", "because_of")
    short = {key: outcome[key] for key in keys if outcome.get(key) is not None}
    short["evidence"] = [entry["fact"] for entry in outcome["evidence"]]
    return short


@pytest.mark.parametrize("name", [name for name in MACHINES if expected(name)["root_causes"] == []])
def test_a_healthy_machine_gets_no_command(name: str) -> None:
    """A working environment gets "nothing to do", never an upgrade."""
    _, report = judged(name)
    offered = [o.rule for o in report.outcomes if o.status == FAIL and o.severity != "info" and o.fixes]
    assert offered == []
