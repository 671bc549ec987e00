"""What a reader makes of a stretch of text."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.record import NamedTuple

# How much a block is believed where two disagree. A program's own structured output is believed before its table,
# both before a report that quotes them, that before a library's log line, and all before what a person typed.
STRUCTURED = 50
TABLE = 40
REPORT = 30
LOG = 20
TYPED = 10


class Claim(NamedTuple):
    """One fact that a text states: a name of the catalogue, its value, and the line (from 0) in which it stands.

    `state` is known or absent; absent only where the program says so itself ("No devices were found"). `trust` is set
    where the claim is believed less than its block: what a program's output only implies (a table with WDDM in it comes
    from Windows, and the rest of the report may be of the WSL beside it).
    """

    fact: str
    value: Any
    line: int
    state: str = "known"
    trust: Optional[int] = None


class Block(NamedTuple):
    """A stretch of text that one program wrote, or one sentence of it.

    `kind` names it for people ("nvidia-smi table", "torch collect_env"); `first` and `last` are lines from 0; `driver`
    is the driver version that it shows, by which the output of one machine is told from another's; `notes` say what a
    person should know about it (a name that is cut, values that cannot be).
    """

    kind: str
    first: int
    last: int
    claims: tuple[Claim, ...]
    trust: int = REPORT
    driver: Optional[str] = None
    notes: tuple[str, ...] = ()
