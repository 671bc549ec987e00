"""Programs that are started, watched and ended at their deadline. No shell, no input, output of bounded size."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.parse.decode import program_text
from cudadoctor.system import worker
from cudadoctor.system.port import Ended, ProgramResult, RunningProgram

# What is kept of each output stream; the rest is read and dropped, so that the program can end.
OUTPUT_LIMIT = 4 << 20

_PIECE = 1 << 16

# How long output is still read after the program's end: a process that it left running may hold the pipe for ever.
PIPE_GRACE = 0.1

# How long what a program has written is still read after its limit: one that writes without end would hold us.
DRAIN_SECONDS = 0.1


def start(argv: Sequence[str], environment: Mapping[str, str], limit: float, source: str) -> RunningProgram:
    """Starts a program that is given by its path; it is ended at `limit` (monotonic)."""
    if time.monotonic() >= limit:
        return Ended(unknown("timed out before it began", source))
    try:
        if worker.CAN_FORK:
            return _PosixProgram(argv, environment, limit, source)
        return PopenProgram(argv, environment, limit, source)
    except OSError as error:
        return Ended(_not_started(error, argv[0], source))
    except ValueError as error:  # a NUL in an argument
        return Ended(unknown(f"it cannot be started ({error})", source))


def _not_started(error: OSError, path: str, source: str) -> Fact[Any]:
    return _why_not(error.errno or 0, os.path.exists(path), source)


def _why_not(number: int, is_there: bool, source: str) -> Fact[Any]:
    """What is said of a program that could not be started, by the error's number and whether its file is there."""
    if number in (errno.ENOENT, errno.ENOTDIR):
        if is_there:
            return unknown("it cannot be started (the interpreter or loader that it names is missing)", source)
        return absent(source)
    if number in (errno.EACCES, errno.EPERM):
        return unknown("it cannot be started (permission denied)", source)
    if number == errno.ENOEXEC:
        return unknown("it cannot be started (not a program for this system)", source)
    return unknown(f"it cannot be started ({os.strerror(number).lower()})", source)


def _finished(source: str, status: Optional[int], output: bytes, errors: bytes, timed_out: bool) -> Fact[ProgramResult]:
    fallback = "oem" if os.name == "nt" else None
    texts = program_text(output, fallback), program_text(errors, fallback)
    return known(ProgramResult(None if timed_out else status, texts[0], texts[1], timed_out), source)


class _PosixProgram:
    """By fork and exec. Not by posix_spawn, which returns when the program's file has been read: on a dead network file
    system that is never. And the subprocess module takes longer to import than nvidia-smi to run."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], limit: float, source: str) -> None:
        self._source = source
        self._limit = limit
        self._owner = os.getpid()
        self._result: Optional[Fact[ProgramResult]] = None
        self._status: Optional[int] = None
        words = [os.fsencode(word) for word in argv]
        if any(b"\0" in word for word in words):
            raise ValueError("embedded null byte")
        # The third one says why there is no program; exec closes it.
        pipes = worker.open_pipe(), worker.open_pipe(), worker.open_pipe()
        try:
            with worker.signals_held():
                self._process = os.fork()
                if self._process == 0:
                    _become(words, environment, [writer for _, writer in pipes], limit)
                worker.program_started(self._process)
        except BaseException:
            for reader, writer in pipes:
                os.close(reader)
                os.close(writer)
            raise
        for _, writer in pipes:
            os.close(writer)
        self._fault = pipes[2][0]
        self._readers = [pipes[0][0], pipes[1][0]]
        self._output = {reader: bytearray() for reader in self._readers}
        self._streams = tuple(self._readers)

    def advance(self) -> None:
        """Takes what it has written so far; it would wait for a reader when its pipe is full. Never waits."""
        if self._result is None:
            for _ in range(1 + OUTPUT_LIMIT // _PIECE):
                ready = self._poll(0.0) if self._readers else []
                for reader in ready:
                    self._read(reader)
                if not ready:
                    return

    def result(self, within: Optional[float] = None) -> Fact[ProgramResult]:
        if self._result is None:
            if within is not None:
                self._limit = min(self._limit, time.monotonic() + within)
            try:
                timed_out = not self._wait()
                has_begun = bool(worker.readable([self._fault], 0.0))
            finally:
                self._end()
            self._result = self._refusal() if has_begun else unknown("timed out before it began", self._source)
        if self._result is None:
            output, errors = (bytes(self._output[stream]) for stream in self._streams)
            status = None if self._status is None else _exit_status(self._status)
            self._result = _finished(self._source, status, output, errors, timed_out)
        return self._result

    def _refusal(self) -> Optional[Fact[ProgramResult]]:
        """Why the program never ran, if it did not."""
        said = os.read(self._fault, 100)
        self._close_fault()
        if not said:
            return None
        number, is_there = map(int, said.split())
        return _why_not(number, bool(is_there), self._source)

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
                if now >= limit + DRAIN_SECONDS:
                    return self._status is not None
            elif now >= limit:
                return False
            else:
                time.sleep(pause)
                pause = min(pause * 2, 0.02)

    def _poll(self, seconds: float) -> list[int]:
        return worker.readable(self._readers, seconds)

    def _read(self, reader: int) -> None:
        piece = os.read(reader, _PIECE)
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

    def _close_fault(self) -> None:
        fault, self._fault = self._fault, -1
        if fault >= 0:
            os.close(fault)

    def __del__(self) -> None:
        # Nobody asked for the result: the run was broken off. (A forked child has a copy of this, and no say in it.)
        with contextlib.suppress(Exception):
            if self._result is None and os.getpid() == self._owner:
                self._end()
            if os.getpid() == self._owner:
                self._close_fault()


def _become(argv: Sequence[bytes], environment: Mapping[str, str], pipes: Sequence[int], limit: float) -> NoReturn:
    """In the new process: the program, with no input, these pipes for output and errors, and no file of ours. A program
    that is left behind must not hold what our caller waits for, nor one whose file does not come."""
    fault = pipes[2]
    try:
        import _signal

        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.set_inheritable(0, True)  # where it was closed, it is this very file
        os.dup2(pipes[0], 1)
        os.dup2(pipes[1], 2)
        worker.close_all_but(fault)
        for number in (worker.SIGPIPE, worker.SIGINT, worker.SIGTERM):  # Python ignores the first
            _signal.signal(number, _signal.SIG_DFL)
        worker.forget_handlers()
        worker.end_by_itself(limit - time.monotonic())
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        os.execve(argv[0], list(argv), dict(environment))
    except OSError as error:
        os.write(fault, b"%d %d" % (error.errno or 0, os.path.exists(argv[0])))
    except BaseException:
        os.write(fault, b"%d 0" % errno.EINVAL)
    finally:
        os._exit(127)


def _exit_status(status: int) -> int:
    """As a shell gives it: 128 and the signal for a program that a signal ended."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class PopenProgram:
    """By the subprocess module, where there is no fork (Windows). Two daemon threads read the output."""

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

    def advance(self) -> None:
        """Its output is read all the time."""

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
