"""`cudadoctor facts`: what is known about this machine, without a verdict."""

from __future__ import annotations

from typing import Any, Optional

import click

from cudadoctor.cli._input import Machine, read_facts
from cudadoctor.cli._options import machine_options, output_option


@click.command()
@click.option("--format", "form", type=click.Choice(["json", "text"]), default="json", help="How to print the facts.")
@click.option("--record", metavar="DIR", help="Keep what the machine answers in DIR, for --replay.")
@machine_options
@output_option
def command(form: str, record: Optional[str], output: Optional[str], **machine: Any) -> None:
    """Print what is known about the machine, with sources. User names, serials and tokens are left out."""
    from cudadoctor.cli import _output
    from cudadoctor.cli._private import private_facts
    from cudadoctor.render.facts import facts_json, facts_text

    chosen = Machine(**machine)
    facts = read_facts(chosen, record)
    if chosen.is_live:
        facts = private_facts(facts)
    if record is not None and output is None and is_terminal():
        # Who records wants the recording: a thousand lines of facts would bury what to do with it.
        _output.write(_recorded(record))
        return
    style = _output.style(to_file=output not in (None, "-"))
    _output.write(facts_json(facts) if form == "json" else facts_text(facts, style), output)


def is_terminal() -> bool:
    import sys

    return sys.stdout is not None and sys.stdout.isatty()


def _recorded(folder: str) -> str:
    import os

    from cudadoctor.cli._program import program
    from cudadoctor.plan.shell import POSIX, POWERSHELL, quote
    from cudadoctor.render.style import clean

    again = quote(("--replay", folder), POWERSHELL if os.name == "nt" else POSIX)
    return (
        f"recorded this machine in {clean(folder)}, without names, serials and tokens\n"
        f"diagnose it anywhere: {program()} check {clean(again)}\n"
    )
