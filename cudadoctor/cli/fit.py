"""`cudadoctor fit`: whether a model fits into memory, and the cheapest change that makes it fit."""

from __future__ import annotations

from typing import Any, Optional

import click

from cudadoctor.cli._fit_options import AS_TYPED, model_options, run_options, target_options
from cudadoctor.cli._options import machine_options, output_option, text_options


@click.command()
@click.argument("model", required=False, metavar="MODEL|FILE|FOLDER|SIZE")
@model_options
@run_options
@target_options
@click.option("--explain", is_flag=True, help="Show the formula, the numbers and the source of each term.")
@click.option(
    "--fail-on",
    type=click.Choice(["does-not-fit", "tight"]),
    help="Exit 1 where it does not fit (or is tight), 3 where that is not known [never].",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the answer.")
@machine_options
@output_option
@text_options
@click.pass_context
def command(ctx: click.Context, /, model: Optional[str], **options: Any) -> None:
    """Tell whether a model fits into the memory of a GPU, and the cheapest changes that make it fit.

    The model is a name (llama-3.1-8b, Qwen/Qwen2.5-7B-Instruct), a config.json, a .safetensors or .gguf file, a folder
    of them (only their headers are read), or a size (7b). It runs on this machine's GPUs and what is free there now,
    or on those of --gpu or --vram. Nothing is downloaded.

    \b
      cudadoctor fit llama-3.1-8b --context 32k --gpu "RTX 4090"
      cudadoctor fit qwen2.5-7b --train qlora --batch 2 --seq 2048 --vram 16
      cudadoctor fit llama-3.1-70b --gpu H100x8 --engine vllm
      cudadoctor fit gemma3:12b --gpu "RTX 3060" --os windows
      cudadoctor fit model-Q4_K_M.gguf

    Exit status: 0 whatever the answer is (see --fail-on), 2 unusable input or a bug.
    """
    from cudadoctor.cli._fitting import fit

    ctx.exit(fit(model, options, _again(ctx)))


# What does not change the question.
_ABOUT_THE_OUTPUT = ("explain", "form", "output", "color", "verbose", "fail_on")


def _again(ctx: click.Context) -> list[str]:
    """The words that ask the same question again."""
    from click.core import ParameterSource

    words: list[str] = []
    for option in ctx.command.params:
        name = option.name or ""
        if name in _ABOUT_THE_OUTPUT or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.meta.get(f"{AS_TYPED}{name}", ctx.params[name])
        if isinstance(option, click.Argument):
            words.append(str(value))
        elif isinstance(option, click.Option) and option.is_flag:
            words.append(option.opts[0])
        else:
            for each in value if isinstance(value, (list, tuple)) else (value,):
                words += [option.opts[0], str(each)]
    return words
