"""Where output goes: a file that is replaced in one step, or a stream with whatever encoding and reader it has."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Optional, TextIO

from cudadoctor.cli._words import InputError
from cudadoctor.render.style import Style, clean


def write(text: str, path: Optional[str] = None, until: Optional[float] = None) -> None:
    """Writes to standard output, or to `path` all at once (`-`: standard output). A file is given up at `until`
    (monotonic), though not before a moment: it may lie on a dead network file system. (Who does not read our standard
    output holds us, as any other program.)"""
    if path is None or path == "-":
        write_stream(sys.stdout, text)
    else:
        write_file(path, text, until)


def write_error(line: str) -> None:
    """One line on standard error."""
    write_stream(sys.stderr, clean(line) + "\n")


def write_stream(stream: Optional[TextIO], text: str) -> None:
    """Writes what the stream's encoding can say, the rest escaped. A reader that has gone away is no error: the
    verdict does not depend on who reads it."""
    if stream is None:
        return
    encoding = stream.encoding or "ascii"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # What is left in the buffer would fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # Windows has no error of its own for a pipe that was closed.
        gone = isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL)
        if not gone and stream is not sys.stderr:
            raise InputError(f"cannot write to standard output: {error.strerror or error}") from None


# A run that has taken all its time has so many seconds to write its report.
_LEAST_SECONDS = 0.5


def write_file(path: str, text: str, until: Optional[float] = None) -> None:
    """Writes a file so that a reader sees the old content or the new one, never half of it."""
    try:
        data = text.encode("utf-8", "backslashreplace")
        if until is None:
            _write_file(path, data)
        else:
            _write_in_time(path, data, until)
    except OSError as error:
        raise InputError(f"cannot write {path!r}: {error.strerror or error}") from None


def _write_in_time(path: str, data: bytes, until: float) -> None:
    import time

    from cudadoctor.system import bounded

    def write() -> bool:
        # A link to one of our streams is no stream of ours there, and what it is then is no file.
        try:
            kind = os.stat(path).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
                return False
        except FileNotFoundError:
            pass
        _write_file(path, data)
        return True

    until = max(until, time.monotonic() + _LEAST_SECONDS)
    if bounded.is_ours(path) or not bounded.ask(write, until, gently=True):
        _write_file(path, data)


def _write_file(path: str, data: bytes) -> None:
    try:
        mode: Optional[int] = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    stream = _own_stream(path)
    if stream is not None:  # a job's log, by /dev/stdout: what stands in it stays, and what comes goes there, too
        with os.fdopen(os.dup(stream), "wb") as file:
            file.write(data)
        return
    if mode is not None and not stat.S_ISREG(mode):
        _write_in_place(path, data)  # a device or a named pipe cannot be replaced
        return
    path = os.path.realpath(path)  # only now: what /dev/stdout leads to, a pipe, has no path
    # In containers everybody has the same number: what one that was killed has left must not stop the next.
    temporary = f"{path}.{os.getpid()}-{os.urandom(3).hex()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        # A file in a folder that we may not write to, or one that is mounted on its own (a termination log).
        if mode is None or not os.access(path, os.W_OK):
            raise
        _write_in_place(path, data)


def _own_stream(path: str) -> Optional[int]:
    """Our standard output or error, where `path` is another name of it."""
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            if os.path.samestat(os.stat(path), os.fstat(number)):
                if stream is not None:
                    stream.flush()
                return number
        except OSError:
            continue
    return None


def _write_in_place(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def style(color: str = "auto", verbose: bool = False, to_file: bool = False) -> Style:
    """How text may look where it goes. Colour `auto`: on a terminal, unless NO_COLOR is set or TERM is dumb."""
    stream = sys.stdout
    terminal = not to_file and stream is not None and stream.isatty()
    if color == "auto":
        colored = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    else:
        colored = color == "always"
    palette = ""
    if colored:
        many = "256" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))
        palette = "256" if many and os.name != "nt" else "16"
    encoding = "utf-8" if to_file else (stream.encoding or "ascii") if stream is not None else "ascii"
    return Style(
        width=_width(terminal),
        palette=palette,
        unicode=encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig"),
        verbose=verbose,
    )


def _width(terminal: bool) -> int:
    if not terminal:
        return 80
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return 80
    # Wider lines read badly, narrower ones hold no word and value.
    return max(40, min(columns or 80, 120))
