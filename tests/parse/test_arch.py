"""GPU architectures in their spellings."""

from __future__ import annotations

import pytest

from cudadoctor.parse.arch import Arch, from_number, parse_arch, parse_capability
from cudadoctor.parse.errors import ParseError


@pytest.mark.parametrize(
    ("text", "arch", "capability"),
    [
        ("sm_86", Arch("sm", 8, 6), "8.6"),
        ("sm_120", Arch("sm", 12, 0), "12.0"),
        ("sm_90a", Arch("sm", 9, 0, "a"), "9.0"),
        ("sm_103f", Arch("sm", 10, 3, "f"), "10.3"),
        ("compute_120", Arch("compute", 12, 0), "12.0"),
        ("sm_37", Arch("sm", 3, 7), "3.7"),
    ],
)
def test_name(text: str, arch: Arch, capability: str) -> None:
    assert parse_arch(text) == arch
    assert (arch.name, arch.capability) == (text, capability)


@pytest.mark.parametrize("text", ["", "sm_", "sm_8", "sm86", "86", "sm_90b", "sm_-1", "lto_90", "sm_12345", "sm_9 0"])
def test_no_name(text: str) -> None:
    with pytest.raises(ParseError):
        parse_arch(text)


def test_order_is_by_capability() -> None:
    names = ["sm_120", "sm_75", "sm_90a", "sm_90", "sm_100"]
    assert [arch.name for arch in sorted(map(parse_arch, names))] == ["sm_75", "sm_90", "sm_90a", "sm_100", "sm_120"]


@pytest.mark.parametrize(("number", "name"), [(86, "sm_86"), (120, "sm_120"), (50, "sm_50")])
def test_number(number: int, name: str) -> None:
    assert from_number(number).name == name


@pytest.mark.parametrize("number", [9, 0, -80, 10000])
def test_no_number(number: int) -> None:
    with pytest.raises(ParseError):
        from_number(number)


@pytest.mark.parametrize(
    ("text", "name"), [("8.6", "sm_86"), ("12.0", "sm_120"), (" 9.0\n", "sm_90"), ("sm_89", "sm_89")]
)
def test_capability(text: str, name: str) -> None:
    assert parse_capability(text).name == name


@pytest.mark.parametrize("text", ["", "8", "8.", ".6", "8.60", "8.6.1", "N/A"])
def test_no_capability(text: str) -> None:
    with pytest.raises(ParseError):
        parse_capability(text)
