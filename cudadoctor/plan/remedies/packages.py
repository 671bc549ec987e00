"""Single packages of the patient's environment: what is to go, and what is to be laid down anew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cudadoctor.derive.wheel import torch_build
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import CAREFUL, PACKAGES, REMOVE, SAFE, Draft, draft
from cudadoctor.plan.remedies.installer import install, uninstall_argv
from cudadoctor.plan.remedies.python import preparations, where
from cudadoctor.plan.remedies.undo import packages_back


def uninstall_package(context: Context, packages: Sequence[str]) -> list[Draft]:
    """Packages that are to go."""
    names = [validate.package(name) for name in packages]
    effect: dict[str, Any] = {}
    for name in names:
        for key in context.facts.under(f"package.{name}"):
            effect[f"package.{name}.{key}"] = None
        effect[f"package.{name}.version"] = None
    return [
        draft(
            REMOVE,
            "uninstall-" + "-".join(names)[:60],
            f"Uninstall {', '.join(names)}",
            "install",
            uninstall_argv(context, names),
            safety=SAFE,
            effect=effect,
            changes=f"takes {', '.join(names)} out of {where(context)}",
            undo=packages_back(context, names) or "install them again",
        )
    ]


def reinstall_package(
    context: Context, pins: Mapping[str, str], index: str = "", with_dependencies: bool = False
) -> list[Draft]:
    """Packages in exactly these versions, laid down anew."""
    requirements = [f"{validate.package(name)}=={validate.version(version)}" for name, version in pins.items()]
    source = None
    if index == "torch":
        build = context.case.derived(torch_build)
        source = context.index(build.variant) if build.variant else None
    flags = ["--force-reinstall", *([] if with_dependencies else ["--no-deps"])]
    names = list(pins)
    command = install(context, requirements, source, flags)
    title = ", ".join(f"{name} {version}" for name, version in list(pins.items())[:3])
    if len(names) > 3:
        title += f" and {len(names) - 3} more"
    effect: dict[str, Any] = {f"package.{name}.version": version for name, version in pins.items()}
    if context.facts.value("torch.missing_libraries"):
        effect["torch.missing_libraries"] = []
    return [
        *preparations(context),
        *command.first,
        draft(
            PACKAGES,
            "reinstall-" + "-".join(names)[:60],
            f"Install {title}",
            "install",
            command.argv,
            needs=("network",),
            safety=CAREFUL if command.is_careful else SAFE,
            effect=effect,
            changes=f"lays {len(names)} package{'s' if len(names) > 1 else ''} down anew in {where(context)}",
            undo=packages_back(context, names) or context.text(uninstall_argv(context, names)),
            instructions="\n".join(command.notes),
            covers=requirements,
        ),
    ]


def install_libraries(context: Context, requirements: Sequence[str], title: str = "", text: str = "") -> list[Draft]:
    """Packages that bring CUDA libraries (or a program together with its own), beside what is there."""
    wanted = [validate.requirement(word) for word in requirements]
    names = [re.split(r"[\[<>=!~]", word)[0] for word in wanted]
    command = install(context, wanted, None, ["--upgrade"] if any("[" in word for word in wanted) else [])
    return [
        *preparations(context),
        *command.first,
        draft(
            PACKAGES,
            "install-" + "-".join(names)[:60],
            title or f"Install {', '.join(names)}",
            "install",
            command.argv,
            needs=("network",),
            safety=CAREFUL,
            changes=f"installs {', '.join(names)} into {where(context)}",
            undo=packages_back(context, names) or context.text(uninstall_argv(context, names)),
            instructions="\n".join([text, *command.notes]).strip(),
            covers=wanted,
        ),
    ]
