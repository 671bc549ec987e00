"""modinfo nvidia: the module's file on disk, which need not be the one that is loaded.

filename:       /lib/modules/6.8.0-79-generic/updates/dkms/nvidia.ko.zst
version:        535.183.01
license:        NVIDIA
vermagic:       6.8.0-79-generic SMP preempt mod_unload modversions
modinfo: ERROR: Module nvidia not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.module_files import ModInfo, parse_modinfo
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("filename:  ", "vermagic:  ", "license:  ", "srcversion:", "modinfo", "/nvidia.ko")

_FIELD = re.compile(r"[a-z_]{2,20}:\s+\S", re.ASCII)
_ASKED = re.compile(r"\bmodinfo\b.{0,60}\bnvidia", re.ASCII)
_KERNEL = re.compile(r"/lib/modules/([\w.+-]{1,80})/")
_LONGEST = 400


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    others = -1  # the last line of the fields of another module
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        if "ERROR: Module nvidia not found" in line:
            end = hit
            yield Block("modinfo", hit, hit, (Claim("kernel.nvidia_module_files", [], hit),), TABLE)
            continue
        asked = bool(_ASKED.search(line))
        if not asked and hit <= others:
            continue
        first = hit + 1 if asked else hit
        while (
            not asked
            and first > max(end, others) + 1
            and hit - first < _LONGEST
            and _FIELD.match(text[first - 1].strip())
        ):
            first -= 1
        last = first - 1
        for index, row in text.lines(first, first + _LONGEST):
            if not _FIELD.match(row.strip()) and row.strip() and not row.startswith((" ", "\t")):
                break
            last = index
        rows = "\n".join(row.strip() for _, row in text.lines(first, last))
        found = parse_modinfo(rows)
        if found is None or not (asked or "nvidia" in (found.filename or "") or "\nname:           nvidia" in rows):
            others = max(others, last)
            continue
        end = last
        entry = _entry(found)
        if entry:
            yield Block("modinfo", hit, last, (Claim("kernel.nvidia_module_files", [entry], first),), TABLE)


def _entry(found: ModInfo) -> Optional[dict[str, Any]]:
    if found.version is None or not is_driver_version(found.version):
        return None
    place = _KERNEL.search(found.filename or "")
    kernel = found.kernel or (place.group(1) if place else None)
    return {
        "kernel": kernel,
        "path": found.filename or "nvidia.ko",
        "version": found.version,
        "flavour": found.flavour,
    }
