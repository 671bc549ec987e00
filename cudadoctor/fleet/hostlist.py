"""Names of nodes as lists that schedulers read: `node[001-003,007]`.

Writing one is a few lines and needed by everybody; reading what a person wrote is left to ClusterShell (the extra
`cudadoctor[fleet]`), except for plain names, which need no library.
"""

from __future__ import annotations

from collections.abc import Iterable

from cudadoctor.model import ParseError
from cudadoctor.model.pattern import pattern

# What a scheduler takes for a node's name. Nothing else gets into a list that is meant for a command line.
_NAME = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
# The number that counts the nodes: the last one of the host's own name, before a domain.
_COUNTED = pattern(r"([^.]*?)([0-9]+)([^0-9.]*(?:\..*)?)")
_LISTED = pattern(r"[A-Za-z0-9_.,\[\]\s-]+")
_BRACKET = pattern(r"\[([^\]]*)\]")
_RANGE = pattern(r"\s*(\d+)(?:-(\d+))?\s*")
_DIGITS = pattern(r"(\d+)")

# More nodes than any cluster has: a slip such as node[1-99999999] would fill the memory.
MOST_NODES = 200_000


class NoLibrary(ParseError):
    """Brackets need ClusterShell, and it is not installed."""


def is_name(text: str) -> bool:
    """Whether a scheduler can be told this name."""
    return _NAME.fullmatch(text) is not None


def sort_key(name: str) -> tuple[object, ...]:
    """Names in the order in which people count: node2 before node10."""
    parts = _DIGITS.split(name)
    return tuple((int(part[:30]), part) if number % 2 else (part,) for number, part in enumerate(parts))


def fold(names: Iterable[str]) -> str:
    """The names as one list, ranges in brackets; names that no scheduler would take stand behind the others."""
    strange: list[str] = []
    counted: dict[tuple[str, str], set[str]] = {}
    for name in sorted(set(names), key=sort_key):
        found = _COUNTED.fullmatch(name)
        if not is_name(name):
            strange.append(name)
        elif found is None or len(found.group(2)) > 18:
            counted.setdefault((name, ""), set())
        else:
            counted.setdefault((found.group(1), found.group(3)), set()).add(found.group(2))
    texts = []
    for (before, after), numbers in counted.items():
        inside = ",".join(_ranges(numbers))
        texts.append(before + (f"[{inside}]" if len(numbers) > 1 else inside) + after)
    return ",".join((*texts, *strange))


def _ranges(numbers: Iterable[str]) -> list[str]:
    """`1`, `2`, `3`, `007` as `1-3`, `007`: numbers of different width are different names."""
    runs: list[list[str]] = []
    for text in sorted(numbers, key=lambda text: (len(text), int(text))):
        if runs and len(runs[-1][-1]) == len(text) and int(runs[-1][-1]) + 1 == int(text):
            runs[-1] = [runs[-1][0], text]
        else:
            runs.append([text])
    return ["-".join(run) for run in runs]


def expand(text: str) -> list[str]:
    """The names of a list such as `node[001-512],login1`, each once, in its order. Commas and white space part them.
    ParseError says what is wrong with it, NoLibrary that brackets cannot be read here."""
    if not text.strip(" \t\r\n,"):
        raise ParseError("an empty list of nodes")
    if not _LISTED.fullmatch(text):
        strange = next(letter for letter in text if not _LISTED.fullmatch(letter))
        raise ParseError(f"{strange!r} is in no list of nodes; expected one like node[001-512],login1")
    if "[" not in text and "]" not in text:
        return list(dict.fromkeys(name for name in text.replace(",", " ").split()))
    count = _size(text)
    if count > MOST_NODES:
        raise ParseError(f"{count} nodes are more than {MOST_NODES}: is there a slip in a range?")
    return _expand(text)


def _size(text: str) -> int:
    """How many names there can be at most."""
    total = 0
    for part in _DIGITS_AND_BRACKETS.findall(text):
        size = 1
        for inside in _BRACKET.findall(part):
            size *= sum(_length(piece) for piece in inside.split(","))
        total += size
    return total


_DIGITS_AND_BRACKETS = pattern(r"[^,\[\s]*(?:\[[^\]]*\][^,\[\s]*)+")


def _length(piece: str) -> int:
    found = _RANGE.fullmatch(piece)
    if found is None or found.group(2) is None:
        return 1
    first, last = found.group(1)[:12], found.group(2)[:12]
    return max(1, int(last) - int(first) + 1)


def _expand(text: str) -> list[str]:
    try:
        from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
    except ImportError:
        raise NoLibrary("brackets in a list of nodes are read by ClusterShell, which is not installed") from None
    try:
        # Without groups: these are looked up by running programs.
        found: list[str] = list(NodeSet(",".join(text.split()), resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise ParseError(f"{str(error)[:200]}; expected a list like node[001-512],login1") from None
    if not found:
        raise ParseError("an empty list of nodes")
    return found
