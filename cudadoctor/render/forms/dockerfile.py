"""A Dockerfile: a fitting base image, what the container toolkit has to be told, torch, and what was asked for beside
it."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.plan.recipe import COMPILED
from cudadoctor.plan.shell import quote
from cudadoctor.render.forms import heading
from cudadoctor.render.plan import FixView

_PLATFORMS = {"linux-aarch64": "--platform linux/arm64 ", "linux-x86_64": ""}


def lines(view: FixView) -> Iterator[str]:
    recipe = view.recipe
    if recipe is None:
        yield from heading(view)
        return
    if not recipe.choice.platform.startswith("linux"):
        yield from heading(view, "A container is Linux, also on Windows: plan for it with --os wsl.")
        if "linux-x86_64" not in recipe.platforms:
            return
    else:
        yield from heading(view)
    gpus = "--gpus all " if recipe.choice.cuda is not None else ""
    yield f"# docker build {_PLATFORMS.get(recipe.choice.platform, '')}-t torch ."
    yield f"# docker run --rm {gpus}torch python -c 'import torch; print(torch.cuda.is_available())'"
    if recipe.is_free_threaded:
        yield f"# There is no image with a free-threaded Python: this one has {recipe.python}."
    image = recipe.image
    yield f"FROM {image.reference if image is not None else f'python:{recipe.python}-slim'}"
    variables = [f"{name}={value}" for name, value in recipe.variables]
    if image is not None and image.image.requires_driver:
        # A driver of the same CUDA major runs it, whatever the minor; the image itself would refuse to start.
        variables.append("NVIDIA_DISABLE_REQUIRE=1")
    if image is not None and image.image.kind != "python":
        yield from _own_python(variables)
    if variables:
        yield "ENV " + " \\\n    ".join(variables)
    if recipe.extras and (image is None or image.image.kind == "python"):
        yield "# Triton compiles its kernels with gcc, at run time."
        yield "RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \\"
        yield "    && rm -rf /var/lib/apt/lists/*"
    words = ("python", "-m", "pip", "install", "--no-cache-dir")
    yield f"RUN {quote((*words, *recipe.pins, *recipe.source.for_pip))}"
    for extra in recipe.extras:
        yield f"RUN {quote((*words, *_flags(extra), extra))}"


def _own_python(variables: list[str]) -> Iterator[str]:
    """The Python of the image's distribution, in an environment of its own: the distribution owns the other."""
    yield "RUN apt-get update && apt-get install -y --no-install-recommends python3-dev python3-venv g++ \\"
    yield "    && rm -rf /var/lib/apt/lists/* && python3 -m venv /opt/venv"
    variables.append("PATH=/opt/venv/bin:$PATH")


def _flags(extra: str) -> tuple[str, ...]:
    """What is compiled for the torch that is there must be shown that torch."""
    return ("--no-build-isolation",) if extra.partition("==")[0].partition("[")[0] in COMPILED else ()
