r"""What Windows says of power, scheduling, display adapters and runtimes: its registry and a few calls.

GUIDs, numbers and key names are the same in every language of Windows; names are for showing only.
"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.parse.windows import normalise_guid, nvidia_driver_version, parse_active_power_plan
from cudadoctor.probes.api import WINDOWS, Probe
from cudadoctor.system.port import System

_SCHEMES = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Power\\User\\PowerSchemes"
_GRAPHICS = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers"
_FILE_SYSTEM = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem"
# The setup class of display adapters.
_ADAPTERS = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36e968-e325-11ce-bfc1-08002be10318}"
# Devices that a driver serves since this start of Windows: NVIDIA's, and the one that needs no driver.
_NVIDIA_DEVICES = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\nvlddmkm\\Enum"
_BASIC_DEVICES = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\BasicDisplay\\Enum"
_RUNTIMES = (
    "HKLM\\SOFTWARE\\Microsoft\\VisualStudio\\14.0\\VC\\Runtimes\\X64",
    "HKLM\\SOFTWARE\\WOW6432Node\\Microsoft\\VisualStudio\\14.0\\VC\\Runtimes\\X64",
)
_RUNTIME_FILE = "System32\\vcruntime140_1.dll"

_GUID = r"(?ai)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NO_OVERLAY = "00000000-0000-0000-0000-000000000000"
_MOST_ADAPTERS = 64


def look(system: System) -> dict[str, Fact[Any]]:
    gpus = _adapters(system)
    return {
        **_power(system),
        "windows.gpus": gpus,
        "driver.windows_version": _driver_version(gpus),
        "windows.hardware_scheduling": system.registry_value(_GRAPHICS, "HwSchMode").map(_scheduling),
        "windows.tdr_delay": system.registry_value(_GRAPHICS, "TdrDelay").map(_whole),
        "windows.tdr_level": system.registry_value(_GRAPHICS, "TdrLevel").map(_whole),
        "windows.long_paths": _long_paths(system),
        "windows.vc_runtime": _vc_runtime(system),
    }


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParseError(f"not a whole number: {str(value)[:40]!a}")
    return value


# -- power ------------------------------------------------------------------------------------------------------------


def _power(system: System) -> dict[str, Fact[Any]]:
    guid, name, personality = _active_plan(system)
    overlay = system.windows_call("power_overlay")
    status = system.windows_call("power_status")
    return {
        "windows.power_plan": guid,
        "windows.power_plan_name": name,
        "windows.power_plan_personality": personality,
        "windows.power_plans": _plans(system),
        "windows.power_overlay": _overlay(overlay),
        "windows.battery": _flag(status, "battery"),
        "windows.on_battery": _flag(status, "on_battery"),
    }


def _active_plan(system: System) -> tuple[Fact[str], Fact[str], Fact[str]]:
    """GUID, name and personality: by the call, else by powercfg, else by the registry."""
    scheme = system.windows_call("power_scheme")
    if scheme.is_known and isinstance(scheme.get().get("guid"), str):
        answer = scheme.get()
        return (
            known(answer["guid"].lower(), scheme.source),
            _or_unknown(answer.get("name"), "the plan has no name", scheme.source),
            _or_unknown(answer.get("personality"), "the plan does not say its personality", scheme.source),
        )
    no_personality: Fact[str] = unknown(scheme.reason or "Windows does not answer", scheme.source)
    program = system.which("powercfg")
    if program.is_known:
        result = system.run([program.get(), "/getactivescheme"], timeout=5.0)
        plan = result.map(lambda answer: parse_active_power_plan(answer.stdout))
        if plan.is_known:
            name = _or_unknown(plan.get().name, "powercfg shows no name", result.source)
            return known(plan.get().guid, result.source), name, no_personality
    active = system.registry_value(_SCHEMES, "ActivePowerScheme").map(lambda value: normalise_guid(str(value)))
    if not active.is_known:
        nothing: Fact[str] = unknown(scheme.reason or active.reason or "Windows does not say it", scheme.source)
        return nothing, nothing, no_personality
    key = f"{_SCHEMES}\\{active.get()}"
    # "@%SystemRoot%\system32\powrprof.dll,-15,Balanced"
    name = system.registry_value(key, "FriendlyName").map(lambda value: str(value).rpartition(",")[2].strip())
    return active, name, no_personality


def _or_unknown(value: Optional[str], reason: str, source: str) -> Fact[str]:
    return known(value, source) if value else unknown(reason, source)


def _plans(system: System) -> Fact[list[str]]:
    keys = system.registry_keys(_SCHEMES)
    return keys.map(lambda names: [name.lower() for name in names if re.fullmatch(_GUID, name)])


def _overlay(overlay: Fact[Any]) -> Fact[str]:
    if not overlay.is_known:
        return overlay
    guid = str(overlay.get().get("guid", "")).lower()
    return absent(overlay.source) if guid in ("", _NO_OVERLAY) else known(guid, overlay.source)


def _flag(status: Fact[Any], name: str) -> Fact[bool]:
    if status.is_known and not isinstance(status.get().get(name), bool):
        return unknown("Windows does not know", status.source)
    return status.map(lambda answer: bool(answer[name]))


# -- display adapters -------------------------------------------------------------------------------------------------


def _adapters(system: System) -> Fact[list[dict[str, Any]]]:
    keys = system.registry_keys(_ADAPTERS)
    if not keys.is_known:
        return unknown(keys.reason or "the registry lists no display adapters", keys.source)
    served = _devices(system, _NVIDIA_DEVICES)
    found: list[dict[str, Any]] = []
    for name in keys.get()[:_MOST_ADAPTERS]:
        entry = _adapter(system, f"{_ADAPTERS}\\{name}") if re.fullmatch(r"[0-9]{4}", name) else None
        if entry is None:
            continue
        # The registry keeps cards that are no longer in the machine; those that NVIDIA's driver serves are.
        if entry["vendor_id"] == "10de" and served and ("10de", entry["device_id"]) not in served:
            continue
        found.append(entry)
    seen = {(entry["vendor_id"], entry["device_id"]) for entry in found}
    for vendor, device in _devices(system, _BASIC_DEVICES):
        if vendor == "10de" and (vendor, device) not in seen:
            name = "Microsoft Basic Display Adapter"
            found.append({"name": name, "driver_version": None, "vendor_id": vendor, "device_id": device})
    return known(found, _ADAPTERS)


def _adapter(system: System, key: str) -> Optional[dict[str, Any]]:
    name = system.registry_value(key, "DriverDesc").value
    if not isinstance(name, str):
        return None
    vendor, device = _ids(system.registry_value(key, "MatchingDeviceId").value)
    version = system.registry_value(key, "DriverVersion").value
    return {
        "name": name,
        "driver_version": _nvidia_version(version) if vendor == "10de" else None,
        "vendor_id": vendor,
        "device_id": device,
    }


def _devices(system: System, key: str) -> list[tuple[str, str]]:
    count = system.registry_value(key, "Count").value
    found: list[tuple[str, str]] = []
    for number in range(min(count, _MOST_ADAPTERS) if isinstance(count, int) else 0):
        vendor, device = _ids(system.registry_value(key, str(number)).value)
        if vendor is not None and device is not None:
            found.append((vendor, device))
    return found


def _ids(value: Any) -> tuple[Optional[str], Optional[str]]:
    r"""`PCI\VEN_10DE&DEV_2786&SUBSYS_...` -> ("10de", "2786")."""
    text = value if isinstance(value, str) else ""
    found = re.search(r"VEN_([0-9a-f]{4})&DEV_([0-9a-f]{4})", text, re.ASCII | re.IGNORECASE)
    return (found.group(1).lower(), found.group(2).lower()) if found else (None, None)


def _nvidia_version(windows_version: Any) -> Optional[str]:
    """NVIDIA's own number of a driver, None for one that is not NVIDIA's."""
    try:
        return nvidia_driver_version(str(windows_version))
    except ParseError:
        return None


def _driver_version(gpus: Fact[list[dict[str, Any]]]) -> Fact[str]:
    if not gpus.is_known:
        return gpus  # type: ignore[return-value]
    for entry in gpus.get():
        if entry["vendor_id"] == "10de" and entry["driver_version"]:
            return known(entry["driver_version"], gpus.source)
    return absent(gpus.source)


# -- settings and runtimes -------------------------------------------------------------------------------------------


def _scheduling(value: Any) -> str:
    modes = {1: "off", 2: "on"}
    if value not in modes:
        raise ParseError(f"HwSchMode is {str(value)[:20]!a}, and 1 and 2 are known")
    return modes[value]


def _long_paths(system: System) -> Fact[bool]:
    value = system.registry_value(_FILE_SYSTEM, "LongPathsEnabled")
    if value.is_absent:
        return known(False, value.source)
    return value.map(lambda number: _whole(number) != 0)


def _vc_runtime(system: System) -> Fact[str]:
    unread: Optional[Fact[Any]] = None
    for key in _RUNTIMES:
        installed = system.registry_value(key, "Installed")
        if installed.is_unknown:
            unread = installed
        if installed.value == 1:
            numbers = [system.registry_value(key, name).value for name in ("Major", "Minor", "Bld")]
            if all(isinstance(number, int) for number in numbers):
                return known(".".join(str(number) for number in numbers), key)
            version = system.registry_value(key, "Version").value
            if isinstance(version, str) and version:
                return known(version.lstrip("v"), key)
            unread = unknown("it is installed, and its version is not to be read", key)
    if unread is not None:
        return unknown(unread.reason, unread.source)
    root = system.variable("SYSTEMROOT").value or "C:\\Windows"
    if system.status(f"{root}\\{_RUNTIME_FILE}").is_known:
        return unknown("its files are there, and the registry does not know them", f"{root}\\{_RUNTIME_FILE}")
    return absent(_RUNTIMES[0])


PROBE = Probe(
    "windows",
    (WINDOWS,),
    (
        "windows.power_plan",
        "windows.power_plan_name",
        "windows.power_plan_personality",
        "windows.power_plans",
        "windows.power_overlay",
        "windows.battery",
        "windows.on_battery",
        "windows.hardware_scheduling",
        "windows.tdr_delay",
        "windows.tdr_level",
        "windows.vc_runtime",
        "windows.long_paths",
        "windows.gpus",
        "driver.windows_version",
    ),
    look,
)
