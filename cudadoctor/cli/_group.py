"""The commands as click sees them: each is a file of this folder with a `command`, imported only when it runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Optional

import click

from cudadoctor import __version__, cli


class Commands(click.Group):
    """A group whose commands are the modules beside this one that begin with `prefix`. A further `_` in a name makes it
    a helper, or a part of another group: `matrix_show` is the `show` of `matrix`."""

    prefix = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from pkgutil import iter_modules

        names = [module.name for module in iter_modules(cli.__path__) if module.name.startswith(self.prefix)]
        return sorted(name[len(self.prefix) :] for name in names if "_" not in name[len(self.prefix) :])

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        if not cmd_name.isidentifier() or "_" in cmd_name:
            return None
        name = f"{cli.__name__}.{self.prefix}{cmd_name}"
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
        ctx.exit(cli.EXIT_UNUSABLE)
