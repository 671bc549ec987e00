"""`cudadoctor check`: what is wrong with the CUDA stack of this machine, and what mends it."""

from __future__ import annotations

from typing import Any

import click

from cudadoctor.cli._options import machine_options, output_option, text_options
from cudadoctor.render.formats import FORMATS


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="text",
    metavar="FORMAT",
    help=", ".join(FORMATS) + ".",
)
@machine_options
@click.option("--select", multiple=True, metavar="IDS", help="Only these checks (ids or names, comma separated).")
@click.option("--ignore", multiple=True, metavar="ID=REASON", help="Leave a check out, for a reason that is shown.")
@click.option("--fail-on", type=click.Choice(["error", "warning", "info"]), help="What exit 1 means [error].")
@click.option("--unknown-ok", is_flag=True, help="Exit 0, not 3, where the verdict is undecided.")
@click.option(
    "--retry-code", type=click.IntRange(1, 255), metavar="N", help="Exit N where all faults are the machine's."
)
@click.option("--blame", multiple=True, metavar="WHO", help="Only faults of: machine, allocation, environment.")
@click.option("--also", multiple=True, metavar="FORMAT=FILE", help="Write the report in another format, too.")
@click.option("--policy", multiple=True, metavar="FILE", help="What the job needs of the machine (see explain policy).")
@click.option("--require", multiple=True, metavar="KEY=VALUE", help="One such need, as gpu.count=8.")
@click.option("--explain-policy", is_flag=True, help="Show what holds and where it came from, and look at nothing.")
@output_option
@text_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Check GPU, driver, CUDA, PyTorch, Python and system.

    Exit status: 0 nothing found, 1 findings, 2 unusable input or a bug, 3 undecided.
    """
    from cudadoctor.cli._checking import check

    ctx.exit(check(**options))
