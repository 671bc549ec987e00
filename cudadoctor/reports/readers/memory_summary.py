"""torch.cuda.memory_summary(): what torch's allocator holds.

|                  PyTorch CUDA memory summary, device ID 0                 |
|            CUDA OOMs: 1            |        cudaMalloc retries: 3         |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |   5120 MiB |   6144 MiB |  40960 MiB |  35840 MiB |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.sizes import size_or_none
from cudadoctor.reports.blocks import STRUCTURED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("cuda memory summary, device id",)

_DEVICE = re.compile(r"CUDA memory summary, device ID (\d{1,3})")
_COUNTS = re.compile(r"CUDA OOMs:\s*(\d{1,9})\s*\|\s*cudaMalloc retries:\s*(\d{1,9})")
_ROW = re.compile(r"\|?\s*([A-Z][A-Za-z -]{4,24}?memory)\s*\|([^|]{1,20})\|([^|]{1,20})\|")
# Label -> facts of the current and the highest amount.
_FACTS = {
    "Allocated memory": ("allocator.allocated", "allocator.allocated_peak"),
    "Active memory": ("allocator.active", ""),
    "Requested memory": ("allocator.requested", ""),
    "GPU reserved memory": ("allocator.reserved", "allocator.reserved_peak"),
    "Reserved memory": ("allocator.reserved", "allocator.reserved_peak"),
    "Non-releasable memory": ("allocator.not_releasable", ""),
}
_LINES = 80


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        device = _DEVICE.search(text[hit])
        if not device:
            continue
        claims = [Claim("allocator.device", int(device.group(1)), hit)]
        last = hit
        for index, line in text.lines(hit + 1, hit + _LINES):
            if _DEVICE.search(line):
                break
            counts = _COUNTS.search(line)
            if counts:
                claims.append(Claim("allocator.ooms", int(counts.group(1)), index))
                claims.append(Claim("allocator.retries", int(counts.group(2)), index))
                last = index
            row = _ROW.search(line)
            if row and row.group(1) in _FACTS:
                for fact, amount in zip(_FACTS[row.group(1)], row.groups()[1:]):
                    size = size_or_none(amount.strip())
                    if fact and size is not None:
                        claims.append(Claim(fact, size, index))
                last = index
        yield Block("torch.cuda.memory_summary()", hit, last, tuple(claims), STRUCTURED)
