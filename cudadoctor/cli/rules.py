"""`cudadoctor rules`: every check that exists."""

from __future__ import annotations

from typing import Optional

import click

from cudadoctor.cli._options import output_option


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the list.")
@output_option
def command(form: str, output: Optional[str]) -> None:
    """List the checks: id, name, severity, what it looks for."""
    from cudadoctor.cli import _output
    from cudadoctor.render.pages import rules_json, rules_text
    from cudadoctor.rules import rule_files, rule_of

    rules = [rule_of(rule_id) for rule_id in rule_files()]
    style = _output.style(to_file=output not in (None, "-"))
    _output.write(rules_json(rules) if form == "json" else rules_text(rules, style), output)
