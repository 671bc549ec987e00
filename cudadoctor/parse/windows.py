r"""Windows settings and numbers.

`powercfg /getactivescheme`; only the GUID is the same in every language, and the name may be in a console code page:

    Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)
    GUID des Energieschemas: 381b4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)

HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management, PagingFiles (REG_MULTI_SZ, sizes in MiB):

    ?:\pagefile.sys                     Windows chooses the drive and the size
    C:\pagefile.sys 0 0                 Windows chooses the size
    C:\pagefile.sys 16384 32768         fixed: initial and maximum size
    (empty)                             no page file

HKLM\SYSTEM\CurrentControlSet\Control\GraphicsDrivers:

    HwSchMode    2 on, 1 off, absent: Windows' choice
    TdrDelay     seconds; absent: 2
    TdrLevel     0 off, 3 on; absent: 3

The driver version that Windows shows, 32.0.15.6094, ends in the digits of NVIDIA's own, 560.94.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudadoctor.model.record import NamedTuple

from .errors import unlike

# Well-known plans (Microsoft's GUID constants GUID_TYPICAL_POWER_SAVINGS, GUID_MIN_POWER_SAVINGS,
# GUID_MAX_POWER_SAVINGS; the last is
# the template from which a copy with a random GUID is made).
BALANCED = "381b4222-f694-41f0-9685-ff5bb260df2e"
HIGH_PERFORMANCE = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"
POWER_SAVER = "a1841308-3541-4fab-bc81-f71556f20b4a"
ULTIMATE_TEMPLATE = "e9a42b02-d5df-448d-aa00-03f14749eb61"

_GUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def normalise_guid(text: str) -> str:
    """For example "{381B4222-F694-...}" -> "381b4222-f694-...". ParseError for anything else."""
    bare = text.strip().strip("{}").lower()
    if not re.fullmatch(_GUID, bare, re.ASCII):
        raise unlike("a GUID", text)
    return bare


class PowerPlan(NamedTuple):
    """A plan: its GUID, its name as printed (in the language of the system, perhaps damaged), the active mark of
    `/list`.
    """

    guid: str
    name: str | None
    active: bool

    @property
    def known_kind(self) -> str | None:
        """By GUID: "balanced", "high-performance", "power-saver", "ultimate"; None for a maker's plan or a copy."""
        kinds = {
            BALANCED: "balanced",
            HIGH_PERFORMANCE: "high-performance",
            POWER_SAVER: "power-saver",
            ULTIMATE_TEMPLATE: "ultimate",
        }
        return kinds.get(self.guid)


def parse_power_plans(text: str) -> list[PowerPlan]:
    """Every plan in the output of `powercfg /list` or `/getactivescheme`, in order. Never fails."""
    plans: list[PowerPlan] = []
    for line in text.splitlines():
        found = re.search(rf"({_GUID})(.*)$", line[:1000], re.ASCII | re.I)
        if found:
            rest = found.group(2).strip()
            active = rest.endswith("*")
            name = rest.rstrip("*").strip()
            inner = name[1:-1] if name.startswith("(") and name.endswith(")") else name.strip("()")
            plans.append(PowerPlan(found.group(1).lower(), inner or None, active))
    return plans


def parse_active_power_plan(text: str) -> PowerPlan:
    """`powercfg /getactivescheme` in any language. ParseError when no GUID is in it."""
    plans = parse_power_plans(text)
    if not plans:
        raise unlike("the output of powercfg /getactivescheme", text.strip())
    return next((plan for plan in plans if plan.active), plans[0])


class PageFile(NamedTuple):
    """One page file as set.

    `path` starts with "?:" where Windows chooses the drive; sizes in MiB, None: Windows chooses.
    """

    path: str
    initial_mib: int | None
    maximum_mib: int | None

    @property
    def system_managed(self) -> bool:
        return self.initial_mib is None and self.maximum_mib is None


def parse_paging_files(value: str | Sequence[str]) -> list[PageFile]:
    r"""The registry value PagingFiles: a list of strings, or one string (entries parted by NUL, line end or reg.exe's
    "\0").

    An empty list means that no page file is set up. ParseError for an entry that is none.
    """
    entries = re.split(r"\x00|\r?\n|\\0(?=[A-Za-z?]:|\\0|$)", value) if isinstance(value, str) else list(value)
    files: list[PageFile] = []
    for entry in entries:
        entry = entry.strip()
        if not entry:
            continue
        found = re.fullmatch(
            r"(\S.{0,300}?\.sys)(?:\s{1,20}([0-9]{1,9})(?:\s{1,20}([0-9]{1,9}))?)?", entry, re.ASCII | re.I
        )
        if found is None:
            raise unlike("a value of PagingFiles", entry)
        initial, maximum = int(found.group(2) or 0), int(found.group(3) or 0)
        files.append(PageFile(found.group(1), initial or None, maximum or None))
    return files


def nvidia_driver_version(windows_version: str) -> str:
    """For example "32.0.15.6094" -> "560.94": the last five digits of the last two groups together.

    ParseError for another shape.
    """
    found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,5})", windows_version.strip(), re.ASCII)
    if found is None:
        raise unlike("a Windows driver version such as 32.0.15.6094", windows_version)
    digits = (found.group(3) + found.group(4).zfill(4))[-5:]
    if len(digits) < 5 or digits[0] == "0":
        raise unlike("the Windows version of an NVIDIA driver", windows_version)
    return f"{digits[:3]}.{digits[3:]}"


def gpu_scheduling(value: int | None) -> bool | None:
    """HwSchMode -> hardware-accelerated GPU scheduling on, off; None for absent (Windows' choice) and other numbers."""
    return {1: False, 2: True}.get(value) if value is not None else None


class TimeoutDetection(NamedTuple):
    """TDR as it works: seconds until a GPU that does not answer is reset; `enabled` False when switched off."""

    enabled: bool
    seconds: int


def timeout_detection(level: int | None, delay: int | None) -> TimeoutDetection:
    """TdrLevel and TdrDelay, None for an absent value (Windows then uses level 3 and 2 seconds)."""
    return TimeoutDetection(level != 0, 2 if delay is None else delay)
