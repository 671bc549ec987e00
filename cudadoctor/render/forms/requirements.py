"""A requirements file, for `pip install -r` and `uv pip install -r`."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.render.forms import heading
from cudadoctor.render.plan import FixView


def lines(view: FixView) -> Iterator[str]:
    yield from heading(view)
    recipe = view.recipe
    if recipe is None:
        return
    if recipe.source.flat:
        yield f"--find-links {recipe.source.url}"
    elif recipe.extras and all("+" in pin for pin in recipe.pins):
        # The pins name their build, so that PyTorch's index is sure to give it even where PyPI is asked as well.
        yield f"--extra-index-url {recipe.source.url}"
    else:
        yield f"--index-url {recipe.source.url}"
    if recipe.source.trusted_host:
        yield f"--trusted-host {recipe.source.trusted_host}"
    yield from recipe.pins
    yield from recipe.extras
