from __future__ import annotations

from typing import Any, Optional

import pytest

from cudadoctor.probes.windows import PROBE

from .tables import ABSENT, DENIED, Unknown, check, windows

CONTROL = "HKLM\\SYSTEM\\CurrentControlSet\\Control"
CLASS = f"{CONTROL}\\Class\\{{4d36e968-e325-11ce-bfc1-08002be10318}}"
GRAPHICS = f"{CONTROL}\\GraphicsDrivers"
SCHEMES = f"{CONTROL}\\Power\\User\\PowerSchemes"
RUNTIME = "HKLM\\SOFTWARE\\Microsoft\\VisualStudio\\14.0\\VC\\Runtimes\\X64"
RUNTIME_OF_32_BITS = RUNTIME.replace("SOFTWARE\\", "SOFTWARE\\WOW6432Node\\")
SERVED = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\nvlddmkm\\Enum"
BASIC = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\BasicDisplay\\Enum"

BALANCED = "381b4222-f694-41f0-9685-ff5bb260df2e"
HIGH = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"
ULTIMATE_COPY = "11111111-2222-4333-8444-555555555555"
GETACTIVESCHEME = ["powercfg", "/getactivescheme"]

POWER: list[tuple[str, dict[str, Any], tuple[Any, Any, Any]]] = [
    (
        "the call",
        {
            "windows_calls": {
                "power_scheme": {"guid": HIGH.upper(), "name": "Höchstleistung", "personality": "high-performance"}
            }
        },
        (HIGH, "Höchstleistung", "high-performance"),
    ),
    (
        "a copy of Ultimate has a GUID of its own; its personality tells",
        {"windows_calls": {"power_scheme": {"guid": ULTIMATE_COPY, "name": None, "personality": "high-performance"}}},
        (ULTIMATE_COPY, Unknown("no name"), "high-performance"),
    ),
    (
        "powercfg in English",
        {"programs": [{"argv": GETACTIVESCHEME, "stdout": f"Power Scheme GUID: {BALANCED}  (Balanced)\n"}]},
        (BALANCED, "Balanced", Unknown()),
    ),
    (
        "powercfg in German",
        {"programs": [{"argv": GETACTIVESCHEME, "stdout": f"GUID des Energieschemas: {BALANCED}  (Ausbalanciert)\n"}]},
        (BALANCED, "Ausbalanciert", Unknown()),
    ),
    (
        "powercfg in Chinese, in another encoding: the GUID is ASCII",
        {"programs": [{"argv": GETACTIVESCHEME, "stdout": f"\ufffd\ufffd GUID: {HIGH}  (\ufffd\ufffd)\n"}]},
        (HIGH, "\ufffd\ufffd", Unknown()),
    ),
    (
        "the registry",
        {
            "registry": {
                SCHEMES: {"ActivePowerScheme": HIGH},
                f"{SCHEMES}\\{HIGH}": {"FriendlyName": "@%SystemRoot%\\system32\\powrprof.dll,-13,High performance"},
            }
        },
        (HIGH, "High performance", Unknown()),
    ),
    (
        "nothing answers",
        {"windows_calls": {"power_scheme": {"error": "PowerGetActiveScheme failed (120)"}}},
        (Unknown("120"), Unknown("120"), Unknown("120")),
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), POWER, ids=[case[0] for case in POWER])
def test_power_plan(title: str, sections: dict[str, Any], expected: tuple[Any, Any, Any]) -> None:
    names = ("windows.power_plan", "windows.power_plan_name", "windows.power_plan_personality")
    check(PROBE, windows(**sections), dict(zip(names, expected)))


def test_plans_overlay_and_battery_of_a_laptop() -> None:
    system = windows(
        registry={f"{SCHEMES}\\{BALANCED.upper()}": {"FriendlyName": "x"}, f"{SCHEMES}\\Default": {"x": 1}},
        windows_calls={
            "power_overlay": {"guid": "DED574B5-45A0-4F42-8737-46345C09C238"},
            "power_status": {"battery": True, "on_battery": False},
        },
    )
    expected = {
        "windows.power_plans": [BALANCED],
        "windows.power_overlay": "ded574b5-45a0-4f42-8737-46345c09c238",
        "windows.battery": True,
        "windows.on_battery": False,
    }
    check(PROBE, system, expected)


def test_a_desktop_has_no_overlay_and_no_battery() -> None:
    system = windows(
        windows_calls={
            "power_overlay": {"guid": "00000000-0000-0000-0000-000000000000"},
            "power_status": {"battery": False, "on_battery": None},
        },
    )
    expected = {
        "windows.power_overlay": ABSENT,
        "windows.battery": False,
        "windows.on_battery": Unknown("Windows does not know"),
    }
    check(PROBE, system, expected)


# -- display adapters -------------------------------------------------------------------------------------------------


def adapter(name: str, version: str, vendor: str, device: str) -> dict[str, Any]:
    ids = f"PCI\\VEN_{vendor.upper()}&DEV_{device.upper()}&SUBSYS_88881043"
    return {"DriverDesc": name, "DriverVersion": version, "MatchingDeviceId": ids}


RTX_4070 = adapter("NVIDIA GeForce RTX 4070", "32.0.15.8157", "10de", "2786")
GTX_1060 = adapter("NVIDIA GeForce GTX 1060 6GB", "32.0.15.6094", "10de", "1c03")
INTEL = adapter("Intel(R) UHD Graphics 770", "31.0.101.4502", "8086", "4680")


def gpu(name: str, version: Optional[str], vendor: Optional[str], device: Optional[str]) -> dict[str, Any]:
    return {"name": name, "driver_version": version, "vendor_id": vendor, "device_id": device}


