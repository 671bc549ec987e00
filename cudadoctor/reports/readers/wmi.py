r"""wmic and Get-CimInstance: display adapters with their drivers, page files, memory.

AdapterRAM  DriverVersion   Name
4293918720  32.0.15.6094    NVIDIA GeForce RTX 4080
DriverVersion : 32.0.15.6094

AdapterRAM ends at 4 GiB whatever the card has, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.windows import nvidia_driver_version
from cudadoctor.reports.blocks import STRUCTURED, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("driverversion", "allocatedbasesize", "totalvisiblememorysize", "friendlyname", "driver version:")

_NVIDIA = re.compile(
    r"\b((?:NVIDIA|Quadro|Tesla|GeForce)[\w ()+.-]{2,60}?)(?=\s{2,}|\s+\d{1,2}\.\d{1,2}\.|\s*[,|;]|\s*$|\s+PCI\\)"
)
_VERSION = re.compile(r"\b(\d{1,2}\.\d{1,2}\.1[0-9]\.\d{4})\b")
_PAIR = re.compile(r"\s*(\w{2,40})\s*[=:]\s*(.*?)\s*\Z")
_ROWS = 16


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        lowered = text[hit].lower()
        block: Optional[Block] = None
        if "allocatedbasesize" in lowered:
            block = _page_file(text, hit)
        elif "totalvisiblememorysize" in lowered:
            block = _memory(text, hit)
        elif "driverversion" in lowered:
            block = _list(text, hit) if _PAIR.match(text[hit]) else _table(text, hit)
        elif "friendlyname" in lowered:
            block = _devices(text, hit)
        if block:
            end = block.last
            yield block


def _table(text: Text, hit: int) -> Optional[Block]:
    gpus: list[tuple[int, dict[str, Any]]] = []
    blank = 0
    for index, line in text.lines(hit + 1, hit + _ROWS):
        blank = blank + 1 if not line.strip() else 0
        if blank > 1:
            break
        name, version = _NVIDIA.search(line), _VERSION.search(line)
        if name and version:
            gpus.append((index, _adapter(name.group(1), version.group(1))))
    return _block(gpus, hit)


def _list(text: Text, hit: int) -> Optional[Block]:
    """The lines of one adapter: as far as the next blank line, both ways."""
    first = text.run_start(hit, -1, _ROWS, _PAIR.match)
    values: dict[str, str] = {}
    last = hit
    for index, line in text.lines(first, hit + _ROWS):
        pair = _PAIR.match(line)
        if not pair:
            break
        values.setdefault(pair.group(1).lower(), pair.group(2))
        last = index
    name = values.get("name") or values.get("caption") or values.get("description") or values.get("friendlyname") or ""
    version = _VERSION.search(values.get("driverversion", ""))
    if not version or not _NVIDIA.match(name):
        return None
    block = _block([(hit, _adapter(name, version.group(1)))], first)
    return block._replace(last=last) if block else None


def _devices(text: Text, hit: int) -> Optional[Block]:
    """Get-PnpDevice: names alone."""
    gpus: list[tuple[int, dict[str, Any]]] = []
    for index, line in text.lines(hit + 1, hit + _ROWS):
        name = _NVIDIA.search(line)
        if name and re.search(r"\bDisplay\b", line):
            gpus.append((index, _adapter(name.group(1), None)))
    return _block(gpus, hit)


def _adapter(name: str, version: Optional[str]) -> dict[str, Any]:
    driver: Optional[str] = None
    if version:
        try:
            driver = nvidia_driver_version(version)
        except ParseError:
            driver = None
    return {"name": name.strip(), "driver_version": driver, "vendor_id": "10de", "device_id": None}


def _block(gpus: list[tuple[int, dict[str, Any]]], first: int) -> Optional[Block]:
    if not gpus:
        return None
    claims = [Claim("windows.gpus", [entry for _, entry in gpus], gpus[0][0])]
    driver = next(((line, entry["driver_version"]) for line, entry in gpus if entry["driver_version"]), None)
    if driver:
        claims.append(Claim("driver.windows_version", driver[1], driver[0]))
    claims.append(Claim("system.os", "windows", gpus[0][0], trust=TYPED))
    return Block("display adapters of Windows", first, gpus[-1][0], tuple(claims), STRUCTURED)


def _page_file(text: Text, hit: int) -> Optional[Block]:
    match = re.search(r"AllocatedBaseSize\s*[:=]\s*(\d{1,8})\b", text[hit], re.IGNORECASE)
    if not match:
        return None
    return Block("page files", hit, hit, (Claim("memory.swap_total", int(match.group(1)) << 20, hit),), STRUCTURED)


def _memory(text: Text, hit: int) -> Optional[Block]:
    match = re.search(r"TotalVisibleMemorySize\s*[:=]\s*(\d{4,12})\b", text[hit], re.IGNORECASE)
    number, at = (match.group(1), hit) if match else ("", hit)
    if not match:
        columns = text[hit].split()
        below = next(((index, line.split()) for index, line in text.lines(hit + 1, hit + 3) if line.strip()), None)
        if below and len(below[1]) == len(columns):
            values = {name.lower(): value for name, value in zip(columns, below[1])}
            number, at = values.get("totalvisiblememorysize", ""), below[0]
    if not number.isdigit() or len(number) > 12:
        return None
    claims = (Claim("memory.total", int(number) << 10, at), Claim("system.os", "windows", at, trust=TYPED))
    return Block("memory of Windows", hit, at, claims, STRUCTURED)
