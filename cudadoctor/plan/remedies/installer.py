"""The commands of pip, uv and conda's pip, with the person's own settings in mind.

What a person has set for good (pip.conf, PIP_*, uv.toml, UV_*) stays in force as far as it does not bring another build
or none at all. What would is set aside for this one command, and the step says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import cuda_tag_of_url
from cudadoctor.parse.versions import satisfies, split_local
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import SETTING, Draft, draft
from cudadoctor.plan.index import Index
from cudadoctor.plan.plan import CONDA, PIP, UV
from cudadoctor.plan.shell import POSIX

_NO_FILE = "/dev/null"
_NO_FILE_WINDOWS = "nul"


class Install(NamedTuple):
    """One install. `first`: steps before it, where the shell cannot say it in one command; `notes`: what a person must
    know; `is_careful`: it goes against what somebody has set, so a person has to run it."""

    argv: tuple[str, ...]
    first: tuple[Draft, ...] = ()
    notes: tuple[str, ...] = ()
    is_careful: bool = False


def installer(context: Context) -> str:
    """pip, uv or conda (pip inside a named conda environment): as asked, else what the environment was made with."""
    if context.options.installer is not None:
        return context.options.installer
    return UV if context.target.is_uv and not context.target.has_pip else PIP


def install(
    context: Context, requirements: Sequence[str], index: Optional[Index] = None, flags: Sequence[str] = ()
) -> Install:
    """The command that installs exactly these requirements into the target, from `index` (None: from the index that is
    configured). `flags` are pip's."""
    python = context.target.python
    found: tuple[str, ...]
    if installer(context) == UV:
        aside = _against_uv(context, index)
        words = {"--force-reinstall": "--reinstall", "--no-cache-dir": "--no-cache"}
        options = [words.get(flag, flag) for flag in flags]
        found = index.for_uv if index is not None else ()
        argv = (UV, "pip", "install", *uv_target(python), *options, *requirements, *found, *aside.flags)
    else:
        aside = _against_pip(context, requirements, index)
        found = index.for_pip if index is not None else ()
        argv = (*_pip(context), "install", *aside.flags, *flags, *requirements, *found)
        if index is not None and index.trusted_host:
            word = (
                "over plain http pip takes wheels only from a host that it is told to trust: anybody in between can "
                "alter them"
            )
            aside = aside._replace(notes=(*aside.notes, word))
    environment = aside.environment
    if not environment:
        return Install(argv, (), aside.notes, aside.is_careful)
    if context.shell == POSIX:
        return Install((*_env(environment), *argv), (), aside.notes, aside.is_careful)
    return Install(argv, (_set_aside(environment),), aside.notes, aside.is_careful)


def install_argv(
    context: Context, requirements: Sequence[str], index: Optional[Index] = None, flags: Sequence[str] = ()
) -> tuple[str, ...]:
    """The bare command of `install`."""
    return install(context, requirements, index, flags).argv


def uninstall_argv(context: Context, names: Sequence[str]) -> tuple[str, ...]:
    """Packages that are not there are passed over by both."""
    if installer(context) == UV:
        return (UV, "pip", "uninstall", *uv_target(context.target.python), *names)
    return (*_pip(context), "uninstall", "-y", *names)


def uv_target(python: str) -> tuple[str, ...]:
    """Which environment uv changes: a named interpreter's, else the active one."""
    return () if python == "python" else ("--python", python)


def _pip(context: Context) -> tuple[str, ...]:
    target = context.target
    if installer(context) == CONDA and target.kind == "conda" and target.prefix:
        return ("conda", "run", "-p", validate.path(target.prefix), "python", "-m", "pip")
    return (target.python, "-m", "pip")


# -- what would turn an install aside ---------------------------------------------------------------------------------


class _Aside(NamedTuple):
    """What a command needs to have its way. `environment`: variables and their values (None: not set)."""

    environment: tuple[tuple[str, Optional[str]], ...] = ()
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_careful: bool = False


