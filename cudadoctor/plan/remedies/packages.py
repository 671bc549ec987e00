"""Packages of the patient's environment: the torch build, its companions, what is to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.derive.wheel import CPU, MISSING, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.parse.versions import split_local
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, CAREFUL, PACKAGES, REMOVE, SAFE, Draft, draft, listed
from cudadoctor.plan.plan import CONDA, PIP, UV
from cudadoctor.plan.remedies import driver
from cudadoctor.plan.remedies.python import install_pip, make_venv, use_python
from cudadoctor.resolve import COMPANIONS, Choice, Resolution

BY_DRIVER = "driver"
BY_PYTHON = "python"


# -- commands ------------------------------------------------------------


def installer(context: Context) -> str:
    """pip, uv or conda (pip inside a named conda environment): as asked, else what the environment was made with."""
    if context.options.installer is not None:
        return context.options.installer
    return UV if context.target.is_uv and not context.target.has_pip else PIP


def install_argv(
    context: Context, requirements: Sequence[str], index_url: Optional[str] = None, flags: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command that installs exactly these requirements into the target. `flags` are pip's."""
    how = installer(context)
    python = context.target.python
    if how == UV:
        words = {"--force-reinstall": "--reinstall"}
        # Not --index-url: an UV_DEFAULT_INDEX in the environment would win over it.
        index = ("--default-index", index_url) if index_url else ()
        return (UV, "pip", "install", *uv_target(python), *(words.get(f, f) for f in flags), *requirements, *index)
    index = ("--index-url", index_url) if index_url else ()
    if how == CONDA and context.target.kind == "conda" and context.target.prefix:
        prefix = validate.path(context.target.prefix)
        return ("conda", "run", "-p", prefix, "python", "-m", "pip", "install", *flags, *requirements, *index)
    return (python, "-m", "pip", "install", *flags, *requirements, *index)


def uv_target(python: str) -> tuple[str, ...]:
    """Which environment uv changes: a named interpreter's, else the active one."""
    return () if python == "python" else ("--python", python)


def uninstall_argv(context: Context, names: Sequence[str]) -> tuple[str, ...]:
    if installer(context) == UV:
        return (UV, "pip", "uninstall", *uv_target(context.target.python), *names)
    return (context.target.python, "-m", "pip", "uninstall", "-y", *names)


def preparations(context: Context) -> list[Draft]:
    """What has to be there before a package can be installed: an environment that may be changed, and pip in it."""
    if context.target.is_new and "use-python" not in context.kinds:
        steps = make_venv(context)
        return [step.with_why(why) for step in steps] if (why := context.target.why_new) else steps
    if context.target.has_pip is False and installer(context) != UV and not context.target.is_new:
        return install_pip(context)
    return []


# -- torch ------------------------------------------------------------


def install_torch(context: Context, torch: str = "", variant: str = "", keep: bool = True) -> list[Draft]:
    """The build that the resolver chooses; where it has none, what would open one."""
    resolution = context.resolved(torch, variant or None, keep)
    if resolution.choice is not None:
        return install_choice(context, resolution.choice)
    return _without_choice(context, resolution)


def install_choice(context: Context, choice: Choice) -> list[Draft]:
    """The steps that put `choice` into the target, whatever lies there now."""
    steps = preparations(context)
    installed = {} if context.target.is_new else _installed(context)
    steps.extend(_make_way(context, choice, installed))
    flags = []
    if installed.get("torch") == choice.version and not steps:
        # It is the right build and does not work: its files are to be laid down anew.
        flags.append("--force-reinstall")
    requirements = [_checked(requirement) for requirement in choice.requirements]
    argv = install_argv(context, requirements, context.index_url(choice.variant), flags)
    title = f"Install {listed(_words(choice))}"
    before = installed.get("torch")
    changes = f"puts torch {choice.version} into {_where(context)}"
    if before is not None:
        changes = f"replaces torch {before} by {choice.version} in {_where(context)}"
    lines = list(choice.reasons)
    if choice.assumes:
        lines.append("taken for granted: " + "; ".join(choice.assumes))
    if choice.breaks:
        changes += "; this breaks: " + "; ".join(choice.breaks)
    steps.append(
        draft(
            PACKAGES,
            "install-torch",
            title,
            "install",
            argv,
            needs=("network",),
            safety=CAREFUL if choice.breaks else SAFE,
            effect=torch_effect(context, choice),
            changes=changes,
            undo=_way_back(context, installed, requirements),
            instructions="\n".join(lines),
            covers=requirements,
        )
    )
    return steps + _partner_steps(context, choice)


