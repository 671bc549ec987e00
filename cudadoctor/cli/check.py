"""`cudadoctor check`: what is wrong with the CUDA stack of this machine, and what mends it."""

from __future__ import annotations

from typing import Any, Optional

import click

from cudadoctor.cli._input import Machine, begin_reading
from cudadoctor.cli._options import machine_options, output_option, text_options
from cudadoctor.render.formats import FORMATS


@click.command()
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text", help="How to print the report.")
@machine_options
@click.option("--select", multiple=True, metavar="IDS", help="Only these checks (ids or names, comma separated).")
@click.option("--ignore", multiple=True, metavar="ID=REASON", help="Leave a check out, for a reason that is shown.")
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "info"]), default="error", help="What exit 1 means [error]."
)
@click.option("--unknown-ok", is_flag=True, help="Exit 0, not 3, where the verdict is undecided.")
@click.option(
    "--retry-code", type=click.IntRange(1, 255), metavar="N", help="Exit N where all faults are the machine's."
)
@output_option
@text_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    unknown_ok: bool,
    retry_code: Optional[int],
    output: Optional[str],
    color: str,
    verbose: bool,
    **machine: Any,
) -> None:
    """Check GPU, driver, CUDA, PyTorch, Python and system.

    Exit status: 0 nothing found, 1 findings, 2 unusable input or a bug, 3 undecided.
    """
    chosen = Machine(**machine)
    reading = begin_reading(chosen)
    # Whatever judges and prints is loaded while the machine is being looked at.
    from cudadoctor.cli import _diagnosis, _output, _private
    from cudadoctor.cli._program import program
    from cudadoctor.render.formats import load, render

    load(form)
    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    view = _diagnosis.view_of(chosen, select, ignore, fail_on, unknown_ok, retry_code, style, reading)
    view = view._replace(program=program())
    _output.write(render(form, _private.private(view) if chosen.is_live else view), output)
    ctx.exit(view.exit)
