"""`cudadoctor matrix update`: brings the compatibility data up to date, from the network, when asked to."""

from __future__ import annotations

import sys
from typing import Optional

import click

from cudadoctor.cli._options import output_option


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@click.option("--remove", is_flag=True, help="Go back to the data that came with cudadoctor.")
@click.option("--index-url", metavar="URL", help="The default index [what pip of --python is set to].")
@click.option("--python", metavar="PATH", help="Whose pip is asked for its index [cudadoctor's own interpreter].")
@click.option("--mirror", metavar="URL", help="Where PyTorch's index (https://download.pytorch.org/whl) is mirrored.")
@click.option("--without", type=click.Choice(["torch", "drivers"]), help="Leave this part as it is.")
@click.option("--binaries", is_flag=True, help="Read GPU lists out of new Linux wheels, too (10 MB each).")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=3600),
    default=180.0,
    metavar="SECONDS",
    help="Deadline of all fetching [180].",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the result.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    dry_run: bool,
    remove: bool,
    index_url: Optional[str],
    python: Optional[str],
    mirror: Optional[str],
    without: Optional[str],
    binaries: bool,
    timeout: float,
    form: str,
    output: Optional[str],
) -> None:
    """Fetch what is newer than the compatibility data: torch builds from PyTorch's index and the default index, drivers
    from NVIDIA's lists. It goes into your data folder (CUDADOCTOR_DATA names another; empty or "shipped" leaves updates
    out); cudadoctor never does this by itself.

    Exit status: 0 done, or nothing is new; 1 refused: what was fetched would make the data worse; 2 the network or the
    command line.
    """
    from datetime import datetime, timezone

    from cudadoctor.actions.fetch import FetchError, cache_folder
    from cudadoctor.actions.observe_upstream import Request, fetch
    from cudadoctor.actions.update_matrix import UpdateError, folder, update
    from cudadoctor.actions.update_matrix import remove as remove_update
    from cudadoctor.cli import _output
    from cudadoctor.cli._program import homely, program
    from cudadoctor.cli._words import InputError
    from cudadoctor.matrix import MatrixError, load_matrix
    from cudadoctor.matrix.outcome import REFUSED
    from cudadoctor.render.matrix_update import update_json, update_text

    try:
        place = folder()
        if remove:
            outcome = remove_update(cache_folder())
        else:
            matrix, now = load_matrix(), datetime.now(timezone.utc)
            # What is there must be sound before anything is laid over it.
            matrix.torch_releases(), matrix.branches(), matrix.toolkits()
            cache = cache_folder()
            request = Request(
                python or sys.executable, index_url, mirror, without, binaries, timeout=timeout, cache=cache
            )
            observed = fetch(request, matrix.raw, f"{now:%Y-%m-%d}")
            outcome = update(observed, dry_run=dry_run, now=now)
    except (FetchError, UpdateError, MatrixError) as error:
        raise InputError(str(error).rstrip(".")) from None
    place = homely(place)
    text = update_json(outcome._replace(path=place)) if form == "json" else update_text(outcome, program(), place)
    _output.write(text, output)
    ctx.exit(1 if outcome.verdict == REFUSED else 0)
