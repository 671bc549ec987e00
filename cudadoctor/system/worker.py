"""Work that may hang or crash, done where it cannot take the run along.

On POSIX the tasks run one after the other in a forked child, which streams each result back through a pipe. A child
that dies (a fault in a driver's library) costs the task that it was at, and so does one that does not end in time;
a fresh child goes on with the rest, and need not wait for that: see `Worker`. A child that cannot even be killed
(uninterruptible sleep in a driver or a dead network file system) is left behind: it holds none of our files, and
nothing waits for it.

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

# How long we look for it while others are waited for as well.
_AT_ONCE = 0.02

# How long a task may take to clean up.
_GENTLE_SECONDS = 0.1

# How long after its time a process that nobody has ended ends itself: whoever started it was killed.
_ORPHAN_SECONDS = 2.0

CAN_FORK = hasattr(os, "fork")

# POSIX's numbers: importing the signal module takes longer than starting a process.
SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGALRM, SIGTERM = 1, 2, 9, 13, 14, 15

# What comes through the pipe, a frame each: its length in four bytes, then marshal's form of (kind, content).
_DONE = 0  # (value, failure)
_PROGRESS = 1  # what the task has so far
_PROGRAM_STARTED = 2  # a process id
_PROGRAM_ENDED = 3


class Task(NamedTuple):
    """`function` gives plain data (what marshal takes). It may call its argument with what it has so far: that is
    kept for the case that it does not end. `first`: the tasks after it wait for its end, or the end of its time."""

    name: str
    function: Callable[[Callable[[Any], None]], Any]
    seconds: float
    first: bool = False


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


class _Child:
    """A process that goes through tasks one after the other, and what it has said so far."""

    def __init__(self, first: int) -> None:
        self.task = first  # the one that it is at
        self.begun = time.monotonic()
        self.is_last = False  # nothing counts of it but the task at hand: another child does the rest
        self.progress: Any = None
        self.process = -1
        self.pipe = -1
        self._programs: set[int] = set()
        self._buffer = bytearray()

    def start(self, tasks: Sequence[Task], deadline: float, note: Callable[[_Child], None]) -> None:
        """Raises OSError where there is no process to be had. `note` is called once there is something to end."""
        reader, writer = open_pipe()
        try:
            with signals_held():
                process = os.fork()
                if process:
                    self.process, self.pipe = process, reader
                    note(self)
                else:
                    forget_handlers()
        except OSError:
            os.close(reader)
            os.close(writer)
            raise
        if process == 0:
            _be_child(tasks, writer, deadline)
        os.close(writer)

    def frame(self) -> Optional[tuple[int, Any]]:
        """The next of what was read that concerns the task."""
        while (frame := self._take_frame()) is not None:
            kind, content = frame
            if kind == _PROGRESS:
                self.progress = content
            elif kind == _PROGRAM_STARTED:
                self._programs.add(content)
            elif kind == _PROGRAM_ENDED:
                self._programs.discard(content)
            else:
                return frame
        return None

    def read(self) -> bool:
        """Takes what is there to be read; whether there was anything."""
        piece = os.read(self.pipe, 1 << 16)
        self._buffer += piece
        return bool(piece)

    def death(self) -> str:
        """How the child ended that has closed its pipe."""
        status = reap(self.process, KILL_GRACE)
        if status is None:
            return "its process closed the pipe and did not end"
        self.process = -1
        if os.WIFSIGNALED(status):
            return f"its process died ({_signal_name(os.WTERMSIG(status))})"
        return f"its process ended early (exit status {os.WEXITSTATUS(status)})"

    def kill(self, gently: bool) -> None:
        if self.process > 0 and reap(self.process, 0.0) is None:
            if gently:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.process, SIGTERM)
                if reap(self.process, _GENTLE_SECONDS) is not None:
                    self.process = -1
                    return
            kill_group(self.process)
        elif self.process > 0:
            self.process = -1

    def is_over(self, seconds: float) -> bool:
        """Whether the killed child has ended, or ends within `seconds`; its programs are ended then as well."""
        if self.process > 0 and reap(self.process, seconds) is None:
            return False
        self.process = -1
        self.let_go()
        return True

    def let_go(self) -> None:
        """Closes the pipe, and ends the programs of whose start the child had said, to the last one."""
        if self.pipe < 0:
            return
        while readable([self.pipe], 0.0) and self.read():
            pass
        while self.frame() is not None:
            pass
        os.close(self.pipe)
        self.pipe = -1
        for program in self._programs:
            kill_group(program)
        self._programs.clear()

    def _take_frame(self) -> Optional[tuple[int, Any]]:
        if len(self._buffer) < 4:
            return None
        size = int.from_bytes(self._buffer[:4], "little")
        if len(self._buffer) < 4 + size:
            return None
        frame: tuple[int, Any] = marshal.loads(bytes(self._buffer[4 : 4 + size]))
        del self._buffer[: 4 + size]
        return frame


class Worker:
    """Runs tasks beside us; iterating gives each as it ends, and none is waited for beyond `deadline` (monotonic).

    A task that has not ended after `patience` seconds is overtaken: it may go on until its limit, and another child
    does what comes after it. So the rest waits for no path that is dead. `timed_out` is called with the name and the
    progress of a task that did not end, before a child does the rest: that one inherits what is noted there. `gently`:
    SIGTERM before SIGKILL, for a task that has something to clean up."""

    def __init__(
        self,
        tasks: Sequence[Task],
        deadline: float,
        patience: float = 1e9,
        timed_out: Callable[[str, Any], None] = lambda name, progress: None,
        gently: bool = False,
    ) -> None:
        self._note_timeout = timed_out
        self._gently = gently
        self._tasks = list(tasks)
        self._deadline = deadline
        self._patience = patience
        self._owner = os.getpid()
        self._ended = 0
        self._next = 0  # the first task that no child is at or past, where there is no child in front
        self._children: list[_Child] = []  # the last one goes through the tasks, the others are overtaken
        self._dying: list[_Child] = []  # killed, and not seen to end yet
        self._refusal = ""  # why no process could be started
        self._thread: Optional[_Thread] = None
        self.abandoned = False
        self._weak = ref(self)
        if CAN_FORK:
            self._fork(0)
        elif self._tasks:
            self._thread = _Thread(self._tasks)

    # -- what comes back --------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Finished]:
        while not self.is_done:
            finished = self.next()
            if finished is not None:
                yield finished

    @property
    def is_done(self) -> bool:
        """Whether every task has ended, and `next` has said so."""
        return self._ended >= len(self._tasks)

    def next(self, wait: float = 1e9) -> Optional[Finished]:
        """The next task that ended, or None when none did within `wait` seconds (or all have ended)."""
        if self.is_done:
            self.close()
            return None
        finished = self._await(time.monotonic() + wait) if self._thread is None else self._await_thread(wait)
        if finished is not None:
            self._ended += 1
            if self.is_done:
                self.close()
        return finished

    def _await(self, give_up: float) -> Optional[Finished]:
        while True:
            check_interrupted()
            for child in self._children:
                frame = child.frame()
                if frame is not None:
                    return self._took(child, *frame)
            if not self._has_front and self._next < len(self._tasks):
                return self._not_begun()
            # What is there already counts, however late it is.
            wake = min([give_up, self._overtaking(), *map(self._limit, self._children)])
            ready = readable([child.pipe for child in self._children], wake - time.monotonic())
            if ready:
                for child in self._children:
                    if child.pipe in ready and not child.read():
                        return self._end(child, child.death(), False)
                continue
            now = time.monotonic()
            for child in self._children:
                if now >= self._limit(child):
                    return self._end(child, f"timed out after {now - child.begun:.1f} s", True)
            if now >= self._overtaking():
                self._overtake()
            elif now >= give_up:
                return None

    def _took(self, child: _Child, kind: int, content: Any) -> Finished:
        """A task has ended by itself, and its child goes on with the next one, if that is its own to do."""
        value, failure = content
        task = self._tasks[child.task]
        now = time.monotonic()
        finished = Finished(task.name, child.progress if failure else value, failure, False, now - child.begun)
        child.task += 1
        child.begun = now
        child.progress = None
        if child.is_last or child.task >= len(self._tasks):
            if not child.is_last:
                self._next = max(self._next, child.task)
            self._drop(child)
        return finished

    def _end(self, child: _Child, failure: str, timed_out: bool) -> Finished:
        """A task is broken off with its child, and another child does the rest."""
        task = self._tasks[child.task]
        now = time.monotonic()
        finished = Finished(task.name, child.progress, failure, timed_out, now - child.begun)
        self._drop(child)
        if timed_out:
            self._note_timeout(task.name, finished.value)
        if not child.is_last:
            self._next = child.task + 1
            if now < self._deadline:
                self._fork(self._next)
        return finished

    def _not_begun(self) -> Finished:
        task = self._tasks[self._next]
        self._next += 1
        if self._refusal:
            return Finished(task.name, None, self._refusal, False, 0.0)
        return Finished(task.name, None, "the time was over before it began", True, 0.0)

    @property
    def _has_front(self) -> bool:
        return bool(self._children) and not self._children[-1].is_last

    def _limit(self, child: _Child) -> float:
        return min(self._deadline, child.begun + self._tasks[child.task].seconds)

    def _overtaking(self) -> float:
        """When the child in front is waited for no longer by the tasks that come after its own."""
        if not self._has_front or self._children[-1].task + 1 >= len(self._tasks):
            return self._deadline + 1e9
        if self._tasks[self._children[-1].task].first:
            return self._deadline + 1e9
        return self._children[-1].begun + self._patience

    def _overtake(self) -> None:
        front = self._children[-1]
        front.is_last = True
        self._next = front.task + 1
        self._fork(self._next)

    # -- the children -----------------------------------------------------------------------------------------------

    def _fork(self, first: int) -> None:
        if first >= len(self._tasks):
            return
        self._bury(0.0)
        child = _Child(first)
        try:
            child.start(self._tasks[first:], self._deadline, self._note)
        except OSError as error:
            # Nothing runs, so every task ends at once with this reason.
            self._refusal = f"no process could be started for it ({error.strerror})"

    def _note(self, child: _Child) -> None:
        self._children.append(child)
        _workers.add(self._weak)

    def _drop(self, child: _Child) -> None:
        """Ends a child. One that does not end at once is looked after later: others may be waited for."""
        self._children.remove(child)
        child.kill(self._gently)
        if not child.is_over(_AT_ONCE):
            self._dying.append(child)

    def _bury(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        self._dying = [child for child in self._dying if not child.is_over(max(0.0, limit - time.monotonic()))]

    def close(self) -> None:
        """Ends what still runs, and does not wait for what cannot be ended."""
        _workers.discard(self._weak)
        if self._thread is not None:
            self.abandoned = self.abandoned or self._thread.busy
            self._thread = None
        children, self._children = self._children, []
        for child in children:
            child.kill(self._gently)
        self._dying += children
        self._bury(KILL_GRACE)
        for child in self._dying:
            self.abandoned = True
            child.let_go()
        self._dying = []

    def _await_thread(self, wait: float) -> Optional[Finished]:
        """The same on a thread."""
        thread = self._thread
        assert thread is not None
        give_up = time.monotonic() + wait
        while True:
            check_interrupted()
            task = self._tasks[self._next]
            limit = min(self._deadline, thread.begun + task.seconds)
            frame = thread.frame(min(limit, give_up))
            now = time.monotonic()
            seconds = now - thread.begun
            if frame is None and now < limit:
                return None
            if frame is not None and frame[0] == _PROGRESS:
                thread.progress = frame[1]
                continue
            progress, thread.progress, thread.begun = thread.progress, None, now
            self._next += 1
            if frame is not None:
                value, failure = frame[1]
                return Finished(task.name, progress if failure else value, failure, False, seconds)
            self.abandoned = True
            self._note_timeout(task.name, progress)
            rest = self._tasks[self._next :]
            self._thread = _Thread(rest) if rest and now < self._deadline else None
            return Finished(task.name, progress, f"timed out after {seconds:.1f} s", True, seconds)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if os.getpid() == self._owner:  # a forked child has a copy of this, and no say in it
                self.close()


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
    import _signal

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


def end_by_itself(seconds: float) -> None:
    """This process ends soon after that time even where nobody is left to end it. What it becomes by exec does, too."""
    import _signal

    _signal.signal(SIGALRM, _signal.SIG_DFL)
    _signal.setitimer(_signal.ITIMER_REAL, min(max(0.0, seconds) + _ORPHAN_SECONDS, 1e6))


def forget_handlers() -> None:
    """In a new child: what ends the parent's processes when a signal ends the parent is not the child's to do."""
    import _signal

    for number in (SIGINT, SIGTERM, SIGHUP):
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)


def _be_child(tasks: Sequence[Task], writer: int, deadline: float) -> None:
    """Never returns."""
    status = 1
    try:
        global _announce
        _detach(writer)
        end_by_itself(deadline - time.monotonic())

        def send(kind: int, content: Any) -> None:
            data = marshal.dumps((kind, content))
            _write_all(writer, len(data).to_bytes(4, "little") + data)

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
    close_all_but(keep)


def close_all_but(keep: int) -> None:
    """Closes all files but the standard streams and this one."""
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


def readable(descriptors: Sequence[int], seconds: float) -> list[int]:
    """Those of the pipes from which something, or their end, can be read within that time."""
    import select

    milliseconds = max(0, int(seconds * 1000 + 0.999)) if seconds < 1e6 else 1_000_000_000
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return [descriptor for descriptor, _ in poll.poll(milliseconds)]


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

        self.begun = time.monotonic()
        self.progress: Any = None
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
