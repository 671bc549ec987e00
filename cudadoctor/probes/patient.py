"""Which Python is the patient: the one whose packages the person means, not always the one that runs us.

In this order: what `--python` names; the active virtual environment; the active conda environment. Nobody chose
conda's base environment (it is active in every shell), our own interpreter or the python on PATH, so of these the
first that holds torch is taken, and the first at all where none does. A tool's own environment (pipx, uv tool, uvx) is
nobody's patient. Where cudadoctor is one file, the system's interpreter that runs it is only what was at hand: the
python on PATH goes before it. `.venv` in the working folder counts where it holds torch: people who use uv never
activate it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.torch_version import parse_torch_version
from cudadoctor.probes.paths import is_folder, names_in, paths
from cudadoctor.probes.python_layout import NOT_PYTHON, TOOL, Environment, python_of_prefix, read_environment
from cudadoctor.system.port import System

ASKED = "--python"
OWN = "own"
PATH = "PATH"
DOT_VENV = ".venv"
VIRTUAL_ENV = "VIRTUAL_ENV"
CONDA_PREFIX = "CONDA_PREFIX"
CONDA_EXE = "CONDA_EXE"

_SOURCES = {ASKED: ASKED, OWN: "cudadoctor's interpreter", PATH: "PATH (python)", DOT_VENV: "working folder"}


class Candidate(NamedTuple):
    """An environment that may be meant; `torch` is the version of the torch in it, absent without one."""

    chosen_by: str
    environment: Environment
    torch: Fact[str]


class Patient(NamedTuple):
    """`environment` is absent where there is no Python at all. `others` are the environments at hand, looked at only
    for their torch."""

    environment: Fact[Environment]
    chosen_by: Fact[str]
    others: tuple[Candidate, ...]


def patient(system: System) -> Patient:
    """For `system.once(patient)`. Raises ParseError for a `--python` that is none: a usage error."""
    return system.once(_patient)


def check_asked_python(system: System) -> None:
    """Raises ParseError, one sentence for the person, where `--python` names nothing that is a Python."""
    if system.asked_python is not None:
        system.once(_asked)


def torch_in(system: System, environment: Environment) -> Fact[str]:
    """Version of the torch in an environment, by its files alone; absent: none; unknown: a folder cannot be read."""
    p = system.once(paths)
    unreadable: Optional[Fact[str]] = None
    for folder in environment.site_packages:
        text = system.read_text(p.join(folder, "torch", "version.py"), 1 << 16)
        if text.is_known:
            try:
                return known(parse_torch_version(text.get()).version, text.source)
            except ParseError:
                pass
        names = names_in(system, folder)
        if names.is_unknown:
            unreadable = unknown(names.reason, folder)
        for name in names.get() if names.is_known else ():
            if name.startswith("torch-") and name.endswith((".dist-info", ".egg-info", ".egg")):
                return known(name[len("torch-") :].rpartition(".")[0].partition("-py")[0], folder)
            if name == "torch.egg-link" or name.startswith("__editable___torch_"):
                return known("source", folder)
    return unreadable or absent(environment.site_packages[0] if environment.site_packages else environment.prefix)


def _patient(system: System) -> Patient:
    p = system.once(paths)
    if system.asked_python is not None:
        chosen: Optional[Fact[Environment]] = system.once(_asked)
        chosen_by = ASKED
    else:
        chosen, chosen_by = _activated(system)
    at_hand, unreadable = _at_hand(system, is_decided=chosen is not None)
    if chosen is None:
        if not at_hand:
            nothing = unreadable or _nothing_at_hand(system)
            return Patient(nothing, nothing, ())
        without_torch = [one for one in at_hand if one.chosen_by != DOT_VENV] or at_hand
        best = next((one for one in at_hand if one.torch.is_known), without_torch[0])
        chosen, chosen_by = known(best.environment, best.environment.executable), best.chosen_by
    prefix = p.key(chosen.get().prefix) if chosen.is_known else ""
    others = tuple(one for one in at_hand if one.torch.is_known and p.key(one.environment.prefix) != prefix)
    return Patient(chosen, known(chosen_by, _SOURCES.get(chosen_by, f"${chosen_by}")), others)


def _nothing_at_hand(system: System) -> Fact[Any]:
    """Absent where all places were looked at; unknown where one of them could hold a Python and could not be asked."""
    for place in (
        system.variable(VIRTUAL_ENV),
        system.variable(CONDA_PREFIX),
        system.own_interpreter(),
        python_on_path(system),
    ):
        if place.is_unknown:
            return unknown(place.reason, place.source)
    return absent(_SOURCES[PATH])


# -- asked for --------------------------------------------------------------------------------------------------------


def _asked(system: System) -> Fact[Environment]:
    p = system.once(paths)
    asked = system.asked_python or ""
    expected = "--python takes the path of an interpreter or of its environment's folder, or a version such as 3.12"
    if "/" not in asked and not (p.is_windows and "\\" in asked) and not is_folder(system, asked):
        executable = _by_version(system, asked)
        if executable is None:
            raise ParseError(f"there is no Python {asked!r} on PATH; {expected}")
    else:
        executable = asked
        if not p.is_absolute(executable):
            here = system.working_folder()
            executable = p.join(here.get(), executable) if here.is_known else executable
        executable = p.plain(executable)
        if is_folder(system, executable):
            inside = python_of_prefix(system, executable)
            if inside is None:
                raise ParseError(f"there is no Python in the folder {asked!r}; {expected}")
            executable = inside
    found = read_environment(system, executable)
    if found.is_absent:
        raise ParseError(f"there is no file {asked!r}; {expected}")
    if found.is_unknown and found.reason.startswith(NOT_PYTHON):
        raise ParseError(f"{asked!r} is not what was expected: {found.reason}; {expected}")
    return found


def _by_version(system: System, asked: str) -> Optional[str]:
    """ "3.12", "3.12.4" and "3.13t" mean python3.12 and python3.13t on PATH; another word is a program's name."""
    name = asked
    if asked[:1].isdigit():
        numbers, suffix = (asked[:-1], "t") if asked.endswith("t") else (asked, "")
        name = "python" + ".".join(numbers.split(".")[:2]) + suffix
    found = system.which(name)
    if found.is_known:
        return _of_pyenv(system, found.get(), name) or found.get()
    if system.platform == "windows" and asked[:1].isdigit():
        # There python3.12.exe does not exist; the installer writes this key instead.
        key = f"Software\\Python\\PythonCore\\{name[len('python') :]}\\InstallPath"
        for root in ("HKCU", "HKLM"):
            path = system.registry_value(f"{root}\\{key}", "ExecutablePath")
            if path.is_known and isinstance(path.get(), str):
                return str(path.get())
    return None


