"""Amounts of memory, as torch, vLLM and the kernel write them."""

from __future__ import annotations

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.sizes import parse_size, show_size

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2.00 GiB", 2 * GIB),
        ("354.88 MiB", int(354.88 * (1 << 20))),
        ("512 KiB", 512 << 10),
        ("0 bytes", 0),
        ("8589934592 bytes", 8 * GIB),
        ("8589934592", 8 * GIB),
        ("16GB", 16 * GIB),
        ("24 G", 24 * GIB),
        (" 1.5 TiB ", 3 << 39),
    ],
)
def test_amounts(text: str, amount: int) -> None:
    assert parse_size(text) == amount


@pytest.mark.parametrize("text", ["", "GiB", "1,5 GiB", "-1 GiB", "999999999 EiB", "a lot", "1e9 GiB", "1 Gbit"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        parse_size(text)


@pytest.mark.parametrize(("amount", "text"), [(0, "0 bytes"), (20 << 20, "20 MiB"), (int(7.94 * GIB), "7.9 GiB")])
def test_for_people(amount: int, text: str) -> None:
    assert show_size(amount) == text
