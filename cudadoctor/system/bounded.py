"""One question that could hold us, asked in a process of its own: a file whose path a person gave may lie on a dead
network file system.

What runs there inherits the working folder and nothing else: neither the standard streams nor any other file.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Callable

from cudadoctor.system.worker import CAN_FORK, Task, Worker

# What no answer in time is called, as the text of an OSError.
NO_ANSWER = "it did not answer in time"

# An answer, or an error's number and text.
_OK, _ERROR = "ok", "error"


def ask(question: Callable[[], Any], until: float, gently: bool = False) -> Any:
    """What `question` gives (plain data), by `until` (monotonic). Raises the OSError that it raises, TimeoutError where
    it does not end, and OSError where it failed in another way. `gently`: it is first asked to end by SIGTERM, which
    raises SystemExit in it, so that it can clean up. Without fork (Windows) it is asked here and now."""
    if not CAN_FORK:
        return question()

    def run(report: Any) -> Any:
        if gently:
            _end_by_exception()
        try:
            return _OK, question()
        except OSError as error:
            return _ERROR, (error.errno or 0, error.strerror or str(error))

    with Worker([Task("question", run, 1e9)], until, gently=gently) as worker:
        finished = worker.next()
    assert finished is not None
    if finished.timed_out:
        raise TimeoutError(errno.ETIMEDOUT, NO_ANSWER)
    if finished.failure:
        raise OSError(0, finished.failure)
    state, content = finished.value
    if state == _ERROR:
        raise OSError(*content)
    return content


def read_file(path: str, limit: int, until: float) -> bytes:
    """At most `limit` bytes of a file. Raises OSError, TimeoutError among them."""

    def read() -> bytes:
        with open(path, "rb") as file:
            return file.read(limit)

    data: bytes = ask(read, until)
    return data


def is_ours(path: str) -> bool:
    """Whether a path may mean a stream that we have inherited (`/dev/stdin`, a shell's `<(...)`): it is another one
    for a process of its own."""
    return path.startswith(("/dev/", "/proc/"))


def read_stream(descriptor: int, limit: int, until: float) -> bytes:
    """At most `limit` bytes of a stream that we have inherited, to its end. Raises OSError, TimeoutError among them."""
    import time

    from cudadoctor.system.worker import check_interrupted, readable

    data = bytearray()
    while len(data) < limit:
        check_interrupted()
        left = until - time.monotonic()
        if not readable([descriptor], min(left, 0.5)):
            if left <= 0:
                raise TimeoutError(errno.ETIMEDOUT, "it did not end in time")
            continue
        piece = os.read(descriptor, min(1 << 16, limit - len(data)))
        if not piece:
            break
        data += piece
        if left <= 0:
            raise TimeoutError(errno.ETIMEDOUT, "it did not end in time")
    return bytes(data)


def _end_by_exception() -> None:
    import _signal

    from cudadoctor.system.worker import SIGTERM

    def end(number: int, frame: Any) -> None:
        raise SystemExit

    _signal.signal(SIGTERM, end)
