"""Amounts of memory as programs write them.

2.00 GiB
354.88 MiB
0 bytes
8589934592 bytes
16GB
"""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.model.pattern import pattern

from .errors import ParseError

# torch, vLLM and CUDA mean powers of 1024 also where they write GB or MB.
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50, "e": 60}
_SIZE = pattern(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*(?:bytes?|([kmgtpe]?)(?:i?b)?)\s*\Z", re.ASCII | re.IGNORECASE)
_LIMIT = 1 << 63


def parse_size(text: str) -> int:
    """Bytes; ParseError for what is no amount of memory, or more than any machine has."""
    match = _SIZE.match(text)
    if match is None:
        raise ParseError(f"not an amount of memory: {text[:24]!a}")
    amount = int(float(match.group(1)) * (1 << _UNITS[(match.group(2) or "").lower()]))
    if amount >= _LIMIT:
        raise ParseError(f"no machine has so much memory: {text[:40]!a}")
    return amount


def size_or_none(text: str) -> Optional[int]:
    """Bytes; None for what is no amount of memory."""
    try:
        return parse_size(text)
    except ParseError:
        return None


def column_size(text: str, unit: Optional[int]) -> Optional[int]:
    """Bytes of a number in a table of free or df: digits are of `unit` bytes (None: not told, so that only nothing is
    known), what has a letter (7.6Gi; 7,6G) of its own."""
    if text.isdigit():
        return int(text) * unit if unit else (0 if text == "0" else None)
    return size_or_none(text.replace(",", ".") + ("B" if text.endswith("i") else ""))


def show_size(amount: int) -> str:
    """An amount for people: "7.9 GiB", "20 MiB"."""
    if amount >= 1 << 30:
        return f"{amount / (1 << 30):.1f} GiB"
    if amount >= 1 << 20:
        return f"{amount >> 20} MiB"
    return f"{amount} bytes"
