"""df: the size of /dev/shm, and the room where temporary files go. The heading is translated; the columns are not.

Filesystem      Size  Used Avail Use% Mounted on
shm              64M     0   64M   0% /dev/shm
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.sizes import column_size
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("% /dev/shm", "% /tmp", "/dev/shm")

_AMOUNT = r"\d{1,15}(?:[.,]\d{1,2})?[KMGTP]?i?B?"
_ROW = re.compile(rf"({_AMOUNT})\s+({_AMOUNT})\s+({_AMOUNT})\s+\d{{1,3}}%\s+(/dev/shm|/tmp)\s*\Z")
_BYTES_A_BLOCK = (("1M-", 1 << 20), ("1048576-", 1 << 20), ("1G-", 1 << 30), ("512-", 512), ("1B-", 1))
_ABOVE = 40


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        row = _ROW.search(text[hit])
        if not row:
            continue
        unit = 1 << 10
        for index in range(hit - 1, max(-1, hit - _ABOVE), -1):
            if "%" in text[index] and not re.search(r"\d%", text[index]):
                unit = next((size for mark, size in _BYTES_A_BLOCK if mark in text[index]), 1 << 10)
                break
        size, free = column_size(row.group(1), unit), column_size(row.group(3), unit)
        if size is None or free is None:
            continue
        if row.group(4) == "/dev/shm":
            claims = (Claim("memory.shm_size", size, hit), Claim("memory.shm_free", free, hit))
        else:
            claims = (Claim("disk.temporary_free", free, hit), Claim("disk.temporary_path", "/tmp", hit))
        yield Block("df", hit, hit, claims, TABLE)