def _partner_steps(context: Context, choice: Choice) -> list[Draft]:
    """Packages that were asked for and come from PyPI; they find the torch that they want already there."""
    if not choice.partners:
        return []
    requirements = [_checked(f"{name}=={version}") for name, version in choice.partners]
    names = [name for name, _ in choice.partners]
    return [
        draft(
            PACKAGES + 1,
            "install-" + "-".join(names)[:60],
            f"Install {listed(f'{name} {version}' for name, version in choice.partners)}",
            "install",
            install_argv(context, requirements),
            needs=("network",),
            safety=CAREFUL,
            effect={f"package.{name}.version": version for name, version in choice.partners},
            changes=f"adds {', '.join(names)} and what they require to {_where(context)}",
            undo=context.text(uninstall_argv(context, names)),
        )
    ]


def _checked(requirement: str) -> str:
    name, _, version = requirement.partition("==")
    return f"{validate.package(name)}=={validate.version(version)}"


def _words(choice: Choice) -> list[str]:
    return [f"torch {choice.version}", *(f"{name} {version}" for name, version in choice.companions)]


def _where(context: Context) -> str:
    name = context.facts.value("python.environment_name")
    if context.target.is_new or not isinstance(name, str) or not name.isprintable():
        return context.target.prefix if context.target.is_new and context.target.prefix else "the environment"
    return f"the environment {name[:60]}"


def _installed(context: Context) -> dict[str, str]:
    """Versions of torch and its companions as they are there, by name; only those fit for a command."""
    found: dict[str, str] = {}
    for name in ("torch", *COMPANIONS):
        fact = context.facts[f"package.{name}.version"]
        value = context.facts.value("torch.version") if name == "torch" else None
        value = value if value is not None else (fact.value if fact.is_known else None)
        if isinstance(value, str):
            found[name] = value
    return found


