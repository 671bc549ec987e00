"""Secure Boot: mokutil --sb-state, bootctl, the kernel's log, Windows' msinfo32.

SecureBoot enabled
Secure Boot: enabled (user)
secureboot: Secure boot enabled
Secure Boot State    On
This system doesn't support Secure Boot
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.secure_boot import parse_mokutil
from cudadoctor.reports.blocks import TABLE, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("secureboot", "secure boot", "secure-boot", "efi variables are not supported")

_OTHERS = re.compile(
    r"secure ?boot(?: state)?\s*(?:[:=\t]|\s{2,}|\s(?=enabled|disabled))\s*\"?"
    r"(enabled|disabled|on|off|active|inactive)\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"secure[ -]?boot (?:is |was |being )?(?:currently )?(enabled|disabled|turned on|turned off|on|off)\b", re.I
)
_ON = ("enabled", "on", "active", "turned on")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit].strip()[:400]
        enforced: Optional[bool]
        try:
            state = parse_mokutil("\n".join(part.strip() for _, part in text.lines(hit, hit + 1)))
        except ParseError:
            state = None
        if state is not None and not state.supported:
            yield Block("mokutil", hit, hit, (Claim("kernel.secure_boot", None, hit, "absent"),), TABLE)
            continue
        if state is not None and state.enforced is not None:
            yield Block("mokutil", hit, hit, (Claim("kernel.secure_boot", state.enforced, hit),), TABLE)
            continue
        match = _OTHERS.search(line)
        trust = TABLE
        if not match:
            match, trust = _SAID.search(line), TYPED
        if match and not line.endswith("?"):
            enforced = match.group(1).lower() in _ON
            yield Block("Secure Boot", hit, hit, (Claim("kernel.secure_boot", enforced, hit),), trust)
