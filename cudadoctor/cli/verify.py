"""`cudadoctor verify`: proves that CUDA works, by using it."""

from __future__ import annotations

from typing import Any

import click

from cudadoctor.cli._options import a_number, output_option, text_options


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the results.")
@click.option("--python", metavar="PATH|VERSION", help="Use this interpreter's environment.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="Only this GPU (counted as by nvidia-smi).",
)
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this check (and what it rests on).")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=86400.0),
    callback=a_number,
    metavar="SECONDS",
    help="Deadline for each GPU, and for what needs all [120].",
)
@click.option("--fail-on", type=click.Choice(["error", "warning"]), default="error", help="What exit 1 means [error].")
@output_option
@text_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Prove that CUDA works: run it in the environment's own interpreter, a process for each GPU.

    Checks: versions, allocation, matmul, bandwidth, memory-bandwidth, peer, nccl, cudnn, compile. `cudadoctor explain
    verify` tells what each proves.

    Exit status: 0 all passed, 1 a check failed, crashed or hung, 2 unusable input or a bug, 3 nothing was proven.
    """
    from cudadoctor.cli._proving import verify

    ctx.exit(verify(**options))
