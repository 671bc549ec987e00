"""Work that may hang or crash, done where it cannot take the run along.

On POSIX the tasks run one after the other in a forked child, which streams each result back through a pipe. A child
that dies (a fault in a driver's library) costs the task that it was at, and so does one that does not end in time;
a fresh child goes on with the rest. A child that cannot even be killed (uninterruptible sleep in a driver or a dead
network file system) is left behind: it holds none of our files, and nothing waits for it.

Where there is no fork (Windows) the tasks run on a daemon thread. A hang there is left behind just the same, but the
thread may sit inside a driver's library when the run is over: the program must then end by `os._exit`
(`Worker.abandoned` says so), and a crash cannot be contained.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import time
from _weakref import ref  # the weakref module is slow to import
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

from cudadoctor.model.record import NamedTuple

# How long we look for the end of a process that was killed. It needs a few milliseconds, or it cannot be killed.
KILL_GRACE = 0.25

CAN_FORK = hasattr(os, "fork")

# POSIX's numbers: importing the signal module takes longer than starting a process.
SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM = 1, 2, 9, 13, 15

# What comes through the pipe, a frame each: its length in four bytes, then marshal's form of (kind, content).
_DONE = 0  # (value, failure)
_PROGRESS = 1  # what the task has so far
_PROGRAM_STARTED = 2  # a process id
_PROGRAM_ENDED = 3


class Task(NamedTuple):
    """`function` gives plain data (what marshal takes). It may call its argument with what it has so far: that is
    kept for the case that it does not end."""

    name: str
    function: Callable[[Callable[[Any], None]], Any]
    seconds: float


class Finished(NamedTuple):
    """How a task ended. `failure` is empty where `value` holds; else `value` is the last progress, or None."""

    name: str
    value: Any
    failure: str
    timed_out: bool
    seconds: float


def one_line(error: BaseException) -> str:
    """An exception as a person reads it, in one line."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}"[:300] if text else name


