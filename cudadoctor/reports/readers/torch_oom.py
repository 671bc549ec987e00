"""torch's report that the GPU's memory did not suffice, of every release, with its numbers in bytes.

CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 6.42 GiB already allocated; 15.56 MiB
    free; 6.89 GiB reserved in total by PyTorch)
CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 31.84 GiB of which 1.02 GiB is free.
    Process 4242 has 8.00 GiB memory in use. Including non-PyTorch memory, this process has 22.10 GiB memory in use.
    24.00 GiB allowed; Of the allocated memory 20.90 GiB is allocated by PyTorch, with 512.00 MiB allocated in private
    pools (e.g., CUDA Graphs), and 311.20 MiB is reserved by PyTorch but unallocated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.sizes import size_or_none
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("tried to allocate", "has a total capa")

_SIZE = r"(\d[\d.]{0,12} ?(?:[KMGT]i?B|bytes))"
_NUMBERS = (
    ("oom.tried", re.compile(rf"Tried to allocate {_SIZE}")),
    ("oom.total", re.compile(rf"{_SIZE} total capacity")),
    ("oom.total", re.compile(rf"total capac?i?ty of {_SIZE}")),
    ("oom.allocated", re.compile(rf"{_SIZE} already allocated")),
    ("oom.allocated", re.compile(rf"{_SIZE} is allocated by PyTorch")),
    ("oom.free", re.compile(rf"{_SIZE} free\b")),
    ("oom.free", re.compile(rf"of which {_SIZE} is free")),
    ("oom.reserved", re.compile(rf"{_SIZE} (?:reserved in total by PyTorch|cached)")),
    ("oom.unallocated", re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")),
    ("oom.process", re.compile(rf"this process has {_SIZE} memory in use")),
    ("oom.allowed", re.compile(rf"{_SIZE} allowed")),
    ("oom.private_pools", re.compile(rf"{_SIZE} allocated in private pools")),
)
_DEVICE = re.compile(r"\bGPU (\d{1,3})(?:;| has a total)")
_OTHERS = re.compile(rf"\bProcess \d{{1,10}} has {_SIZE} memory in use")
_LINES = 6
# One report has a good deal less than this many letters.
_LONGEST = 3000
_MOST = 200


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    # The last report counts: of very many the last are enough.
    for hit in hits[-_MOST:]:
        line = text[hit]
        start = line.find("Tried to allocate")
        if hit <= end or (start < 0 and "has a total capa" not in line):
            continue
        parts, last = [line[max(0, start) :]], hit
        for index, below in text.lines(hit + 1, hit + _LINES):
            if not below.strip() or "Tried to allocate" in below or _finished(parts):
                break
            parts.append(below.strip())
            last = index
        end = last
        claims = list(_claims(" ".join(parts)[:_LONGEST], hit))
        if len(claims) > 1:
            yield Block("torch's report of full memory", hit, last, tuple(claims), LOG)


def _finished(parts: list[str]) -> bool:
    said = parts[-1]
    return "unallocated" in said or "by PyTorch)" in said or "cached)" in said or "avoid fragmentation" in said


def _claims(said: str, line: int) -> Iterator[Claim]:
    found: dict[str, int] = {}
    for fact, pattern in _NUMBERS:
        match = pattern.search(said)
        size = size_or_none(match.group(1)) if match else None
        if size is not None:
            found.setdefault(fact, size)
    unallocated = found.pop("oom.unallocated", None)
    if unallocated is not None and "oom.allocated" in found:
        # Since torch 2.1 the text tells what is reserved beyond what is allocated; before, it told the sum.
        found["oom.reserved"] = found["oom.allocated"] + unallocated
    elif found.get("oom.reserved", 1 << 62) < found.get("oom.allocated", 0):
        # torch 1.0 to 1.3: "cached" is what is reserved beyond what is allocated.
        found["oom.reserved"] += found["oom.allocated"]
    others = [size for size in map(size_or_none, _OTHERS.findall(said)) if size is not None]
    # Seen from a container, this process is listed by its number on the host, and is none of the others.
    itself = sum(others) + found.get("oom.allocated", 0) > found.get("oom.total", 1 << 62)
    if others and not itself:
        found["oom.others"] = sum(others)
    device = _DEVICE.search(said)
    if device:
        found["oom.device"] = int(device.group(1))
    for fact, value in found.items():
        yield Claim(fact, value, line)
