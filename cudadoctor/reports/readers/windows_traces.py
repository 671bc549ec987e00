r"""What betrays Windows where nobody names it: its version's banner, a prompt, the paths of a traceback.

Microsoft Windows [Version 10.0.19045.2728]
PS C:\projects\demo> nvidia-smi
  File "C:\projects\demo\train.py", line 9, in <module>

Paths and prompts count least, and not at all beside WSL: a report of WSL shows those of the Windows around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "00.0.00000",
    "wsl",
    ":\\users\\",
    ":/users/",
    "ps c:\\",
    "ps d:\\",
    'file "c:\\',
    'file "d:\\',
    'file "e:\\',
)

_BUILD = re.compile(r"\bWindows\b[^\n]{0,50}?\b10\.0\.(\d{5})(?:\.\d{1,6})?\b", re.IGNORECASE)
_PATH = re.compile(r"(?:^|[\s\"'`(])(?:PS )?[A-Z]:[\\/][\w\\/ .-]{2,80}", re.IGNORECASE)
# Less than what a program says, and than what a person writes.
_LEAST = TYPED - 5


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    path = None
    wsl = False
    for hit in hits:
        line = text[hit]
        wsl = wsl or "wsl" in line.lower()
        build = _BUILD.search(line)
        if build:
            claim = Claim("system.windows_build", int(build.group(1)), hit)
            yield Block("Windows' version", hit, hit, (claim,), TYPED)
        elif path is None and _PATH.search(line):
            path = hit
    if path is not None and not wsl:
        yield Block("Windows path", path, path, (Claim("system.os", "windows", path),), _LEAST)
