"""Programs that are started, watched and ended at their deadline. No shell, no input, output of bounded size."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.parse.decode import program_text
from cudadoctor.system import worker
from cudadoctor.system.port import Ended, ProgramResult, RunningProgram

# What is kept of each output stream; the rest is read and dropped, so that the program can end.
OUTPUT_LIMIT = 4 << 20

# How long output is still read after the program's end: a process that it left running may hold the pipe for ever.
PIPE_GRACE = 0.1

CAN_SPAWN = hasattr(os, "posix_spawn")


def start(argv: Sequence[str], environment: Mapping[str, str], limit: float, source: str) -> RunningProgram:
    """Starts a program that is given by its path; it is ended at `limit` (monotonic)."""
    if time.monotonic() >= limit:
        return Ended(unknown("timed out before it began", source))
    try:
        if CAN_SPAWN:
            return _PosixProgram(argv, environment, limit, source)
        return PopenProgram(argv, environment, limit, source)
    except OSError as error:
        return Ended(_not_started(error, argv[0], source))
    except ValueError as error:  # a NUL in an argument
        return Ended(unknown(f"it cannot be started ({error})", source))


def _not_started(error: OSError, path: str, source: str) -> Fact[Any]:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if os.path.exists(path):
            return unknown("it cannot be started (the interpreter or loader that it names is missing)", source)
        return absent(source)
    if error.errno in (errno.EACCES, errno.EPERM):
        return unknown("it cannot be started (permission denied)", source)
    if error.errno == errno.ENOEXEC:
        return unknown("it cannot be started (not a program for this system)", source)
    return unknown(f"it cannot be started ({(error.strerror or str(error)).lower()})", source)


def _finished(source: str, status: Optional[int], output: bytes, errors: bytes, timed_out: bool) -> Fact[ProgramResult]:
    fallback = "oem" if os.name == "nt" else None
    texts = program_text(output, fallback), program_text(errors, fallback)
    return known(ProgramResult(None if timed_out else status, texts[0], texts[1], timed_out), source)


class _PosixProgram:
    """By posix_spawn: the subprocess module takes longer to import than nvidia-smi to run."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], limit: float, source: str) -> None:
        self._source = source
        self._limit = limit
        self._owner = os.getpid()
        self._result: Optional[Fact[ProgramResult]] = None
        self._status: Optional[int] = None
        pipes = worker.open_pipe(), worker.open_pipe()
        try:
            actions: list[tuple[Any, ...]] = [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, pipes[0][1], 1),
                (os.POSIX_SPAWN_DUP2, pipes[1][1], 2),
            ]
            # A program that is left behind must not hold what our caller waits for.
            actions += [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable()]
            with worker.signals_held():
                self._process = os.posix_spawn(
                    argv[0],
                    list(argv),
                    dict(environment),
                    file_actions=actions,
                    setpgroup=0,
                    setsigmask=[],
                    setsigdef=[worker.SIGPIPE, worker.SIGINT, worker.SIGTERM],  # Python ignores the first
                )
                worker.program_started(self._process)
        except BaseException:
            for reader, writer in pipes:
                os.close(reader)
                os.close(writer)
            raise
        for _, writer in pipes:
            os.close(writer)
        self._readers = [pipes[0][0], pipes[1][0]]
        self._output = {reader: bytearray() for reader in self._readers}
        self._streams = tuple(self._readers)

    def result(self, within: Optional[float] = None) -> Fact[ProgramResult]:
        if self._result is None:
            if within is not None:
                self._limit = min(self._limit, time.monotonic() + within)
            try:
                timed_out = not self._wait()
            finally:
                self._end()
            output, errors = (bytes(self._output[stream]) for stream in self._streams)
            status = None if self._status is None else _exit_status(self._status)
            self._result = _finished(self._source, status, output, errors, timed_out)
        return self._result

    def _wait(self) -> bool:
        """Reads until the program has ended; False when it has not ended in time."""
        pause = 0.0005
        given_up = None  # when an ended program's pipes are waited for no longer
        while True:
            worker.check_interrupted()
            if self._status is None:
                self._status = worker.reap(self._process, 0.0)
                if self._status is not None:
                    given_up = time.monotonic() + PIPE_GRACE
            if self._status is not None and not self._readers:
                return True
            now = time.monotonic()
            limit = self._limit if given_up is None else given_up
            if self._readers:
                # In steps, since the end of the program itself wakes nobody.
                ready = self._poll(0.0 if now >= limit else min(limit - now, 0.05))
                for reader in ready:
                    self._read(reader)
                if not ready and now >= limit:
                    return self._status is not None
                # A program that writes without end is stopped at its limit all the same.
                if now >= limit + 0.5:
                    return self._status is not None
            elif now >= limit:
                return False
            else:
                time.sleep(pause)
                pause = min(pause * 2, 0.02)

    def _poll(self, seconds: float) -> list[int]:
        import select

        poll = select.poll()
        for reader in self._readers:
            poll.register(reader, select.POLLIN | select.POLLHUP)
        return [reader for reader, _ in poll.poll(int(seconds * 1000 + 0.999))]

    def _read(self, reader: int) -> None:
        piece = os.read(reader, 1 << 16)
        if not piece:
            self._readers.remove(reader)
            os.close(reader)
            return
        kept = self._output[reader]
        kept += piece[: OUTPUT_LIMIT - len(kept)]

    def _end(self) -> None:
        if self._status is None:
            worker.end_process(self._process)
        elif self._readers:
            worker.kill_group(self._process)  # what it left running holds the pipes
        worker.program_ended(self._process)
        for reader in self._readers:
            os.close(reader)
        self._readers = []

    def __del__(self) -> None:
        # Nobody asked for the result: the run was broken off. (A forked child has a copy of this, and no say in it.)
        with contextlib.suppress(Exception):
            if self._result is None and os.getpid() == self._owner:
                self._end()


def _inheritable() -> list[int]:
    """Files beside the standard streams that a program would inherit from us."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []
    found = []
    for number in numbers:
        if number > 2:
            with contextlib.suppress(OSError):
                if os.get_inheritable(number):
                    found.append(number)
    return found


def _exit_status(status: int) -> int:
    """As a shell gives it: 128 and the signal for a program that a signal ended."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class PopenProgram:
    """By the subprocess module, where there is no posix_spawn (Windows). Two daemon threads read the output."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], limit: float, source: str) -> None:
        import subprocess
        import threading

        self._source = source
        self._limit = limit
        flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            creationflags=flags,
        )
        self._result: Optional[Fact[ProgramResult]] = None
        self._output = bytearray(), bytearray()
        self._threads = [
            threading.Thread(target=self._read, args=(stream, kept), daemon=True)
            for stream, kept in zip((self._process.stdout, self._process.stderr), self._output)
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream: Any, kept: bytearray) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                piece = stream.read1(1 << 16)
                if not piece:
                    return
                kept += piece[: OUTPUT_LIMIT - len(kept)]

    def result(self, within: Optional[float] = None) -> Fact[ProgramResult]:
        if self._result is None:
            if within is not None:
                self._limit = min(self._limit, time.monotonic() + within)
            self._result = self._wait()
        return self._result

    def _wait(self) -> Fact[ProgramResult]:
        import subprocess

        timed_out = False
        try:
            status: Optional[int] = self._process.wait(max(0.0, self._limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            status, timed_out = None, True
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(worker.KILL_GRACE)
        for thread in self._threads:
            thread.join(PIPE_GRACE)
        return _finished(self._source, status, bytes(self._output[0]), bytes(self._output[1]), timed_out)
