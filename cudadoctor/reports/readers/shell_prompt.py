r"""The shell in which somebody typed, and the interpreter that they called by its path.

D:\ComfyUI_windows_portable>.\python_embeded\python.exe -s ComfyUI\main.py --windows-standalone-build
PS C:\work> & "C:\Program Files\Python311\python.exe" -m pip list
(env) user@host:~/work$ ./venv/bin/python train.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    ":\\",
    "bin/python",
    "\\python.exe",
    "\\python ",
)

# Believed less than what a person says of the system in words: a text may quote another machine's.
_TRUST = TYPED - 5
_MOST = 400

_FOLDER = r"[A-Za-z]:\\[^<>\"|?*:\n]{0,200}"
_PROMPT = re.compile(rf"\s*(?:\([^()\n]{{1,60}}\) ?)?(?:PS )?(?P<folder>{_FOLDER})>(?P<command>.*)")
_CALLED = re.compile(
    r"\s*(?:& ?)?(?P<quote>[\"']?)"
    r"(?P<python>(?:[A-Za-z]:|\.{1,2})?\\?(?:[^<>\"'|?*:\s\n]|(?<=\S) (?=\S)){0,200}?\\python(?:\.exe)?)"
    r"(?P=quote)\s+(?:-|\S+\.py\b)",
    re.IGNORECASE,
)
_POSIX = re.compile(
    r"\s*(?:(?:\([^()\n]{1,60}\) ?)?\S{0,80}[$#%] )?"
    r"(?P<python>(?:~|\.{1,2})?/(?:[\w.@+-]{1,80}/){0,15}bin/python[\d.]{0,5})\s+"
    r"(?:-[mcus]\b|\S+\.py\b)"
)
# These two stand for whatever the system takes them for.
_SYSTEMS_OWN = ("/usr/bin/", "/bin/")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    system: Optional[int] = None
    python: Optional[tuple[str, int]] = None
    for hit in hits[:_MOST]:
        line = text[hit]
        prompt = _PROMPT.match(line)
        command = prompt.group("command") if prompt else line
        if prompt and re.match(r"\s*wsl\b", command, re.IGNORECASE):
            return  # what follows is of Linux
        called = _CALLED.match(command)
        posix = _POSIX.match(line) if prompt is None and called is None else None
        if prompt or called:
            system = hit
        if called:
            python = _whole(prompt.group("folder") if prompt else "", called.group("python")), hit
        elif posix and not posix.group("python").startswith(_SYSTEMS_OWN):
            python = posix.group("python"), hit
    claims = [] if system is None else [Claim("system.os", "windows", system)]
    if python is not None:
        claims.append(Claim("python.executable", *python))
    if claims:
        last = claims[-1].line
        yield Block("command", last, last, tuple(claims), _TRUST)


def _whole(folder: str, python: str) -> str:
    r""" "D:\x", ".\python_embeded\python.exe" -> "D:\x\python_embeded\python.exe"."""
    if python[1:2] == ":" or python.startswith("..") or not folder:
        return python
    rest = python[2:] if python.startswith(".\\") else python.lstrip("\\")
    return folder.rstrip("\\") + "\\" + rest
