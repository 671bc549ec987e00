"""Lines of a Dockerfile."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.plan.shell import quote
from cudadoctor.render.forms import heading
from cudadoctor.render.plan import FixView


def lines(view: FixView) -> Iterator[str]:
    yield from heading(view)
    recipe = view.recipe
    if recipe is None:
        return
    words = ("python", "-m", "pip", "install", "--no-cache-dir")
    yield f"FROM python:{recipe.python}-slim"
    yield f"RUN {quote((*words, *recipe.pins, *recipe.source.for_pip))}"
    for extra in recipe.extras:
        yield f"RUN {quote((*words, extra))}"
