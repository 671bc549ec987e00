"""`cudadoctor recipes`: ready pieces for Slurm, Kubernetes, MPI, Ray and ssh, to copy and to edit."""

from __future__ import annotations

from typing import Optional

import click

from cudadoctor.cli._options import output_option


@click.command()
@click.argument("name", required=False)
@output_option
@click.option("--force", is_flag=True, help="Replace FILE also where it was edited.")
def command(name: Optional[str], output: Optional[str], force: bool) -> None:
    """List the ready pieces for clusters, or print the one called NAME: scripts, manifests, policies."""
    from cudadoctor.cli import _output
    from cudadoctor.cli._words import InputError, no_such
    from cudadoctor.recipes import recipes

    known = recipes()
    if name is None:
        _output.write(_listing([(recipe.name, recipe.title) for recipe in known.values()]), output)
        return
    word = name.lower().replace("_", "-")
    by_word = {spelt.replace("_", "-"): recipe for recipe in known.values() for spelt in (recipe.name, recipe.file)}
    recipe = by_word.get(word)
    if recipe is None:
        inside = [one for one in known if word and word in one.replace("_", "-").split("/")]
        if inside:
            raise InputError(f"there is no recipe {name!r}; did you mean {' or '.join(inside)}?")
        raise InputError(no_such("recipe", name, list(known), "`cudadoctor recipes` lists them"))
    if output not in (None, "-") and not force and _is_edited(str(output), recipe.text):
        raise InputError(f"{output!r} is there already, and another text; --force replaces it")
    _output.write(recipe.text, output)
    if recipe.is_script and output not in (None, "-"):
        _make_executable(str(output))


def _listing(rows: list[tuple[str, str]]) -> str:
    from textwrap import wrap

    width = max((len(name) for name, _ in rows), default=0) + 2
    lines = []
    for name, title in rows:
        first, *more = wrap(title, 80 - width) or [""]
        lines += [f"{name:<{width}}{first}".rstrip(), *(" " * width + line for line in more)]
    return "\n".join([*lines, "", "`cudadoctor recipes NAME` prints one, `-o FILE` writes it to a file.", ""])


def _is_edited(path: str, text: str) -> bool:
    """Whether a file is there that holds something else: a recipe is made to be edited, and the edits are dear."""
    import os

    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            had = file.read(len(text.encode()) + 1)
    except OSError:
        return False  # writing says what is the matter
    return had not in (b"", text.encode())


def _make_executable(path: str) -> None:
    """Whoever may read the file may run it. What is no file of its own (a pipe, a device) stays as it is."""
    import os
    import stat

    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode):
        os.chmod(path, stat.S_IMODE(mode) | (mode & 0o444) >> 2)
