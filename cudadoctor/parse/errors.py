"""The one exception that a parser raises, and its wording."""

from __future__ import annotations

from cudadoctor.model.fact import ParseError

__all__ = ["ParseError", "clause", "unlike"]


def unlike(expected: str, found: object = "") -> ParseError:
    """The error to raise where `expected` ("a PCI address") was looked for and `found` stood there.

    What was found is shown in ASCII and shortened: it may be anything.
    """
    if found == "":
        return ParseError(f"this is not {expected}")
    shown = ascii(found if isinstance(found, (str, bytes)) else str(found))
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return ParseError(f"this is not {expected}: {shown}")


def clause(error: Exception) -> str:
    """What an error says, to stand behind a colon: a first word that is no name begins small."""
    text = str(error).strip().rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
