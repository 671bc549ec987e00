"""The `cudadoctor` command. Each subcommand is a file of this folder with a `command`, imported only when it runs."""

from __future__ import annotations

import errno
import gc
import os
import sys
from importlib import import_module
from typing import Any, NoReturn, Optional

import click

from cudadoctor import __version__

EXIT_UNUSABLE = 2  # bad usage, unreadable input, or our own fault
EXIT_INTERRUPTED = 130  # what a shell reports after Ctrl-C


class Commands(click.Group):
    """A group whose commands are the modules beside this one that begin with `prefix`. A further `_` in a name makes it
    a helper, or a part of another group: `matrix_show` is the `show` of `matrix`."""

    prefix = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from pkgutil import iter_modules

        names = [module.name for module in iter_modules(__path__) if module.name.startswith(self.prefix)]
        return sorted(name[len(self.prefix) :] for name in names if "_" not in name[len(self.prefix) :])

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        if not cmd_name.isidentifier() or "_" in cmd_name:
            return None
        name = f"{__name__}.{self.prefix}{cmd_name}"
        try:
            command: click.Command = import_module(name).command
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from cudadoctor.cli._words import no_such

            raise click.UsageError(no_such("command", args[0], self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    epilog="Begin with `cudadoctor check`; `cudadoctor fix --print` prints what mends the machine.",
)
@click.version_option(__version__, "--version", prog_name="cudadoctor", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Finds the broken link between GPU, driver, CUDA, PyTorch, Python and system, and what mends it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(EXIT_UNUSABLE)


def main() -> NoReturn:
    """Runs the command line and ends the process with its exit status; no traceback, whatever happens."""
    # A run makes some ten thousand objects and ends: looking for garbage among them every 700 costs a tenth of it.
    gc.set_threshold(50_000, 20, 20)
    try:
        status = group.main(prog_name="cudadoctor", standalone_mode=False)
    except click.exceptions.Abort:
        status = EXIT_INTERRUPTED
    except click.ClickException as error:
        _say(_sentence(error))
        status = EXIT_UNUSABLE
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # click's own output: help and version
            _say(f"cannot write: {error.strerror}")
            sys.exit(EXIT_UNUSABLE)
        if os.environ.get("CUDADOCTOR_DEBUG") == "1":
            raise
        _say(
            f"internal error ({_place(error)}): {type(error).__name__}: {error}; this is a bug of cudadoctor: "
            "please report it with what the same command prints under CUDADOCTOR_DEBUG=1"
        )
        status = EXIT_UNUSABLE
    sys.exit(status if isinstance(status, int) else 0)


def run() -> NoReturn:
    """What the installed command calls: `main`, and an end without taking every object apart first."""
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
        worker = sys.modules.get("cudadoctor.system.worker")
        if worker is not None:
            worker.end_all()  # after Ctrl-C, what was waited for still runs
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                raise end from None  # the usual way knows what to do about a stream that is gone
        os._exit(status)


def _sentence(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
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


def _say(message: str) -> None:
    from cudadoctor.cli._output import write_error

    write_error(f"cudadoctor: error: {message}")
