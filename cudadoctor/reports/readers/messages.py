"""Error wordings anywhere in a text: each becomes the fact of a symptom.

    RuntimeError: The NVIDIA driver on your system is too old (found version 12040). ...
    -> symptom.driver_too_old = {"text": "RuntimeError: The NVIDIA driver ...", "found": "12040"}

The wordings are data (compat/messages.toml). Where one symptom is reported several times the last report counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from cudadoctor.matrix import Matrix, Message
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text

# The lines after the one with the anchor that may hold the rest of the sentence.
_WRAPPED_OVER = 3
# What of a line is kept as the symptom's text, in letters.
_KEPT = 300
# A log that says one thing a million times says it as well a few hundred times.
_MOST_LOOKED_AT = 2000


def triggers(matrix: Matrix) -> tuple[str, ...]:
    """The anchors of all wordings."""
    return tuple(dict.fromkeys(message.anchor for message in matrix.messages()))


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    rows = matrix.messages()
    seen: set[str] = set()
    found: dict[str, Block] = {}
    looked_at = 0
    for hit in hits:
        line = text[hit]
        if line in seen or looked_at >= _MOST_LOOKED_AT:
            continue
        seen.add(line)
        looked_at += 1
        lowered = line.lower()
        for message in [row for row in rows if row.anchor in lowered]:
            pattern = _compiled(message.pattern)
            match, last = pattern.search(line), hit
            if match is None:
                window = [part.strip() for _, part in text.lines(hit, hit + _WRAPPED_OVER)]
                match, last = pattern.search(" ".join(window)), hit + len(window) - 1
            if match is not None:
                block = _block(message, match, line, hit, last)
                before = found.get(message.name)
                # Of two wordings that fit one line the one that captures more has read more of it.
                if before is None or before.first != hit or _caught(block) > _caught(before):
                    found[message.name] = block
    yield from found.values()


def _block(message: Message, match: re.Match[str], line: str, first: int, last: int) -> Block:
    start = max(0, match.start() - 60) if match.start() < len(line) else 0
    value: dict[str, str] = {"text": line[start : start + _KEPT].strip()}
    value.update({name: caught.strip() for name, caught in match.groupdict().items() if caught is not None})
    return Block("error message", first, last, (Claim(f"symptom.{message.name}", value, first),), LOG)


def _caught(block: Block) -> int:
    return len(block.claims[0].value)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
