"""What a child has said: the lines that bear its mark, among whatever else came through the same pipe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.model.fact import no_number
from cudadoctor.model.record import NamedTuple

# More than any child says, and than anybody wants to read of one that talks without end.
MOST_BYTES = 1 << 20


class Said(NamedTuple):
    """`results` in their order; `at_hand` is the check (with its variant) that was announced and never reported;
    `ended`: the child said that it was through."""

    python: str
    results: tuple[Mapping[str, Any], ...]
    at_hand: Optional[tuple[str, str]]
    ended: bool


class Ending(NamedTuple):
    """How a child's process ended. `signal` is the name of what killed it ("SIGSEGV", or an exception code of
    Windows); `errors` the end of its standard error; `refused` why it could not even be started."""

    status: Optional[int] = None
    signal: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    errors: str = ""
    refused: str = ""


def read_lines(output: bytes, mark: str) -> Said:
    """Never fails: what is no event of the child's is passed over."""
    python = ""
    results: list[Mapping[str, Any]] = []
    at_hand: Optional[tuple[str, str]] = None
    ended = False
    for line in output[:MOST_BYTES].decode("ascii", "replace").splitlines():
        event = _event(line, mark)
        kind = event.get("event")
        if kind == "python":
            python = text(event, "version")
        elif kind == "start" and text(event, "check"):
            at_hand = text(event, "check"), text(event, "variant")
        elif kind == "result" and text(event, "check"):
            results.append(event)
            at_hand = None
        elif kind == "end":
            ended = True
    return Said(python, tuple(results), at_hand, ended)


def _event(line: str, mark: str) -> Mapping[str, Any]:
    if not line.startswith(mark + " "):
        return {}
    try:
        event = json.loads(line[len(mark) + 1 :], parse_constant=no_number)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def text(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def number(event: Mapping[str, Any], key: str) -> Optional[float]:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 else None


def whole(event: Mapping[str, Any], key: str) -> Optional[int]:
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
