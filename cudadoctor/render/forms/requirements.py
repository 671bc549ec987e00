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
    elif recipe.extras:
        # What lies on PyPI alone must be found, too. Pins that name their build come from PyTorch's index even so.
        untold = [pin.partition("==")[0] for pin in recipe.pins if "+" not in pin]
        if untold:
            yield f"# PyPI may have another build of {', '.join(untold)}: to be sure of this one,"
            yield f"# install it first with --index-url {recipe.source.url}"
        yield f"--extra-index-url {recipe.source.url}"
    else:
        yield f"--index-url {recipe.source.url}"
    if recipe.source.trusted_host:
        yield f"--trusted-host {recipe.source.trusted_host}"
    yield from recipe.pins
    yield from recipe.extras
