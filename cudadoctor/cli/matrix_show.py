"""`cudadoctor matrix show`: what the compatibility data holds, how old it is and where it lies."""

from __future__ import annotations

from typing import Any

import click

from cudadoctor.cli._options import output_option


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@output_option
def command(form: str, output: Any) -> None:
    """Show the compatibility data: revision, age, the newest that it knows, counts."""
    from datetime import date

    from cudadoctor.cli import _output
    from cudadoctor.cli._program import homely, program
    from cudadoctor.cli._words import InputError
    from cudadoctor.matrix import MatrixError, load_matrix
    from cudadoctor.matrix.holdings import data_of, holdings
    from cudadoctor.render.matrix_data import show_text, show_verdict
    from cudadoctor.render.matrix_json import show_json

    style = _output.style(to_file=output not in (None, "-"))
    try:
        matrix = load_matrix()
        data, held = data_of(matrix, date.today().isoformat()), holdings(matrix)
    except MatrixError as error:
        raise InputError(str(error)) from None
    if data.origin.path is not None:
        data = data._replace(origin=data.origin._replace(path=homely(data.origin.path)))
    if form == "json":
        _output.write(show_json(show_verdict(data)[1], data, held), output)
    else:
        _output.write(show_text(data, held, f"{program()} matrix update", style), output)
