r"""reg query, and PowerShell's Get-ItemProperty: how Windows is set up for GPUs and memory.

    HwSchMode    REG_DWORD    0x2
    PagingFiles    REG_MULTI_SZ    c:\pagefile.sys 0 0
C:\>reg query "HKLM\...\GraphicsDrivers" /v TdrLevel
ERROR: The system was unable to find the specified registry key or value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.windows import parse_paging_files
from cudadoctor.reports.blocks import STRUCTURED, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("hwschmode", "tdrdelay", "tdrlevel", "longpathsenabled", "pagingfiles")

_NAMES = {name.lower(): name for name in ("HwSchMode", "TdrDelay", "TdrLevel", "LongPathsEnabled", "PagingFiles")}
_WORDS = "|".join(_NAMES.values())
_VALUE = re.compile(rf"({_WORDS})\s+REG_(?:DWORD|MULTI_SZ|SZ)\s*(.*)", re.IGNORECASE)
_PROPERTY = re.compile(rf"({_WORDS})\s*:\s*(\S.*)", re.IGNORECASE)
_ASKED = re.compile(rf"/v \"?({_WORDS})\"?", re.IGNORECASE)
_NOT_THERE = re.compile(r"\s*(ERROR|FEHLER|错误|錯誤|ERREUR|エラー|오류|ОШИБКА|ERRORE|ERRO)\s?[:：]")
_SCHEDULING = {1: "off", 2: "on"}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:2000]
        claim: Optional[Claim] = None
        last = hit
        match = _VALUE.search(line) or _PROPERTY.match(line.strip())
        if match:
            claim = _claim(_NAMES[match.group(1).lower()], match.group(2).strip(), hit)
        else:
            asked = _ASKED.search(line)
            if asked:
                last = next((index for index, below in text.lines(hit + 1, hit + 3) if below.strip()), hit)
                if last > hit and _NOT_THERE.match(text[last]):
                    claim = _unset(_NAMES[asked.group(1).lower()], last)
        if claim:
            claims = (claim, Claim("system.os", "windows", claim.line, trust=TYPED))
            yield Block("registry", hit, last, claims, STRUCTURED)


def _claim(name: str, value: str, line: int) -> Optional[Claim]:
    if name == "PagingFiles":
        try:
            files = parse_paging_files(value.strip("{}"))
        except ParseError:
            return None
        entries: list[dict[str, Any]] = [
            {
                "path": file.path,
                "mode": "system-managed" if file.system_managed else "fixed",
                "initial": None if file.initial_mib is None else file.initial_mib << 20,
                "maximum": None if file.maximum_mib is None else file.maximum_mib << 20,
            }
            for file in files
        ]
        return Claim("memory.page_file", entries, line)
    try:
        number = int(value.split()[0], 0) if value else None
    except ValueError:
        return None
    if number is None or not 0 <= number < 1 << 32:
        return None
    if name == "HwSchMode":
        return Claim("windows.hardware_scheduling", _SCHEDULING[number], line) if number in _SCHEDULING else None
    if name == "LongPathsEnabled":
        return Claim("windows.long_paths", number != 0, line)
    return Claim("windows.tdr_delay" if name == "TdrDelay" else "windows.tdr_level", number, line)


def _unset(name: str, line: int) -> Optional[Claim]:
    if name == "PagingFiles":
        return None
    if name == "LongPathsEnabled":
        return Claim("windows.long_paths", False, line)
    facts = {
        "HwSchMode": "windows.hardware_scheduling",
        "TdrDelay": "windows.tdr_delay",
        "TdrLevel": "windows.tdr_level",
    }
    return Claim(facts[name], None, line, "absent")
