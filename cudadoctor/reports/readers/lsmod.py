"""Loaded kernel modules: lsmod, lsmod | grep nvidia, /proc/modules.

Module                  Size  Used by
nvidia_uvm           4694016  2
nvidia              56717312  306 nvidia_uvm,nvidia_modeset
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("used by", "nvidia ", "nvidia_", "nouveau ")

_ROW = re.compile(
    r"(\w{2,60})\s+(\d{3,9})\s+(-?\d{1,5}|-)(?:\s+([\w,-]+|\[permanent\]))*(?:\s+Live\b.*)?\s*\Z", re.ASCII
)
_HEADER = re.compile(r"Module\s+Size\s+Used by", re.IGNORECASE)
# A running system has many more; a list as long as this was not cut down to a few modules.
_WHOLE = 25
_LONGEST = 600


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit].strip()
        if not _HEADER.search(line) and not _ROW.match(line):
            continue
        first = text.run_start(hit, end, _LONGEST, lambda line: _ROW.match(line.strip()))
        header = bool(_HEADER.search(line)) or (first > 0 and bool(_HEADER.search(text[first - 1])))
        names: dict[str, int] = {}
        end = hit
        for index, row in text.lines(first, hit + _LONGEST):
            match = _ROW.match(row.strip())
            if match:
                names.setdefault(match.group(1), index)
                end = index
            elif index > hit:
                break
        if names and (header or names.keys() & {"nvidia", "nouveau", "nvidia_uvm"}):
            yield Block("lsmod", first, end, tuple(_claims(names, first, header)), TABLE)


def _claims(names: dict[str, int], first: int, header: bool) -> Iterator[Claim]:
    yield Claim("kernel.modules", list(names), first)
    if "nvidia" in names:
        yield Claim("driver.module_loaded", True, names["nvidia"])
    elif header and len(names) >= _WHOLE:
        yield Claim("driver.module_loaded", False, first)
