"""From the lines of a file to JSON documents: one a line, one over many lines, or any mixture of these.

Nothing here raises: what is no document is given as Unreadable, with the lines that it takes up, and the reading goes
on after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Union

from cudadoctor.fleet.model import Place, Unreadable
from cudadoctor.model.fact import no_number
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple

# A snapshot of a node with eight GPUs is some hundred kilobytes; more than this is something else.
MOST_LETTERS = 16 << 20

EXPECTED = "expected a JSON document of `cudadoctor check --format json-line`"

# pdsh and srun --label write the node's name, or the task's number, before each line.
_LABEL = pattern(r"([A-Za-z0-9][A-Za-z0-9._-]{0,252}):[ \t]*(?=[{\[])")


class Document(NamedTuple):
    """A JSON value, where it begins, and the name that a launcher wrote before it (empty: none)."""

    value: Any
    place: Place
    label: str = ""


def documents(file: str, lines: Iterable[str]) -> Iterator[Union[Document, Unreadable]]:
    """The documents of `lines`, which end as the file has them. A line that is longer than MOST_LETTERS may be cut."""
    pending: Union[Unreadable, None] = None
    for found in _documents(file, lines):
        if isinstance(found, Document):
            if pending is not None:
                yield pending
                pending = None
            yield found
        elif pending is not None and found.reason == pending.reason and found.place.line == pending.last + 1:
            # A page of text is one thing that is no snapshot, not a hundred.
            pending = pending._replace(last=found.last)
        else:
            if pending is not None:
                yield pending
            pending = found
    if pending is not None:
        yield pending


def _documents(file: str, lines: Iterable[str]) -> Iterator[Union[Document, Unreadable]]:
    gathered: list[str] = []  # the lines of a document that has not ended yet
    size = first = number = 0
    label = ""
    for number, raw in enumerate(lines, 1):
        line = raw.lstrip("\ufeff") if number == 1 else raw
        named = _LABEL.match(line)
        if named is not None:
            line = line[named.end() :]
        # What is written over several lines is indented: a brace at a line's beginning opens a document or ends one.
        if gathered and line[:1] == "{":
            yield _ended(file, first, number - 1, label, gathered)
            gathered = []
        if not gathered:
            if not line.strip():
                continue
            if line.lstrip()[:1] not in ("{", "["):
                yield Unreadable(Place(file, number), f"no JSON; {EXPECTED}", "", number)
                continue
            first, size = number, 0
            label = "" if named is None or named.group(1).isdigit() else named.group(1)
        gathered.append(line)
        size += len(line)
        if size > MOST_LETTERS:
            yield Unreadable(Place(file, first), _TOO_LARGE, label, number)
            gathered = []
        elif line[:1] in ("}", "]") or (len(gathered) == 1 and line.rstrip().endswith(("}", "]"))):
            yield _ended(file, first, number, label, gathered)
            gathered = []
    if gathered:
        yield _ended(file, first, number, label, gathered)


_TOO_LARGE = f"larger than {MOST_LETTERS >> 20} MiB, which no snapshot of a node is"


def _ended(file: str, first: int, last: int, label: str, gathered: list[str]) -> Union[Document, Unreadable]:
    found = _parsed("".join(gathered))
    if isinstance(found, str):
        return Unreadable(Place(file, first), found, label, last)
    return Document(found[0], Place(file, first), label)


def _parsed(text: str) -> Union[str, tuple[Any]]:
    """The value of `text` in a tuple, or what is wrong with it."""
    try:
        return (json.loads(text, parse_constant=no_number),)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
            return f"JSON that ends too soon; {EXPECTED}"
        return f"no JSON (column {error.colno}: {error.msg}); {EXPECTED}"
    except (RecursionError, ValueError):
        return f"JSON that cannot be read: nested too deeply, or a number that is none; {EXPECTED}"
