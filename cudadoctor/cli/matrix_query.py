"""`cudadoctor matrix query`: the compatibility tables, both ways."""

from __future__ import annotations

from typing import Any

import click

from cudadoctor.cli._options import output_option, text_options


@click.command()
@click.option("--gpu", "gpus", multiple=True, metavar="NAME|CC", help="Which builds have code for this GPU?")
@click.option("--driver", metavar="VER", help="What does this driver serve?")
@click.option("--torch", metavar="VER", help="What does this torch need? (2.6, 2.6.0, 2.6.0+cu124)")
@click.option("--cuda", metavar="VER", help="What does this CUDA need? (12.4, or 12 for all of them)")
@click.option("--python", metavar="VER", help="Only builds with a wheel for this Python (3.12, 3.13t).")
@click.option("--os", "system", type=click.Choice(["linux", "windows", "wsl"]), help="On this system [this machine's].")
@click.option("--arch", type=click.Choice(["x86_64", "aarch64"]), help="On this processor [this machine's].")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the answer.")
@output_option
@text_options
@click.pass_context
def command(ctx: click.Context, /, form: str, output: Any, color: str, verbose: bool, **asked: Any) -> None:
    """What does a driver serve, which builds have code for a GPU, what does a torch or a CUDA need?

    Several of them together narrow each other. Exit status: 0 answered; 1 they do not go together, or no build runs; 2
    unusable input; 3 not known.
    """
    from cudadoctor.cli import _output
    from cudadoctor.cli._asking import Asked, answer
    from cudadoctor.render.matrix import text
    from cudadoctor.render.matrix_json import query_json

    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    shown = answer(Asked(**asked), style)
    _output.write(query_json(shown) if form == "json" else text(shown), output)
    ctx.exit(shown.said.exit)
