"""`cudadoctor fix`: the ordered steps that mend this machine, or the torch that suits another one."""

from __future__ import annotations

from typing import Any, Optional

import click

from cudadoctor.cli._options import machine_options, output_option, text_options


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Only print the plan, also on a terminal.")
@click.option("--apply", "unasked", is_flag=True, help="Run the safe steps without asking.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["shell", "json", "requirements", "uv", "conda", "dockerfile", "poetry", "pixi"]),
    default="shell",
    help="How to print the plan.",
)
@click.option("--installer", type=click.Choice(["pip", "uv", "conda"]), help="What installs [as the environment does].")
@click.option("--gpu", "gpus", multiple=True, metavar="NAME|CC", help="Plan for a machine with this GPU (or none).")
@click.option("--driver", metavar="VER", help="Plan for this driver.")
@click.option("--os", "system", type=click.Choice(["linux", "windows", "wsl"]), help="Plan for this system.")
@click.option("--arch", type=click.Choice(["x86_64", "aarch64"]), help="Plan for this processor architecture.")
@click.option("--glibc", metavar="VER", help="Plan for a system with this glibc.")
@click.option("--torch", metavar="SPEC", help="Install this torch, for example 2.7.*.")
@click.option("--with", "packages", multiple=True, metavar="PACKAGE", help="Install this too: torchaudio, vllm, ...")
@click.option("--mirror", metavar="URL", help="Take PyTorch's index from here: URL/cu126/torch/, or with {variant}.")
@click.option(
    "--mirror-layout",
    type=click.Choice(["index", "flat"]),
    default="index",
    help="How the mirror lies: as the original, or (flat) all wheels of a variant on one page.",
)
@click.option("--online", is_flag=True, help="Ask the index whether exactly these wheels are there.")
@machine_options
@output_option
@text_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    only_print: bool,
    unasked: bool,
    form: str,
    output: Optional[str],
    color: str,
    verbose: bool,
    **rest: Any,
) -> None:
    """Print what mends this machine; on a terminal, ask before each safe step.

    With --gpu, --driver, --os, --arch or --glibc it prints the torch that suits that machine. Exit status: 0 nothing to
    do, done, or a torch that suits the described machine as it is; 1 something to do (first), or a step failed; 2
    unusable input or a bug; 3 undecided.
    """
    from cudadoctor.cli import _acting, _fixing, _output
    from cudadoctor.cli._input import Machine
    from cudadoctor.cli._planning import Wish
    from cudadoctor.cli._words import InputError

    machine = Machine(**{name: rest.pop(name) for name in Machine._fields})
    wish = Wish(python=machine.python, **rest)
    if unasked and only_print:
        raise InputError("--print only prints, and --apply runs steps: use either")
    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    if wish.describes_a_machine:
        if machine._replace(python=None) != Machine(timeout=machine.timeout):
            raise InputError(
                "--gpu and its kind describe a machine that nobody looked at: leave --replay and its kind out"
            )
        view = _fixing.planned(wish, style)
    else:
        view = _fixing.examined(machine, wish, style)
    if unasked and not _acting.may_act(machine, wish):
        raise InputError("--apply changes this machine, and the plan is for another one")
    _fixing.show(form, view, output)
    acts = unasked or (not only_print and form == "shell" and output is None and _acting.is_terminal())
    if acts and _acting.may_act(machine, wish):
        ctx.exit(_acting.act(view, machine, unasked))
    ctx.exit(view.exit)
