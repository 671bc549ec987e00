"""Packages that bring a CUDA of their own (jax, onnxruntime, tensorflow), in the release that suits this machine."""

from __future__ import annotations

from collections.abc import Sequence

from cudadoctor.derive.driver import version as driver_version
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, CAREFUL, PACKAGES, SYSTEM, Draft, draft
from cudadoctor.plan.remedies.installer import install, uninstall_argv
from cudadoctor.plan.remedies.packages import uninstall_package
from cudadoctor.plan.remedies.python import preparations, where
from cudadoctor.plan.remedies.undo import packages_back
from cudadoctor.resolve import resolve


def install_framework(
    context: Context, package: str, version: str = "", extra: str = "", remove: Sequence[str] = (), instead: str = ""
) -> list[Draft]:
    """The release of `package` whose CUDA serves this machine, after `remove` has gone.

    `version` is the one that is there, kept where it will do; `extra` chooses a CUDA (cuda12); `instead` is installed
    where the driver is not known, or no release is known to suit.
    """
    name = validate.package(package)
    full = f"{name}[{validate.name(extra)}]" if extra else name
    texts = [f"{full}=={validate.version(version)}"] if version else []
    if context.case.derived(driver_version).is_known or not instead:
        texts.append(full)
    wanted = context.need()
    found = None
    for text in texts:
        answer = resolve(wanted._replace(partners=(text,)), context.matrix).frameworks
        found = next((item for item in answer if item.requirement is not None), None)
        if found is not None:
            break
    requirement = found.requirement if found is not None and found.requirement is not None else instead or full
    gone = [validate.package(one) for one in remove if context.facts[f"package.{one}.version"].is_known]
    steps = list(preparations(context))
    if gone and not context.target.is_new:
        steps += uninstall_package(context, gone)
    # What was removed beside it may have taken shared files along.
    flags = ["--force-reinstall", "--no-deps"] if name in gone and "[" not in requirement else []
    command = install(context, [validate.requirement(requirement)], flags=flags)
    pinned = requirement.partition("==")[2]
    notes = [*(found.reasons if found is not None else ()), *command.notes]
    return [
        *steps,
        *command.first,
        draft(
            PACKAGES + 1,
            f"install-{name}",
            f"Install {requirement}",
            "install",
            command.argv,
            needs=("network",),
            safety=CAREFUL,
            effect={f"package.{name}.version": pinned} if pinned else {},
            changes=f"puts {name} and what it requires into {where(context)}",
            undo=packages_back(context, [name]) or context.text(uninstall_argv(context, [name])),
            instructions="\n".join(notes),
        ),
    ]


def use_wsl(context: Context, requirement: str) -> list[Draft]:
    """A Linux inside Windows, where packages without GPU support on Windows itself have one."""
    wanted = validate.requirement(requirement)
    inside = f'python3 -m venv ~/gpu && ~/gpu/bin/python -m pip install "{wanted}"'
    return [
        draft(
            SYSTEM,
            "install-wsl",
            "Install Linux inside Windows (WSL)",
            "install",
            ("wsl", "--install", "-d", "Ubuntu"),
            needs=("admin", "network", "reboot"),
            safety=CAREFUL,
            changes="adds WSL and an Ubuntu beside Windows",
            undo="wsl --unregister Ubuntu",
            instructions="Windows' own NVIDIA driver serves it: install no driver inside.",
        ),
        draft(
            BY_HAND,
            "install-inside-wsl",
            f"Install {wanted} there",
            "install",
            needs=("network",),
            instructions=f"In the shell of WSL (wsl -d Ubuntu):\n    {inside}",
        ),
    ]
