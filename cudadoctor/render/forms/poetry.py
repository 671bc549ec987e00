"""A project's pyproject.toml for Poetry: an explicit source, and packages that name it."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.render.forms import heading, minors, table_entry
from cudadoctor.render.plan import FixView


def lines(view: FixView) -> Iterator[str]:
    recipe = view.recipe
    if recipe is None:
        yield from heading(view)
        return
    yield from heading(view, "For a project of your own take over the dependencies and the source.")
    name = f"pytorch-{recipe.choice.variant}"
    yield "[tool.poetry]"
    yield "package-mode = false"
    yield ""
    yield "[tool.poetry.dependencies]"
    yield f'python = "{minors(recipe.python, recipe.python)}"'
    for pin in recipe.pins:
        package, _, version = pin.partition("==")
        yield f'{package} = {{ version = "=={version}", source = "{name}" }}'
    for extra in recipe.extras:
        yield table_entry(extra)
    yield ""
    yield "[[tool.poetry.source]]"
    yield f'name = "{name}"'
    yield f'url = "{recipe.source.url}"'
    yield 'priority = "explicit"'
