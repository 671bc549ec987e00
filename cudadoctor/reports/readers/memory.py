"""The machine's memory and swap: free, /proc/meminfo, swapon --show, /proc/swaps, in any language.

               total        used        free      shared  buff/cache   available
Mem:            62Gi       8.1Gi        21Gi       312Mi        33Gi        54Gi
Swap:          2.0Gi          0B       2.0Gi
MemTotal:       65536000 kB
NAME       TYPE      SIZE USED PRIO
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.procfs import parse_swaps
from cudadoctor.parse.sizes import column_size
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "swap:",
    "交换：",
    "交换:",
    "メモリ:",
    "memtotal:",
    "memavailable:",
    "swaptotal:",
    "size used prio",
    "size  used prio",
    "filename\t",
    "filename  ",
    "mem: ",
)

_AMOUNT = r"\d{1,15}(?:[.,]\d{1,3})?(?:[KMGTP]i?B?|B)?"
_ROW = re.compile(rf"\s*([^\s\d][^\d:：]{{0,20}}?)\s?[:：]\s*({_AMOUNT}(?:\s+{_AMOUNT}){{2,6}})\s*\Z")
_MEMINFO = re.compile(r"\b(MemTotal|MemAvailable|SwapTotal):\s+(\d{1,14}) kB\b")
_SWAPON = re.compile(rf"(/\S{{1,200}})\s+(file|partition)\s+({_AMOUNT})\s+({_AMOUNT})\s+(-?\d{{1,6}})\s*\Z")
_OPTION = re.compile(r"\bfree\s+(?:-\w*\s+)*-?-?([bkmgh]|mega|giga|human|bytes|kilo)")
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MEMINFO_FACTS = {"MemTotal": "memory.total", "MemAvailable": "memory.available", "SwapTotal": "memory.swap_total"}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        meminfo = _MEMINFO.search(line)
        if meminfo:
            claim = Claim(_MEMINFO_FACTS[meminfo.group(1)], int(meminfo.group(2)) << 10, hit)
            yield Block("meminfo", hit, hit, (claim,), TABLE)
            continue
        block = _free(text, hit) or _swapon(text, hit) or _swaps(text, hit)
        if block:
            end = block.last
            yield block


def _free(text: Text, hit: int) -> Optional[Block]:
    """`free`: the row before that of swap is that of memory, whatever the language calls it."""
    row = _ROW.match(text[hit])
    if not row:
        return None
    swap = hit
    if "mem" in row.group(1).lower() or "メモリ" in row.group(1):
        swap = hit + 1
    rows = [_ROW.match(text[index]) if 0 <= index < len(text) else None for index in (swap - 1, swap)]
    unit = _unit(text, swap - 1, rows)
    claims: list[Claim] = []
    for index, match, facts in (
        (swap - 1, rows[0], ("memory.total", "memory.available")),
        (swap, rows[1], ("memory.swap_total",)),
    ):
        if match is None or (index == swap and len(match.group(2).split()) > 3):
            continue
        words = match.group(2).split()
        amounts = [column_size(words[0], unit), column_size(words[-1], unit) if len(words) == 6 else None]
        claims += [Claim(fact, amount, index) for fact, amount in zip(facts, amounts) if amount is not None]
    if rows[0] is None or not claims:
        return None
    return Block("free", swap - 1, swap, tuple(claims), TABLE)


def _unit(text: Text, line: int, rows: list[Optional[re.Match[str]]]) -> Optional[int]:
    """What numbers without a unit count: by the command's option, else by their size where that leaves no doubt."""
    for index in range(max(0, line - 3), line):
        option = _OPTION.search(text[index])
        if option:
            return _UNITS.get(option.group(1)[0])
        if re.search(r"\bfree\s*\Z", text[index]):
            return 1 << 10
    total = rows[0].group(2).split()[0] if rows[0] else ""
    if not total.isdigit():
        return None
    number = int(total)
    if number > 4_000_000_000:
        return 1
    if number > 2_000_000:
        return 1 << 10
    return 1 << 20 if 1500 < number < 200_000 else None


def _swapon(text: Text, hit: int) -> Optional[Block]:
    if "NAME" not in text[hit] or "PRIO" not in text[hit]:
        return None
    areas: list[dict[str, Any]] = []
    last = hit
    for index, line in text.lines(hit + 1, hit + 20):
        row = _SWAPON.match(line.strip())
        size = column_size(row.group(3), None) if row else None
        if not row or size is None:
            break
        last = index
        kind = "zram" if row.group(1).startswith("/dev/zram") else row.group(2)
        areas.append({"path": row.group(1), "kind": kind, "size": size})
    return _areas("swapon --show", areas, hit, last)


def _swaps(text: Text, hit: int) -> Optional[Block]:
    if not re.match(r"Filename\s+Type\s+Size", text[hit].strip()):
        return None
    last = hit
    for index, line in text.lines(hit + 1, hit + 20):
        if not re.match(r"/\S+\s+(file|partition)\s", line.strip()):
            break
        last = index
    try:
        swaps = parse_swaps("\n".join(line.strip() for _, line in text.lines(hit, last)))
    except ParseError:
        return None
    areas = [{"path": swap.name, "kind": "zram" if swap.is_zram else swap.kind, "size": swap.size} for swap in swaps]
    return _areas("/proc/swaps", areas, hit, last)


def _areas(kind: str, areas: list[dict[str, Any]], first: int, last: int) -> Block:
    total = sum(area["size"] for area in areas)
    claims = (Claim("memory.swap_total", total, first), Claim("memory.swap_devices", areas, first))
    return Block(kind, first, last, claims, TABLE)
