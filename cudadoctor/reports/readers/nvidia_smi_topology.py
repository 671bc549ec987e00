"""nvidia-smi topo -m and topo -p2p in a text: how the GPUs are connected.

            GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
    GPU0     X      NV12    PXB     0-23            0
    GPU1    NV12     X      SYS     24-47           1

Only the square of the GPUs is read: cells behind it may be empty, and pasting loses the tabs. Of topo -p2p the legend
below says which of its questions it answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.model.pattern import pattern
from cudadoctor.reports.blocks import STRUCTURED, Block, Claim
from cudadoctor.reports.readers._nvidia_smi import last_of_each
from cudadoctor.reports.text import Text

TRIGGERS = ("gpu0\t", "gpu0 ", "gpu0\x1b")

_HEAD = pattern(r"GPU0(?:\s+GPU\d{1,3})*(?=\s|$)")
_ROW = pattern(r"\s*GPU(\d{1,3})\s+(.*)")
_LINK = pattern(r"NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|X|\*?")
_STATUS = pattern(r"OK|CNS|GNS|TNS|NS|DR|U|N/A|X")
_ASKED = pattern(r"topo\s+-p2p\s+([rwnap])\b|topo\s+--p2p_capabilities\s+([rwnap])\b")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in last_of_each(text, hits):
        if hit <= end or not text[hit].lstrip().startswith("GPU0"):
            continue
        head = _HEAD.match(text[hit].lstrip())
        if head is None:
            continue
        block = _square(text, hit, len(head.group().split()))
        if block is not None:
            end = block.last
            yield block


def _square(text: Text, hit: int, size: int) -> Optional[Block]:
    rows: dict[int, list[str]] = {}
    last = hit
    for index, line in text.lines(hit + 1, hit + size + 3):
        match = _ROW.match(line)
        if match is None:
            if line.strip():
                break
            continue
        cells = match.group(2).split()[:size]
        number = int(match.group(1))
        if number != len(rows) or number >= size or len(cells) < size or cells[number] != "X":
            break
        rows[number] = cells
        last = index
    if not rows or size > MOST_GPUS:
        return None
    pairs = [(one, two, cells[two]) for one, cells in rows.items() for two in range(one + 1, size)]
    count = Claim("gpu.count", size, hit)
    if all(_LINK.fullmatch(cell) for *_, cell in pairs):
        links: list[dict[str, Any]] = [{"first": one, "second": two, "link": cell} for one, two, cell in pairs]
        return Block("nvidia-smi topo -m", hit, last, (Claim("smi.links", links, hit), count), STRUCTURED)
    if all(_STATUS.fullmatch(cell) for *_, cell in pairs):
        asked = [match for _, line in text.lines(hit - 3, hit) for match in _ASKED.finditer(line)]
        can = (asked[-1].group(1) or asked[-1].group(2)) if asked else None
        status = [{"first": one, "second": two, "can": can, "status": cell} for one, two, cell in pairs]
        return Block("nvidia-smi topo -p2p", hit, last, (Claim("smi.peer_access", status, hit), count), STRUCTURED)
    return None
