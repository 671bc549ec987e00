"""Error wordings anywhere in a text: each becomes the fact of a symptom.

    RuntimeError: The NVIDIA driver on your system is too old (found version 12040). ...
    -> symptom.driver_too_old = {"text": "RuntimeError: The NVIDIA driver ...", "found": "12040"}

The wordings are data (compat/messages.toml). Where one symptom is reported several times the last report counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Optional

from cudadoctor.matrix import Matrix, Message
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text
from cudadoctor.reports.triggers import folded

# The lines after the one with the anchor that may hold the rest of the sentence.
_WRAPPED_OVER = 3
# What of a line is kept as the symptom's text, in letters.
_KEPT = 300
# Of a longer line, or one together with those below it, what stands around the anchor is looked at: so many letters
# before it and behind, at the first places where it stands.
_LONGEST = 4000
_AROUND = (1000, 3000)
_MOST_PLACES = 3
_MOST_IN_LONG_LINES = 5000
# A log that says one thing a million times says it as well a few hundred times.
_MOST_LOOKED_AT = 2000


def triggers(matrix: Matrix) -> tuple[str, ...]:
    """The anchors of all wordings."""
    return tuple(dict.fromkeys(message.anchor for message in matrix.messages()))


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    rows = matrix.once("wordings by anchor", lambda: _by_anchor(matrix))
    found: dict[str, Block] = {}
    in_long_lines = 0
    for hit in _worth_a_look(text, hits):
        line = text[hit]
        if _is_source(line):
            continue
        lowered = line.lower()
        below = None
        for anchor in dict.fromkeys(text.marks[hit].triggers):
            for message in rows.get(anchor, ()):
                if message.anchor in lowered and in_long_lines < _MOST_IN_LONG_LINES:
                    in_long_lines += len(line) > _LONGEST
                    below = below or [part.strip() for _, part in text.lines(hit + 1, hit + _WRAPPED_OVER)]
                    for piece, rest in _pieces(line, lowered, message.anchor, below):
                        block = _found(message, piece, rest, hit)
                        if block is not None:
                            found[message.name] = _newest(found.get(message.name), block)
                            break
    yield from found.values()


def _by_anchor(matrix: Matrix) -> dict[bytes, list[Message]]:
    rows: dict[bytes, list[Message]] = {}
    for message in matrix.messages():
        rows.setdefault(folded(message.anchor), []).append(message)
    return rows


def _worth_a_look(text: Text, hits: Sequence[int]) -> list[int]:
    """Of lines that differ in numbers only the last, since the last report counts; of very many the first and last."""
    last = {id(text.marks[hit]): hit for hit in hits}
    lines = sorted(last.values())
    half = _MOST_LOOKED_AT // 2
    return lines if len(lines) <= _MOST_LOOKED_AT else lines[:half] + lines[-half:]


def _pieces(line: str, lowered: str, anchor: str, below: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """What of a line is looked at, and the lines below that may go on with it."""
    if len(line) <= _LONGEST:
        yield line, below
        return
    before, behind = _AROUND
    place = lowered.find(anchor)
    for _ in range(_MOST_PLACES):
        if place < 0:
            return
        end = place + behind
        yield line[max(0, place - before) : end], below if end >= len(line) else ()
        place = lowered.find(anchor, end - before)


def _found(message: Message, line: str, below: Sequence[str], hit: int) -> Optional[Block]:
    pattern = _compiled(message.pattern)
    match, last = pattern.search(line), hit
    if below and (match is None or None in match.groups()):
        # The rest of the sentence may stand in the lines below.
        longer = pattern.search(" ".join((line.strip(), *below))[:_LONGEST])
        if longer is not None and (match is None or _caught(longer) > _caught(match)):
            match, last = longer, hit + len(below)
    if match is None or (
        match.start() < len(line) and _ABOUT_OTHERS.search(line[max(0, match.start() - 90) : match.start()])
    ):
        return None
    return _block(message, match, line, hit, last)


def _newest(before: Optional[Block], block: Block) -> Block:
    """Of one symptom the last report counts, unless it says less; what two wordings read in a line is put together."""
    if before is None:
        return block
    old, new = before.claims[0].value, block.claims[0].value
    if before.first == block.first:
        fuller, other = (block, before) if len(new) > len(old) else (before, block)
        value = {**other.claims[0].value, **fuller.claims[0].value}
        return fuller._replace(claims=(fuller.claims[0]._replace(value=value),))
    return block if len(new) >= len(old) else before


def _block(message: Message, match: re.Match[str], line: str, first: int, last: int) -> Block:
    start = max(0, match.start() - 60) if match.start() < len(line) else 0
    if start:
        # Not in the midst of a word.
        start = line.find(" ", start, match.start() + 1) + 1 or start
    value: dict[str, str] = {"text": line[start : start + _KEPT].strip()}
    value.update({name: caught.strip() for name, caught in match.groupdict().items() if caught is not None})
    return Block("error message", first, last, (Claim(f"symptom.{message.name}", value, first),), LOG)


def _caught(match: re.Match[str]) -> int:
    return sum(caught is not None for caught in match.groupdict().values())


# Lines of a program, as a traceback, a diff, a search or a debugger shows them, with line numbers and marks before.
_SOURCE = (
    r"^\s*(?:[\w./\\~-]{1,200}\.\w{1,4}[:-]\d+[:-]\s*|\d{1,6}[:|]?\s+|[-+>|=]{1,5}\s*\d{0,6}:?\s+|\|\s+)*"
    r"(?:raise\s+[\w.]+\(|(?:el)?if\b|assert\b|return\b|except\b|throw\b|TORCH_(?:CHECK|WARN)|AT_(?:ERROR|ASSERT)"
    r"|(?:std::)?(?:cerr|cout)\b|f?printf\(|print\(|echo\s|(?:warnings?|logg?\w*|console)\.\w+\(|grep\s|rg\s|#define\b|//\s"
    r"|[\w.\[\]]+\s+\+?=\s+\(?[rfbuRFBU]{0,2}[\"']|[rf][\"'])"
)


# What stands before an error in a sentence that is about another machine, or about no error at all: "if you see ...",
# "a friend got ...", "I no longer get ...". No program says so before its own error.
_ABOUT_OTHERS = re.compile(
    r"\b(?:(?:if|when|whenever|unless|should) (?:you|one|users?|people|they|anyone) (?:ever )?"
    r"(?:see|get|got|encounter|hit|face|receive|have|run into)"
    r"|(?:friend|colleague|somebody|someone|others|other people|other users|they)\b[^.!?]{0,50}"
    r"\b(?:got|gets|get|had|saw|see|have)"
    r"|(?:do(?:es)? ?n['o]?t|did ?n['o]?t|no longer|never|not) (?:get|got|see|seen|have|had|receive))\b[^.!?:]{0,40}"
    r"(?:\w*(?:Error|Exception|Warning): )?\Z",
    re.IGNORECASE,
)


# A title that holds the line of the program and what it printed: raise ValueError("...") ValueError: ...
_AND_SAID = re.compile(r"[\"')] +[A-Z]\w{2,30}(?:Error|Exception): ")


def _is_source(line: str) -> bool:
    return _compiled_exactly(_SOURCE).match(line[:300]) is not None and not _AND_SAID.search(line[:600])


@cache
def _compiled_exactly(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
