"""Text on a terminal: no control characters, no lost letters, no line too wide, tones that read on any ground."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.render.style import _PALETTES, Style, clean, columns, wrap


@pytest.mark.parametrize(
    "text, shown",
    [
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("evil\x1b[31mred", "evil\\x1b[31mred"),
        ("title\x1b]0;owned\x07", "title\\x1b]0;owned\\x07"),
        ("C1 \x9b31m", "C1 \\x9b31m"),
        ("two\r\nlines\tand a tab", "two  lines and a tab"),
        ("turned \u202e round", "turned \\u202e round"),
        ("no \u200b width", "no \\u200b width"),
        ("bad byte \udc80 in a path", "bad byte \\udc80 in a path"),
        ("\u5e73\u8861", "\u5e73\u8861"),
        ("caf\u00e9", "caf\u00e9"),
    ],
)
def test_nothing_that_steers_a_terminal_gets_through(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_clean_text_is_printable(text: str) -> None:
    shown = clean(text)
    assert "\x1b" not in shown and "\n" not in shown
    assert clean(shown) == shown
    shown.encode("utf-8")


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=300), st.integers(8, 120))
def test_wrapping_loses_nothing_and_keeps_to_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(columns(line) <= width for line in lines if "://" not in line)


@pytest.mark.parametrize(
    "text, width, lines",
    [
        ("", 20, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("/home/user/project/.venv/bin/python", 20, ["/home/user/project/", ".venv/bin/python"]),
        ("see (https://example.org/a/long/page).", 20, ["see", "(https://example.org/a/long/page)."]),
        ("\u663e\u5361\u9a71\u52a8\u7a0b\u5e8f", 8, ["\u663e\u5361\u9a71\u52a8", "\u7a0b\u5e8f"]),
    ],
)
def test_wrapping(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


def test_without_colour_nothing_is_painted() -> None:
    assert Style().paint("FAIL", "FAIL") == "FAIL"


def test_the_word_stands_in_the_paint_unchanged() -> None:
    for palette in ("16", "256"):
        painted = Style(palette=palette).paint("FAIL", "FAIL")
        assert painted != "FAIL"
        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == "FAIL"


def luminance(red: int, green: int, blue: int) -> float:
    """Relative luminance as WCAG 2 defines it."""

    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def rgb(number: int) -> tuple[int, int, int]:
    """A colour of the 256: a cube of 6 steps, then greys."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return steps[number // 36], steps[number // 6 % 6], steps[number % 6]


@pytest.mark.parametrize("role", sorted(role for role, code in _PALETTES["256"].items() if "38;5;" in code))
def test_every_tone_reads_on_white_and_on_black(role: str) -> None:
    found = re.search(r"38;5;(\d+)", _PALETTES["256"][role])
    assert found is not None
    light = luminance(*rgb(int(found.group(1))))
    assert min(1.05 / (light + 0.05), (light + 0.05) / 0.05) >= 3.9
