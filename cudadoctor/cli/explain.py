"""`cudadoctor explain`: the page of a check or of a concept, or what an error message means."""

from __future__ import annotations

from typing import Optional

import click

from cudadoctor.cli._options import output_option

# More names than these are no answer but a list.
_MOST_NAMED = 12


@click.command()
@click.argument("word", metavar='ID|NAME|CONCEPT|"ERROR TEXT"|-')
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the page.")
@output_option
def command(word: str, form: str, output: Optional[str]) -> None:
    """Explain a check (CD303, torch-needs-newer-driver), a concept (driver-and-cuda), or an error message: in quotes,
    or from standard input (-)."""
    from cudadoctor.cli import _output
    from cudadoctor.cli._explaining import explained
    from cudadoctor.cli._words import InputError, no_such
    from cudadoctor.explain import concept_names, concept_page
    from cudadoctor.render.meanings import meanings_json, meanings_text
    from cudadoctor.render.pages import page_json, page_of, page_text
    from cudadoctor.rules import find_rule, rule_files, rule_module, rule_name, rule_of

    style = _output.style(to_file=output not in (None, "-"))
    rule_id = find_rule(word)
    if rule_id is not None:
        page = page_of(rule_module(rule_id).__doc__ or "", rule_of(rule_id))
    elif word.lower().replace("_", "-") in concept_names():
        page = page_of(concept_page(word))
    else:
        meanings = explained(word)
        if meanings:
            _output.write(meanings_json(meanings) if form == "json" else meanings_text(meanings, style), output)
            return
        names = [*rule_files(), *(rule_name(known) for known in rule_files()), *concept_names()]
        holding = [name for name in names if word.strip() and word.strip().lower().replace("_", "-") in name.lower()]
        if 0 < len(holding) <= _MOST_NAMED:
            raise InputError(f"there is no check or concept {word!r}; did you mean {' or '.join(holding)}?")
        if " " in word.strip() or word == "-":
            raise InputError(
                "no error message that cudadoctor knows is in this text; `cudadoctor check --from FILE` reads a whole "
                "report, and `cudadoctor rules` lists the checks"
            )
        listing = f"`cudadoctor rules` lists the checks, and the concepts are {', '.join(concept_names())}"
        raise InputError(no_such("check or concept", word, names, listing))
    _output.write(page_json(page) if form == "json" else page_text(page, style), output)
