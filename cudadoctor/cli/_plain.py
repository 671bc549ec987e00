"""The command line of `check` where it is plain, read without click: importing click takes as long as the whole check.

Whatever is not plain (help, a mistake, an option that is given twice, one that is not in the tables here) is left to
click, which reads it as it reads every other command; so nothing depends on what this file knows. What it does know it
reads as click would: `tests/cli/test_plain.py` holds the two against each other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable, Optional


class _NotPlain(Exception):
    pass


def _text(word: str) -> str:
    return word


def _one_of(*words: str) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words:
            raise _NotPlain
        return word

    return read


def _format(word: str) -> str:
    from cudadoctor.render.formats import FORMATS

    return _one_of(*FORMATS)(word)


def _digits(word: str, most: int) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= most):
        raise _NotPlain
    return int(word)


def _seconds(word: str) -> float:
    whole, point, part = word.partition(".")
    _digits(whole, 4)
    if point:
        _digits(part, 3)
    if not float(word):
        raise _NotPlain
    return float(word)


def _exit_code(word: str) -> int:
    number = _digits(word, 3)
    if not 1 <= number <= 255:
        raise _NotPlain
    return number


# Options: the parameter of `_checking.check`, and how the value is read.
_ONCE: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--format": ("form", _format),
    "--facts": ("facts_file", _text),
    "--replay": ("replay", _text),
    "--python": ("python", _text),
    "--node": ("node", _text),
    "--timeout": ("timeout", _seconds),
    "--fail-on": ("fail_on", _one_of("error", "warning", "info")),
    "--retry-code": ("retry_code", _exit_code),
    "--color": ("color", _one_of("auto", "always", "never")),
    "--output": ("output", _text),
    "-o": ("output", _text),
}
_REPEATED = {
    "--from": "from_files",
    "--log": "log",
    "--assume": "assume",
    "--select": "select",
    "--ignore": "ignore",
    "--blame": "blame",
    "--also": "also",
    "--policy": "policy",
    "--require": "require",
}
_FLAGS = {"--unknown-ok": "unknown_ok", "--explain-policy": "explain_policy", "--verbose": "verbose", "-v": "verbose"}
_DEFAULTS: dict[str, Any] = {"form": "text", "color": "auto"}

# Windows' shell leaves it to programs what these stand for, and click knows it.
_EXPANDED = "*?[]~$%" if os.name == "nt" else ""


def plain_check(words: Sequence[str]) -> Optional[dict[str, Any]]:
    """The parameters of `_checking.check` for the words that follow `check`; None: click has to read them."""
    if "_CUDADOCTOR_COMPLETE" in os.environ:  # a shell asks for the next word
        return None
    try:
        return _read(words)
    except _NotPlain:
        return None


def _read(words: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if any(letter in word for letter in _EXPANDED):
            raise _NotPlain
        option, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in _FLAGS and not equals:
            found[_FLAGS[option]] = True
            continue
        if option not in _ONCE and option not in _REPEATED:
            raise _NotPlain
        if not equals:
            value = next(rest, "-")
            if value.startswith("-") or any(letter in value for letter in _EXPANDED):
                raise _NotPlain
        if option in _REPEATED:
            found[_REPEATED[option]] = (*found.get(_REPEATED[option], ()), value)
            continue
        name, read = _ONCE[option]
        if name in found:
            raise _NotPlain
        found[name] = read(value)
    once = {name: _DEFAULTS.get(name) for name, _ in _ONCE.values()}
    return {**once, **dict.fromkeys(_REPEATED.values(), ()), **dict.fromkeys(_FLAGS.values(), False), **found}
