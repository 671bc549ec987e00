"""Environment markers of a requirement, evaluated for a machine that need not be this one.

    platform_system == "Linux" and platform_machine == "x86_64"
    python_version >= "3.9" and extra == "opt-einsum"
    sys_platform != "win32" or (platform_machine in "x86_64 AMD64")

Comparisons with and, or, not in, in and brackets are understood. What is not, and a variable whose value is not
given, is unknown: None, which an `or` with a true side or an `and` with a false side can still decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .versions import is_plain, satisfies

_VERSIONS = ("python_version", "python_full_version", "implementation_version", "platform_release")
_TOKEN = (
    r"""\s*(?:(?P<paren>[()])|(?P<op>===|==|~=|!=|<=|>=|<|>)|(?P<string>"[^"]*"|'[^']*')|(?P<word>[A-Za-z_][\w.]*))"""
)
_MOST_TOKENS = 400
_MOST_DEPTH = 40


def evaluate(marker: str, environment: Mapping[str, str]) -> bool | None:
    """True, False, or None where it cannot be told. An empty marker is True. Never fails.

    `environment` has PEP 508's names: platform_system, platform_machine, sys_platform, os_name, python_version
    ("3.12"), python_full_version, extra, ...
    """
    if not marker.strip():
        return True
    tokens = _tokens(marker[:4000])
    if tokens is None:
        return None
    state = _Marker(tokens, environment)
    try:
        verdict = state.either(0)
    except _NotUnderstood:
        return None
    return verdict if state.position == len(tokens) else None


class _NotUnderstood(Exception):
    pass


def _tokens(marker: str) -> list[tuple[str, str]] | None:
    tokens: list[tuple[str, str]] = []
    position = 0
    text = marker.rstrip()
    while position < len(text):
        found = re.compile(_TOKEN, re.ASCII).match(text, position)
        if found is None or len(tokens) >= _MOST_TOKENS:
            return None
        kind = str(found.lastgroup)
        tokens.append((kind, found.group(kind)))
        position = found.end()
    return tokens


class _Marker:
    """Recursive descent: either := both ("or" both)*; both := one ("and" one)*; one := "(" either ")" | comparison."""

    def __init__(self, tokens: list[tuple[str, str]], environment: Mapping[str, str]) -> None:
        self.tokens, self.environment, self.position = tokens, environment, 0

    def take(self) -> tuple[str, str]:
        if self.position >= len(self.tokens):
            raise _NotUnderstood
        self.position += 1
        return self.tokens[self.position - 1]

    def next_is(self, word: str) -> bool:
        if self.position < len(self.tokens) and self.tokens[self.position] == ("word", word):
            self.position += 1
            return True
        return False

    def either(self, depth: int) -> bool | None:
        verdict = self.both(depth)
        while self.next_is("or"):
            other = self.both(depth)
            verdict = True if verdict or other else None if verdict is None or other is None else False
        return verdict

    def both(self, depth: int) -> bool | None:
        verdict = self.one(depth)
        while self.next_is("and"):
            other = self.one(depth)
            verdict = (
                False if verdict is False or other is False else None if verdict is None or other is None else True
            )
        return verdict

    def one(self, depth: int) -> bool | None:
        if self.position < len(self.tokens) and self.tokens[self.position] == ("paren", "("):
            if depth >= _MOST_DEPTH:
                raise _NotUnderstood
            self.position += 1
            verdict = self.either(depth + 1)
            if self.take() != ("paren", ")"):
                raise _NotUnderstood
            return verdict
        left = self.operand()
        kind, operator = self.take()
        if kind == "word" and operator == "not":
            if self.take() != ("word", "in"):
                raise _NotUnderstood
            operator = "not in"
        elif kind != "op" and (kind, operator) != ("word", "in"):
            raise _NotUnderstood
        return _compare(left, operator, self.operand())

    def operand(self) -> tuple[str | None, bool, str]:
        """(value or None when not given, whether it is a version, the variable's name or "")."""
        kind, text = self.take()
        if kind == "string":
            return text[1:-1], False, ""
        if kind != "word" or text in ("and", "or", "in", "not"):
            raise _NotUnderstood
        name = text.replace(".", "_")  # "os.name" is the old spelling
        return self.environment.get(name), name in _VERSIONS, name


def _compare(left: tuple[str | None, bool, str], operator: str, right: tuple[str | None, bool, str]) -> bool | None:
    (a, a_is_version, a_name), (b, b_is_version, b_name) = left, right
    if a is None or b is None:
        return None
    if "extra" in (a_name, b_name):
        a, b = normalise_name(a), normalise_name(b)
    if operator in ("in", "not in"):
        return (a in b) == (operator == "in")
    if a_is_version and is_plain(a):
        return satisfies(a, operator + b)
    if b_is_version and is_plain(b) and is_plain(a):
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
        return satisfies(b, flipped + a) if operator != "~=" else None
    if operator == "==":
        return a == b
    return a != b if operator == "!=" else None


def normalise_name(name: str) -> str:
    """PEP 503: "Nvidia_cuBLAS.cu12" -> "nvidia-cublas-cu12"."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name
