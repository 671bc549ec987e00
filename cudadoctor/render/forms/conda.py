"""An environment.yml for conda, mamba and micromamba: conda-forge's own build, else pip's inside the environment."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.plan.recipe import Recipe
from cudadoctor.render.forms import heading
from cudadoctor.render.plan import FixView

FILE = "environment.yml"


def lines(view: FixView) -> Iterator[str]:
    recipe = view.recipe
    if recipe is None:
        yield from heading(view)
        return
    beside = bool(recipe.extras or recipe.choice.partners)
    if recipe.choice.cuda is None and not beside:
        # Its newest is seldom pip's newest; who asked for a release gets that one.
        asked = f"={recipe.choice.torch}" if recipe.need.torch else ""
        yield from heading(_named(view, f"conda-forge's CPU build of torch{asked.replace('=', ' ')}"))
        yield from _environment(recipe, [f"pytorch-cpu{asked}", *_companions(recipe)])
    elif recipe.conda is not None and not beside:
        build = recipe.conda
        yield from heading(_named(view, f"conda-forge's torch {build.torch}"), _which(recipe))
        yield from _how(recipe)
        yield from _environment(
            recipe, [f"pytorch-gpu={build.torch}", f"pytorch={build.torch}={build.build}*", *_companions(recipe)]
        )
    else:
        yield from heading(view, _why_pip(recipe))
        yield from _environment(recipe, ["pip"])
        yield "  - pip:"
        option = "--find-links" if recipe.source.flat else "--extra-index-url" if recipe.extras else "--index-url"
        yield f"      - {option} {recipe.source.url}"
        if recipe.source.trusted_host:
            yield f"      - --trusted-host {recipe.source.trusted_host}"
        for requirement in (*recipe.pins, *recipe.extras):
            yield f"      - {requirement}"


def _named(view: FixView, words: str) -> FixView:
    """The verdict with the torch that this file installs, where it names pip's."""
    assert view.recipe is not None
    return view._replace(verdict=view.verdict.replace(f"torch {view.recipe.choice.version}", words))


def _environment(recipe: Recipe, packages: list[str]) -> Iterator[str]:
    yield "name: torch"
    yield "channels:"
    yield "  - conda-forge"
    yield "  - nodefaults"
    yield "dependencies:"
    yield f"  - python={recipe.python}"
    for package in packages:
        yield f"  - {package}"


def _companions(recipe: Recipe) -> list[str]:
    """The solver finds the versions that belong to that torch."""
    return [name for name, _ in recipe.choice.companions]


def _which(recipe: Recipe) -> str:
    build = recipe.conda
    assert build is not None
    same = build.torch == recipe.choice.torch
    newest = "" if same else f"; that is the newest of conda-forge which serves it, pip has {recipe.choice.version}"
    return f"From conda-forge: torch {build.torch}, built for CUDA {build.cuda}{newest}."


def _how(recipe: Recipe) -> Iterator[str]:
    """How it is made with the driver at hand and without it. Commands stay in one piece."""
    command = f"conda env create -f {FILE}"
    yield f"#   {command}"
    override = recipe.override or (recipe.conda.cuda if recipe.conda is not None else "")
    yield "# On a machine without that driver, such as a login node:"
    yield f"#   CONDA_OVERRIDE_CUDA={override} {command}"


def _why_pip(recipe: Recipe) -> str:
    if recipe.extras or recipe.choice.partners:
        return "From pip, as what was asked for beside torch is built for pip's torch."
    return "From pip: no CUDA build of conda-forge is known that surely serves this machine."
