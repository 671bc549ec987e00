"""torch from conda-forge, where a person asked for conda."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.matrix.installers import CondaBuild
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import CAREFUL, PACKAGES, REMOVE, Draft, draft, listed
from cudadoctor.plan.plan import CONDA
from cudadoctor.plan.recipe import after_driver, conda_build
from cudadoctor.plan.remedies.installer import uninstall_argv
from cudadoctor.plan.remedies.python import where
from cudadoctor.plan.remedies.undo import installed, packages_back
from cudadoctor.resolve import COMPANIONS, Choice


def by_conda(context: Context, choice: Choice) -> Optional[list[Draft]]:
    """The steps of an install from conda-forge; None where it has no build that surely serves this machine, or where
    what else was asked for comes from PyPI."""
    if context.options.installer != CONDA or choice.partners or context.target.is_new:
        return None
    machine = after_driver(context.resolved(), context.need(), context.matrix)
    build = conda_build(choice, machine, context.matrix)
    if build is None:
        return None
    here = installed(context)
    steps = []
    if here and context.facts.value("torch.origin") != CONDA:
        steps.append(_pip_torch_away(context, list(here)))
    prefix = context.target.prefix
    place = ("-p", validate.path(prefix)) if context.target.kind == CONDA and prefix else ()
    names = [name for name, _ in choice.companions]
    word = f"torch {build.torch} for CUDA {build.cuda}"
    command = ("conda", "install", *place, "-c", "conda-forge", "pytorch-gpu", build.spec, *names)
    steps.append(
        draft(
            PACKAGES,
            "install-torch",
            f"Install conda-forge's {listed([word, *names])}",
            "install",
            command,
            needs=("network",),
            safety=CAREFUL,
            effect=_effect(context, build, names),
            changes=f"puts {word} into {where(context)}",
            undo=_way_back(context, place, names),
            instructions="\n".join(_notes(context, choice, build, machine.driver)),
        )
    )
    return steps


def _pip_torch_away(context: Context, names: list[str]) -> Draft:
    """Two torches in one environment hide each other."""
    return draft(
        REMOVE,
        "uninstall-torch",
        f"Uninstall pip's {', '.join(names)}, which would hide conda's",
        "install",
        uninstall_argv(context, [validate.package(name) for name in names]),
        changes=f"takes {', '.join(names)} out of {where(context)}",
        undo=packages_back(context, names),
        effect={f"package.{name}.version": None for name in names},
    )


def _notes(context: Context, choice: Choice, build: CondaBuild, driver: Optional[str]) -> list[str]:
    lines = []
    if build.torch != choice.torch:
        lines.append(f"the newest of conda-forge that surely serves this machine; pip has torch {choice.version}")
    branch = context.matrix.branch_of(driver or "", context.numbering)
    shown = branch.cuda if branch is not None and not branch.guessed else build.cuda
    lines += [
        "on a machine without that driver, such as a login node, tell conda what the driver will show:",
        f"    export CONDA_OVERRIDE_CUDA={shown}",
    ]
    return lines


def _way_back(context: Context, place: tuple[str, ...], names: list[str]) -> str:
    here = installed(context)
    if here and context.facts.value("torch.origin") == CONDA:
        return context.text(("conda", "install", *place, "--revision", "N")) + " (N: the last but one of --list)"
    away = context.text(("conda", "remove", "-y", *place, "pytorch-gpu", "pytorch", *names))
    back = packages_back(context, list(here)) if here else ""
    return context.one_line([away, *([back] if back else [])])


def _effect(context: Context, build: CondaBuild, names: list[str]) -> dict[str, Any]:
    effect: dict[str, Any] = {
        "torch.version": build.torch,
        "torch.metadata_version": build.torch,
        "torch.cuda": build.cuda,
        "torch.origin": CONDA,
        "torch.sass": ["sm_" + target for target in build.sass],
        "torch.ptx": ["compute_" + target for target in build.ptx],
        "torch.missing_libraries": [],
        "packages.duplicates": [],
        "packages.leftovers": [],
        "package.torch.version": build.torch,
        "package.torch.conda_build": f"{build.build}_",
        "package.torch.conda_channel": "conda-forge",
        "package.torch.installer": CONDA,
    }
    for name in COMPANIONS:
        if name not in names and context.facts[f"package.{name}.version"].is_known:
            effect[f"package.{name}.version"] = None
    return effect


def remove_conda_package(context: Context, package: str) -> list[Draft]:
    """A package of conda's that lies beside the same of pip's. conda asks before it takes what needs it along."""
    name = validate.package(package)
    prefix = context.facts.value("python.prefix")
    place = ("-p", validate.path(prefix)) if isinstance(prefix, str) else ()
    had = context.facts.value(f"package.{name}.version")
    back = f"{name}={validate.version(had)}" if isinstance(had, str) else name
    return [
        draft(
            REMOVE,
            f"remove-conda-{name}",
            f"Remove conda's {name}, beside which pip's libraries lie",
            "install",
            ("conda", "remove", *place, name),
            safety=CAREFUL,
            effect={f"package.{name}.{key}": None for key in ("version", "conda_build", "installer")},
            changes=f"takes {name} out of the conda environment, and what needs it: conda shows the list and asks",
            undo=context.text(("conda", "install", *place, back)),
            instructions="torch's own packages bring all that it needs. Where something else needs conda's, give each "
            "an environment of its own.",
        )
    ]
