"""One command that takes an install back: what was there before, in its exact versions, and nothing of what came."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Optional

from cudadoctor.derive.wheel import torch_build
from cudadoctor.model import ABSENT, KNOWN, ParseError
from cudadoctor.parse.versions import split_local
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.index import Index
from cudadoctor.plan.plan import CONDA
from cudadoctor.plan.remedies.installer import install_argv, uninstall_argv
from cudadoctor.plan.shell import POSIX
from cudadoctor.resolve import COMPANIONS, Choice

# What a CUDA build brings on Linux beside the libraries themselves; the second since NVIDIA's packages carry no CUDA
# major in their names.
_BESIDE_CUDA = ("triton",)
_BESIDE_PLAIN_NAMES = ("cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-nvtx")


def installed(context: Context) -> dict[str, str]:
    """Versions of torch and its companions as they are there, by name."""
    found: dict[str, str] = {}
    for name in ("torch", *COMPANIONS):
        fact = context.facts[f"package.{name}.version"]
        value = context.facts.value("torch.version") if name == "torch" else None
        value = value if value is not None else (fact.value if fact.is_known else None)
        if isinstance(value, str):
            found[name] = value
    return found


def before(context: Context, choice: Choice) -> dict[str, str]:
    """What is there of all that `choice` replaces: torch, its companions and the packages that bring its CUDA."""
    found = {} if context.target.is_new else dict(installed(context))
    for name in cuda_packages(context, choice):
        version = context.facts.value(f"package.{name}.version")
        if isinstance(version, str) and not context.target.is_new:
            found[name] = version
    return found


def cuda_packages(context: Context, choice: Choice) -> tuple[str, ...]:
    """Packages that an install of `choice` may bring or change beside torch and its companions."""
    if choice.cuda is None or not choice.platform.startswith("linux"):
        return ()
    wheels = context.matrix.cuda_wheels(int(choice.cuda.partition(".")[0]))
    plain = any(not re.search(r"-cu[0-9]+\Z", name) for name in wheels)
    return (*_BESIDE_CUDA, *(_BESIDE_PLAIN_NAMES if plain else ()), *wheels)


def way_back(context: Context, choice: Choice, requirements: Sequence[str]) -> str:
    """The command, or words where there is none."""
    if context.target.is_new:
        return remove_folder(context, context.target.prefix or "")
    here = installed(context)
    try:
        return _commands(context, choice, requirements, here)
    except ParseError:
        return f"install the torch that was there before ({here['torch'][:40]})"


def _commands(context: Context, choice: Choice, requirements: Sequence[str], here: Mapping[str, str]) -> str:
    names = [requirement.partition("==")[0] for requirement in requirements]
    from_conda = context.facts.value("torch.origin") == CONDA
    stays = set(names) & set(here) if not from_conda else set()
    came = [name for name in names if name not in stays]
    # Nobody looked: then what else is there may have been there before.
    if context.facts["package.torch.version"].state in (KNOWN, ABSENT):
        for name in cuda_packages(context, choice):
            if not context.facts[f"package.{name}.version"].is_known:
                came.append(name)
    commands = []
    if came:
        commands.append(context.text(uninstall_argv(context, [validate.package(name) for name in came])))
    if from_conda and "torch" in here:
        commands.append(context.text(_conda_install(context, here)))
    elif "torch" in here:
        pins, index = _pins_back(context, {name: here[name] for name in here if name in names})
        pins += _cuda_pins_back(context, choice)
        commands.append(context.text(install_argv(context, pins, index)))
    return context.one_line(commands)


def packages_back(context: Context, names: Sequence[str]) -> str:
    """Installs the packages again as they are there now; empty where none of them is."""
    here = {**installed(context)}
    for name in names:
        version = context.facts.value(f"package.{name}.version")
        if name not in here and isinstance(version, str):
            here[name] = version
    versions = {name: here[name] for name in names if name in here}
    ours = {name: version for name, version in versions.items() if name in ("torch", *COMPANIONS)}
    try:
        commands = []
        if ours:
            pins, index = _pins_back(context, ours)
            commands.append(context.text(install_argv(context, pins, index)))
        rest = [
            f"{validate.package(name)}=={validate.version(version)}"
            for name, version in versions.items()
            if name not in ours
        ]
        if rest:
            commands.append(context.text(install_argv(context, rest)))
        return context.one_line(commands)
    except ParseError:
        return f"install {', '.join(f'{name} {version[:40]}' for name, version in versions.items())} again"


def conda_torch_back(context: Context) -> str:
    """conda installs its torch and the companions that it brought again."""
    here = installed(context)
    try:
        return context.text(_conda_install(context, here))
    except ParseError:
        return f"conda install the same packages again (pytorch {here['torch'][:40]})"


def _pins_back(context: Context, versions: Mapping[str, str]) -> tuple[list[str], Optional[Index]]:
    """What is told to the installer, and where it finds it. Raises `ParseError` where no index has that torch."""
    build = context.case.derived(torch_build)
    if build.row is None or not build.row.seen:
        raise ParseError("no index is known to have this build")
    # What came from PyPI carries no local version; its twin on the variant's index does, and only a pin with it is
    # sure to bring that build.
    release = context.matrix.torch_release(build.row.torch)
    untagged = release.companions_untagged if release is not None else ()
    pins = []
    for name, version in versions.items():
        public, own = split_local(version)
        local = own or (build.row.local if name not in untagged else None)
        pins.append(f"{validate.package(name)}=={validate.version(public + (f'+{local}' if local else ''))}")
    return pins, context.index(build.row.variant)


def _cuda_pins_back(context: Context, choice: Choice) -> list[str]:
    """CUDA packages that stay, in the versions that they have now, but for those that the former torch itself pins."""
    former = context.facts.value("torch.cuda")
    if not isinstance(former, str) or former.split(".")[0] != str(choice.cuda).split(".")[0]:
        return []  # the former build's index has none of these
    required = [str(text) for text in context.facts.value("package.torch.requires", [])]
    pins = []
    for name in cuda_packages(context, choice):
        version = context.facts.value(f"package.{name}.version")
        if isinstance(version, str) and not any(validate.starts_with_package(text, name) for text in required):
            pins.append(f"{validate.package(name)}=={validate.version(version)}")
    # A toolkit's list of packages pins these itself, wherever it is required.
    return [] if any(text.startswith("cuda-toolkit") for text in required) else pins


def _conda_install(context: Context, here: Mapping[str, str]) -> tuple[str, ...]:
    prefix = context.facts.value("python.prefix")
    where = ("-p", validate.path(prefix)) if isinstance(prefix, str) else ()
    channel = context.facts.value("package.torch.conda_channel")
    source = ("-c", validate.channel(channel)) if isinstance(channel, str) else ()
    specs = []
    for name, version in here.items():
        build = context.facts.value(f"package.{name}.conda_build")
        if name != "torch" and not isinstance(build, str):
            continue  # pip brought this one
        word = f"{'pytorch' if name == 'torch' else name}={validate.version(split_local(version).public)}"
        specs.append(word + (f"={validate.build(build)}" if isinstance(build, str) else ""))
    return ("conda", "install", "-y", *where, *source, *specs)


def remove_folder(context: Context, folder: str) -> str:
    """The command that deletes an environment which the plan made."""
    words = ("rm", "-r", folder) if context.shell == POSIX else ("Remove-Item", "-Recurse", "-Force", folder)
    return context.text(words)
