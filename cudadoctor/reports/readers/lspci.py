"""Display devices on the PCI bus: lspci, with or without -nn, -k and -vv.

01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)
        LnkSta: Speed 2.5GT/s (downgraded), Width x4 (downgraded)
        Kernel driver in use: nvidia
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.pci import normalise_bus_id
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("vga compatible controller", "3d controller", "display controller", "host bridge", "nvidia corporation")

_DEVICE = re.compile(
    r"((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+\"?([A-Z0-9][^\[\]:\"]{2,60}?)\"?\s*(?:\[([0-9a-f]{4})\])?"
    r"(?::|\s\")\s*(.*)",
    re.IGNORECASE,
)
_ID = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", re.IGNORECASE)
_UNNAMED = re.compile(r"\bDevice ([0-9a-f]{4})\b")
_LINK = re.compile(r"\bSpeed (\d{1,2}(?:\.\d)?)\s?GT/s.{0,40}?Width x(\d{1,2})\b")
_CLASSES = {"vga compatible controller": "030000", "3d controller": "030200", "display controller": "038000"}
_MAKERS = {"intel": "8086", "amd": "1002", "advanced micro": "1002", "ati ": "1002", "aspeed": "1a03", "matrox": "102b"}
# So many rows with a host bridge among them are the whole bus.
_WHOLE = 8
_DETAILS = 80


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not _DEVICE.search(text[hit][:400]):
            continue
        first, last, rows = _listing(text, hit, end)
        end = last
        claims = list(_claims(text, rows, last))
        if claims:
            yield Block("lspci", first, last, tuple(claims), TABLE)


def _listing(text: Text, hit: int, before: int) -> tuple[int, int, list[tuple[int, re.Match[str]]]]:
    """The devices around a line: rows that follow each other, each with its indented details."""
    first = text.run_start(hit, before, 400, lambda line: _DEVICE.match(line.strip()[:400]))
    rows: list[tuple[int, re.Match[str]]] = []
    last = hit
    for index, line in text.lines(first, hit + 5000):
        match = _DEVICE.search(line[:400])
        if match:
            rows.append((index, match))
            last = index
        elif not line[:1].isspace() or index - rows[-1][0] > _DETAILS:
            if line.strip():
                break
        else:
            last = index
    return first, last, rows


def _claims(text: Text, rows: list[tuple[int, re.Match[str]]], last: int) -> Iterator[Claim]:
    others: list[str] = []
    at = rows[0][0]
    gpus = False
    bridge = False
    for place, (index, match) in enumerate(rows):
        kind, code, name = match.group(2).strip().lower(), match.group(3), match.group(4)
        bridge = bridge or kind.startswith("host bridge")
        class_code = f"{code}00" if code else _CLASSES.get(kind)
        if class_code not in _CLASSES.values():
            continue
        lowered = name.lower()
        stop = rows[place + 1][0] - 1 if place + 1 < len(rows) else last
        ids = _ID.search(name)
        if "nvidia" in lowered or (ids and ids.group(1).lower() == "10de"):
            entry = _gpu(match, class_code or "", ids, [line for _, line in text.lines(index + 1, stop)])
            if entry:
                gpus = True
                yield Claim("pci.gpus", [entry], index)
                if "(rev ff)" in name or any("Unknown header type" in line for _, line in text.lines(index + 1, stop)):
                    yield Claim("kernel.log_events", [_gone(entry["address"], match.group(0))], index)
        else:
            at = index
            others += [vendor for maker, vendor in _MAKERS.items() if maker in lowered][:1]
    if others:
        yield Claim("pci.other_display", sorted(set(others)), at)
    if not gpus and bridge and len(rows) >= _WHOLE:
        yield Claim("pci.gpus", [], rows[0][0])


def _gpu(
    match: re.Match[str], class_code: str, ids: Optional[re.Match[str]], details: list[str]
) -> Optional[dict[str, Any]]:
    try:
        address = normalise_bus_id(match.group(1))
    except ParseError:
        return None
    # A system that is older than the card knows its number alone.
    unnamed = _UNNAMED.search(match.group(4))
    code = ids.group(2).lower() if ids and ids.group(1).lower() == "10de" else ""
    entry: dict[str, Any] = {
        "address": address,
        "device_id": code or (unnamed.group(1) if unnamed else ""),
        "class": class_code,
    }
    for line in details:
        key, _, value = line.strip().partition(":")
        if key == "Kernel driver in use":
            entry["driver"] = value.strip()
        elif key == "Kernel modules":
            # With -k a device that a driver holds has the line "in use" above this one.
            entry.setdefault("driver", None)
        elif key in ("LnkCap", "LnkSta"):
            link = _LINK.search(value)
            if link:
                before = "max_" if key == "LnkCap" else ""
                entry[f"{before}link_speed_gts"] = float(link.group(1))
                entry[f"{before}link_width"] = int(link.group(2))
    return entry


def _gone(address: str, line: str) -> dict[str, Any]:
    """A device that answers with nothing but ones, as an event of the kernel's log."""
    return {"kind": "off-the-bus", "text": line[:300], "bus_id": address, "seconds": None, "values": {}}
