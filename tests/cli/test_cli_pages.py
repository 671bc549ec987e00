"""`explain`, `rules` and `facts`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import pytest
from cli_runner import Run

from cudadoctor.cli import facts as facts_command
from cudadoctor.model import Facts
from cudadoctor.rules import rule_files, rule_name
from cudadoctor.testing import Machine, linux


@pytest.mark.parametrize("rule", list(rule_files()))
def test_every_rule_explains_itself_by_id_and_by_name(run: Run, rule: str) -> None:
    by_id = run("explain", rule.lower())
    assert by_id == run("explain", rule_name(rule)) == run("explain", rule[2:])
    assert by_id.exit == 0 and by_id.out.startswith(f"{rule} {rule_name(rule)} (")


def test_a_concept(run: Run) -> None:
    assert run("explain", "Driver_And_CUDA").out == run("explain", "driver-and-cuda").out
    assert run("explain", "nvcc-missing").out.startswith(("nvcc is missing", "CD201"))


def test_a_page_as_json(run: Run) -> None:
    page = json.loads(run("explain", "CD302", "--format", "json").out)
    assert page["rule"] == "CD302" and page["sections"]


@pytest.mark.parametrize(
    "word, says",
    [
        ("CD999", "there is no check or concept 'CD999'; did you mean"),
        ("cpu-torch", "did you mean cpu-only-torch"),
        ("swap", "did you mean swap-too-small?"),
        ("wheels", "did you mean nvidia-wheels-inconsistent or wheels-and-indexes?"),
        ("minor-version", "did you mean minor-version-compatibility"),
        ("?!", "there is no check or concept '?!'; `cudadoctor rules` lists the checks, and the concepts are "),
        ("\x1b[2J", "'\\x1b[2J'"),
    ],
)
def test_an_unknown_word_gets_the_nearest(run: Run, word: str, says: str) -> None:
    result = run("explain", word)
    assert (result.exit, result.out) == (2, "")
    assert says in result.err and result.err.count("\n") == 1


def test_rules_lists_all_of_them(run: Run) -> None:
    lines = [line for line in run("rules").out.splitlines() if not line.startswith(" ")]
    assert [line.split()[0] for line in lines] == list(rule_files())
    assert [entry["rule"] for entry in json.loads(run("rules", "--format", "json").out)] == list(rule_files())


def test_facts_round_trip(run: Run, facts_file: Callable[[Machine], str]) -> None:
    result = run("facts", "--facts", facts_file(linux()))
    assert result.exit == 0
    facts = Facts.from_json(json.loads(result.out))
    assert facts.without(["examination.kind"]) == linux().facts.without(["examination.kind"])
    assert facts.value("examination.kind") == "facts"


def test_facts_for_people(run: Run, facts_file: Callable[[Machine], str]) -> None:
    machine = linux().unknown("memory.swap_total").set({"gpu.0.name": "NVIDIA GeForce RTX 4090\x1b[31m"})
    out = run("facts", "--facts", facts_file(machine), "--format", "text").out
    assert "\nmemory.total: 64 GiB  " in out
    assert "\nmemory.swap_total: unknown (permission denied)\n" in out
    assert "\nscheduler.kind: not there " in out
    assert "\x1b" not in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_who_records_on_a_terminal_is_told_what_to_do_with_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the facts in a pipe gets them, as without --record."""
    folder = str(tmp_path / "here")
    assert json.loads(run("facts", "--record", str(tmp_path / "piped")).out)["schema"] == "cudadoctor.facts/1"
    monkeypatch.setattr(facts_command, "is_terminal", lambda: True)
    told = run("facts", "--record", folder)
    assert told.exit == 0 and told.err == ""
    assert told.out.splitlines() == [
        f"recorded this machine in {folder}, without names, serials and tokens",
        f"diagnose it anywhere: cudadoctor check --replay {folder}",
    ]
