"""What the patient's installer is told beforehand (indexes, constraints, where to install): pip's variables and files,
or uv's.

The facts `pip.*` are uv's settings where uv is what installs: in an environment that it made and that holds no pip.
What would turn an explicit `uv pip install` aside is in `uv.*`, whatever made the environment.
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import (
    IndexSettings,
    parse_constraints,
    parse_pip_config,
    parse_pip_environment,
    parse_uv_config,
    parse_uv_options,
    without_credentials,
)
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import home, paths
from cudadoctor.probes.patient import patient
from cudadoctor.probes.site_packages import has_package
from cudadoctor.system.port import System

_PIP_VARIABLES = (
    "PIP_INDEX_URL",
    "PIP_PYPI_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_FIND_LINKS",
    "PIP_CONSTRAINT",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_USER",
    "PIP_TARGET",
)
_NO_FILES = ("/dev/null", "nul", "NUL")

# Option of uv -> its variable and its fact.
_UV_OPTIONS = (
    ("torch-backend", "UV_TORCH_BACKEND", "uv.torch_backend"),
    ("exclude-newer", "UV_EXCLUDE_NEWER", "uv.exclude_newer"),
)

# Constraints of these packages decide whether a torch build can be installed.
_CONSTRAINED = pattern(r"(?:torch|torchvision|torchaudio|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)(?![a-z0-9.-])")


class _Layer(NamedTuple):
    """What one file or variable says; a later layer is stronger."""

    source: str
    settings: IndexSettings


def look(system: System) -> dict[str, Fact[Any]]:
    chosen = system.once(patient).environment
    is_uv = chosen.is_known and chosen.get().made_by_uv and has_package(system, "pip").value is False
    layers, unreadable = _uv_layers(system) if is_uv else _pip_layers(system)
    where = "uv's settings" if is_uv else "pip's settings"
    facts: dict[str, Fact[Any]] = {
        "pip.index_url": absent(where),
        "pip.extra_index_urls": known([], where),
        "pip.no_index": known(False, where),
        "pip.find_links": known([], where),
        "pip.constraints": known([], where),
        "pip.require_virtualenv": known(False, where),
        "pip.user": known(False, where),
        "pip.target": absent(where),
    }
    if unreadable is not None:
        facts = dict.fromkeys(facts, unknown(unreadable.reason, unreadable.source))
    used = []
    for layer in layers:
        said = _said(layer.settings)
        facts.update({name: known(value, layer.source) for name, value in said.items()})
        if said:
            used.append(layer.source)
    facts["pip.configured_by"] = known(used, where)
    facts["pip.constraint_pins"] = _constraint_pins(system, facts["pip.constraints"])
    facts.update(_uv_options(system))
    return facts


def _said(settings: IndexSettings) -> dict[str, Any]:
    """The facts that one layer decides."""
    said: dict[str, Any] = {}
    if settings.index_url:
        said["pip.index_url"] = without_credentials(settings.index_url)
    if settings.extra_index_urls:
        said["pip.extra_index_urls"] = [without_credentials(url) for url in settings.extra_index_urls]
    if settings.find_links:
        said["pip.find_links"] = [without_credentials(url) for url in settings.find_links]
    if settings.constraints:
        said["pip.constraints"] = [without_credentials(path) for path in settings.constraints]
    if settings.target:
        said["pip.target"] = settings.target
    # A stronger layer may take back what a weaker one says.
    for name in ("no_index", "require_virtualenv", "user"):
        value = getattr(settings, name)
        if value is not None:
            said[f"pip.{name}"] = value
    return said


def _constraint_pins(system: System, files: Fact[Any]) -> Fact[Any]:
    """What the constraint files say of torch and of what it requires, one requirement a line."""
    if not files.is_known:
        return files
    pins: list[str] = []
    for file in files.get():
        if "://" in file:
            return unknown("a constraint file lies on a server", files.source)
        text = system.read_text(file, 1 << 16)
        if not text.is_known:
            return unknown(text.reason or "there is no such file", file)
        pins += [line for line in parse_constraints(text.get()) if _CONSTRAINED.match(line)]
    return known(pins, files.source)


# -- pip --------------------------------------------------------------------------------------------------------------


def _pip_layers(system: System) -> tuple[list[_Layer], Optional[Fact[str]]]:
    layers: list[_Layer] = []
    unreadable: Optional[Fact[str]] = None
    for path in _pip_files(system):
        text = system.read_text(path, 1 << 16)
        if text.is_known:
            layers.append(_Layer(path, parse_pip_config(text.get())))
        elif text.is_unknown:
            unreadable = unreadable or text
    for name in _PIP_VARIABLES:
        variable = system.variable(name)
        if variable.is_known:
            layers.append(_Layer(variable.source, parse_pip_environment({name: variable.get()})))
        elif variable.is_unknown:
            unreadable = unreadable or variable
    return layers, unreadable


def _pip_files(system: System) -> list[str]:
    """Weakest first: for everybody, for the user, for the environment, the one that PIP_CONFIG_FILE names."""
    p = system.once(paths)
    named = system.variable("PIP_CONFIG_FILE").value or ""
    if named in _NO_FILES:
        return []
    own = home(system)
    of_all: list[str] = []
    of_user: list[str] = []
    if p.is_windows:
        of_all.append(p.join(system.variable("PROGRAMDATA").value or "C:\\ProgramData", "pip", "pip.ini"))
        of_user += [p.join(own, "pip", "pip.ini")] if own else []
        roaming = system.variable("APPDATA").value
        of_user += [p.join(roaming, "pip", "pip.ini")] if roaming else []
    else:
        shared = (system.variable("XDG_CONFIG_DIRS").value or "/etc/xdg").split(":")
        of_all += [p.join(folder, "pip", "pip.conf") for folder in reversed(shared) if folder]
        of_all.append("/etc/pip.conf")
        if system.platform == "darwin":
            of_all.append("/Library/Application Support/pip/pip.conf")
        if own:
            of_user.append(p.join(own, ".pip", "pip.conf"))
            if system.platform == "darwin":
                of_user.append(p.join(own, "Library", "Application Support", "pip", "pip.conf"))
            of_user.append(
                p.join(system.variable("XDG_CONFIG_HOME").value or p.join(own, ".config"), "pip", "pip.conf")
            )
    if named and not system.status(named).is_absent:
        of_user = []  # pip leaves out the user's own file then
    chosen = system.once(patient).environment
    of_environment = [p.join(chosen.get().prefix, "pip.ini" if p.is_windows else "pip.conf")] if chosen.is_known else []
    return [*of_all, *of_user, *of_environment, *([named] if named else [])]


# -- uv ---------------------------------------------------------------------------------------------------------------


def _uv_files(system: System) -> list[str]:
    """Weakest first: for everybody, for the user."""
    p = system.once(paths)
    own = home(system)
    if p.is_windows:
        roaming = system.variable("APPDATA").value
        of_all = p.join(system.variable("PROGRAMDATA").value or "C:\\ProgramData", "uv", "uv.toml")
        return [of_all, *([p.join(roaming, "uv", "uv.toml")] if roaming else [])]
    config = system.variable("XDG_CONFIG_HOME").value or (p.join(own, ".config") if own else "")
    return ["/etc/uv/uv.toml", *([p.join(config, "uv", "uv.toml")] if config else [])]


def _uv_layers(system: System) -> tuple[list[_Layer], Optional[Fact[str]]]:
    layers: list[_Layer] = []
    unreadable: Optional[Fact[str]] = None
    for path in _uv_files(system):
        text = system.read_text(path, 1 << 16)
        if text.is_known:
            indexes = parse_uv_config(text.get())
            default = next((index.url for index in indexes if index.default), None)
            more = tuple(index.url for index in indexes if not index.default and not index.explicit)
            layers.append(_Layer(path, IndexSettings(index_url=default, extra_index_urls=more)))
        elif text.is_unknown:
            unreadable = unreadable or text
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        value = (system.variable(name).value or "").strip()
        if value:
            layers.append(_Layer(f"${name}", IndexSettings(index_url=_address(value))))
    for name in ("UV_EXTRA_INDEX_URL", "UV_INDEX"):
        value = system.variable(name).value or ""
        if value.split():
            layers.append(_Layer(f"${name}", IndexSettings(extra_index_urls=tuple(map(_address, value.split())))))
    if (system.variable("UV_NO_INDEX").value or "").lower() in ("1", "true", "yes", "on"):
        layers.append(_Layer("$UV_NO_INDEX", IndexSettings(no_index=True)))
    return layers, unreadable


def _uv_options(system: System) -> dict[str, Fact[Any]]:
    """Settings of uv that its command line does not undo by naming an index."""
    facts: dict[str, Fact[Any]] = {fact: absent("uv's settings") for _, _, fact in _UV_OPTIONS}
    for path in _uv_files(system):
        text = system.read_text(path, 1 << 16)
        options = parse_uv_options(text.get()) if text.is_known else {}
        for option, _, fact in _UV_OPTIONS:
            if text.is_unknown:
                facts[fact] = unknown(text.reason, text.source)
            elif option in options:
                facts[fact] = known(options[option], path)
    for _, variable, fact in _UV_OPTIONS:
        value = (system.variable(variable).value or "").strip()
        if value:
            facts[fact] = known(value, f"${variable}")
    return facts


def _address(index: str) -> str:
    """uv allows a name before the address: "pytorch=https://..."."""
    name, sign, address = index.partition("=")
    return address if sign and "/" not in name else index


PROBE = Probe("pip_settings", EVERYWHERE, ("pip.*", "uv.torch_backend", "uv.exclude_newer"), look)
