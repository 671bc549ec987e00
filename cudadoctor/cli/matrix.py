"""`cudadoctor matrix`: the compatibility data that everything else rests on. Its commands are the files `matrix_*`."""

from __future__ import annotations

import click

from cudadoctor.cli import EXIT_UNUSABLE, Commands


class _Parts(Commands):
    prefix = "matrix_"


@click.command(cls=_Parts, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Look up what fits what: drivers, GPUs, CUDA and torch builds."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(EXIT_UNUSABLE)
