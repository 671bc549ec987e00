"""A project's pyproject.toml for uv: `uv sync` installs it, `uv lock` resolves it."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.plan.recipe import Recipe
from cudadoctor.render.forms import heading, minors
from cudadoctor.render.plan import FixView


def lines(view: FixView) -> Iterator[str]:
    recipe = view.recipe
    if recipe is None:
        yield from heading(view)
        return
    yield from heading(view, "For a project of your own keep its name and version, and take over the rest.")
    if recipe.is_free_threaded:
        yield f"# uv sync --python {recipe.choice.python}"
    name = f"pytorch-{recipe.choice.variant}"
    marker = recipe.marker
    yield "[project]"
    yield 'name = "my-project"'
    yield 'version = "0.1.0"'
    yield f'requires-python = "{_pythons(recipe)}"'
    yield "dependencies = ["
    for pin in recipe.pins:
        yield f'  "{pin}; {marker}",' if marker else f'  "{pin}",'
    for pin in recipe.elsewhere if marker else ():
        yield f"  \"{pin}; sys_platform == 'darwin'\","
    for extra in recipe.extras:
        # Most have wheels for few systems, and want their own torch on every other.
        yield f"  \"{extra}; sys_platform == '{'win32' if recipe.system == 'windows' else recipe.system}'\","
    yield "]"
    yield ""
    yield "[tool.uv.sources]"
    for pin in recipe.pins:
        package = pin.partition("==")[0]
        where = f', marker = "{marker}"' if marker else ""
        yield f'{package} = {{ index = "{name}"{where} }}'
    yield ""
    yield "[[tool.uv.index]]"
    yield f'name = "{name}"'
    yield f'url = "{recipe.source.url}"'
    if recipe.source.flat:
        yield 'format = "flat"'
    yield "explicit = true"


def _pythons(recipe: Recipe) -> str:
    """The Pythons that the choice has wheels for, or the one that was asked for. What else was asked for may be for
    fewer: then it is one too."""
    if recipe.is_python_given or recipe.extras:
        return minors(recipe.python, recipe.python)
    plain = [python for python in recipe.choice.pythons if not python.endswith("t")]
    return minors(plain[0], plain[-1])
