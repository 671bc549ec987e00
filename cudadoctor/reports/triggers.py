"""Where in a text a reader may find something: many short literals looked for in one pass.

A reader's triggers are lower-case texts, one of which stands in the first line of everything that it reads. A text is
gone through once for the triggers of all readers, so that forty readers cost little more than one.

How it stays quick: of each trigger six letters are looked for, those that begin with its rarest one, so that most
letters of a text are passed over without a look. Lines that differ in nothing but numbers, as those of a log do, are
looked at once. Hence a digit in a trigger stands for any digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cudadoctor.reports.text import LONGEST, PLAIN, Marks, Text, clean

# Letters of logs and reports from the most frequent to the rarest; what is not among them is rarer still.
_BY_FREQUENCY = " e0tainosrlcdumpfhg./-_y:bv=,w|[]()kx"
# Words that stand in every other line of a report about GPUs: to begin a look-up within them saves nothing.
_EVERYWHERE = b"nvidia cuda torch python version error memory driver library available"
_GRAM = 6
_MOST_REMEMBERED = 50_000

# A text that says one thing a thousand times says it as well at its beginning and its end, and the end counts. As many
# are told of lines that differ in digits only (a node has 16 GPUs, in parts more than 100), and of all that hold the
# same triggers.
_FIRST_AND_LAST = (50, 150)
_FIRST_AND_LAST_ALIKE = (1000, 1000)

_NO_MARKS = Marks((), ())
_FOLDED = bytes.maketrans(b"0123456789", b"0" * 10)


class Triggers:
    """The triggers of several owners, by the owner's name."""

    def __init__(self, by_owner: Mapping[str, Iterable[str]]) -> None:
        owners: dict[bytes, list[str]] = {}
        for owner, triggers in by_owner.items():
            for trigger in triggers:
                of_trigger = owners.setdefault(folded(trigger), [])
                if owner not in of_trigger:
                    of_trigger.append(owner)
        by_gram: dict[bytes, list[tuple[bytes, int, tuple[str, ...]]]] = {}
        for literal, names in owners.items():
            place = _rarest(literal)
            by_gram.setdefault(literal[place : place + _GRAM], []).append((literal, place, tuple(names)))
        # Gram -> the triggers that are looked for by it: (trigger, place of the gram in it, owners). A gram that begins
        # with a shorter one is found by that.
        self._by_gram: dict[bytes, list[tuple[bytes, int, tuple[str, ...]]]] = {}
        for gram in sorted(by_gram, key=len):
            shorter = (gram[:length] for length in range(1, len(gram)) if gram[:length] in self._by_gram)
            self._by_gram.setdefault(next(shorter, gram), []).extend(by_gram[gram])
        self._any = re.compile(_alternation(self._by_gram), re.DOTALL) if owners else None

    def find(self, text: Text) -> dict[str, list[int]]:
        """Owner -> the lines (from 0) in which one of its triggers stands, in order. `text.marks` is filled, too.

        Of lines that say the same thousands of times only the first and the last are told, see `_FIRST_AND_LAST`.
        """
        found: dict[str, list[int]] = {}
        if self._any is None:
            return found
        wrapped = "\x1b" in text.whole or "&" in text.whole
        nothing: list[int] = []
        seen: dict[bytes, list[int]] = {}  # line -> where it stands: logs repeat themselves
        alike: dict[tuple[bytes, ...], tuple[Marks, list[int]]] = {}  # where lines stand that hold the same triggers
        told: list[tuple[Marks, list[int]]] = []
        for index, line in enumerate(folded(text.whole).split(b"\n")):
            places = seen.get(line)
            if places is None:
                looked_at = line[:LONGEST] if len(line) > LONGEST else line
                if wrapped and (b"\x1b" in looked_at or b"&" in looked_at):
                    looked_at = folded(clean(text.raw(index)))
                marks = self._marks_of(looked_at)
                if marks is _NO_MARKS:
                    places = nothing
                elif len(seen) < _MOST_REMEMBERED:
                    places = []
                    told.append((marks, places))
                else:
                    places = alike.setdefault(marks.triggers, (marks, []))[1]
                if len(seen) < _MOST_REMEMBERED and (len(line) < 500 or len(seen) < 1000):
                    seen[line] = places
            if places is not nothing:
                places.append(index)
        for marks, places in told:
            alike.setdefault(marks.triggers, (marks, []))[1].extend(_ends(places, *_FIRST_AND_LAST))
            for index in _ends(places, *_FIRST_AND_LAST):
                text.marks[index] = marks
        for marks, places in alike.values():
            places.sort()
            for index in _ends(places, *_FIRST_AND_LAST_ALIKE):
                text.marks.setdefault(index, marks)
                for owner in marks.owners:
                    found.setdefault(owner, []).append(index)
        for places in found.values():
            places.sort()
        return found

    def _marks_of(self, line: bytes) -> Marks:
        assert self._any is not None
        search = self._any.search
        match = search(line)
        if match is None:
            return _NO_MARKS
        found: dict[str, None] = {}
        triggers: list[bytes] = []
        while match is not None:
            start = match.start()
            for trigger, place, owners in self._by_gram[match.group()]:
                if start >= place and line.startswith(trigger, start - place):
                    triggers.append(trigger)
                    found.update(dict.fromkeys(owners))
            match = search(line, start + 1)
        return Marks(tuple(found), tuple(triggers)) if found else _NO_MARKS


def _ends(places: list[int], first: int, last: int) -> list[int]:
    return places if len(places) <= first + last else places[:first] + places[-last:]


def folded(text: str) -> bytes:
    """The text in lower case, with one digit for all."""
    if not text.isascii():
        for code, plain in PLAIN.items():
            text = text.replace(chr(code), plain)
    return text.lower().encode("utf-8", "replace").translate(_FOLDED)


_COSTS = bytes(
    len(_BY_FREQUENCY) - _BY_FREQUENCY.index(chr(code)) if chr(code) in _BY_FREQUENCY else 0 for code in range(256)
)


def _rarest(trigger: bytes) -> int:
    """The place in the trigger from which on a text is searched for it."""
    costs = trigger.translate(_COSTS)
    best, lowest = 0, 1000
    for place in range(max(1, len(trigger) - _GRAM + 1)):
        # The first letter decides how often a look is taken at all, the others how often it is in vain.
        cost = 5 * costs[place] + sum(costs[place + 1 : place + _GRAM])
        if cost < lowest:
            if trigger[place : place + _GRAM] in _EVERYWHERE:
                cost += 60
            if cost < lowest:
                best, lowest = place, cost
    return best


# Letters, and what may follow each; -1 stands for the end of a literal.
_Tree = dict[int, "_Tree"]


def _alternation(literals: Iterable[bytes]) -> bytes:
    """A pattern for any of the literals, common beginnings shared: much faster than a plain list of them."""
    tree: _Tree = {}
    for literal in literals:
        node = tree
        for letter in literal:
            node = node.setdefault(letter, {})
        node[-1] = {}
    return _pattern(tree)


def _pattern(node: _Tree) -> bytes:
    if -1 in node:
        return b""
    parts = [re.escape(bytes([letter])) + _pattern(below) for letter, below in sorted(node.items())]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
