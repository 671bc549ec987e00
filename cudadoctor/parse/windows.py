r"""Windows settings and numbers.

`powercfg /getactivescheme`; only the GUID is the same in every language, and the name may be in a console code page:

    Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)
    GUID des Energieschemas: 381b4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)

HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management, PagingFiles (REG_MULTI_SZ, sizes in MiB):

    ?:\pagefile.sys                     Windows chooses the drive and the size
    C:\pagefile.sys 0 0                 Windows chooses the size
    C:\pagefile.sys 16384 32768         fixed: initial and maximum size
    (empty)                             no page file

The driver version that Windows shows, 32.0.15.6094, ends in the digits of NVIDIA's own, 560.94.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudadoctor.model.record import NamedTuple

from .errors import unlike

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


def parse_power_plans(text: str) -> list[PowerPlan]:
    """Every plan in the output of `powercfg /list` or `/getactivescheme`, in order. Never fails."""
    plans: list[PowerPlan] = []
    for line in text.splitlines():
        found = re.search(rf"({_GUID})(.*)$", line[:1000], re.ASCII | re.I)
        if found:
            rest = found.group(2).strip()
            active = rest.endswith("*")
            name = rest.rstrip("*").strip()
            # Japanese and Chinese consoles may print brackets of full width.
            inner = name[1:-1] if name[:1] in "(（" and name[-1:] in ")）" else name.strip("()（）")
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
