"""`cudadoctor explain`: the page of a check or of a concept."""

from __future__ import annotations

from typing import Optional

import click

from cudadoctor.cli._options import output_option

# More names than these are no answer but a list.
_MOST_NAMED = 12


@click.command()
@click.argument("word", metavar="ID|NAME|CONCEPT")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the page.")
@output_option
def command(word: str, form: str, output: Optional[str]) -> None:
    """Explain a check (CD303, torch-needs-newer-driver) or a concept (driver-and-cuda)."""
    from cudadoctor.cli import _output
    from cudadoctor.cli._words import InputError, no_such
    from cudadoctor.explain import concept_names, concept_page
    from cudadoctor.render.pages import page_json, page_of, page_text
    from cudadoctor.rules import find_rule, rule_files, rule_module, rule_name, rule_of

    rule_id = find_rule(word)
    if rule_id is not None:
        page = page_of(rule_module(rule_id).__doc__ or "", rule_of(rule_id))
    elif word.lower().replace("_", "-") in concept_names():
        page = page_of(concept_page(word))
    else:
        names = [*rule_files(), *(rule_name(known) for known in rule_files()), *concept_names()]
        holding = [name for name in names if word.strip() and word.strip().lower().replace("_", "-") in name.lower()]
        if 0 < len(holding) <= _MOST_NAMED:
            raise InputError(f"there is no check or concept {word!r}; did you mean {' or '.join(holding)}?")
        listing = f"`cudadoctor rules` lists the checks, and the concepts are {', '.join(concept_names())}"
        raise InputError(no_such("check or concept", word, names, listing))
    style = _output.style(to_file=output not in (None, "-"))
    _output.write(page_json(page) if form == "json" else page_text(page, style), output)
