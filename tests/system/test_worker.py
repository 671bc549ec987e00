"""Isolated work: a task may hang, crash or talk nonsense, and costs no more than itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Any, Callable

import pytest

from cudadoctor.system import worker
from cudadoctor.system.worker import Finished, Task, Worker

from .apart import python

pytestmark = [
    pytest.mark.skipif(not worker.CAN_FORK, reason="this system cannot fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

Report = Callable[[Any], None]


def soon(seconds: float = 30.0) -> float:
    return time.monotonic() + seconds


def run_isolated(tasks: Sequence[Task], deadline: float) -> list[Finished]:
    with Worker(tasks, deadline) as isolated:
        return list(isolated)


def answers(report: Report) -> Any:
    return {"list": [1, 2.5, None, True, "ä"], "bytes": b"\xff"}


def raises(report: Report) -> Any:
    raise ValueError("two\nlines")


def says_nothing(report: Report) -> Any:
    raise KeyboardInterrupt


def hangs(report: Report) -> Any:
    time.sleep(60)


def hangs_deaf(report: Report) -> Any:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


def faults(report: Report) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves(report: Report) -> Any:
    os._exit(7)


def gives_an_object(report: Report) -> Any:
    return object()


def hangs_halfway(report: Report) -> Any:
    report({"first": 1})
    report({"first": 1, "second": 2})
    time.sleep(60)


def writes_everywhere(report: Report) -> Any:
    os.write(1, b"to stdout\n")
    os.write(2, b"to stderr\n")
    return os.read(0, 10)


# What the task does, what became of it (value, failure, timed out).
TASKS = [
    (answers, ({"list": [1, 2.5, None, True, "ä"], "bytes": b"\xff"}, "", False)),
    (raises, (None, "ValueError: two lines", False)),
    (says_nothing, (None, "its process ended early (exit status 1)", False)),
    (faults, (None, "its process died (SIGSEGV)", False)),
    (leaves, (None, "its process ended early (exit status 7)", False)),
    (gives_an_object, (None, "its answer is not plain data", False)),
    (writes_everywhere, (b"", "", False)),
]


@pytest.mark.parametrize(("task", "expected"), TASKS, ids=[task.__name__ for task, _ in TASKS])
def test_what_becomes_of_a_task_and_the_next_one_runs(
    task: Callable[[Report], Any], expected: tuple[Any, str, bool], capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = run_isolated([Task("first", task, 30), Task("second", answers, 30)], soon())
    assert (first.value, first.failure, first.timed_out) == expected
    assert second.failure == "" and second.value == answers(print)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("task", [hangs, hangs_deaf])
def test_a_task_that_hangs_is_ended_at_its_own_limit(task: Callable[[Report], Any]) -> None:
    begun = time.monotonic()
    first, second = run_isolated([Task("first", task, 0.3), Task("second", answers, 30)], soon())
    assert first.timed_out and first.failure.startswith("timed out after 0.")
    assert second.value == answers(print)
    assert time.monotonic() - begun < 10


def test_what_a_hanging_task_had_said_before_is_kept() -> None:
    (finished,) = run_isolated([Task("first", hangs_halfway, 0.5)], soon())
    assert finished.timed_out and finished.value == {"first": 1, "second": 2}


def test_all_ends_at_the_deadline_and_what_did_not_run_says_so() -> None:
    begun = time.monotonic()
    tasks = [Task("first", answers, 30), Task("second", hangs, 30), Task("third", answers, 30)]
    first, second, third = run_isolated(tasks, soon(0.5))
    assert first.failure == ""
    assert second.timed_out and second.failure.startswith("timed out after")
    assert third.timed_out and third.failure == "the time was over before it began"
    assert time.monotonic() - begun < 10


def test_a_task_that_takes_long_is_overtaken_and_may_end_later() -> None:
    def slow(report: Report) -> Any:
        report("half")
        time.sleep(1.0)
        return "whole"

    begun = time.monotonic()
    tasks = [Task("slow", slow, 30), Task("hangs", hangs, 1.5), Task("a", answers, 30), Task("b", answers, 30)]
    with Worker(tasks, soon(), patience=0.2) as running:
        found = list(running)
        assert not running.abandoned
    assert time.monotonic() - begun < 10
    assert [(finished.name, finished.timed_out) for finished in found] == [
        ("a", False),
        ("b", False),
        ("slow", False),
        ("hangs", True),
    ]
    assert found[2].value == "whole"


def test_children_that_cannot_be_killed_are_not_waited_for_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kill, children = worker.kill_group, []
    monkeypatch.setattr(worker, "kill_group", children.append)
    tasks = [Task(str(number), hangs, 30) for number in range(8)]
    begun = time.monotonic()
    with Worker(tasks, soon(1.0), patience=0.05) as running:
        assert all(finished.timed_out for finished in running)
    taken = time.monotonic() - begun
    assert running.abandoned
    for child in children:
        kill(child)
        os.waitpid(child, 0)
    assert len(children) == 8
    assert taken < 1.0 + 8 * worker.KILL_GRACE


def test_tasks_of_one_child_share_what_they_keep() -> None:
    kept: list[int] = []

    def keep(report: Report) -> Any:
        kept.append(len(kept))
        return list(kept)

    values = [finished.value for finished in run_isolated([Task(str(n), keep, 30) for n in range(3)], soon())]
    assert values == [[0], [0, 1], [0, 1, 2]]
    assert kept == []  # nothing comes back but answers


def test_large_answers_come_back_whole() -> None:
    (finished,) = run_isolated([Task("large", lambda report: "x" * 3_000_000, 30)], soon())
    assert len(finished.value) == 3_000_000


def test_an_answer_that_is_there_counts_even_when_it_is_fetched_late() -> None:
    with Worker([Task("quick", answers, 0.5)], soon(0.5)) as running:
        time.sleep(0.8)
        finished = running.next()
    assert finished is not None and finished.failure == ""


def test_next_gives_none_while_nothing_has_ended() -> None:
    with Worker([Task("slow", hangs, 30)], soon()) as running:
        assert running.next(0.05) is None


def _still_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_child_that_cannot_be_killed_is_left_behind_and_holds_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tells_its_number(report: Report) -> Any:
        report(os.getpid())
        time.sleep(60)

    reader, writer = os.pipe()  # stands for whatever somebody waits for
    # A process in uninterruptible sleep hears no signal: here it is sent none.
    monkeypatch.setattr(worker, "kill_group", lambda process: None)
    tasks = [Task("first", tells_its_number, 0.5), Task("second", answers, 30)]
    begun = time.monotonic()
    with Worker(tasks, soon()) as running:
        first, second = list(running)
        assert running.abandoned
    assert time.monotonic() - begun < 10
    assert first.timed_out and second.failure == ""
    child = first.value
    try:
        assert _still_there(child)
        if os.path.isdir("/proc/self/fd"):
            held = {name: os.readlink(f"/proc/{child}/fd/{name}") for name in os.listdir(f"/proc/{child}/fd")}
            pipes = [name for name, target in held.items() if target != "/dev/null"]
            assert len(pipes) == 1, held  # its way to talk to us, and we have closed our end
        os.close(writer)
        assert os.read(reader, 1) == b""  # at its end, since nobody else holds the writing end
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)


def test_who_reads_our_output_does_not_wait_for_a_child_left_behind() -> None:
    code = """
