"""Writing a file of ``compat/`` the way that people keep it: a comment at its head, one row a line, sources at the end.

Written for the files of releases (``[[release]]`` with its columns one a line and its builds one a line) and for those
that are one list of rows. What is read, changed and written again keeps its head, its order and its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def head_of(text: str) -> str:
    """The comment at the head of a file, with its line ends."""
    lines = []
    for line in text.splitlines(keepends=True):
        if not line.startswith("#"):
            break
        lines.append(line)
    return "".join(lines)


def toml_text(data: Mapping[str, Any], head: str = "") -> str:
    """The file of this data. Raises TypeError for what these files do not hold (dates, empty values)."""
    parts = [head] if head else []
    single = [
        f"{_key(name)} = {_value(value)}\n" for name, value in data.items() if not isinstance(value, (dict, list))
    ]
    parts += ["".join(single)] if single else []
    for name, value in data.items():
        if isinstance(value, list):
            # A row that holds rows of its own is too long for one line.
            deep = any(isinstance(row, dict) and any(_is_rows(item) for item in row.values()) for row in value)
            parts += [f"[[{_key(name)}]]\n{_columns(row)}" for row in value] if deep else [_assigned(name, value)]
    for name, value in data.items():
        if isinstance(value, dict):
            parts.append(f"[{_key(name)}]\n{_columns(value)}")
    return "\n".join(parts)


def _columns(row: Mapping[str, Any]) -> str:
    return "".join(_assigned(name, value) for name, value in row.items())


def _assigned(name: str, value: Any) -> str:
    if _is_rows(value):
        rows = "".join(f"  {_value(row)},\n" for row in value)
        return f"{_key(name)} = [\n{rows}]\n"
    return f"{_key(name)} = {_value(value)}\n"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise TypeError(f"{type(value).__name__} does not stand in these files")


def _key(name: str) -> str:
    return name if _BARE.match(name) else _value(name)
