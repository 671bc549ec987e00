"""The driver's version in the middle of a sentence, believed least of all.

    Fresh Ubuntu 22.04 box (RTX 5090, driver 570.124.06)
    NVIDIA driver version 551.86 is installed

A sentence about several drivers, or about one that somebody wants or had, tells nothing of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("driver 0", "driver version 0", "drivers 0")

_NAMED = re.compile(r"\bdrivers?(?: version)? v?(\d{3}\.\d{2,3}(?:\.\d{1,3})?)(?![\w.]*\d)", re.IGNORECASE)
_NOT_HERE = re.compile(
    r"\b(?:require|requires|needs?|minimum|at least|newer|older|later|earlier|above|below|up(?:grad|dat)\w+|"
    r"downgrad\w+|tried|try|would|should|until|since|before|with (?:the )?previous|works? (?:with|on|fine)|worked|"
    r"instead|than|or)\b|[<>]=?\s*\d",
    re.IGNORECASE,
)
_MOST = 100
_LONGEST = 400


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    found: dict[str, int] = {}
    for hit in hits[:_MOST]:
        line = text[hit][:_LONGEST]
        for match in _NAMED.finditer(line):
            if not is_driver_version(match.group(1)) or _NOT_HERE.search(line):
                return  # several drivers are spoken of, or none that surely is there
            found[match.group(1)] = hit
    if len(found) == 1:
        version, hit = next(iter(found.items()))
        yield Block("description", hit, hit, (Claim("driver.told_version", version, hit),), TYPED)
