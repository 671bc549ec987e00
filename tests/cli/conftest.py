"""Running the command line in this process, as the console script does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runner import Result, Run

from cudadoctor.cli import main
from cudadoctor.model import Facts
from cudadoctor.testing import Machine


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("check", "--format", "json")`: exit status and what was written."""

    def running(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["cudadoctor", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, captured.out, captured.err)

    return running


@pytest.fixture
def facts_file(tmp_path: Path) -> Callable[[Machine | Facts], str]:
    """A machine made by hand as a file for `--facts`."""

    def written(machine: Machine | Facts) -> str:
        facts = machine.facts if isinstance(machine, Machine) else machine
        path = tmp_path / "facts.json"
        path.write_text(json.dumps(facts.to_json()), "utf-8")
        return str(path)

    return written
