"""torchvision and torchaudio in the versions and builds that belong to the torch that is there."""

from __future__ import annotations

from collections.abc import Sequence

from cudadoctor.derive.wheel import CPU, MISSING, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import CAREFUL, PACKAGES, SAFE, Draft, draft, listed
from cudadoctor.plan.remedies import undo
from cudadoctor.plan.remedies.installer import install, uninstall_argv
from cudadoctor.plan.remedies.python import preparations, where
from cudadoctor.plan.remedies.torch import checked, install_torch, make_way, torch_effect


def reinstall_companions(context: Context, packages: Sequence[str] = ()) -> list[Draft]:
    """The companions that belong to torch. Where torch itself is to be replaced, they come with it."""
    resolution = context.resolved()
    choice = resolution.choice
    build = context.case.derived(torch_build)
    stays = (
        choice is not None
        and build.kind not in (MISSING,)
        and build.release is not None
        and numbers(build.release) == numbers(choice.torch)
        and build.variant == choice.variant
    )
    if choice is None and build.kind == CPU and build.release is not None:
        # No GPU to choose for: the CPU build stays, and its companions become CPU builds.
        choice = context.resolved(f"{build.release}+cpu").choice
        stays = choice is not None
    if choice is None or not stays:
        return install_torch(context)
    wanted = {name: version for name, version in choice.companions if not packages or name in packages}
    if not wanted:
        return install_torch(context)
    alone = choice._replace(companions=tuple(wanted.items()))
    installed = undo.installed(context)
    steps = preparations(context)
    by_name = tuple(name for name in choice.replaces_by_name if name in wanted)
    steps.extend(make_way(context, alone._replace(replaces_by_name=by_name), installed))
    requirements = [checked(f"{name}=={version}") for name, version in wanted.items()]
    flags = ["--force-reinstall", "--no-deps"] if all(installed.get(n) == v for n, v in wanted.items()) else []
    effect = {key: value for key, value in torch_effect(context, alone).items() if key.split(".")[1] in wanted}
    effect["packages.duplicates"] = []
    before = ", ".join(f"{name} {installed[name]}" for name in wanted if name in installed)
    command = install(context, requirements, context.index(choice.variant), flags)
    steps.extend(command.first)
    steps.append(
        draft(
            PACKAGES,
            "install-companions",
            f"Install {listed(f'{n} {v}' for n, v in wanted.items())}, which belong to torch {choice.version}",
            "install",
            command.argv,
            needs=("network",),
            safety=CAREFUL if command.is_careful else SAFE,
            effect=effect,
            changes=f"replaces {before} in {where(context)}" if before else f"adds them to {where(context)}",
            undo=undo.packages_back(context, list(wanted)) or context.text(uninstall_argv(context, list(wanted))),
            instructions="\n".join(command.notes),
            covers=requirements,
        )
    )
    return steps
