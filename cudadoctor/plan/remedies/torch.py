"""The torch build that the resolver chooses, in the patient's environment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.matrix import numbers
from cudadoctor.parse.versions import split_local
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, CAREFUL, PACKAGES, REMOVE, SAFE, Draft, draft, listed
from cudadoctor.plan.index import ON_TORCHS_INDEX, Index
from cudadoctor.plan.plan import CONDA, UV
from cudadoctor.plan.recipe import COMPILED
from cudadoctor.plan.remedies import driver, room, undo
from cudadoctor.plan.remedies.by_gpu import commands_by_gpu
from cudadoctor.plan.remedies.conda import by_conda
from cudadoctor.plan.remedies.installer import install, installer, uninstall_argv
from cudadoctor.plan.remedies.packages import uninstall_package
from cudadoctor.plan.remedies.python import preparations, use_python, where
from cudadoctor.plan.remedies.separate import one_environment_each
from cudadoctor.resolve import COMPANIONS, Choice, Framework, Resolution
from cudadoctor.resolve.need import BY_DRIVER, BY_PYTHON


def install_torch(
    context: Context, torch: str = "", variant: str = "", keep: bool = True, driver_for: Optional[int] = None
) -> list[Draft]:
    """The build that the resolver chooses; where it has none, what would open one. `driver_for`: the driver is too old
    for the torch that is there, which was built with this CUDA major; a newer driver is the other way out."""
    resolution = context.resolved(torch, variant or None, keep)
    steps = framework_steps(context, resolution.frameworks)
    if resolution.choice is not None:
        return [*install_choice(context, resolution.choice), *_moves(context, resolution), *steps]
    return [*_without_choice(context, resolution, driver_for), *steps]


def install_wished(context: Context) -> list[Draft]:
    """What the person asked for, beside a torch that may stay as it is."""
    found = context.resolved()
    choice, installed = found.choice, context.present.installed
    if choice is None or installed is None or installed.broken or not _is_there(context, choice):
        return install_torch(context)
    return [*_partner_steps(context, choice), *framework_steps(context, found.frameworks)]


def _is_there(context: Context, choice: Choice) -> bool:
    """Whether torch and the companions that belong to it are in the environment, in this very build."""
    here = undo.installed(context)
    return here.get("torch") == choice.version and all(
        name in here and split_local(here[name]).public == split_local(version).public
        for name, version in choice.companions
    )


def install_choice(context: Context, choice: Choice) -> list[Draft]:
    """The steps that put `choice` into the target, whatever lies there now."""
    from_conda = by_conda(context, choice)
    if from_conda is not None:
        return from_conda
    space = room.room_for(context, choice)
    steps = [*room.make_room(context, space), *preparations(context)]
    installed = {} if context.target.is_new else undo.installed(context)
    steps.extend(make_way(context, choice, installed))
    flags = []
    if installed.get("torch") == choice.version and not any(step.step.kind == "install" for step in steps):
        # It is the right build and does not work: its files are to be laid down anew.
        flags.append("--force-reinstall")
    if space.cache_is_short:
        flags.append("--no-cache-dir")
    requirements = [checked(requirement) for requirement in choice.requirements]
    command = install(context, requirements, context.index(choice.variant), flags)
    before = installed.get("torch")
    changes = f"puts torch {choice.version} into {where(context)}"
    if before is not None:
        changes = f"replaces torch {before} by {choice.version} in {where(context)}"
    lines = list(choice.reasons)
    if choice.assumes:
        lines.append("taken for granted: " + "; ".join(choice.assumes))
    lines += [line for line in (room.note(space), *command.notes, _same_with_uv(context, choice)) if line]
    if choice.breaks:
        changes += "; this breaks: " + "; ".join(choice.breaks)
    steps.extend(command.first)
    steps.append(
        draft(
            PACKAGES,
            "install-torch",
            f"Install {listed(_words(choice))}",
            "install",
            command.argv,
            needs=room.needs(space),
            safety=CAREFUL if choice.breaks or command.is_careful else SAFE,
            effect=torch_effect(context, choice),
            changes=changes,
            undo=undo.way_back(context, choice, requirements),
            instructions="\n".join(lines),
            covers=requirements,
        )
    )
    return steps + _partner_steps(context, choice)


def make_way(context: Context, choice: Choice, installed: Mapping[str, str]) -> list[Draft]:
    """What has to go first: conda's torch, which pip cannot remove, and builds that a pin would leave in place."""
    if not installed:
        return []
    if context.facts.value("torch.origin") == CONDA and "torch" in installed:
        prefix = context.facts.value("python.prefix")
        names = ["pytorch", *(name for name in COMPANIONS if name in installed)]
        place = ["-p", validate.path(prefix)] if isinstance(prefix, str) else []
        return [
            draft(
                REMOVE,
                "remove-conda-torch",
                "Remove conda's torch, which pip cannot replace",
                "install",
                ["conda", "remove", "-y", *place, "--force", *names],
                safety=CAREFUL,
                changes=f"takes {', '.join(names)} out of the conda environment and nothing that depends on them",
                undo=undo.conda_torch_back(context),
                effect={"torch.origin": None},
            )
        ]
    chosen = {"torch": choice.torch, **dict(choice.companions)}
    stuck = [
        name
        for name in choice.replaces_by_name
        if name in installed
        and numbers(split_local(installed[name]).public) == numbers(split_local(chosen.get(name, "")).public)
    ]
    return uninstall_package(context, stuck) if stuck else []