def _against_pip(context: Context, requirements: Sequence[str], index: Optional[Index]) -> _Aside:
    facts = context.facts
    if context.options.installer == PIP and context.target.is_uv and not context.target.has_pip:
        return _Aside()  # the facts are about uv's settings then
    posix = context.shell == POSIX
    environment: dict[str, Optional[str]] = {}
    flags: list[str] = []
    notes: list[str] = []
    careful = False

    def without_files(*variables: str) -> None:
        """Variables out of force, and the files that would say the same."""
        environment.update(dict.fromkeys(variables))
        if any(not str(source).startswith("$") for source in facts.value("pip.configured_by", [])):
            environment["PIP_CONFIG_FILE"] = _NO_FILE if posix else _NO_FILE_WINDOWS
            notes.append(
                "pip's configuration files are left out for this one command: where they set a proxy or certificates, "
                "add --proxy or --cert"
            )

    if facts.value("pip.no_index", False):
        environment["PIP_NO_INDEX"] = "0"
        careful = True
        notes.append(
            f"pip is told to use no index ({facts['pip.no_index'].source}): where this machine really reaches none, "
            "run `pip download` with the same words on one that does, and install with --no-index --find-links FOLDER"
        )
    forbidding = _forbidding(facts.value("pip.constraint_pins", []), requirements)
    if forbidding:
        files = ", ".join(map(str, facts.value("pip.constraints", [])))
        notes.append(f"left out for this one command: the constraints in {files}, which want {', '.join(forbidding)}")
        careful = True
        if posix:
            environment["PIP_CONSTRAINT"] = _NO_FILE
        else:
            without_files("PIP_CONSTRAINT")
    elif facts.value("pip.constraints") and facts["pip.constraint_pins"].is_unknown:
        files = ", ".join(map(str, facts.value("pip.constraints", [])))
        notes.append(f"pip also keeps to the constraints in {files}, which could not be read")
    if facts.value("pip.require_virtualenv", False) and context.target.kind != "venv":
        environment["PIP_REQUIRE_VIRTUALENV"] = "0"
    if facts.value("pip.user", False) and context.target.kind in ("venv", "conda"):
        flags.append("--no-user")
    if facts["pip.target"].is_known:
        without_files("PIP_TARGET")
    untagged = [word for word in requirements if "+" not in word]
    others = [*facts.value("pip.extra_index_urls", []), *facts.value("pip.find_links", [])]
    if index is not None and untagged and others:
        # Without its build in its name another index's wheel of the same version is as good, or better.
        without_files("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")
        notes.append(
            f"not from {', '.join(map(str, others[:2]))} as well, which may hold another build of this version"
        )
    own = facts.value("pip.index_url")
    if index is None and isinstance(own, str) and cuda_tag_of_url(own) is not None:
        without_files("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
    notes.extend(_other_source(context, index))
    return _Aside(tuple(environment.items()), tuple(flags), tuple(dict.fromkeys(notes)), careful)


def _other_source(context: Context, index: Optional[Index]) -> list[str]:
    """Where packages come from on this machine as a rule, and PyTorch's own index may be slow or out of reach."""
    own = context.facts.value("pip.index_url")
    if index is None or context.options.mirror is not None or not isinstance(own, str) or not own.isprintable():
        return []
    host = own.partition("://")[2].partition("/")[0].lower()
    if not host or host == index.url.partition("://")[2].partition("/")[0].lower():
        return []
    tag = cuda_tag_of_url(own)
    if tag is not None:
        base = own.rstrip("/").rpartition("/")[0]
        return [f"this machine takes torch from {base} as a rule: to stay there, add --mirror {base}"]
    return [
        f"this machine takes packages from {own} as a rule: where PyTorch's index is slow or out of reach, add "
        "--mirror URL"
    ]


def _forbidding(pins: Sequence[str], requirements: Sequence[str]) -> list[str]:
    """The constraints that no version of `requirements` meets."""
    wanted = {word.partition("==")[0]: word.partition("==")[2] for word in requirements}
    found = []
    for pin in pins:
        name = re.split(r"[^a-z0-9-]", pin, maxsplit=1)[0]
        version = wanted.get(name)
        if version and not satisfies(split_local(version).public, pin[len(name) :].partition("+")[0]):
            found.append(pin[:60])
    return found


def _against_uv(context: Context, index: Optional[Index]) -> _Aside:
    facts = context.facts
    environment: dict[str, Optional[str]] = {}
    flags: list[str] = []
    notes: list[str] = []
    backend, newer = facts["uv.torch_backend"], facts["uv.exclude_newer"]
    if backend.is_known and index is not None:
        # With a backend uv takes torch from that backend's index, whatever index is named.
        variant = cuda_tag_of_url(index.url)
        if variant is not None and context.options.mirror is None:
            flags += ["--torch-backend", variant]
        else:
            _unset(context, "UV_TORCH_BACKEND", backend.source, environment, flags)
        notes.append(f"uv is told another torch backend ({backend.source})")
    if newer.is_known and index is not None:
        _unset(context, "UV_EXCLUDE_NEWER", newer.source, environment, flags)
        notes.append(
            f"uv is told to take nothing newer than {str(newer.value)[:30]} ({newer.source}): PyTorch's index gives no "
            "dates, so it would take nothing at all"
        )
    if context.target.is_uv and not context.target.has_pip:  # the facts about indexes are uv's then
        notes.extend(_other_source(context, index))
    return _Aside(tuple(environment.items()), tuple(dict.fromkeys(flags)), tuple(notes), newer.is_known)


def _unset(
    context: Context, variable: str, source: str, environment: dict[str, Optional[str]], flags: list[str]
) -> None:
    if source.startswith("$"):
        environment[variable] = None
    else:
        flags.append("--no-config")


def _env(environment: Sequence[tuple[str, Optional[str]]]) -> tuple[str, ...]:
    """`env -u GONE NAME=value`: options of env come first."""
    gone = [word for name, value in environment if value is None for word in ("-u", validate.variable(name))]
    return ("env", *gone, *(f"{validate.variable(name)}={value}" for name, value in environment if value is not None))


def _set_aside(environment: Sequence[tuple[str, Optional[str]]]) -> Draft:
    lines = [
        f"    $env:{validate.variable(name)} = '{value}'" if value is not None else f"    $env:{name} = $null"
        for name, value in environment
    ]
    return draft(
        SETTING - 15,
        "set-aside-settings",
        "Set pip's own settings aside in this shell",
        "setting",
        instructions="In the shell in which you install:\n" + "\n".join(lines),
    )
