"""The patient's interpreter: which one, of what kind, and what would install into it. See `patient` for the choice."""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.parse.elf import read_elf
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.pe import read_pe
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import home, paths
from cudadoctor.probes.patient import Patient, patient, python_on_path
from cudadoctor.probes.python_layout import CONDA, TOOL, VENV, Environment, read_environment
from cudadoctor.probes.site_packages import has_package
from cudadoctor.probes.triton_toolchain import triton_toolchain
from cudadoctor.system.port import System

_ABOUT_ENVIRONMENT = (
    "python.executable",
    "python.prefix",
    "python.version",
    "python.implementation",
    "python.bits",
    "python.free_threaded",
    "python.arch",
    "python.environment",
    "python.environment_name",
    "python.site_packages",
    "python.externally_managed",
    "python.pip",
    "python.uv_environment",
    "python.headers",
    "toolkit.c_compiler",
)
_ABOUT_CHOICE = ("python.chosen_by", "python.others_with_torch", "python.pip_on_path", "python.python_on_path")

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "i386": "x86", "i586": "x86", "i686": "x86"}

# Windows' pip.exe is a launcher with its interpreter's path near its end.
_LAUNCHER_TAIL = 4096


def look(system: System) -> dict[str, Fact[Any]]:
    chosen = patient(system)
    facts: dict[str, Fact[Any]] = {
        "python.chosen_by": chosen.chosen_by,
        "python.python_on_path": python_on_path(system),
        "python.pip_on_path": _pip_on_path(system, chosen),
        "python.others_with_torch": known(
            [{"executable": one.environment.executable, "torch": one.torch.get()} for one in chosen.others],
            "torch/version.py of the environments at hand",
        ),
    }
    if not chosen.environment.is_known:
        facts.update((name, chosen.environment) for name in _ABOUT_ENVIRONMENT)
        return facts
    environment = chosen.environment.get()
    source = chosen.environment.source
    facts["python.executable"] = known(environment.executable, source)
    facts["python.prefix"] = known(environment.prefix, source)
    facts["python.version"] = environment.version
    facts["python.implementation"] = environment.implementation
    facts["python.free_threaded"] = environment.free_threaded
    facts["python.environment"] = known(environment.kind, source)
    facts["python.environment_name"] = known(_name(system, environment), source)
    facts["python.site_packages"] = known(list(environment.site_packages), source)
    facts["python.externally_managed"] = _externally_managed(system, environment)
    facts["python.pip"] = has_package(system, "pip")
    facts["python.uv_environment"] = known(environment.made_by_uv, source)
    facts["python.bits"], facts["python.arch"] = _bits_and_arch(system, environment)
    facts.update(triton_toolchain(system, environment))
    return facts


def _name(system: System, environment: Environment) -> str:
    """The conda environment's name, or the folder, with `~` for the user's own."""
    p = system.once(paths)
    if environment.kind == CONDA:
        if not system.status(p.join(environment.prefix, "condabin")).is_absent:
            return "base"
        return p.name(environment.prefix)
    own = home(system)
    if own and p.key(own) != p.key(p.folder(own)) and p.is_inside(environment.prefix, own):
        return "~" + environment.prefix[len(own.rstrip("/\\")) :]
    return environment.prefix


def _externally_managed(system: System, environment: Environment) -> Fact[bool]:
    # pip asks for the marker only outside virtual environments.
    if environment.kind in (VENV, TOOL):
        return known(False, environment.prefix)
    if environment.standard_library is None:
        return unknown("its standard library was not found", environment.prefix)
    marker = system.once(paths).join(environment.standard_library, "EXTERNALLY-MANAGED")
    status = system.status(marker)
    if status.is_unknown:
        return unknown(status.reason, marker)
    return known(status.is_known, marker)


