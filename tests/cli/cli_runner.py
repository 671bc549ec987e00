"""What a run of the command line gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Result(NamedTuple):
    exit: int
    out: str
    err: str


# `run("check", "--format", "json")`, a fixture.
Run = Callable[..., Result]
