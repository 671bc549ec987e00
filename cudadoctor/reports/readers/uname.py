"""The running kernel: uname -a, uname -r, /proc/version.

Linux host 6.8.0-79-generic #79-Ubuntu SMP PREEMPT_DYNAMIC Tue Aug 12 14:42:46 UTC 2025 x86_64 x86_64 x86_64 GNU/Linux
Linux version 5.15.133.1-microsoft-standard-WSL2 (root@builder) (gcc ...) #1 SMP ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("gnu/linux", " smp ", "linux version ", "uname -r", "microsoft-standard", "#0-microsoft")

_UNAME = re.compile(
    r"\bLinux \S{1,100} (\d{1,2}\.\d{1,3}[\w.+~-]{0,60}) #\S{1,60}.{0,120}?\b(x86_64|aarch64|ppc64le|i686|armv7l)\b",
    re.ASCII,
)
_VERSION = re.compile(r"\bLinux version (\d{1,2}\.\d{1,3}[\w.+~-]{0,60}) \(", re.ASCII)
_RELEASE = re.compile(r"\d{1,2}\.\d{1,3}\.\d{1,3}[\w.+~-]{0,60}\Z", re.ASCII)
_ASKED = re.compile(r"\buname -r\s*\Z")
_SAID = re.compile(r"\buname -r\W{1,5}(\d{1,2}\.\d{1,3}\.\d{1,3}[\w.+~-]{0,60})", re.ASCII)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:600]
        match = _UNAME.search(line)
        if match:
            release, arch = match.groups()
            yield _block(hit, hit, release, "x86" if arch == "i686" else arch)
            continue
        match = _VERSION.search(line) or _SAID.search(line)
        if match:
            yield _block(hit, hit, match.group(1), "")
        elif _ASKED.search(line) and hit + 1 < len(text):
            match = _RELEASE.match(text[hit + 1].strip())
            if match:
                yield _block(hit, hit + 1, match.group(0), "")


def _wsl(release: str) -> int:
    """WSL 1 calls its kernel 4.4.0-22621-Microsoft; WSL 2 had microsoft-standard without WSL2 at first."""
    return 2 if "wsl2" in release or "microsoft-standard" in release else 1


def _block(first: int, last: int, release: str, arch: str) -> Block:
    claims = [Claim("system.os", "linux", last), Claim("system.kernel_release", release, last)]
    if arch:
        claims.append(Claim("system.arch", arch, last))
    lowered = release.lower()
    if "microsoft" in lowered:
        claims.append(Claim("system.wsl", _wsl(lowered), last))
    return Block("uname", first, last, tuple(claims), TABLE)
