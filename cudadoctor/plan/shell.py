"""Argument vectors as text that a person can paste: POSIX sh, PowerShell and cmd.

A command is built and kept as an argument vector; it becomes text only here, at the last moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudadoctor.model import ParseError
from cudadoctor.model.pattern import pattern

POSIX = "posix"
POWERSHELL = "powershell"
CMD = "cmd"
SHELLS = (POSIX, POWERSHELL, CMD)

# What no shell of the three gives a meaning to, wherever it stands in a word.
_PLAIN = pattern(r"[A-Za-z0-9_@%+:,./-]+\Z")
_PLAIN_WINDOWS = pattern(r"[A-Za-z0-9_+:./\\-]+\Z")
# What neither PowerShell nor cmd gives a meaning to inside double quotes; a backslash at the end would escape one.
_DOUBLE_QUOTABLE = pattern(r"[A-Za-z0-9_+:./\\=@,<> -]*[A-Za-z0-9_+:./=@,<> -]\Z")


def quote(argv: Sequence[str], shell: str = POSIX, *, home: bool = False) -> str:
    """The command line that gives a program exactly `argv`. Raises `ParseError` for a word that this shell cannot carry
    (a NUL or a line break; for cmd also a double quote and a percent sign, which it expands even inside quotes).

    With `home`, a word may begin with `~/` (`~\\` on Windows) for the user's home, which the shell must then see
    outside of quotes: reports do not say where it is, because that names the user.
    """
    for word in argv:
        # A line break would be quotable in sh, but a pasted line that breaks is run in two pieces by some terminals.
        if any(character in word for character in "\0\n\r"):
            raise ParseError(f"a command cannot carry a line break or NUL: {word!r}")
    if shell == POSIX:
        return " ".join("~/" + _posix(word[2:]) if home and word[:2] == "~/" else _posix(word) for word in argv)
    if shell == POWERSHELL:
        words = [_powershell(word, home) for word in argv]
        # A quoted or computed first word is a text, not a command, unless the call operator stands before it.
        return ("& " if words and words[0][:1] in "'\"(" else "") + " ".join(words)
    if shell == CMD:
        return " ".join(_cmd(word) for word in argv)
    raise ValueError(f"no such shell: {shell}")


def _posix(word: str) -> str:
    # A leading ~ or = has a meaning in some shells; neither is in the plain set.
    if _PLAIN.match(word):
        return word
    if '"' not in word and not re.search(r"[$`\\!]", word) and word:
        # Double quotes where they are enough: requirement specifiers read better so, and paste into PowerShell too.
        return f'"{word}"'
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _powershell(word: str, home: bool) -> str:
    if home and word[:2] == "~\\":
        return "($HOME + " + _powershell_text(word[1:]) + ")"
    # A leading dash or a comma inside would be read as an operator or an array only in arguments to cmdlets; programs
    # get such words as they are, but a comma splits even there.
    if _PLAIN_WINDOWS.match(word):
        return word
    if _DOUBLE_QUOTABLE.match(word):
        # Requirement specifiers and folders with a blank then paste into cmd as well.
        return f'"{word}"'
    return _powershell_text(word)


def _powershell_text(word: str) -> str:
    # Windows PowerShell (5.1) drops the double quotes inside an argument of a program unless they are escaped too.
    return "'" + word.replace("'", "''").replace('"', '\\"') + "'"


def _cmd(word: str) -> str:
    if _PLAIN_WINDOWS.match(word):
        return word
    if '"' in word or "%" in word:
        raise ParseError(f"cmd.exe cannot carry this word safely: {word!r}")
    # A backslash before the closing quote would escape it for the program that splits the line.
    tail = len(word) - len(word.rstrip("\\"))
    return '"' + word + "\\" * tail + '"'


def shell_of(os_name: str) -> str:
    """The shell in which a person on `os_name` (linux, windows, darwin) pastes."""
    return POWERSHELL if os_name == "windows" else POSIX
