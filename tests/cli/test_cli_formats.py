"""What a scheduler or a monitor gets of a run of `check`: output, exit status and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runner import Run

from cudadoctor.model import Facts
from cudadoctor.testing import Machine, linux

FactsFile = Callable[["Machine | Facts"], str]

LOST = linux().set({"gpu.0.lost": True})


@pytest.mark.parametrize("options", [(), ("--retry-code", "75")])
def test_nagios_has_exit_statuses_of_its_own(run: Run, facts_file: FactsFile, options: tuple[str, ...]) -> None:
    result = run("check", "--facts", facts_file(LOST), "--format", "nagios", *options)
    assert result.exit == 2, "CRITICAL, whatever status was asked for"
    assert result.out.startswith("CUDA CRITICAL - CD113 gpu-lost: ")


@pytest.mark.parametrize(
    "words, says",
    [
        (("--format", "nagios", "--facts", "no-such-file"), "no-such-file"),
        (("--format=nagios", "--facts", "no-such-file"), "no-such-file"),
        (("--format", "nagios", "--no-such-option"), "No such option"),
        (("--format", "nagios", "--select", "CD999"), "CD999"),
    ],
)
def test_no_verdict_is_unknown_to_nagios_and_not_critical(run: Run, words: tuple[str, ...], says: str) -> None:
    result = run("check", *words)
    assert result.exit == 3
    assert result.out.startswith("CUDA UNKNOWN - cudadoctor: error: ") and result.out.count("\n") == 1
    assert says in result.out and says in result.err
    assert "|" not in result.out


def test_our_own_failure_is_unknown_to_nagios(run: Run, facts_file: FactsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a | b")

    monkeypatch.setattr("cudadoctor.cli._diagnosis.view_of", broken)
    result = run("check", "--facts", facts_file(LOST), "--format", "nagios")
    assert result.exit == 3
    assert result.out.startswith("CUDA UNKNOWN - cudadoctor: error: internal error") and "|" not in result.out


def test_what_is_no_plugin_keeps_its_status(run: Run) -> None:
    for words in (("check", "--format", "json"), ("fix", "--print", "--format", "nagios")):
        result = run(*words, "--facts", "no-such-file")
        assert (result.exit, result.out) == (2, "")


def test_a_collector_never_sees_half_a_file(
    run: Run, facts_file: FactsFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "textfile"
    folder.mkdir()
    target = folder / "cudadoctor.prom"
    seen = []
    replace = os.replace

    def watched(source: str, destination: str) -> None:
        # What node_exporter would read (*.prom) at the moment at which the new text is written and not yet in place.
        seen.append({path.name: path.read_text("utf-8") for path in folder.glob("*.prom")})
        replace(source, destination)

    monkeypatch.setattr(os, "replace", watched)
    healthy, lost = tmp_path / "healthy.json", tmp_path / "lost.json"
    for path, machine in ((healthy, linux()), (lost, LOST)):
        path.write_text(Path(facts_file(machine)).read_text("utf-8"), "utf-8")
    assert run("check", "--facts", str(healthy), "--format", "prometheus", "-o", str(target)).exit == 0
    first = target.read_text("utf-8")
    assert run("check", "--facts", str(lost), "--format", "prometheus", "-o", str(target)).exit == 1
    assert seen == [{}, {"cudadoctor.prom": first}]
    assert os.listdir(folder) == ["cudadoctor.prom"], "nothing is left beside it"
    assert 'cudadoctor_verdict{verdict="failed"} 1' in target.read_text("utf-8")


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX's")
def test_a_collector_may_read_what_root_wrote(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        run("check", "--facts", facts_file(linux()), "--format", "prometheus", "-o", f"{tmp_path}/a.prom")
    finally:
        os.umask(before)
    assert (tmp_path / "a.prom").stat().st_mode & 0o777 == 0o644


def test_a_termination_log_is_written_where_it_is_mounted(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    log.touch()
    assert run("check", "--facts", facts_file(LOST), "--also", f"termination-log={log}").exit == 1
    assert log.read_text("utf-8").startswith("CD113 gpu-lost: GPU 0 has fallen off the bus")
