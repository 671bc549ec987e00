"""`cudadoctor fleet`: many nodes in one report."""

from __future__ import annotations

from typing import Any

import click

from cudadoctor.cli._options import output_option, text_options
from cudadoctor.render.fleet_view import FORMATS


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE|DIR|- ...")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text", help="How to print the report.")
@click.option(
    "--expect",
    multiple=True,
    metavar="NODES",
    help="The nodes that have to be there, as node[001-512] or names with commas.",
)
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "info"]), default="error", help="What exit 1 means [error]."
)
@click.option("--unknown-ok", is_flag=True, help="A node whose verdict is undecided counts as fine.")
@click.option(
    "--retry-code", type=click.IntRange(1, 255), metavar="N", help="Exit N where all faults are the machines'."
)
@output_option
@text_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Merge the snapshots of many nodes: who fails, who is missing, who is unlike the others.

    Snapshots are what `cudadoctor check --format json-line` (or json) and `cudadoctor facts` print: files, folders of
    them, or a line a node on standard input (-). A node is called what its scheduler or --node calls it, else what its
    file is called.

    \b
    bad-nodes and good-nodes print one line for a scheduler:
      sbatch --exclude="$(cudadoctor fleet --format bad-nodes snapshots/)" ...

    Exit status: 0 all nodes are fine, 1 nodes fail, are missing or disagree, 2 unusable input, 3 nodes without a
    verdict.
    """
    from cudadoctor.cli._fleet import fleet

    ctx.exit(fleet(**options))