def _bits_and_arch(system: System, environment: Environment) -> tuple[Fact[int], Fact[str]]:
    """Of the interpreter's own file: a header tells the width of its pointers and the processor it is for."""
    path = environment.executable
    opened = system.open_binary(path)
    if not opened.is_known:
        reason = opened.reason or "the interpreter's file is gone"
        return unknown(reason, path), unknown(reason, path)
    try:
        if opened.get().read_at(0, 4) in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):  # Mach-O, one and many machines
            return known(64, path), unknown("it is a Mach-O file", path)
        if system.once(paths).is_windows:
            pe = read_pe(opened.get())
            bits, machine = pe.bits, pe.machine
        else:
            elf = read_elf(opened.get())
            bits, machine = elf.bits, elf.machine
    except (ParseError, OSError) as error:
        return unknown(str(error), path), unknown(str(error), path)
    of_system = system.machine()
    if not of_system.is_known:
        return known(bits, path), Fact(of_system.state, None, of_system.source, of_system.reason)
    plain = _MACHINES.get(of_system.get().lower(), of_system.get().lower())
    return known(bits, path), absent(path) if machine == plain else known(machine, path)


# -- the pip on PATH --------------------------------------------------------------------------------------------------


def _pip_on_path(system: System, chosen: Patient) -> Fact[dict[str, Any]]:
    """The pip that a person would type and whose packages it installs, by the line with which it begins."""
    found = system.which("pip")
    if found.is_absent:
        found = system.which("pip3")
    if not found.is_known:
        return Fact(found.state, None, found.source, found.reason)
    interpreter = _interpreter_of_script(system, found.get())
    if interpreter is not None and chosen.environment.is_known:
        interpreter = _same_spelling(system, interpreter, chosen.environment.get())
    return known({"path": found.get(), "interpreter": interpreter}, found.source)


def _interpreter_of_script(system: System, script: str) -> Optional[str]:
    p = system.once(paths)
    if p.is_windows:
        return _interpreter_of_launcher(system, script)
    text = system.read_text(script, 1024)
    lines = text.get().splitlines() if text.is_known else []
    if not lines or not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if p.name(p.folder(script)) == "shims":
        return _behind_shim(system, script)
    if words and p.name(words[0]) == "env":
        names = [word for word in words[1:] if not word.startswith("-")]
        on_path = system.which(names[0]) if names else absent("")
        return on_path.get() if on_path.is_known else None
    if words and p.name(words[0]) in ("sh", "bash") and len(lines) > 1:
        # The form for paths that are too long for a first line: '''exec' /path/to/python "$0" "$@"
        quoted = re.match(r"'''exec'\s+(?:\"([^\"]+)\"|'([^']+)'|(\S+))", lines[1])
        return next((part for part in quoted.groups() if part), None) if quoted else None
    return words[0] if words and "python" in p.name(words[0]) else None


def _behind_shim(system: System, script: str) -> Optional[str]:
    """pyenv's pip is a shim like its python: it belongs to the same interpreter."""
    p = system.once(paths)
    python = read_environment(system, p.join(p.folder(script), "python"), may_ask=False)
    return python.get().executable if python.is_known else None


def _interpreter_of_launcher(system: System, path: str) -> Optional[str]:
    opened = system.open_binary(path)
    if not opened.is_known:
        return None
    reader = opened.get()
    start = max(0, reader.size - _LAUNCHER_TAIL)
    try:
        tail = reader.read_at(start, reader.size - start)
    except OSError:
        return None
    found = re.search(rb"#!\"?([A-Za-z]:\\[^\"\r\n\x00]{1,500}?pythonw?[0-9.t]{0,6}\.exe)", tail, re.I)
    return found.group(1).decode("utf-8", "replace") if found else None


def _same_spelling(system: System, interpreter: str, environment: Environment) -> str:
    """`python3.12` and `python` of one environment are one interpreter: then it is called as the patient is."""
    p = system.once(paths)
    if p.key(p.folder(interpreter)) != p.key(p.folder(environment.executable)):
        return interpreter
    if environment.kind in (VENV, TOOL, CONDA):
        return environment.executable
    # Several installations share /usr/bin.
    same = system.real_path(interpreter).value == system.real_path(environment.executable).value
    return environment.executable if same else interpreter


PROBE = Probe("interpreter", EVERYWHERE, _ABOUT_ENVIRONMENT + _ABOUT_CHOICE, look)
