"""conda info (and mamba's): what the solver takes the machine to have.

virtual packages : __archspec=1=zen3
                   __cuda=12.4=0
                   __glibc=2.35=0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("virtual packages :",)

_LONGEST = 12
_ENTRY = pattern(r"\s*(?:virtual packages :)?\s*(__\w+)=([\w.]+)(?:=\w*)?\s*$")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        last, cuda = hit, None
        for index, line in text.lines(hit, hit + _LONGEST):
            match = _ENTRY.match(line)
            if match is None:
                break
            last = index
            if match.group(1) == "__cuda":
                cuda = Claim("conda.virtual_cuda", match.group(2), index)
        if _ENTRY.match(text[hit]):
            claim = cuda or Claim("conda.virtual_cuda", None, hit, "absent")
            yield Block("conda info", hit, last, (claim,), TABLE)
