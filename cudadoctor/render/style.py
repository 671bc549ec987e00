"""How text looks: width, colour, what the stream can show. Pure; the command line finds these out."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.model.record import NamedTuple

# Words of the first column, by what they say. The 256-colour tones have a contrast of 4:1 or more (4.5:1 for most)
# on white and on black alike; of the 16 named colours, yellow and cyan cannot be read on white, so they are not used.
_PALETTES: dict[str, dict[str, str]] = {
    "": {},
    "16": {
        "ok": "32",
        "FAIL": "1;31",
        "warn": "1;35",
        "????": "1;35",
        "BUG": "1;31",
        "command": "1",
    },
    "256": {
        "ok": "38;5;28",
        "FAIL": "1;38;5;196",
        "warn": "1;38;5;130",
        "????": "1;38;5;163",
        "BUG": "1;38;5;163",
        "info": "38;5;31",
        "skip": "38;5;243",
        "source": "38;5;243",
        "command": "1",
    },
}


class Style(NamedTuple):
    """`width` in columns; `palette` is empty (no colour), `16` or `256`; `unicode`: the stream shows more than its own
    8-bit letters; `verbose`: every outcome, with all its evidence."""

    width: int = 80
    palette: str = ""
    unicode: bool = False
    verbose: bool = False

    def paint(self, role: str, text: str) -> str:
        code = _PALETTES[self.palette].get(role.strip())
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    @property
    def ellipsis(self) -> str:
        return "\N{HORIZONTAL ELLIPSIS}" if self.unicode else "..."


def _must_escape(code: int) -> bool:
    return (
        code < 0x20
        or 0x7F <= code < 0xA0
        or 0xD800 <= code <= 0xDFFF
        or code in (0x2028, 0x2029, 0xFEFF)
        or 0x200B <= code <= 0x200F  # without width, or turning the direction
        or 0x202A <= code <= 0x202E
        or 0x2060 <= code <= 0x2069
    )


def clean(text: str) -> str:
    """One line that cannot steer a terminal: control and direction characters are shown as escapes."""
    if text.isascii() and text.isprintable():
        return text
    shown = []
    for letter in text:
        code = ord(letter)
        if letter in "\n\r\t":
            shown.append(" ")
        elif _must_escape(code):
            shown.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
        else:
            shown.append(letter)
    return "".join(shown)


def columns(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns. Nothing is dropped: a longer word is broken, after a separator if any. An
    address on the web stays whole, as nobody could follow the pieces."""
    width = max(width, 8)
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and columns(line) + 1 + columns(word) <= width:
            line += " " + word
            continue
        if line:
            lines.append(line)
        while columns(word) > width and "://" not in word:
            cut = _break(word, width)
            lines.append(word[:cut])
            word = word[cut:]
        line = word
    if line or not lines:
        lines.append(line)
    return lines


def _break(word: str, width: int) -> int:
    fitting = 0
    used = 0
    for letter in word:
        used += columns(letter)
        if used > width:
            break
        fitting += 1
    for cut in range(fitting, fitting // 2, -1):
        if word[cut - 1] in "/\\,;=-_":
            return cut
    return max(fitting, 1)


def hanging(start: str, text: str, width: int) -> Iterator[str]:
    """The lines of a text beside what it begins with, which is as wide as a terminal counts it."""
    for line in wrap(clean(text), width - len(start)):
        yield start + line
        start = " " * len(start)
