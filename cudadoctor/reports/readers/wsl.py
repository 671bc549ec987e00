"""wsl --version, wsl --status, wsl -l -v, in the languages in which people paste them.

WSL version: 2.6.1.0
Kernelversion: 6.6.87.2-1
Windows 版本： 10.0.26100.6584
* Ubuntu                 Running         2
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import STRUCTURED, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "wsl version",
    "wsl-version",
    "wsl 版本",
    "wsl バージョン",
    "wsl 버전",
    "version wsl",
    "version de wsl",
    "versión de wsl",
    "версия wsl",
    "versione wsl",
    "kernel version: ",
    "invalid command line option: --version",
    " state ",
)

_VERSION = re.compile(r"[:：]\s*(\d{1,3}(?:\.\d{1,6}){2,3})(?:-\w{1,10})?\s*\Z")
_KERNEL = re.compile(r"[:：]\s*([45678]\.\d{1,3}\.\d{1,3}[\w.-]{0,40})\s*\Z")
_WINDOWS = re.compile(r"Windows\W[^\d]{0,20}[:：]\s*10\.0\.(\d{5})(?:\.\d{1,6})?\s*\Z")
_ROW = re.compile(r"\s*(\*)?\s*([\w.-]{2,60})\s{2,}(Running|Stopped|\S{2,20})\s{2,}([12])\s*\Z")
_LINES = 7


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit].strip()
        lowered = line.lower()
        claims: list[Claim] = []
        last = hit
        if "wsl" in lowered and "wslg" not in lowered:
            version = _VERSION.search(line)
            if version:
                claims.append(Claim("wsl.version", version.group(1), hit))
                for index, below in text.lines(hit + 1, hit + _LINES):
                    kernel, windows = _KERNEL.search(below.strip()), _WINDOWS.search(below.strip())
                    if kernel and index == hit + 1:
                        claims.append(Claim("wsl.kernel_version", kernel.group(1), index))
                        last = index
                    elif windows:
                        claims.append(Claim("system.windows_build", int(windows.group(1)), index))
                        last = index
        elif lowered.startswith("kernel version:"):
            above = " ".join(part for _, part in text.lines(hit - 6, hit - 1))
            kernel = _KERNEL.search(line)
            if kernel and ("Windows Subsystem for Linux" in above or "Default Version" in above):
                claims.append(Claim("wsl.kernel_version", kernel.group(1), hit))
        elif "invalid command line option: --version" in lowered:
            # The WSL that came with Windows knows no --version; that of the store does.
            claims.append(Claim("wsl.version", None, hit, "absent"))
        elif re.search(r"\bNAME\b.*\bSTATE\b.*\bVERSION\b", line):
            for index, below in text.lines(hit + 1, hit + 20):
                row = _ROW.match(below)
                if not row:
                    break
                last = index
                if row.group(1):
                    claims.append(Claim("system.wsl", int(row.group(4)), index, trust=TYPED))
        if claims:
            end = last
            yield Block("wsl", hit, last, tuple(claims), STRUCTURED)
