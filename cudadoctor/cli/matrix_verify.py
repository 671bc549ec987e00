"""`cudadoctor matrix verify`: whether the compatibility data is sound."""

from __future__ import annotations

from typing import Any, Optional

import click

from cudadoctor.cli._options import output_option


@click.command()
@click.argument("folder", required=False, metavar="[FOLDER]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the faults.")
@output_option
@click.pass_context
def command(ctx: click.Context, /, folder: Optional[str], form: str, output: Any) -> None:
    """Check the compatibility data of this installation, or the TOML files of FOLDER.

    Exit status: 0 sound, 1 faults, 2 unreadable.
    """
    from cudadoctor.cli import _output
    from cudadoctor.cli._verifying import verified
    from cudadoctor.render.matrix_data import verify_text, verify_verdict
    from cudadoctor.render.matrix_json import verify_json

    found = verified(folder)
    status = 1 if found.findings else 0
    style = _output.style(to_file=output not in (None, "-"))
    if form == "json":
        said = verify_verdict(found.where, found.rows, found.findings)[1]
        text = verify_json(status, said, found.data, found.findings)
    else:
        text = verify_text(found.where, found.rows, found.findings, found.note, style)
    _output.write(text, output)
    ctx.exit(status)