class Worker:
    """Runs tasks beside us; iterating gives each as it ends, and none is waited for beyond `deadline` (monotonic)."""

    def __init__(self, tasks: Sequence[Task], deadline: float) -> None:
        self._tasks = list(tasks)
        self._deadline = deadline
        self._owner = os.getpid()
        self._next = 0  # the first task that has not ended
        self._begun = time.monotonic()
        self._progress: Any = None
        self._programs: set[int] = set()
        self._child: Optional[int] = None
        self._pipe = -1
        self._buffer = bytearray()
        self._thread: Optional[_Thread] = None
        self.abandoned = False
        self._weak = ref(self)
        if CAN_FORK:
            self._fork()
        else:
            self._thread = _Thread(self._tasks)

    # -- what comes back --------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Finished]:
        while self._next < len(self._tasks):
            finished = self.next()
            if finished is not None:
                yield finished

    @property
    def is_done(self) -> bool:
        """Whether every task has ended, and `next` has said so."""
        return self._next >= len(self._tasks)

    def next(self, wait: float = 1e9) -> Optional[Finished]:
        """The next task that ended, or None when none did within `wait` seconds (or all have ended)."""
        if self._next >= len(self._tasks):
            self.close()
            return None
        task = self._tasks[self._next]
        give_up = time.monotonic() + wait
        while True:
            check_interrupted()
            limit = min(self._deadline, self._begun + task.seconds)
            frame = self._frame(min(limit, give_up))
            if frame is None:
                if time.monotonic() < limit:
                    return None
                if self._child is None and self._thread is None:
                    return self._end(None, "the time was over before it began", True, restart=False)
                seconds = time.monotonic() - self._begun
                return self._end(None, f"timed out after {seconds:.1f} s", True, restart=True)
            kind, content = frame
            if kind == _PROGRESS:
                self._progress = content
            elif kind == _PROGRAM_STARTED:
                self._programs.add(content)
            elif kind == _PROGRAM_ENDED:
                self._programs.discard(content)
            elif kind == _DONE:
                value, failure = content
                return self._end(value, failure, False, restart=False)
            else:
                return self._end(None, content, False, restart=True)

    def _end(self, value: Any, failure: str, timed_out: bool, restart: bool) -> Finished:
        """Closes the account of the task at hand and sees to it that the next one runs."""
        task = self._tasks[self._next]
        now = time.monotonic()
        finished = Finished(task.name, self._progress if failure else value, failure, timed_out, now - self._begun)
        self._next += 1
        self._begun = now
        self._progress = None
        if restart:
            self.close()
            if self._next < len(self._tasks) and now < self._deadline:
                if CAN_FORK:
                    self._fork()
                else:
                    self._thread = _Thread(self._tasks[self._next :])
        elif self._next >= len(self._tasks):
            self.close()
        return finished

    def _frame(self, limit: float) -> Optional[tuple[int, Any]]:
        """The next frame; None when it did not come in time. A dead child gives a frame of kind -1 and the reason."""
        if self._thread is not None:
            return self._thread.frame(limit)
        if self._child is None:
            return None
        while True:
            frame = self._take_frame()
            if frame is not None:
                return frame
            # What is there already counts, however late it is.
            if not _readable(self._pipe, limit - time.monotonic()):
                return None
            piece = os.read(self._pipe, 1 << 16)
            if not piece:
                return (-1, self._death())
            self._buffer += piece

    def _death(self) -> str:
        child = self._child
        assert child is not None
        status = reap(child, KILL_GRACE)
        if status is None:
            return "its process closed the pipe and did not end"
        self._child = None
        if os.WIFSIGNALED(status):
            return f"its process died ({_signal_name(os.WTERMSIG(status))})"
        return f"its process ended early (exit status {os.WEXITSTATUS(status)})"

    # -- the child --------------------------------------------------------------------------------------------------

    def _fork(self) -> None:
        reader, writer = open_pipe()
        child = -1
        try:
            with signals_held():
                child = os.fork()
                if child:
                    _workers.add(self._weak)
                    self._child = child
                    self._pipe = reader
        except OSError as error:
            os.close(reader)
            os.close(writer)
            self._child = None
            self._begun = time.monotonic()
            # Nothing runs, so every task ends at once with this reason.
            self._thread = _Refusal(f"no process could be started for it ({error.strerror})")
            return
        if child == 0:
            _be_child(self._tasks[self._next :], reader, writer)
        os.close(writer)
        self._buffer.clear()

    def close(self) -> None:
        """Ends what still runs, and does not wait for what cannot be ended."""
        _workers.discard(self._weak)
        if self._thread is not None:
            self.abandoned = self.abandoned or self._thread.busy
            self._thread = None
        if self._child is not None:
            child, self._child = self._child, None
            if not end_process(child):
                self.abandoned = True
        if self._pipe >= 0:
            self._note_programs()
            os.close(self._pipe)
            self._pipe = -1
        for program in self._programs:
            kill_group(program)
        self._programs.clear()
        self._buffer.clear()

    def _note_programs(self) -> None:
        """Reads what a killed child had still said, so that no program of its is missed or hit after its end."""
        while _readable(self._pipe, 0.0):
            piece = os.read(self._pipe, 1 << 16)
            if not piece:
                break
            self._buffer += piece
        while True:
            frame = self._take_frame()
            if frame is None:
                return
            if frame[0] == _PROGRAM_STARTED:
                self._programs.add(frame[1])
            elif frame[0] == _PROGRAM_ENDED:
                self._programs.discard(frame[1])

    def _take_frame(self) -> Optional[tuple[int, Any]]:
        if len(self._buffer) < 4:
            return None
        size = int.from_bytes(self._buffer[:4], "little")
        if len(self._buffer) < 4 + size:
            return None
        frame: tuple[int, Any] = marshal.loads(bytes(self._buffer[4 : 4 + size]))
        del self._buffer[: 4 + size]
        return frame

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if os.getpid() == self._owner:  # a forked child has a copy of this, and no say in it
                self.close()


def run_isolated(tasks: Sequence[Task], deadline: float) -> Iterator[Finished]:
    """Each task as it ends; whatever has not ended at `deadline` (monotonic) has timed out."""
    with Worker(tasks, deadline) as worker:
        yield from worker


# -- the end of the run before its time ------------------------------------------------------------------------------

# What runs for this process: it must not outlive us when a person, a job's time limit or a closed terminal ends us.
_workers: set[ref[Worker]] = set()
_running: set[int] = set()


def end_all() -> None:
    """Ends every worker and program that still runs."""
    for weak in list(_workers):
        worker = weak()
        if worker is not None:
            with contextlib.suppress(Exception):
                worker.close()
    for program in list(_running):
        kill_group(program)
    _running.clear()


def end_all_when_ended() -> None:
    """From now on `end_all` runs where SIGTERM or SIGHUP ends this process; it ends by the signal all the same. And a
    Ctrl-C counts even where Python would print and forget its KeyboardInterrupt, as in a callback of the import
    system: whoever waits calls `check_interrupted`."""
    if not CAN_FORK:
        return
    # The signal module itself is slow to import.
    import _signal  # type: ignore[import-not-found,unused-ignore]

    def end(number: int, frame: Any) -> None:
        end_all()
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (SIGTERM, SIGHUP):
        # Ignored (nohup) or somebody else's already: it stays so. Only the main thread may set it.
        with contextlib.suppress(ValueError):
            if _signal.getsignal(number) == _signal.SIG_DFL:
                _signal.signal(number, end)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _keep_interruption


_interrupted = False


def _keep_interruption(lost: Any) -> None:
    global _interrupted
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _interrupted = True
    else:
        sys.__unraisablehook__(lost)


