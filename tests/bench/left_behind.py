"""Which processes a run has left behind: each is found by a variable in its environment, whatever became of its
parents, groups and sessions."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import NamedTuple

VARIABLE = "CUDADOCTOR_TESTS_RUN"


def new_mark() -> dict[str, str]:
    """The variable, to be laid over a run's environment."""
    return {VARIABLE: uuid.uuid4().hex}


class Left(NamedTuple):
    """`state` is the kernel's letter: D is uninterruptible sleep, in which nobody can kill it."""

    process: int
    state: str
    command: str
    pipes: list[str]


def left_behind(mark: dict[str, str], seconds: float = 0.0) -> list[Left]:
    """The processes of a run that are there still after so many seconds, without those that have ended."""
    limit = time.monotonic() + seconds
    while True:
        found = [left for left in map(_look, _processes(mark)) if left is not None]
        if not found or time.monotonic() >= limit:
            return found
        time.sleep(0.05)


def _processes(mark: dict[str, str]) -> list[Path]:
    wanted = f"{VARIABLE}={mark[VARIABLE]}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and folder.name != str(os.getpid()):
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if wanted in variables:
                found.append(folder)
    return found


def _look(folder: Path) -> Left | None:
    try:
        state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        held = [os.readlink(folder / "fd" / name) for name in os.listdir(folder / "fd")]
    except OSError:
        return None
    if state in "ZX":
        return None
    return Left(int(folder.name), state, command, [target for target in held if target.startswith("pipe:")])
