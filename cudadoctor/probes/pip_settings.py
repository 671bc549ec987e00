"""From which indexes the patient's installer would take packages: pip's variables and files, or uv's.

uv is asked for its own settings where it is what installs: in an environment that it made and that holds no pip.
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import (
    IndexSettings,
    parse_pip_config,
    parse_pip_environment,
    parse_uv_config,
    without_credentials,
)
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import home, paths
from cudadoctor.probes.patient import patient
from cudadoctor.probes.site_packages import has_package
from cudadoctor.system.port import System

_FACTS = ("pip.index_url", "pip.extra_index_urls", "pip.no_index", "pip.configured_by")

_PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_PYPI_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX")
_NO_FILES = ("/dev/null", "nul", "NUL")


class _Layer(NamedTuple):
    """What one file or variable says; a later layer is stronger."""

    source: str
    settings: IndexSettings


def look(system: System) -> dict[str, Fact[Any]]:
    chosen = system.once(patient).environment
    is_uv = chosen.is_known and chosen.get().made_by_uv and has_package(system, "pip").value is False
    layers, unreadable = _uv_layers(system) if is_uv else _pip_layers(system)
    where = "uv's settings" if is_uv else "pip's settings"
    index: Fact[Any] = absent(where)
    extra: Fact[Any] = known([], where)
    no_index: Fact[Any] = known(False, where)
    if unreadable is not None:
        index = extra = no_index = unknown(unreadable.reason, unreadable.source)
    used = []
    for layer in layers:
        settings = layer.settings
        if settings.index_url:
            index = known(without_credentials(settings.index_url), layer.source)
        if settings.extra_index_urls:
            extra = known([without_credentials(url) for url in settings.extra_index_urls], layer.source)
        if settings.no_index:
            no_index = known(True, layer.source)
        if settings.index_url or settings.extra_index_urls or settings.no_index:
            used.append(layer.source)
    return {
        "pip.index_url": index,
        "pip.extra_index_urls": extra,
        "pip.no_index": no_index,
        "pip.configured_by": known(used, where),
    }


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


def _uv_layers(system: System) -> tuple[list[_Layer], Optional[Fact[str]]]:
    p = system.once(paths)
    own = home(system)
    files = []
    if p.is_windows:
        files.append(p.join(system.variable("PROGRAMDATA").value or "C:\\ProgramData", "uv", "uv.toml"))
        roaming = system.variable("APPDATA").value
        files += [p.join(roaming, "uv", "uv.toml")] if roaming else []
    else:
        files.append("/etc/uv/uv.toml")
        config = system.variable("XDG_CONFIG_HOME").value or (p.join(own, ".config") if own else "")
        files += [p.join(config, "uv", "uv.toml")] if config else []
    layers: list[_Layer] = []
    unreadable: Optional[Fact[str]] = None
    for path in files:
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


def _address(index: str) -> str:
    """uv allows a name before the address: "pytorch=https://..."."""
    name, sign, address = index.partition("=")
    return address if sign and "/" not in name else index


PROBE = Probe("pip_settings", EVERYWHERE, _FACTS, look)
