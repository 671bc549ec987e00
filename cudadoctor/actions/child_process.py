"""Runs a script of ours in another interpreter: one process with a deadline and a bound on what it says, and nothing of
it is left behind, whatever becomes of it or of us.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import IO, Any, Optional

from cudadoctor.system import worker
from cudadoctor.verify.lines import MOST_BYTES, Ending

# The last words of a program; where a traceback is longer, its end says what happened.
_MOST_ERRORS = 16 << 10
# How long a process that was killed may take to end, and its pipes to close.
_GRACE = 2.0


def source_of(script: ModuleType) -> bytes:
    """The text of a module that an interpreter without cudadoctor shall run, also where the package is a zip file."""
    spec = script.__spec__
    if spec is not None and spec.loader is not None and hasattr(spec.loader, "get_source"):
        source: Optional[str] = spec.loader.get_source(script.__name__)
        if source is not None:
            return source.encode("utf-8")
    raise OSError(f"the source of {script.__name__} is not there")


class _Ended(BaseException):
    """A signal that ends this process: first what runs for it is ended and its folder removed."""


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP (a job's time limit, a closed terminal) end us as ever, when the block is left."""
    import signal

    came: list[int] = []

    def end(number: int, frame: Any) -> None:
        came.append(number)
        raise _Ended

    before: dict[int, Any] = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # Only the main thread may ask; an ignored signal (nohup) stays ignored.
        with contextlib.suppress(ValueError):
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, end)
    try:
        yield
    except _Ended:
        signal.signal(came[0], signal.SIG_DFL)
        os.kill(os.getpid(), came[0])
    finally:
        for number, handler in before.items():
            if number not in came:
                signal.signal(number, handler)


def run_process(
    command: Sequence[str], environment: Mapping[str, str], timeout: float, mark: str = ""
) -> tuple[bytes, Ending]:
    """Runs a program in a process group of its own, and ends the whole group at the deadline or when it has ended; on
    Linux also who has left the group, if `mark` stands in the environment and nobody else has such a one.

    Gives the first megabyte of its standard output, and how it ended. Never raises for what the program does.
    """
    begun = time.monotonic()
    worker.end_all_when_ended()
    try:
        with worker.signals_held():
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                start_new_session=os.name != "nt",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
            worker.program_started(process.pid)
            begun_at = _stat_of(process.pid)[1]
    except OSError as error:
        return b"", Ending(refused=error.strerror or str(error), seconds=time.monotonic() - begun)
    try:
        output, errors = _Stream(process.stdout, MOST_BYTES, False), _Stream(process.stderr, _MOST_ERRORS, True)
        timed_out = not _wait(process, begun + timeout)
        status = process.returncode
    finally:
        _end(process)
        _end_strays(process.pid, begun_at, mark)
        worker.program_ended(process.pid)
    seconds = timeout if timed_out else time.monotonic() - begun
    said = errors.finished().decode("utf-8", "replace").strip()
    signal = "" if timed_out else _signal_of(status)
    return output.finished(), Ending(status if not timed_out else None, signal, timed_out, seconds, said)


def _wait(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Whether it ended in time. In steps: a Ctrl-C is looked at between them."""
    while True:
        worker.check_interrupted()
        left = limit - time.monotonic()
        if left <= 0:
            return process.poll() is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(left, 0.5))
            return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills what is left of the group. What cannot be killed is left alone: it holds nothing that we wait for."""
    if os.name == "nt":
        _end_on_windows(process)
        return
    worker.kill_group(process.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _end_strays(group: int, begun_at: int, mark: str) -> None:
    """Kills daemons that the program has left. Nobody of its group is asked: who of them still is there cannot be
    killed, and a question after the environment of such a one may never be answered."""
    if sys.platform != "linux" or not mark or begun_at < 0:
        return
    for _ in range(3):  # one may have started another meanwhile
        strays = [pid for pid in _younger_than(begun_at, group) if _is_marked(pid, os.fsencode(mark))]
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, worker.SIGKILL)
        if not strays:
            return


def _younger_than(begun_at: int, group: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                its_group, its_begin = _stat_of(int(name))
                if its_begin >= begun_at and its_group != group:
                    yield int(name)


def _stat_of(process: int) -> tuple[int, int]:
    """Group and start (in ticks since the machine's) of a process; -1: there is none, or nobody tells."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[2]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return -1, -1


def _is_marked(process: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return mark in file.read()
    except OSError:
        return False


def _end_on_windows(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # Its own children too, which nothing else names.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["taskkill", "/F", "/T", "/PID", str(process.pid)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_GRACE,
                check=False,
            )  # fmt: skip
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


def _signal_of(status: Optional[int]) -> str:
    """ "SIGSEGV" for what a signal ended; Windows ends a process with the number of the exception."""
    if status is None:
        return ""
    if status < 0:
        import signal

        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exception 0x{status:08X}" if sys.platform == "win32" and status >= 0xC0000000 else ""


class _Stream:
    """Reads a pipe to its end beside us, and keeps its first or its last bytes."""

    def __init__(self, pipe: Optional[IO[bytes]], most: int, last: bool) -> None:
        import threading

        assert pipe is not None
        self._pipe = pipe
        self._most = most
        self._last = last
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                piece = os.read(self._pipe.fileno(), 1 << 16)
                if not piece:
                    return
                if self._last:
                    self._kept += piece
                    del self._kept[: -self._most]
                elif len(self._kept) < self._most:
                    self._kept += piece[: self._most - len(self._kept)]

    def finished(self) -> bytes:
        self._thread.join(_GRACE)
        found = bytes(self._kept)
        if not self._thread.is_alive():
            self._pipe.close()
        return found
