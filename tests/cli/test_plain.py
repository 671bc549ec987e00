"""A plain command line of `check` is read without click, and means what click says that it means."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cudadoctor
from cudadoctor.cli import _plain, group
from cudadoctor.cli._checking import check
from cudadoctor.cli._plain import plain_check
from cudadoctor.cli.check import command

ROOT = Path(cudadoctor.__file__).parent.parent

PLAIN = [
    "",
    "--timeout 5",
    "--timeout 0.5",
    "--timeout=5",
    "--format json",
    "--format text -v",
    "--verbose --color never",
    "--python 3.12",
    "--replay machine",
    "--facts facts.json --node n17",
    "-o report.txt",
    "--output report.txt",
    "--fail-on warning --unknown-ok --retry-code 75",
    "--select CD303,302 --select torch-missing",
    "--blame machine --also json=report.json --also markdown=report.md",
    "--ignore CD601=shared --ignore CD602=too",
    "--assume driver.nvml_version=580.95.05 --assume system.container=absent",
]

LEFT_TO_CLICK = [
    "-h",
    "--help",
    "superfluous",
    "--",
    "--formt json",
    "--format yaml",
    "--format JSON",
    "--format",
    "--facts -",
    "-o -",
    "-oreport.txt",
    "-vv",
    "-v=1",
    "--verbose=1",
    "--timeout 5 --timeout 6",
    "--timeout soon",
    "--timeout 0",
    "--timeout -1",
    "--timeout nan",
    "--timeout 1e3",
    "--timeout 100000",
    "--retry-code 0",
    "--retry-code 256",
    "--retry-code ٣",
    "--timeout 0.0",
    "--timeout 5.",
]


def by_click(words: list[str]) -> Any:
    """The parameters as click reads them, or None where it has something else to say."""
    try:
        return command.make_context("check", list(words), parent=click.Context(group, **group.context_settings)).params
    except (click.ClickException, click.exceptions.Exit):
        return None


@pytest.mark.parametrize("line", PLAIN)
def test_plain_lines_need_no_click(line: str) -> None:
    found = plain_check(line.split())
    assert found is not None and found == by_click(line.split())


@pytest.mark.parametrize("line", LEFT_TO_CLICK)
def test_everything_else_is_left_to_it(line: str) -> None:
    assert plain_check(line.split()) is None


OPTIONS = sorted({word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)})
VALUES = [
    "", "5", "0.25", "00", "1.", ".5", "1_0", "json", "text", "error", "warning", "always", "-", "-v", "--", "=", "a=b",
    "$HOME", " 7",
]  # fmt: skip
WORDS = st.one_of(
    st.sampled_from([*OPTIONS, *VALUES]),
    st.builds("{}={}".format, st.sampled_from(OPTIONS), st.sampled_from(VALUES)),
    st.text(max_size=4),
)


@given(st.lists(WORDS, max_size=6))
@example(["--select", ""])
@example(["--node="])
@example(["-v", "--verbose"])
@example(["-o", "a", "--output", "b"])
def test_no_line_means_two_things(words: list[str]) -> None:
    found = plain_check(words)
    assert found is None or found == by_click(words)


def test_the_tables_name_what_the_command_has() -> None:
    parameters = {parameter.name for parameter in command.params}
    assert set(plain_check([]) or ()) == parameters
    assert {*_plain._ONCE, *_plain._REPEATED, *_plain._FLAGS} <= set(OPTIONS)


def test_both_ways_lead_to_the_same_check() -> None:
    inspect.signature(check).bind(**(plain_check([]) or {}))
    inspect.signature(check).bind(**by_click([]))


def test_a_shell_that_completes_words_asks_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CUDADOCTOR_COMPLETE", "bash_complete")
    assert plain_check([]) is None


def test_on_windows_click_expands_what_the_shell_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plain, "_EXPANDED", "*?[]~$%")
    assert plain_check(["--python", "~\\proj\\.venv\\Scripts\\python.exe"]) is None
    assert plain_check(["--python", "C:\\proj\\.venv\\Scripts\\python.exe"]) is not None


LOADED = """
import sys
from cudadoctor.cli import main
sys.argv[1:] = {words}
try:
    main()
finally:
    print("\\nLOADED", *sys.modules)
"""

SLOW = {
    "click", "torch", "requests", "asyncio", "importlib.metadata", "rich", "xml", "subprocess", "shutil", "tempfile",
    "pathlib", "inspect", "platform", "cudadoctor.system.replay",
}  # fmt: skip


@pytest.mark.parametrize("words", [["check"], ["check", "--timeout", "9", "--format", "json"]], ids=" ".join)
def test_a_plain_check_of_this_machine_loads_nothing_slow(words: list[str]) -> None:
    script = LOADED.format(words=words)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    loaded = done.stdout.rpartition("LOADED ")[2].split()
    assert "cudadoctor.diagnose" in loaded
    assert sorted(SLOW & set(loaded)) == []
    assert not [name for name in loaded if name.startswith("cudadoctor.reports")], "only a pasted text needs them"
