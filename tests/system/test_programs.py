"""Programs that the live system runs: bounded in time and output, and never able to hold us."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.model.fact import Fact
from cudadoctor.system import programs, worker
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.port import ProgramResult

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")


@pytest.fixture(params=["fork", "subprocess"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LiveSystem:
    """Both ways to start a program; the second is for Windows, and works here as well."""
    if request.param == "subprocess":
        monkeypatch.setattr(worker, "CAN_FORK", False)
    return LiveSystem(time.monotonic() + 60)


def script(folder: Path, body: str, name: str = "program", first: str = "#!/bin/sh") -> str:
    path = folder / name
    path.write_text(f"{first}\n{body}\n")
    path.chmod(0o755)
    return str(path)


# What the program does, what is said of it.
ENDINGS: list[tuple[str, ProgramResult]] = [
    ("echo out; echo err >&2; exit 3", ProgramResult(3, "out\n", "err\n", False)),
    ("true", ProgramResult(0, "", "", False)),
    ("kill -9 $$", ProgramResult(-9, "", "", False)),
    ("read line; echo got:$line", ProgramResult(0, "got:\n", "", False)),  # no input
    ("echo $LC_ALL $LANGUAGE $EXTRA", ProgramResult(0, "C more\n", "", False)),
    (r"printf 'caf\351 12.4\n'", ProgramResult(0, "caf\ufffd 12.4\n", "", False)),
    (r"printf '\033[31mred\033[0m\r\n'", ProgramResult(0, "red\n", "", False)),
    (r"printf '1\0002\0003\0004\000'", ProgramResult(0, "1234", "", False)),  # UTF-16 without a mark
]


@pytest.mark.parametrize(("body", "expected"), ENDINGS, ids=[body for body, _ in ENDINGS])
def test_how_a_program_ends(
    system: LiveSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, expected: ProgramResult
) -> None:
    path = script(tmp_path, body)
    answer = system.run([path], 30, {"EXTRA": "more"})
    assert answer.source == path
    found = answer.get()
    if expected.exit_status == -9:  # a shell's 137, or Python's -9
        assert found.exit_status in (137, -9)
        found = found._replace(exit_status=-9)
    assert found == expected


def test_arguments_reach_the_program_as_they_are(system: LiveSystem, tmp_path: Path) -> None:
    path = script(tmp_path, 'for part; do echo "<$part>"; done')
    answer = system.run([path, "a b", "$HOME", "", "*"], 30)
    assert answer.get().stdout == "<a b>\n<$HOME>\n<>\n<*>\n"
    assert answer.source == f'{path} "a b" $HOME "" *'


def test_what_cannot_be_started(system: LiveSystem, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    cases = {
        str(tmp_path / "nowhere"): ("absent", ""),
        "no-such-program-on-path": ("absent", ""),
        str(plain): ("unknown", "it cannot be started (permission denied)"),
        str(tmp_path): ("unknown", "it cannot be started (permission denied)"),
        script(tmp_path, "", "orphan", "#!/no/such/interpreter"): (
            "unknown",
            "it cannot be started (the interpreter or loader that it names is missing)",
        ),
    }
    for path, (state, reason) in cases.items():
        answer = system.run([path], 30)
        assert (answer.state, answer.reason) == (state, reason), path


def test_a_program_that_sleeps_is_ended_at_its_deadline_with_all_that_it_started(
    system: LiveSystem, tmp_path: Path
) -> None:
    path = script(tmp_path, "echo before; sleep 55 & echo $! $$; wait")
    begun = time.monotonic()
    result = system.run([path], 0.8).get()
    assert time.monotonic() - begun < 15
    assert result.exit_status is None and result.timed_out
    assert result.stdout.startswith("before\n")
    if worker.CAN_FORK:  # Windows' way ends the program alone
        for number in map(int, result.stdout.split()[1:]):
            assert _ends(number)


def _ends(process: int) -> bool:
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        try:
            with open(f"/proc/{process}/stat") as stream:
                if stream.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_a_program_that_hears_no_signal_but_the_last(system: LiveSystem, tmp_path: Path) -> None:
    path = script(tmp_path, "trap '' TERM INT HUP; while true; do sleep 1; done")
    begun = time.monotonic()
    assert system.run([path], 0.5).get().timed_out
    assert time.monotonic() - begun < 15


def test_a_program_that_cannot_be_ended_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "kill_group", lambda process: None)
    path = script(tmp_path, "echo $$; exec sleep 40")
    begun = time.monotonic()
    result = LiveSystem(begun + 60).run([path], 0.8).get()
    assert time.monotonic() - begun < 15
    assert result.timed_out
    number = int(result.stdout)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


def test_who_is_ended_while_a_program_starts_knows_what_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = os.fork
    known: list[int] = []

    def fork_and_be_ended() -> int:
        number = fork()
        if number:
            # To the one thread that a check has: a test runner's others hold no signal back.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        return number

    monkeypatch.setattr(os, "fork", fork_and_be_ended)
    before = signal.signal(signal.SIGTERM, lambda number, frame: known.extend(worker._running))
    try:
        result = LiveSystem(time.monotonic() + 60).run([script(tmp_path, "echo $$")], 30)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert known == [int(result.get().stdout)]


def test_output_without_end_is_cut_and_the_program_stopped(system: LiveSystem) -> None:
    begun = time.monotonic()
    result = system.run(["/bin/sh", "-c", "while :; do echo yes; done"], 1.0).get()
    assert time.monotonic() - begun < 15
    assert result.timed_out and 0 < len(result.stdout) <= programs.OUTPUT_LIMIT


def test_more_output_than_is_kept_does_not_block_the_program(
    system: LiveSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "OUTPUT_LIMIT", 1000)
    result = system.run(["/bin/sh", "-c", "head -c 500000 /dev/zero | tr '\\0' x; echo end >&2; exit 5"], 30).get()
    assert (result.exit_status, len(result.stdout), result.stderr) == (5, 1000, "end\n")


def test_what_a_program_leaves_running_does_not_hold_us_and_is_ended(system: LiveSystem) -> None:
    begun = time.monotonic()
    result = system.run(["/bin/sh", "-c", "sleep 50 & echo $!"], 15).get()
    assert time.monotonic() - begun < 10
    assert result.exit_status == 0
    if worker.CAN_FORK:
        assert _ends(int(result.stdout))
    else:
        os.kill(int(result.stdout), signal.SIGKILL)


def test_the_deadline_of_the_run_goes_before_that_of_the_program() -> None:
    begun = time.monotonic()
    system = LiveSystem(begun + 0.5)
    assert system.run(["/bin/sh", "-c", "sleep 30"], 30).get().timed_out
    assert time.monotonic() - begun < 15
    late = system.run(["/bin/sh", "-c", "echo late"], 30)
    assert (late.state, late.reason) == ("unknown", "timed out before it began")
    assert system.remaining() == 0.0


def test_a_program_may_be_given_less_time_later(system: LiveSystem) -> None:
    begun = time.monotonic()
    running = system.start(["/bin/sh", "-c", "sleep 30"], 30)
    assert running.result(0.2).get().timed_out
    assert time.monotonic() - begun < 10


def test_programs_run_beside_each_other_and_keep_their_answers(system: LiveSystem) -> None:
    running = [system.start(["/bin/sh", "-c", f"sleep 0.{n}; echo {n}"], 30) for n in range(4)]
    assert [one.result().get().stdout for one in running] == ["0\n", "1\n", "2\n", "3\n"]
    assert running[0].result() is running[0].result()


def test_an_answer_that_is_there_counts_even_when_it_is_fetched_late(system: LiveSystem) -> None:
    running = system.start(["/bin/sh", "-c", "echo there"], 0.6)
    time.sleep(1.0)
    assert running.result().get() == ProgramResult(0, "there\n", "", False)


def test_a_program_of_which_nobody_asks_the_result_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "number"
    running: Any = LiveSystem(time.monotonic() + 60).start(["/bin/sh", "-c", f"echo $$ >{mark}; exec sleep 50"], 50)
    while not (mark.exists() and mark.read_text().strip()):
        time.sleep(0.01)
    del running
    assert _ends(int(mark.read_text()))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")
def test_a_program_holds_no_file_of_ours(system: LiveSystem) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # as a shell's `exec 3>...` would have left it
    try:
        found = system.run(["/bin/sh", "-c", "ls /proc/$$/fd"], 30).get().stdout.split()
        assert str(writer) not in found and str(reader) not in found
    finally:
        os.close(reader)
        os.close(writer)


def test_a_nul_in_an_argument_is_no_crash(system: LiveSystem) -> None:
    answer: Fact[ProgramResult] = system.run(["/bin/sh", "a\0b"], 5)
    assert answer.is_unknown and answer.reason.startswith("it cannot be started (embedded null")