def _of_pyenv(system: System, shim: str, name: str) -> Optional[str]:
    """pyenv's shim of a version that is installed and not selected refuses to start: the newest such is meant."""
    p = system.once(paths)
    if p.name(p.folder(shim)) != "shims" or read_environment(system, shim, may_ask=False).is_known:
        return None
    versions = p.join(p.folder(p.folder(shim)), "versions")
    installed = names_in(system, versions)
    minor = name[len("python") :]
    fitting = [one for one in installed.value or () if one.startswith(minor + ".") and one.replace(".", "").isdigit()]
    fitting.sort(key=lambda one: [int(part) for part in one.split(".")], reverse=True)
    for one in fitting:
        executable = p.join(versions, one, "bin", name)
        if not system.status(executable).is_absent:
            return executable
    return None


# -- active -----------------------------------------------------------------------------------------------------------


def _activated(system: System) -> tuple[Optional[Fact[Environment]], str]:
    venv = _from_variable(system, VIRTUAL_ENV)
    conda = None if _is_conda_base(system) else _from_variable(system, CONDA_PREFIX)
    if venv is not None and conda is not None:
        # Both are active: the later one stands in front on PATH.
        p = system.once(paths)
        on_path = _python_on_path(system)
        if on_path.is_known and conda.is_known and p.is_inside(on_path.get(), conda.get().prefix):
            venv = None
    if venv is not None:
        return venv, VIRTUAL_ENV
    return conda, CONDA_PREFIX