def _partner_steps(context: Context, choice: Choice) -> list[Draft]:
    """Packages that were asked for. They find the torch that they want already there; some lie beside it on its index,
    the rest on PyPI."""
    steps = []
    for index in (context.index(choice.variant), None):
        wanted = [
            (name, version)
            for name, version in choice.partners
            if (name in ON_TORCHS_INDEX) == bool(index) and context.facts.value(f"package.{name}.version") != version
        ]
        if wanted:
            steps.extend(_partner_step(context, wanted, index))
    return steps


def _partner_step(context: Context, wanted: Sequence[tuple[str, str]], index: Optional[Index]) -> list[Draft]:
    requirements = [checked(f"{name}=={version}") for name, version in wanted]
    names = [name for name, _ in wanted]
    # Compiled for the torch that is there, which a build in isolation does not see.
    flags = ["--no-build-isolation"] if any(name in COMPILED for name in names) else []
    command = install(context, requirements, index, flags)
    return [
        *command.first,
        draft(
            PACKAGES + 1,
            "install-" + "-".join(names)[:60],
            f"Install {listed(f'{name} {version}' for name, version in wanted)}",
            "install",
            command.argv,
            needs=("network",),
            safety=CAREFUL,
            effect={f"package.{name}.version": version for name, version in wanted},
            changes=f"adds {listed(names)} and what {'they require' if len(names) > 1 else 'it requires'} to "
            f"{where(context)}",
            undo=context.text(uninstall_argv(context, names)),
            instructions="\n".join([*_about(context, names), *command.notes]),
        ),
    ]


def _about(context: Context, names: Sequence[str]) -> list[str]:
    """What is known of an install of these packages."""
    rows = [(name, context.matrix.framework(name)) for name in names]
    return [f"{name}: {row.note}" for name, row in rows if row is not None and row.note]


def _moves(context: Context, resolution: Resolution) -> list[Draft]:
    """What has to change beside torch: the release that goes with the chosen one."""
    steps: list[Draft] = []
    for move in resolution.moves:
        name = validate.package(move.package)
        if move.to is None:
            continue
        index = context.index(resolution.choice.variant) if resolution.choice and name in ON_TORCHS_INDEX else None
        flags = [*(["--no-build-isolation"] if name in COMPILED else [])]
        if move.to == move.have:
            flags.append("--force-reinstall")
        command = install(context, [checked(f"{name}=={move.to}")], index, flags)
        steps.extend(command.first)
        steps.append(
            draft(
                PACKAGES + 2,
                f"move-{name}",
                f"Install {name} {move.to} in place of {move.have}",
                "install",
                command.argv,
                needs=("network",),
                safety=CAREFUL,
                effect={f"package.{name}.version": move.to},
                changes=f"replaces {name} {move.have[:40]} in {where(context)}",
                undo=undo.packages_back(context, [name]),
                instructions="\n".join([move.reason, *command.notes]),
            )
        )
    return steps


def framework_steps(context: Context, frameworks: Sequence[Framework]) -> list[Draft]:
    """Packages that were asked for and are bound to CUDA, not to torch."""
    steps: list[Draft] = []
    for item in frameworks:
        if item.requirement is None:
            continue
        name = validate.package(item.name)
        if context.facts.value(f"package.{name}.version") == item.requirement.partition("==")[2]:
            continue
        requirement = validate.requirement(item.requirement)
        own = validate.package(re.split(r"[\[<>=!~]", requirement, maxsplit=1)[0])
        flags = ["--no-build-isolation"] if name in COMPILED else []
        command = install(context, [requirement], flags=flags)
        steps.extend(command.first)
        steps.append(
            draft(
                PACKAGES + 1,
                f"install-{name}",
                f"Install {item.requirement}",
                "install",
                command.argv,
                needs=("network",),
                safety=CAREFUL,
                changes=f"adds {name} and what it requires to {where(context)}",
                undo=context.text(uninstall_argv(context, [own])),
                instructions="\n".join([*item.reasons, *command.notes]),
            )
        )
    return steps


def _same_with_uv(context: Context, choice: Choice) -> str:
    """uv's own word for the index, where it means the same one."""
    if installer(context) != UV or context.options.mirror is not None or choice.local is None:
        return ""
    return f"the same with a uv that knows {choice.variant}: --torch-backend={choice.variant} in place of --index"


