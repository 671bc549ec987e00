"""systemctl status of the services that a driver brings: the fabric manager and IMEX.

* nvidia-fabricmanager.service - NVIDIA fabric manager service
     Active: failed (Result: exit-code) since ...
Unit nvidia-fabricmanager.service could not be found.
$ systemctl is-active nvidia-fabricmanager
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("nvidia-fabricmanager", "nvidia-imex")

_FACTS = {"nvidia-fabricmanager": "driver.fabric_manager", "nvidia-imex": "driver.imex"}
_ACTIVE = re.compile(r"\bActive: (active|inactive|failed|activating)\b(?: \((\w+)\))?")
_ABOUT = 8


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        line = text[hit][:400]
        service = next((name for name in _FACTS if name in line), None)
        if hit <= end or service is None:
            continue
        if "could not be found" in line or "not-found" in line:
            yield Block("systemctl", hit, hit, (Claim(_FACTS[service], None, hit, "absent"),), TABLE)
            continue
        row = re.search(rf"{service}\.service\s+loaded\s+(active|inactive|failed)\s+(\w+)", line)
        if row:
            yield _block(service, row.group(1) == "active", hit, hit)
            continue
        asked = "is-active" in line
        for index, below in text.lines(hit, hit + (1 if asked else _ABOUT)):
            active = _ACTIVE.search(below)
            word = below.strip() if asked and index > hit else ""
            if active or word in ("active", "inactive", "failed", "activating", "unknown"):
                end = index
                yield _block(service, (active.group(1) if active else word) == "active", hit, index)
                break


def _block(service: str, running: bool, first: int, last: int) -> Block:
    return Block("systemctl", first, last, (Claim(_FACTS[service], "running" if running else "stopped", last),), TABLE)