def _make_way(context: Context, choice: Choice, installed: Mapping[str, str]) -> list[Draft]:
    """What has to go first: conda's torch, which pip cannot remove, and builds that a pin would leave in place."""
    if not installed:
        return []
    if context.facts.value("torch.origin") == CONDA and "torch" in installed:
        prefix = context.facts.value("python.prefix")
        names = ["pytorch", *(name for name in COMPANIONS if name in installed)]
        where = ["-p", validate.path(prefix)] if isinstance(prefix, str) else []
        return [
            draft(
                REMOVE,
                "remove-conda-torch",
                "Remove conda's torch, which pip cannot replace",
                "install",
                ["conda", "remove", "-y", *where, "--force", *names],
                safety=CAREFUL,
                changes=f"takes {', '.join(names)} out of the conda environment and nothing that depends on them",
                undo=f"conda install the same packages again ({', '.join(f'{n} {v}' for n, v in installed.items())})",
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


def _way_back(context: Context, installed: Mapping[str, str], requirements: Sequence[str]) -> str:
    names = [requirement.partition("==")[0] for requirement in requirements]
    if context.target.is_new:
        return f"delete the folder {context.target.prefix}"
    before = {name: version for name, version in installed.items() if name in names}
    if "torch" not in before:
        return context.text(uninstall_argv(context, names))
    if context.facts.value("torch.origin") == CONDA:
        return "conda install the packages that were there before"
    build = context.case.derived(torch_build)
    if build.row is None or not build.row.seen:
        return f"install the torch that was there before ({before['torch'][:40]})"
    # What came from PyPI carries no local version; its twin on the index does, and only a pin with it brings it.
    local = build.row.local
    back = []
    for name, version in before.items():
        public = split_local(version).public
        back.append(_checked(f"{name}=={public}" + (f"+{local}" if local else "")))
    return context.text(install_argv(context, back, context.index_url(build.row.variant)))


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
    copies = context.facts.value("torch.copies", [])
    effect["torch.copies"] = copies[:1] if copies and not context.target.is_new else [f"{_site(context)}/torch"]
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


def _site(context: Context) -> str:
    if not context.target.is_new:
        folders = context.facts.value("python.site_packages", [])
        if folders:
            return str(folders[0])
    return f"{context.target.prefix}/lib/site-packages"


def _without_choice(context: Context, resolution: Resolution) -> list[Draft]:
    """No build serves this machine as it is: what would open one, else why there is none."""
    if resolution.undecided is not None:
        what = resolution.undecided
        text = f"{what[0].upper()}{what[1:]}: name it, as in `cudadoctor fix --print --gpu NAME`."
        return [draft(BY_HAND, "name-the-gpu", "Say which GPU the build is for", "manual", instructions=text)]
    if resolution.split:
        lines = [
            f"{' and '.join(dict.fromkeys(gpu.label for gpu in part.gpus))}: torch {part.choice.version}, run with "
            f"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={_devices(part.gpus)}:\n    "
            + context.text(
                (
                    "python",
                    "-m",
                    "pip",
                    "install",
                    *part.choice.requirements,
                    "--index-url",
                    context.index_url(part.choice.variant),
                )
            )
            for part in resolution.split
        ]
        what = resolution.reasons[0]
        text = f"{what[0].upper()}{what[1:]}. Make an environment for each:\n" + "\n".join(lines)
        if any(gpu.number is None for part in resolution.split for gpu in part.gpus):
            text += "\nN is the card's number in nvidia-smi -L."
        return [
            draft(
                BY_HAND,
                "one-environment-each",
                "Make one environment for each kind of GPU",
                "manual",
                instructions=text,
            )
        ]
    for blocker in resolution.blocked_by:
        if blocker.by == BY_DRIVER:
            major = int((blocker.opens.cuda or "0").partition(".")[0])
            assumed = blocker.opens._replace(assumes=(blocker.change,))
            return [*driver.update_driver(context, minimum_cuda_major=major), *install_choice(context, assumed)]
        if blocker.by == BY_PYTHON and blocker.needed is not None:
            return [
                *use_python(context, blocker.needed),
                *install_choice(context, blocker.opens._replace(python=blocker.needed)),
            ]
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


def _devices(gpus: Sequence[Any]) -> str:
    return ",".join(str(gpu.number) if gpu.number is not None else "N" for gpu in gpus)


# -- companions and single packages ------------------------------------------------------------


def reinstall_companions(context: Context, packages: Sequence[str] = ()) -> list[Draft]:
    """torchvision and torchaudio in the versions and builds that belong to the torch that is there. Where torch itself
    is to be replaced, they come with it."""
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
    installed = _installed(context)
    steps = preparations(context)
    steps.extend(
        _make_way(
            context,
            alone._replace(replaces_by_name=tuple(n for n in choice.replaces_by_name if n in wanted)),
            installed,
        )
    )
    requirements = [_checked(f"{name}=={version}") for name, version in wanted.items()]
    flags = ["--force-reinstall", "--no-deps"] if all(installed.get(n) == v for n, v in wanted.items()) else []
    effect = {key: value for key, value in torch_effect(context, alone).items() if key.split(".")[1] in wanted}
    effect["packages.duplicates"] = []
    before = ", ".join(f"{name} {installed[name]}" for name in wanted if name in installed)
    steps.append(
        draft(
            PACKAGES,
            "install-companions",
            f"Install {listed(f'{n} {v}' for n, v in wanted.items())}, which belong to torch {choice.version}",
            "install",
            install_argv(context, requirements, context.index_url(choice.variant), flags),
            needs=("network",),
            safety=SAFE,
            effect=effect,
            changes=f"replaces {before} in {_where(context)}" if before else f"adds them to {_where(context)}",
            undo=_way_back(context, installed, requirements)
            if "torch" in installed
            else context.text(uninstall_argv(context, list(wanted))),
            covers=requirements,
        )
    )
    return steps


def uninstall_package(context: Context, packages: Sequence[str]) -> list[Draft]:
    """Packages that are to go."""
    names = [validate.package(name) for name in packages]
    effect: dict[str, Any] = {}
    for name in names:
        for key in context.facts.under(f"package.{name}"):
            effect[f"package.{name}.{key}"] = None
        effect[f"package.{name}.version"] = None
    before = {name: context.facts.value(f"package.{name}.version") for name in names}
    known = [f"{name}=={version}" for name, version in before.items() if isinstance(version, str)]
    return [
        draft(
            REMOVE,
            "uninstall-" + "-".join(names)[:60],
            f"Uninstall {', '.join(names)}",
            "install",
            uninstall_argv(context, names),
            safety=SAFE,
            effect=effect,
            changes=f"takes {', '.join(names)} out of {_where(context)}",
            undo=f"install {', '.join(known)} again" if known else "install them again",
        )
    ]


def reinstall_package(
    context: Context, pins: Mapping[str, str], index: str = "", with_dependencies: bool = False
) -> list[Draft]:
    """Packages in exactly these versions, laid down anew."""
    requirements = [f"{validate.package(name)}=={validate.version(version)}" for name, version in pins.items()]
    url = None
    if index == "torch":
        build = context.case.derived(torch_build)
        url = context.index_url(build.variant) if build.variant else None
    flags = ["--force-reinstall", *([] if with_dependencies else ["--no-deps"])]
    names = list(pins)
    before = [
        f"{name}=={context.facts.value(f'package.{name}.version')}"
        for name in names
        if context.facts[f"package.{name}.version"].is_known
    ]
    title = ", ".join(f"{name} {version}" for name, version in list(pins.items())[:3])
    if len(names) > 3:
        title += f" and {len(names) - 3} more"
    effect: dict[str, Any] = {f"package.{name}.version": version for name, version in pins.items()}
    if context.facts.value("torch.missing_libraries"):
        effect["torch.missing_libraries"] = []
    return [
        *preparations(context),
        draft(
            PACKAGES,
            "reinstall-" + "-".join(names)[:60],
            f"Install {title}",
            "install",
            install_argv(context, requirements, url, flags),
            needs=("network",),
            safety=SAFE,
            effect=effect,
            changes=f"lays {len(names)} package{'s' if len(names) > 1 else ''} down anew in {_where(context)}",
            undo=f"install {', '.join(before)} again" if before else context.text(uninstall_argv(context, names)),
            covers=requirements,
        ),
    ]
