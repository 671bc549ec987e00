"""Is this text a number? Without regular expressions: compiling one costs more than most texts that a check reads."""

from __future__ import annotations


def is_digits(text: str, most: int = 18) -> bool:
    """One to `most` ASCII digits and nothing else; the bound keeps int() cheap on hostile input."""
    return 0 < len(text) <= most and text.isascii() and text.isdigit()


def is_dotted(text: str, least: int = 1, most: int = 10, width: int = 9) -> bool:
    """`least` to `most` groups of digits with dots between them: a plain version."""
    parts = text.split(".", most)
    return least <= len(parts) <= most and all(is_digits(part, width) for part in parts)


def leading_dotted(text: str) -> str:
    """The plain version that a text begins with: "2.9.0a0" -> "2.9.0"; "" where it begins with no digit."""
    end = 0
    while end < len(text) and end < 100 and (text[end] in "0123456789" or (text[end] == "." and end)):
        end += 1
    dotted = text[:end].split("..", 1)[0].rstrip(".")
    return ".".join(part[:9] for part in dotted.split(".")[:10])
