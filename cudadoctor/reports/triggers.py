"""Where in a text a reader may find something: many short literals looked for in one pass.

A reader's triggers are lower-case texts, one of which stands in the first line of everything that it reads. A text is
gone through once for the triggers of all readers, so that twenty readers cost little more than one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cudadoctor.reports.text import LONGEST, Text


class Triggers:
    """The triggers of several owners, by the owner's name."""

    def __init__(self, by_owner: Mapping[str, Iterable[str]]) -> None:
        owners: dict[str, list[str]] = {}
        for owner, triggers in by_owner.items():
            for trigger in triggers:
                owners.setdefault(trigger, []).append(owner)
        self._owners = owners
        self._any = re.compile(_alternation(owners)) if owners else None

    def find(self, text: Text) -> dict[str, list[int]]:
        """Owner -> the lines (from 0) in which one of its triggers stands, in order."""
        found: dict[str, list[int]] = {}
        if self._any is None:
            return found
        search = self._any.search
        seen: dict[str, tuple[str, ...]] = {}  # logs repeat themselves
        for index in range(len(text)):
            raw = text.raw(index)
            if len(raw) < 3:
                continue
            line = raw[:LONGEST].lower()
            owners = seen.get(line)
            if owners is None:
                match = search(line)
                owners = () if match is None else self._owners_of(line, match.start())
                if len(seen) < 50_000 and len(line) < 500:
                    seen[line] = owners
            for owner in owners:
                found.setdefault(owner, []).append(index)
        return found

    def _owners_of(self, line: str, start: int) -> tuple[str, ...]:
        rest = line[start:]
        return tuple(dict.fromkeys(o for trigger, owners in self._owners.items() if trigger in rest for o in owners))


def _alternation(literals: Iterable[str]) -> str:
    """A pattern for any of the literals, common beginnings shared: much faster than a plain list of them."""
    tree: dict[str, dict[str, object]] = {}
    for literal in literals:
        node = tree
        for letter in literal:
            node = node.setdefault(letter, {})  # type: ignore[assignment]
        node[""] = {}
    return _pattern(tree)


def _pattern(node: Mapping[str, object]) -> str:
    if "" in node:
        return ""
    parts = [re.escape(letter) + _pattern(below) for letter, below in sorted(node.items())]  # type: ignore[arg-type]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
