"""A pixi.toml: Python from conda-forge, torch from PyTorch's index."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.render.forms import heading, table_entry
from cudadoctor.render.plan import FixView

_PLATFORMS = {
    "linux-x86_64": "linux-64",
    "linux-aarch64": "linux-aarch64",
    "windows-x86_64": "win-64",
    "macos-arm64": "osx-arm64",
    "macos-x86_64": "osx-64",
}


def lines(view: FixView) -> Iterator[str]:
    yield from heading(view)
    recipe = view.recipe
    if recipe is None:
        return
    choice = recipe.choice
    yield "[workspace]"
    yield 'name = "my-project"'
    yield 'channels = ["conda-forge"]'
    yield f'platforms = ["{_PLATFORMS.get(choice.platform, "linux-64")}"]'
    yield ""
    yield "[dependencies]"
    yield f'python = "{recipe.python}.*"'
    yield ""
    yield "[pypi-dependencies]"
    for pin in recipe.pins:
        package, _, version = pin.partition("==")
        where = "" if recipe.source.flat else f', index = "{recipe.source.url}"'
        yield f'{package} = {{ version = "=={version}"{where} }}'
    for extra in recipe.extras:
        yield table_entry(extra)
    if recipe.source.flat:
        yield ""
        yield "[pypi-options]"
        yield f'find-links = [{{ url = "{recipe.source.url}" }}]'