def checked(requirement: str) -> str:
    """A pinned requirement, fit for a command."""
    name, _, version = requirement.partition("==")
    return f"{validate.package(name)}=={validate.version(version)}"


def _words(choice: Choice) -> list[str]:
    return [f"torch {choice.version}", *(f"{name} {version}" for name, version in choice.companions)]


def torch_effect(context: Context, choice: Choice) -> dict[str, Any]:
    """The facts of the environment once `choice` is in it."""
    effect: dict[str, Any] = {
        "torch.version": choice.version,
        "torch.metadata_version": choice.version,
        "torch.cuda": choice.cuda,
        "torch.hip": None,
        "torch.origin": "pip",
        "torch.sass": ["sm_" + target for target in choice.sass],
        "torch.ptx": ["compute_" + target for target in choice.ptx],
        "torch.missing_libraries": [],
        "packages.duplicates": [],
        "packages.leftovers": [],
    }
    site = _site(context)
    copies = [] if context.target.is_new else context.facts.value("torch.copies", [])
    if copies or site:
        effect["torch.copies"] = copies[:1] or [f"{site}/torch"]
    companions = dict(choice.companions)
    for name, version in (("torch", choice.version), *companions.items()):
        effect[f"package.{name}.version"] = version
        effect[f"package.{name}.installer"] = "pip"
        effect[f"package.{name}.conda_build"] = None
        effect[f"package.{name}.conda_channel"] = None
        effect[f"package.{name}.requires"] = [] if name == "torch" else [f"torch=={choice.torch}"]
        if name != "torch":
            effect[f"package.{name}.built_for_cuda"] = choice.cuda
            effect[f"package.{name}.built_for_torch"] = None
    for name in COMPANIONS:
        if name not in companions and context.facts[f"package.{name}.version"].is_known:
            effect[f"package.{name}.version"] = None
    if choice.triton is not None and choice.cuda is not None and context.facts["package.triton.version"].is_known:
        effect["package.triton.version"] = choice.triton.lstrip("<>=!~ ").split(",")[0]
    return effect


def _site(context: Context) -> Optional[str]:
    """Where the packages lie; None for a machine that is only planned for."""
    if not context.target.is_new:
        folders = context.facts.value("python.site_packages", [])
        if folders:
            return str(folders[0])
    return f"{context.target.prefix}/lib/site-packages" if context.target.prefix else None


def _without_choice(context: Context, resolution: Resolution, driver_for: Optional[int] = None) -> list[Draft]:
    """No build serves this machine as it is: what would open one, else why there is none."""
    if resolution.undecided is not None:
        what = resolution.undecided
        gpus = context.need().gpus
        if gpus and all(gpu.capability is not None for gpu in gpus):
            text = f"{what[0].upper()}{what[1:]}."
            return [
                draft(BY_HAND, "no-torch-build", "Which torch serves this is not known", "manual", instructions=text)
            ]
        text = f"{what[0].upper()}{what[1:]}: name it, as in `cudadoctor fix --print --gpu NAME`."
        choices = [] if any(gpu.capability for gpu in gpus) else commands_by_gpu(context, context.need())
        if choices:
            text = "\n".join([f"{what[0].upper()}{what[1:]}, so choose:", *choices])
        title = "Say which GPU the build is for"
        if driver_for is not None:
            text = "\n".join([driver.newer_in_words(context, driver_for), "Or a torch that this driver serves.", text])
            title = "Update the driver, or take a torch that it serves"
        return [draft(BY_HAND, "name-the-gpu", title, "manual", instructions=text)]
    if resolution.split:
        return one_environment_each(context, resolution.split)
    for blocker in resolution.blocked_by:
        if blocker.by == BY_DRIVER:
            major = int((blocker.opens.cuda or "0").partition(".")[0])
            assumed = blocker.opens._replace(assumes=(blocker.change,))
            return [*driver.update_driver(context, minimum_cuda_major=major), *install_choice(context, assumed)]
        if blocker.by == BY_PYTHON and blocker.needed is not None:
            steps = use_python(context, blocker.needed)
            # Asked again for that Python: what is said of the build is said of it.
            opened = context.resolved().choice
            if opened is None or opened.version != blocker.opens.version:
                opened = blocker.opens._replace(python=blocker.needed)
            return [*steps, *install_choice(context, opened)]
    why = "; ".join(resolution.reasons) or "no torch build that is known serves this machine"
    opens = "".join(
        f"\n{b.change[0].upper()}{b.change[1:]} opens torch {b.opens.version}." for b in resolution.blocked_by
    )
    return [
        draft(
            BY_HAND,
            "no-torch-build",
            "No torch build serves this machine as it is",
            "manual",
            instructions=why + "." + opens,
        )
    ]
