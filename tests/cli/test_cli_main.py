"""The command as a whole: its commands by file name, its manners when something goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import Run

import cudadoctor
from cudadoctor.cli import _output, group

COMMAND = [sys.executable, "-m", "cudadoctor"]
ROOT = Path(cudadoctor.__file__).parent.parent


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload,arg-type]
    )


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"cudadoctor {cudadoctor.__version__}\n", "")


def test_version_imports_no_command() -> None:
    script = """
import sys
from cudadoctor.cli import main
sys.argv[1:] = ["--version"]
try:
    main()
finally:
    print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith("cudadoctor.")]
    assert loaded == ["cudadoctor.bundle", "cudadoctor.cli", "cudadoctor.cli._group"]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command(run: Run, flag: str) -> None:
    result = run(flag)
    assert result.exit == 0
    for name in ("check", "explain", "facts", "rules"):
        assert f"\n  {name} " in result.out


@pytest.mark.parametrize("name", sorted(group.list_commands(None)))  # type: ignore[arg-type]
def test_every_command_has_help_in_80_columns(run: Run, name: str) -> None:
    result = run(name, "-h")
    assert result.exit == 0 and result.out.startswith(f"Usage: cudadoctor {name} ")
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_without_a_command_the_help_is_shown_as_an_error(run: Run) -> None:
    result = run()
    assert result.exit == 2 and result.out == "" and "Usage: cudadoctor" in result.err


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["chekc"], "there is no command 'chekc'; did you mean check?"),
        (["xyzzy"], "there is no command 'xyzzy'; there are check, "),
        (["_input"], "there is no command '_input'"),
        (["check", "--formt", "json"], "--formt"),
        (["check", "--format", "yaml"], "'yaml' is not one of"),
        (["check", "--retry-code", "all"], "'all' is not a whole number"),
        (["check", "--timeout", "soon"], "'soon' is not a number"),
        (["check", "--timeout", "0"], "0.0 is not in the range"),
        (["check", "superfluous"], "superfluous"),
        (["explain"], "Missing argument 'ID|NAME|CONCEPT|"),
        (["check", "--select", ""], "rules are named by ids or names"),
        (["check", "--select", " , "], "rules are named by ids or names"),
        (["check", "--timeout", "nan"], "nan is no number of seconds"),
        (["check", "--timeout", "inf"], "not in the range"),
        (["check", "--blame", "machin"], "--blame takes environment, machine or allocation, not 'machin'"),
        (["check", "--also", "report.json"], "--also takes FORMAT=FILE, not 'report.json'"),
        (["check", "--also", "jsn=report.json"], "--also: there is no format 'jsn'; did you mean json"),
        (["check", "--also", "json=-"], "--also writes a file"),
    ],
)
def test_wrong_usage_is_one_sentence(run: Run, arguments: list[str], says: str) -> None:
    result = run(*arguments)
    assert result.exit == 2 and result.out == ""
    assert result.err.startswith("cudadoctor: error: ") and result.err.count("\n") == 1
    assert says in result.err


def test_our_own_mistake_says_how_to_report_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDADOCTOR_DEBUG", raising=False)
    monkeypatch.setattr("cudadoctor.rules.rule_files", lambda: 1 / 0)
    result = run("rules")
    assert result.exit == 2 and result.out == ""
    assert result.err.startswith(
        f"cudadoctor: error: internal error (cudadoctor {cudadoctor.__version__}, test_cli_main.py:"
    )
    assert "ZeroDivisionError" in result.err and "CUDADOCTOR_DEBUG=1" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("code", ["None", "0", "'no such module here'"])
def test_a_foreign_module_that_ends_the_process_is_no_verdict(code: str, tmp_path: Path) -> None:
    # As a json.py of the user's own that PYTHONPATH puts before Python's.
    (tmp_path / "json.py").write_text(f"raise SystemExit({code})\n")
    process = start("check", env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "internal error" in err and "json.py:1" in err


def test_the_traceback_is_there_for_who_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADOCTOR_DEBUG", "1")
    monkeypatch.setattr("cudadoctor.rules.rule_files", lambda: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["cudadoctor", "rules"])
    from cudadoctor.cli import main

    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_goes_away_is_no_error() -> None:
    running = start("explain", "driver-and-cuda", bufsize=0)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == ""
    assert running.wait(30) == 0
    running.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "rules"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "cudadoctor: error: cannot write to standard output: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_is_quiet() -> None:
    running = start("check", "--facts", "-", stdin=subprocess.PIPE)  # waits for its input
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert err.strip() == ""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_running_when_check_is_ended_early(tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "note"
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ntrap '' TERM INT HUP\necho $$ > {note}\nsleep 90 &\nwait; wait; sleep 90\n")
    program.chmod(0o755)
    running = start("check", env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    limit = time.monotonic() + 30
    while not (note.exists() and note.read_text().strip()) and time.monotonic() < limit:
        time.sleep(0.02)
    running.send_signal(number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == (130 if number == signal.SIGINT else -number)
    assert err.strip() == ""
    group_of_program = int(note.read_text())
    limit = time.monotonic() + 10
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < limit:
            os.killpg(group_of_program, 0)
            time.sleep(0.02)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_help_on_a_full_disk_is_no_bug_of_ours() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "--help"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "cudadoctor: error: cannot write: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "link"])
def test_a_log_that_is_standard_output_keeps_what_stands_in_it(name: str, tmp_path: Path) -> None:
    log, link = tmp_path / "job.log", tmp_path / "link"
    link.symlink_to("/dev/stdout")
    log.write_text("the job begins\n")
    words = ["explain", "CD303", "-o", str(link) if name == "link" else name]
    with log.open("a") as stream:
        subprocess.run([*COMMAND, *words], cwd=ROOT, stdout=stream, check=True)
        stream.write("the job goes on\n")
    lines = log.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("the job begins", "the job goes on") and len(lines) > 3


def test_what_a_killed_run_has_left_stops_no_other_of_the_same_number(tmp_path: Path) -> None:
    """In containers every run may have the same process id."""
    page = tmp_path / "page"
    for name in (f"page.{os.getpid()}.tmp", f"page.{os.getpid()}-000000.tmp"):
        (tmp_path / name).write_text("half of")
    _output.write_file(str(page), "whole")
    assert page.read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_standard_input_that_is_closed() -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m cudadoctor check --facts - <&-', shell=True, cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, "cudadoctor: error: cannot read standard input: it is closed\n")


def test_output_to_a_stream_that_is_closed() -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m cudadoctor rules >&-', shell=True, cwd=ROOT, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "cp932"])
def test_no_encoding_breaks_the_output(encoding: str, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    name = '"\\u5e73\\u8861 \\u00e9 \\ud83d\\ude00"'
    facts.write_text(
        '{"schema": "cudadoctor.facts/1", "facts": {"gpu.0.name": {"state": "known", "value": ' + name + "}}}"
    )
    done = subprocess.run(
        [*COMMAND, "facts", "--format", "text", "--facts", str(facts)],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gpu.0.name: " in done.stdout
    done.stdout.decode(encoding)
