"""Libraries that a report lists: ldconfig -p, find / -name 'libcudnn*', ls of a folder with full paths.

        libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
/usr/lib/x86_64-linux-gnu/libcudnn.so.9
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "libcuda.so",
    "libcudart",
    "libcudnn",
    "libcublas",
    "libnvjitlink",
    "libnccl",
    "libcusparse",
    "libcusolver",
    "libnvrtc",
    "libnvidia-ml",
)

_CACHED = re.compile(r"(lib[\w.+-]{1,60}\.so[.\d]*) \([^)\n]{1,80}\) => (/[^\s]{1,300})")
_PATH = re.compile(r"\s*(/[\w./+@-]{1,300}/(lib[\w+-]{1,60}\.so[.\d]*))(?: -> [\w./+-]{1,300})?\s*\Z")
_DRIVER = ("libcuda.so", "libnvidia-ml.so")
_MOST = 200


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    listed: dict[str, tuple[int, dict[str, Any]]] = {}
    driver: dict[str, tuple[int, dict[str, Any]]] = {}
    for hit in hits:
        line = text[hit][:500]
        match = _CACHED.search(line)
        cached = bool(match)
        if match:
            soname, path = match.groups()
        else:
            match = _PATH.match(line)
            if not match:
                continue
            path, soname = match.groups()
        if soname.startswith("libcuda.so.1") and cached and len(driver) < _MOST:
            driver[path] = (hit, _libcuda(path))
        if not soname.startswith(_DRIVER) and len(listed) < _MOST:
            listed[path] = (hit, {"path": path, "soname": soname})
    if driver:
        lines = [line for line, _ in driver.values()]
        claim = Claim("driver.libcuda", [entry for _, entry in driver.values()], lines[0])
        yield Block("ldconfig -p", lines[0], lines[-1], (claim,), TABLE)
    if listed:
        lines = [line for line, _ in listed.values()]
        claim = Claim("libraries.listed", [entry for _, entry in listed.values()], lines[0])
        yield Block("list of libraries", lines[0], lines[-1], (claim,), TABLE)


def _libcuda(path: str) -> dict[str, Any]:
    kind = "driver"
    for part, name in (("/wsl/", "wsl"), ("/compat", "compat"), ("/stubs", "stub")):
        if part in path:
            kind = name
    return {"path": path, "real_path": path, "found_by": "ld.so.cache", "kind": kind, "version": None}