def check_interrupted() -> None:
    """Raises the KeyboardInterrupt that Python could not raise where the Ctrl-C came, once."""
    global _interrupted
    if _interrupted:
        _interrupted = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """What would end us waits until the end of the block: between the start of a process and the note of it, nobody
    knows what there is to end."""
    if not CAN_FORK:
        yield
        return
    import _signal

    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGINT, SIGTERM, SIGHUP))
    try:
        yield
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


# -- inside the child -----------------------------------------------------------------------------------------------

# Tells the parent about programs that are started in this child; None outside one.
_announce: Optional[Callable[[int, int], None]] = None


def program_started(process: int) -> None:
    """A program was started in its own process group: whoever ends this child must end that, too."""
    _running.add(process)
    if _announce is not None:
        _announce(_PROGRAM_STARTED, process)


def program_ended(process: int) -> None:
    _running.discard(process)
    if _announce is not None:
        _announce(_PROGRAM_ENDED, process)


def die_with_parent() -> None:
    """Asks Linux to kill this child when its parent ends, however that ends. (It takes ctypes: only for a child that
    may hang in a driver, and has loaded it anyway.)"""
    if sys.platform == "linux" and _announce is not None:
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, SIGKILL)  # PR_SET_PDEATHSIG


def _be_child(tasks: Sequence[Task], reader: int, writer: int) -> None:
    """Never returns."""
    status = 1
    try:
        _detach(writer)

        def send(kind: int, content: Any) -> None:
            data = marshal.dumps((kind, content))
            _write_all(writer, len(data).to_bytes(4, "little") + data)

        global _announce
        _announce = send
        _workers.clear()
        _running.clear()
        for task in tasks:
            value, failure = _call(task, lambda content: send(_PROGRESS, content))
            try:
                send(_DONE, (value, failure))
            except ValueError:
                send(_DONE, (None, "its answer is not plain data"))
        status = 0
    except BaseException:
        status = 1
    finally:
        os._exit(status)


def _call(task: Task, report: Callable[[Any], None]) -> tuple[Any, str]:
    try:
        return task.function(report), ""
    except Exception as error:
        return None, one_line(error)


def _detach(keep: int) -> None:
    """Lets go of the terminal, of the standard streams and of all other files: whoever waits for the end of our
    output must not wait for a child that was left behind."""
    import gc

    gc.disable()  # it would touch, and so copy, all memory that we share with the parent
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        held = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        held = list(range(3, 256))
    for number in held:
        if number > 2 and number != keep:
            with contextlib.suppress(OSError):
                os.close(number)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


# -- processes ------------------------------------------------------------------------------------------------------


def open_pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the standard streams, even where these are closed: 0, 1 and 2 get replaced."""
    reader, writer = os.pipe()
    if min(reader, writer) > 2:
        return reader, writer
    import fcntl

    ends = (reader, writer)
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _readable(descriptor: int, seconds: float) -> bool:
    import select

    milliseconds = max(0, int(seconds * 1000 + 0.999)) if seconds < 1e6 else 1_000_000_000
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(milliseconds))


def reap(process: int, seconds: float) -> Optional[int]:
    """The wait status of a child that has ended or ends within `seconds`; None: it has not."""
    limit = time.monotonic() + seconds
    pause = 0.0002
    while True:
        try:
            ended, status = os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            return 0  # somebody else has reaped it
        if ended:
            return status
        if time.monotonic() >= limit:
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


def kill_group(process: int) -> None:
    """Kills a process that leads a group, with all that belongs to the group."""
    try:
        os.killpg(process, SIGKILL)
    except (ProcessLookupError, PermissionError):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, SIGKILL)


def end_process(process: int) -> bool:
    """Kills a child of ours with its group; False when it could not be reaped and is left behind."""
    if reap(process, 0.0) is not None:
        return True
    kill_group(process)
    return reap(process, KILL_GRACE) is not None


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# -- without fork ---------------------------------------------------------------------------------------------------


class _Thread:
    """The tasks on a daemon thread; see the module."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        import queue
        import threading

        self._queue: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._empty = queue.Empty
        self._thread = threading.Thread(target=self._work, args=(list(tasks),), daemon=True)
        self._thread.start()

    def _work(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            value, failure = _call(task, lambda content: self._queue.put((_PROGRESS, content)))
            self._queue.put((_DONE, (value, failure)))

    def frame(self, limit: float) -> Optional[tuple[int, Any]]:
        try:
            return self._queue.get(timeout=max(0.0, min(limit - time.monotonic(), 1e6)))
        except self._empty:
            return None

    @property
    def busy(self) -> bool:
        return self._thread.is_alive()


class _Refusal(_Thread):
    """Stands where no process could be started: every task fails with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def frame(self, limit: float) -> Optional[tuple[int, Any]]:
        return (_DONE, (None, self._reason))

    @property
    def busy(self) -> bool:
        return False
