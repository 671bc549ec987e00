"""ulimit -a of bash, zsh and dash, ulimit -n, /proc/self/limits.

open files                          (-n) 1024
max locked memory           (kbytes, -l) 8192
-n: file descriptors                1024
nofiles              1024
Max open files            1024                 1048576              files
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "open files",
    "locked memory",
    "locked-in-memory",
    "locked_memory",
    "virtual memory",
    "address space",
    "file descriptors",
    "nofiles",
    "ulimit -",
)

_NUMBER = r"(\d{1,19}|unlimited)"
_ROWS = (
    ("limits.nofile", 1, re.compile(rf"open files\s+\(-n\)\s+{_NUMBER}\s*\Z")),
    ("limits.nofile", 1, re.compile(rf"-n: file descriptors\s+{_NUMBER}\s*\Z")),
    ("limits.nofile", 1, re.compile(rf"nofiles\s+{_NUMBER}\s*\Z")),
    ("limits.nofile", 1, re.compile(rf"Max open files\s+{_NUMBER}\s+(?:\d+|unlimited)\s+files")),
    ("limits.memlock", 1 << 10, re.compile(rf"max locked memory\s+\(kbytes, -l\)\s+{_NUMBER}\s*\Z")),
    ("limits.memlock", 1 << 10, re.compile(rf"-l: locked-in-memory size \(kbytes\)\s+{_NUMBER}\s*\Z")),
    ("limits.memlock", 1 << 10, re.compile(rf"locked memory\(kbytes\)\s+{_NUMBER}\s*\Z")),
    ("limits.memlock", 1, re.compile(rf"Max locked memory\s+{_NUMBER}\s+(?:\d+|unlimited)\s+bytes")),
    ("limits.address_space", 1 << 10, re.compile(rf"virtual memory\s+\(kbytes, -v\)\s+{_NUMBER}\s*\Z")),
    ("limits.address_space", 1 << 10, re.compile(rf"-v: address space \(kbytes\)\s+{_NUMBER}\s*\Z")),
    ("limits.address_space", 1, re.compile(rf"Max address space\s+{_NUMBER}\s+(?:\d+|unlimited)\s+bytes")),
)
_ASKED = re.compile(r"[$#%>]\s*ulimit -(?:S)?([nlv])\s*\Z")
_ASKED_FACTS = {"n": ("limits.nofile", 1), "l": ("limits.memlock", 1 << 10), "v": ("limits.address_space", 1 << 10)}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit].strip()[:300]
        for fact, unit, pattern in _ROWS:
            match = pattern.search(line)
            if match:
                yield _block(fact, match.group(1), unit, hit, hit)
                break
        asked = _ASKED.search(line)
        answer = text[hit + 1].strip() if asked and hit + 1 < len(text) else ""
        if asked and re.fullmatch(_NUMBER, answer):
            fact, unit = _ASKED_FACTS[asked.group(1)]
            yield _block(fact, answer, unit, hit, hit + 1)


def _block(fact: str, number: str, unit: int, first: int, last: int) -> Block:
    if number == "unlimited" or int(number) * unit >= 1 << 62:
        claim = Claim(fact, None, last, "absent")
    else:
        claim = Claim(fact, int(number) * unit, last)
    return Block("ulimit", first, last, (claim,), TABLE)
