"""An environment.yml for conda, mamba and micromamba."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.render.forms import heading
from cudadoctor.render.plan import FixView


def lines(view: FixView) -> Iterator[str]:
    yield from heading(view)
    recipe = view.recipe
    if recipe is None:
        return
    yield "name: torch"
    yield "channels:"
    yield "  - conda-forge"
    yield "dependencies:"
    yield f"  - python={recipe.python}"
    yield "  - pip"
    yield "  - pip:"
    option = "--find-links" if recipe.source.flat else "--extra-index-url" if recipe.extras else "--index-url"
    yield f"      - {option} {recipe.source.url}"
    for requirement in (*recipe.pins, *recipe.extras):
        yield f"      - {requirement}"