def _from_variable(system: System, name: str) -> Optional[Fact[Environment]]:
    """The environment that a variable names; None where it is not set or what it names is gone."""
    variable = system.variable(name)
    if not variable.is_known or not variable.get():
        return None
    prefix = variable.get()
    executable = python_of_prefix(system, prefix)
    if executable is None:
        return None
    found = read_environment(system, executable)
    if found.is_known and found.get().extends:
        # `uv run --with`: a throw-away environment over the project's own.
        below = python_of_prefix(system, found.get().extends or "")
        under = read_environment(system, below) if below else absent(prefix)
        if under.is_known:
            return under
    return None if found.is_absent else found


def _is_environment(system: System, own: Mapping[str, str]) -> bool:
    """Whether an interpreter is one of an environment that somebody made for something: a virtual or conda one."""
    p = system.once(paths)
    return own["prefix"] != own["base_prefix"] or is_folder(system, p.join(own["prefix"], "conda-meta"))


def _is_conda_base(system: System) -> bool:
    """Whether the active conda environment is the base one, which conda activates in every shell by default."""
    p = system.once(paths)
    prefix = system.variable(CONDA_PREFIX)
    if not prefix.is_known or not prefix.get():
        return False
    if system.variable("CONDA_DEFAULT_ENV").value == "base":
        return True
    return is_folder(system, p.join(prefix.get(), "condabin"))


# -- at hand ----------------------------------------------------------------------------------------------------------


def _python_on_path(system: System) -> Fact[str]:
    found = system.which("python")
    return system.which("python3") if found.is_absent else found


def python_on_path(system: System) -> Fact[str]:
    """`python`, else `python3`, as PATH finds it."""
    return system.once(_python_on_path)


def _at_hand(system: System, is_decided: bool) -> tuple[list[Candidate], Optional[Fact[Any]]]:
    """Environments that nobody activated by name, in the order in which they are considered; and why the first that
    could not be read could not be."""
    p = system.once(paths)
    found: list[Candidate] = []
    unreadable: list[Fact[Any]] = []
    seen: set[str] = set()

    def add(chosen_by: str, executable: Optional[str], may_ask: bool) -> bool:
        environment = read_environment(system, executable, may_ask) if executable else absent("")
        if environment.is_unknown and not environment.reason.startswith(NOT_PYTHON):
            unreadable.append(unknown(environment.reason, environment.source))
        if not environment.is_known or environment.get().kind == TOOL:
            return False
        real = system.real_path(environment.get().prefix)
        key = p.key(real.get() if real.is_known else environment.get().prefix)
        if key not in seen:
            seen.add(key)
            found.append(Candidate(chosen_by, environment.get(), torch_in(system, environment.get())))
        return True

    if _is_conda_base(system):
        add(CONDA_PREFIX, python_of_prefix(system, system.variable(CONDA_PREFIX).get()), may_ask=False)
    own = system.own_interpreter()
    runs_us = own.get()["executable"] if own.is_known else None
    at_hand_only = own.is_known and "one_file" in own.get() and not _is_environment(system, own.get())
    if not at_hand_only:
        add(OWN, runs_us, may_ask=False)
    may_ask = not is_decided and not any(one.torch.is_known for one in found)
    for name in ("python", "python3"):
        on_path = system.which(name)
        # On Windows `python3` is Microsoft's invitation to its store, an empty file.
        if on_path.is_known and add(PATH, on_path.get(), may_ask):
            break
    if at_hand_only:
        add(OWN, runs_us, may_ask=False)
    here = system.working_folder()
    if here.is_known:
        add(DOT_VENV, python_of_prefix(system, p.join(here.get(), ".venv")), may_ask=False)
    conda = system.variable(CONDA_EXE)
    if conda.is_known and conda.get():
        add(CONDA_EXE, python_of_prefix(system, p.folder(p.folder(conda.get()))), may_ask=False)
    return found, unreadable[0] if unreadable else None
