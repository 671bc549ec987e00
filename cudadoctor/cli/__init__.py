"""The `cudadoctor` command. Each subcommand is a file of this folder with a `command`, imported only when it runs.

A plain `check` runs without click (see `_plain`); everything else is read by it (see `_group`).
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from cudadoctor import __version__

if TYPE_CHECKING:
    import click

    from cudadoctor.cli._group import Commands, group

__all__ = ["EXIT_INTERRUPTED", "EXIT_UNUSABLE", "Commands", "group", "main", "run"]

EXIT_UNUSABLE = 2  # bad usage, unreadable input, or our own fault
EXIT_INTERRUPTED = 130  # what a shell reports after Ctrl-C


def __getattr__(name: str) -> Any:
    if name not in ("Commands", "group"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cudadoctor.cli import _group

    return getattr(_group, name)


def main() -> NoReturn:
    """Runs the command line and ends the process with its exit status; no traceback, whatever happens."""
    # A run makes a hundred thousand objects and ends: looking for garbage among them every 700 costs a tenth of it.
    gc.set_threshold(500_000, 20, 20)
    try:
        status = _status()
        worker = sys.modules.get("cudadoctor.system.worker")
        if worker is not None:
            worker.check_interrupted()
    except KeyboardInterrupt:
        _say()
        status = EXIT_INTERRUPTED
    except (Exception, SystemExit) as error:  # no code of ours ends the process by SystemExit: no verdict
        status = _unusable(_failure(error))
    sys.exit(status if isinstance(status, int) else 0)


def _status() -> object:
    """Runs the command that sys.argv names, and gives its exit status (None: it is fine)."""
    if sys.argv[1:2] == ["check"]:
        from cudadoctor.cli._plain import plain_check

        options = plain_check(sys.argv[2:])
        if options is not None:
            from cudadoctor.cli._checking import check

            return check(**options)
    return _status_by_click()


def _status_by_click() -> object:
    import click

    from cudadoctor.cli._group import group

    try:
        return group.main(prog_name="cudadoctor", standalone_mode=False)
    except click.exceptions.Abort:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        return _unusable(f"cudadoctor: error: {_sentence(error)}")


def _unusable(message: str) -> int:
    """Says why there is no verdict, and gives the exit status: for Nagios 2 would mean that the machine is broken."""
    _say(message)
    words = sys.argv[1:]
    if words[:1] != ["check"] or not ("--format=nagios" in words or ("--format", "nagios") in zip(words, words[1:])):
        return EXIT_UNUSABLE
    from cudadoctor.cli._output import write
    from cudadoctor.render.nagios import STATES, unusable

    write(unusable(message))
    return STATES.index("UNKNOWN")


def run() -> NoReturn:
    """What the installed command calls: `main`, and an end without taking every object apart first."""
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else EXIT_UNUSABLE
        worker = sys.modules.get("cudadoctor.system.worker")
        if worker is not None:
            worker.end_all()  # after Ctrl-C, what was waited for still runs
        if "certifi" in sys.modules:  # out of a zip file it unpacks its certificates, and removes them at the end
            import atexit

            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                raise end from None  # the usual way knows what to do about a stream that is gone
        os._exit(status)


def _failure(error: BaseException) -> str:
    """What is said about an error that ended the command; our own mistakes are raised for who debugs them."""
    from cudadoctor.cli._words import InputError

    # Only who has loaded the compatibility data can have failed on it.
    tables = sys.modules.get("cudadoctor.matrix.tables")
    if isinstance(error, InputError) or (tables is not None and isinstance(error, tables.MatrixError)):
        return f"cudadoctor: error: {str(error).rstrip('.')}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # click's own output: help and version
        return f"cudadoctor: error: cannot write: {error.strerror}"
    if os.environ.get("CUDADOCTOR_DEBUG") == "1":
        raise error
    return (
        f"cudadoctor: error: internal error ({_place(error)}): {type(error).__name__}: {error}; "
        "this is a bug of cudadoctor: please report it with what the same command prints under CUDADOCTOR_DEBUG=1"
    )


def _sentence(error: click.ClickException) -> str:
    import click

    message = error.format_message().rstrip(".")
    for words, plain in (("a valid float range", "a number"), ("a valid integer range", "a whole number")):
        message = message.replace(f"is not {words}", f"is not {plain}")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message} (see `{error.ctx.command_path} -h`)"
    return message


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return f"cudadoctor {__version__}"
    file = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"cudadoctor {__version__}, {file}:{trace.tb_lineno}"


def _say(line: str = "") -> None:
    from cudadoctor.cli._output import write_error

    write_error(line)
