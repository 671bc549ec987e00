r"""What only Windows can be asked: its registry and a few calls. Imported on Windows alone.

The answers of `call`:

- `memory` (GlobalMemoryStatusEx): `total`, `available` (physical), `commit_limit` (physical and page files together),
  `commit_available`; bytes
- `power_scheme` (PowerGetActiveScheme): `guid` (lower case), `name` (in the system's language, or null), `personality`
  (high-performance, balanced, power-saver or null)
- `power_overlay` (PowerGetEffectiveOverlayScheme; Windows 10 1709 on): `guid`; all zeros: none is active
- `power_status` (GetSystemPowerStatus): `battery`, `on_battery` (true, false or null where Windows does not know)
- `version`: `build` (number), `edition` (ProductName of the registry)
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import Any, Callable

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.system import sources
from cudadoctor.system.port import Identity

_CURRENT_VERSION = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"

# The setting "power plan type" of a plan, and its values (powercfg /query SCHEME_CURRENT SUB_NONE).
_NO_SUBGROUP = "fea3413e-7e05-4911-9a71-700331f1c294"
_PERSONALITY = "245d8541-3943-4422-b025-13a784f679b7"
_PERSONALITIES = {0: "power-saver", 1: "high-performance", 2: "balanced"}


def _dll(name: str) -> Any:
    loader: Any = ctypes
    return getattr(loader.windll, name)


def _winreg() -> Any:
    # By name, since type checkers know of this module on Windows alone.
    import importlib

    return importlib.import_module("winreg")


def identity() -> Fact[Identity]:
    try:
        admin = bool(_dll("shell32").IsUserAnAdmin())
    except (OSError, AttributeError) as error:
        return unknown(str(error), sources.USER)
    return known(Identity(-1, -1, (), admin), sources.USER)


# -- registry -------------------------------------------------------------------------------------------------------


def _open(key: str) -> Any:
    winreg = _winreg()
    root, _, rest = key.partition("\\")
    roots = {"HKLM": "HKEY_LOCAL_MACHINE", "HKCU": "HKEY_CURRENT_USER"}
    handle = getattr(winreg, roots.get(root, root))
    # A 32-bit Python would be shown another tree.
    return winreg.OpenKey(handle, rest, 0, winreg.KEY_READ | winreg.KEY_WOW64_64KEY)


def registry_value(key: str, name: str) -> Fact[Any]:
    source = sources.registry(key, name)
    try:
        with _open(key) as handle:
            value, _ = _winreg().QueryValueEx(handle, name)
    except FileNotFoundError:
        return absent(source)
    except (OSError, AttributeError) as error:
        return unknown(str(error), source)
    if isinstance(value, bytes):
        return known(value.hex(), source)
    return known(value, source)


def registry_keys(key: str) -> Fact[list[str]]:
    source = sources.registry(key)
    names: list[str] = []
    try:
        with _open(key) as handle:
            count = _winreg().QueryInfoKey(handle)[0]
            for index in range(count):
                names.append(_winreg().EnumKey(handle, index))
    except FileNotFoundError:
        return absent(source)
    except (OSError, AttributeError) as error:
        return unknown(str(error), source)
    return known(sorted(names), source)


# -- calls ----------------------------------------------------------------------------------------------------------


class _Guid(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 16)]


def _guid_text(guid: _Guid) -> str:
    import uuid

    return str(uuid.UUID(bytes_le=bytes(guid.bytes)))


def _guid(text: str) -> _Guid:
    import uuid

    return _Guid((ctypes.c_ubyte * 16)(*uuid.UUID(text).bytes_le))


class _MemoryStatus(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("commit_limit", ctypes.c_uint64),
        ("commit_available", ctypes.c_uint64),
        ("virtual_total", ctypes.c_uint64),
        ("virtual_available", ctypes.c_uint64),
        ("extended_available", ctypes.c_uint64),
    ]


class _PowerStatus(ctypes.Structure):
    _fields_ = [
        ("line", ctypes.c_ubyte),
        ("battery", ctypes.c_ubyte),
        ("percent", ctypes.c_ubyte),
        ("saver", ctypes.c_ubyte),
        ("left", ctypes.c_uint32),
        ("full", ctypes.c_uint32),
    ]


def _memory() -> Mapping[str, Any]:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not _dll("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("GlobalMemoryStatusEx failed")
    names = ("total", "available", "commit_limit", "commit_available")
    return {name: int(getattr(status, name)) for name in names}


def _active_scheme() -> Any:
    scheme = ctypes.POINTER(_Guid)()
    status = _dll("powrprof").PowerGetActiveScheme(None, ctypes.byref(scheme))
    if status:
        raise OSError(f"PowerGetActiveScheme failed ({status})")
    return scheme


def _power_scheme() -> Mapping[str, Any]:
    powrprof = _dll("powrprof")
    scheme = _active_scheme()
    try:
        text = ctypes.create_string_buffer(1024)
        size = ctypes.c_uint32(len(text))
        status = powrprof.PowerReadFriendlyName(None, scheme, None, None, text, ctypes.byref(size))
        name = text.raw[: size.value].decode("utf-16-le", "replace").rstrip("\0") if not status else None
        personality = ctypes.c_uint32()
        status = powrprof.PowerReadACValueIndex(
            None,
            scheme,
            ctypes.byref(_guid(_NO_SUBGROUP)),
            ctypes.byref(_guid(_PERSONALITY)),
            ctypes.byref(personality),
        )
        kind = None if status else _PERSONALITIES.get(personality.value)
        return {"guid": _guid_text(scheme.contents), "name": name, "personality": kind}
    finally:
        kernel32 = _dll("kernel32")
        kernel32.LocalFree.argtypes = [ctypes.c_void_p]
        kernel32.LocalFree(scheme)


def _power_overlay() -> Mapping[str, Any]:
    overlay = _Guid()
    status = _dll("powrprof").PowerGetEffectiveOverlayScheme(ctypes.byref(overlay))
    if status:
        raise OSError(f"PowerGetEffectiveOverlayScheme failed ({status})")
    return {"guid": _guid_text(overlay)}


def _power_status() -> Mapping[str, Any]:
    status = _PowerStatus()
    if not _dll("kernel32").GetSystemPowerStatus(ctypes.byref(status)):
        raise OSError("GetSystemPowerStatus failed")
    # 255: unknown; bit 128 of the battery: there is none.
    battery = None if status.battery == 255 else not status.battery & 128
    on_battery = {0: True, 1: False}.get(status.line)
    return {"battery": battery, "on_battery": on_battery}


def _version() -> Mapping[str, Any]:
    system: Any = sys
    version = system.getwindowsversion()
    edition = registry_value(_CURRENT_VERSION, "ProductName")
    return {"build": int(version.build), "edition": edition.get() if edition.is_known else None}


_CALLS: dict[str, Callable[[], Mapping[str, Any]]] = {
    "memory": _memory,
    "power_scheme": _power_scheme,
    "power_overlay": _power_overlay,
    "power_status": _power_status,
    "version": _version,
}


def call(name: str) -> Fact[Mapping[str, Any]]:
    """The answer of one of the calls above; unknown where this Windows does not have it."""
    source = sources.windows_call(name)
    try:
        return known(_CALLS[name](), source)
    except KeyError:
        return unknown("there is no such call", source)
    except AttributeError:
        return unknown("this Windows does not have the call", source)
    except OSError as error:
        return unknown(str(error), source)