import os, sys, time
from cudadoctor.system import worker
worker.kill_group = lambda process: None
def hangs(report):
    report(os.getpid())
    time.sleep(30)
for finished in worker.Worker([worker.Task("hangs", hangs, 0.3)], time.monotonic() + 5):
    print(finished.value)
"""
    begun = time.monotonic()
    done = python(code, timeout=25)  # waits until stdout and stderr are at their end
    assert time.monotonic() - begun < 20
    os.kill(int(done.stdout), signal.SIGKILL)


@pytest.mark.parametrize("closed", [(0,), (0, 1), (0, 1, 2)])
def test_closed_standard_streams_do_no_harm(closed: tuple[int, ...]) -> None:
    code = f"""
import os, sys, time
from cudadoctor.system.worker import Task, Worker
results = os.dup(2)  # before the streams are closed
for stream in {closed}:
    os.close(stream)
def speaks(report):
    for stream in (1, 2):
        os.write(stream, b"noise that must not reach the pipe")
    return [os.read(0, 1), 42]
found = [finished.value for finished in Worker([Task("speaks", speaks, 20)] * 2, time.monotonic() + 20)]
os.write(results, repr(found).encode())
"""
    assert python(code).stderr == "[[b'', 42], [b'', 42]]"


def test_programs_that_a_hanging_task_had_started_are_ended_with_it(tmp_path: Any) -> None:
    mark = tmp_path / "number"

    def starts_a_program(report: Report) -> Any:
        from cudadoctor.system.live import LiveSystem

        system = LiveSystem(soon())
        running = system.start(["/bin/sh", "-c", f"echo $$ >{mark}; exec sleep 60"], 60)
        while running and not (mark.exists() and mark.read_text().strip()):
            time.sleep(0.01)
        time.sleep(60)

    (finished,) = run_isolated([Task("starts", starts_a_program, 3.0)], soon())
    assert finished.timed_out
    program = int(mark.read_text())
    limit = time.monotonic() + 10
    while _is_running(program) and time.monotonic() < limit:
        time.sleep(0.02)
    assert not _is_running(program)


def _is_running(process: int) -> bool:
    """Not when it has ended and nobody has reaped it yet."""
    try:
        with open(f"/proc/{process}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return _still_there(process)


def test_without_a_process_to_be_had_every_task_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    found = list(run_isolated([Task("a", answers, 30), Task("b", answers, 30)], soon()))
    expected = "no process could be started for it (Resource temporarily unavailable)"
    assert [(finished.name, finished.failure) for finished in found] == [("a", expected), ("b", expected)]


def test_the_thread_that_stands_in_where_there_is_no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CAN_FORK", False)

    def waits(report: Report) -> Any:
        report("half")
        time.sleep(3)

    functions = {"first": answers, "second": raises, "third": waits, "fourth": answers}
    tasks = [Task(name, function, 0.2 if name == "third" else 30) for name, function in functions.items()]
    with Worker(tasks, soon()) as running:
        found = list(running)
        assert running.abandoned  # the thread that waits goes on: the program must end by os._exit
    assert [(finished.value, finished.failure[:9]) for finished in found] == [
        (answers(print), ""),
        (None, "ValueErro"),
        ("half", "timed out"),
        (answers(print), ""),
    ]


def test_an_exception_is_said_in_one_line() -> None:
    assert worker.one_line(ValueError("a\n  b\tc")) == "ValueError: a b c"
    assert worker.one_line(AssertionError()) == "AssertionError"
    assert len(worker.one_line(ValueError("x" * 10_000))) == 300


def test_a_worker_without_tasks_is_at_its_end() -> None:
    assert list(run_isolated([], soon())) == []


def test_a_ctrl_c_that_python_would_forget_ends_the_wait_all_the_same() -> None:
    code = """
import time
from cudadoctor.system.worker import Task, Worker, end_all_when_ended
class Lost:
    def __del__(self):
        raise KeyboardInterrupt
end_all_when_ended()
begun = time.monotonic()
worker = Worker([Task("slow", lambda report: time.sleep(60), 60.0)], begun + 60)
Lost()
try:
    worker.next()
except KeyboardInterrupt:
    worker.close()
    print(time.monotonic() - begun < 30)
"""
    done = python(code)
    assert (done.stdout, done.stderr) == ("True\n", "")
