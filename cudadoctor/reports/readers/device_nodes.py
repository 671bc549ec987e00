"""ls -l /dev/nvidia*: the device files as they were, with their rights.

crw-rw-rw- 1 root root 195,   0 Mar 10 09:15 /dev/nvidia0
ls: cannot access '/dev/nvidia*': No such file or directory
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("/dev/nvidia", "/dev/dxg", "/dev/nvgpu", "/dev/nvmap")

_ROW = re.compile(
    r"c((?:[r-][w-][xst-]){3})[+.@]?\s+\d{1,4}\s+([\w.-]{1,60})\s+([\w.-]{1,60})\s+(\d{1,5}),\s*(\d{1,6})\s.{0,40}?"
    r"(/dev/(?:nvidia[\w/-]*|dxg|nvgpu[\w/-]*|nvmap))\s*\Z",
    re.ASCII,
)
# A plain `ls /dev/nvidia*`: nothing but paths.
_NAMES = re.compile(r"\s*(?:/dev/(?:nvidia[\w-]*|dxg|nvgpu|nvmap)(?:\s+|\Z))+\Z", re.ASCII)
_MISSING = re.compile(
    r"(?:ls|stat): .{0,60}(/dev/nvidia\*|/dev/nvidia|/dev/dxg)['\"]?:? .*(No such file|nicht gefunden|没有那个文件)",
    re.I,
)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:400]
        row = _ROW.search(line)
        if row:
            yield Block("ls -l /dev", hit, hit, (Claim("device.nodes", [_entry(row)], hit),), TABLE)
        elif _NAMES.match(line):
            nodes = [_named(path) for path in line.split()]
            yield Block("ls /dev", hit, hit, (Claim("device.nodes", nodes, hit),), TABLE)
        elif _MISSING.search(line):
            yield Block("ls -l /dev", hit, hit, (Claim("device.nodes", [], hit),), TABLE)


def _named(path: str) -> dict[str, Any]:
    """A node of which no more than its name is told."""
    return {"path": path, "mode": None, "uid": None, "gid": None, "group": None, "usable": None, "device": None}


def _entry(row: re.Match[str]) -> dict[str, Any]:
    rights, owner, group, major, minor, path = row.groups()
    mode = "".join(str(_digit(rights[at : at + 3])) for at in (0, 3, 6))
    return {
        "path": path,
        "mode": mode,
        "uid": 0 if owner == "root" else None,
        "gid": 0 if group == "root" else None,
        "group": group,
        # Open to everybody; else it depends on who asks, and the listing does not say who that is.
        "usable": True if int(mode[2]) & 6 == 6 else None,
        "device": f"{major}:{minor}",
    }


def _digit(rights: str) -> int:
    return 4 * (rights[0] == "r") + 2 * (rights[1] == "w") + (rights[2] in "xst")