SEEN_4070 = gpu("NVIDIA GeForce RTX 4070", "581.57", "10de", "2786")
SEEN_1060 = gpu("NVIDIA GeForce GTX 1060 6GB", "560.94", "10de", "1c03")
SEEN_INTEL = gpu("Intel(R) UHD Graphics 770", None, "8086", "4680")

ADAPTERS: list[tuple[str, dict[str, Any], Any, Any]] = [
    (
        "a laptop with two",
        {f"{CLASS}\\0000": INTEL, f"{CLASS}\\0001": RTX_4070, f"{CLASS}\\Properties": {"x": 1}},
        [SEEN_INTEL, SEEN_4070],
        "581.57",
    ),
    (
        "a card that was taken out is still in the registry, and not served",
        {
            f"{CLASS}\\0000": GTX_1060,
            f"{CLASS}\\0001": RTX_4070,
            SERVED: {"Count": 1, "0": "PCI\\VEN_10DE&DEV_2786&SUBSYS_88881043&REV_A1\\4&0&0&0008"},
        },
        [SEEN_4070],
        "581.57",
    ),
    (
        "NVIDIA's driver does not run: what the registry has is shown",
        {f"{CLASS}\\0000": GTX_1060},
        [SEEN_1060],
        "560.94",
    ),
    (
        "no driver: Windows' own serves the card",
        {
            f"{CLASS}\\0000": {
                "DriverDesc": "Microsoft Basic Display Adapter",
                "DriverVersion": "10.0.26100.1",
                "MatchingDeviceId": "display\\basicdisplay",
            },
            BASIC: {"Count": 1, "0": "PCI\\VEN_10DE&DEV_2786&SUBSYS_88881043&REV_A1\\4&0&0&0008"},
        },
        [
            gpu("Microsoft Basic Display Adapter", None, None, None),
            gpu("Microsoft Basic Display Adapter", None, "10de", "2786"),
        ],
        ABSENT,
    ),
    ("only Intel's", {f"{CLASS}\\0000": INTEL}, [SEEN_INTEL], ABSENT),
    ("an empty class", {CLASS: {"Class": "Display"}}, [], ABSENT),
    ("the class is not there", {}, Unknown("no display adapters"), Unknown("no display adapters")),
]


@pytest.mark.parametrize(("title", "registry", "gpus", "version"), ADAPTERS, ids=[case[0] for case in ADAPTERS])
def test_display_adapters(title: str, registry: dict[str, Any], gpus: Any, version: Any) -> None:
    check(PROBE, windows(registry=registry), {"windows.gpus": gpus, "driver.windows_version": version})


def test_the_registry_cannot_be_read() -> None:
    check(PROBE, windows(registry_keys={CLASS: DENIED}), {"windows.gpus": Unknown("denied")})


# -- settings and runtimes -------------------------------------------------------------------------------------------

SETTINGS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("scheduling on", {GRAPHICS: {"HwSchMode": 2}}, "windows.hardware_scheduling", "on"),
    ("scheduling off", {GRAPHICS: {"HwSchMode": 1}}, "windows.hardware_scheduling", "off"),
    ("scheduling as Windows likes", {}, "windows.hardware_scheduling", ABSENT),
    ("scheduling, a new value", {GRAPHICS: {"HwSchMode": 7}}, "windows.hardware_scheduling", Unknown("HwSchMode")),
    ("a long delay", {GRAPHICS: {"TdrDelay": 60}}, "windows.tdr_delay", 60),
    ("the usual delay", {}, "windows.tdr_delay", ABSENT),
    ("a delay that is no number", {GRAPHICS: {"TdrDelay": "sixty"}}, "windows.tdr_delay", Unknown("whole number")),
    ("detection off", {GRAPHICS: {"TdrLevel": 0}}, "windows.tdr_level", 0),
    ("no right", {GRAPHICS: {"TdrLevel": DENIED}}, "windows.tdr_level", Unknown("denied")),
    ("long paths on", {f"{CONTROL}\\FileSystem": {"LongPathsEnabled": 1}}, "windows.long_paths", True),
    ("long paths off", {f"{CONTROL}\\FileSystem": {"LongPathsEnabled": 0}}, "windows.long_paths", False),
    ("long paths, old Windows", {}, "windows.long_paths", False),
    (
        "a runtime",
        {RUNTIME: {"Installed": 1, "Major": 14, "Minor": 44, "Bld": 35211, "Version": "v14.44.35211.00"}},
        "windows.vc_runtime",
        "14.44.35211",
    ),
    (
        "its installer is a 32-bit program",
        {RUNTIME_OF_32_BITS: {"Installed": 1, "Version": "v14.38.33135.00"}},
        "windows.vc_runtime",
        "14.38.33135.00",
    ),
    ("a runtime that was removed", {RUNTIME: {"Installed": 0}}, "windows.vc_runtime", ABSENT),
    ("no runtime", {}, "windows.vc_runtime", ABSENT),
    ("a runtime that nobody may ask for", {RUNTIME: {"Installed": DENIED}}, "windows.vc_runtime", Unknown("denied")),
]


@pytest.mark.parametrize(("title", "registry", "name", "expected"), SETTINGS, ids=[case[0] for case in SETTINGS])
def test_settings(title: str, registry: dict[str, Any], name: str, expected: Any) -> None:
    check(PROBE, windows(registry=registry), {name: expected})


def test_runtime_files_without_a_word_in_the_registry() -> None:
    system = windows(files={"C:\\Windows\\System32\\vcruntime140_1.dll": "MZ"})
    check(PROBE, system, {"windows.vc_runtime": Unknown("its files are there")})
