"""What is known about a machine, and how: a fact is known, absent or unknown.

*known*: looked, and here is the value. *absent*: looked, and it is not there. *unknown*: could not look, and here is
the reason. The three never blur: unknown is not "no" and not "fine".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Generic, Optional, TypeVar

from cudadoctor.model.record import NamedTuple

T = TypeVar("T")
U = TypeVar("U")

KNOWN = "known"
ABSENT = "absent"
UNKNOWN = "unknown"
STATES = (KNOWN, ABSENT, UNKNOWN)


class ParseError(ValueError):
    """A text is not what it was taken for; the message is one sentence for a person."""


def no_number(word: str) -> object:
    """For `parse_constant` of `json.loads`: Python reads NaN and Infinity, which are no JSON (`ValueError`)."""
    raise ValueError(f"{word} is no number of JSON")


class Fact(NamedTuple, Generic[T]):
    """One thing about a machine.

    `source` names where it was read (a path, a program, `nvml`, a line of a report); `reason` says why an unknown
    fact could not be read.
    """

    state: str
    value: Optional[T] = None
    source: str = ""
    reason: str = ""

    @property
    def is_known(self) -> bool:
        return self.state == KNOWN

    @property
    def is_absent(self) -> bool:
        return self.state == ABSENT

    @property
    def is_unknown(self) -> bool:
        return self.state == UNKNOWN

    def get(self) -> T:
        """The value of a known fact; asking an absent or unknown one is a mistake of the caller's (`LookupError`)."""
        if self.state != KNOWN:
            raise LookupError(f"the fact is {self.state}, not known")
        return self.value  # type: ignore[return-value]

    def map(self, function: Callable[[T], U], source: str = "") -> Fact[U]:
        """The same knowledge seen through `function`. A value that it cannot read becomes unknown, with its reason."""
        if self.state != KNOWN:
            return Fact(self.state, None, source or self.source, self.reason)
        try:
            return Fact(KNOWN, function(self.get()), source or self.source, "")
        except ParseError as error:
            return Fact(UNKNOWN, None, source or self.source, str(error))

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"state": self.state}
        if self.state == KNOWN:
            entry["value"] = self.value
        if self.source:
            entry["source"] = self.source
        if self.reason:
            entry["reason"] = self.reason
        return entry


def known(value: T, source: str) -> Fact[T]:
    return Fact(KNOWN, value, source, "")


def absent(source: str) -> Fact[Any]:
    return Fact(ABSENT, None, source, "")


def unknown(reason: str, source: str = "") -> Fact[Any]:
    return Fact(UNKNOWN, None, source, reason)


NOT_LOOKED_AT: Fact[Any] = unknown("not looked at")

FACTS_SCHEMA = "cudadoctor.facts/1"


class Facts(Mapping[str, "Fact[Any]"]):
    """All facts of one machine by name. A name that nobody looked at reads as unknown, never as absent."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Mapping[str, Fact[Any]] | Iterable[tuple[str, Fact[Any]]] = ()) -> None:
        self._facts: dict[str, Fact[Any]] = dict(facts)

    def __getitem__(self, name: str) -> Fact[Any]:
        return self._facts.get(name, NOT_LOOKED_AT)

    def __contains__(self, name: object) -> bool:
        return name in self._facts

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self._facts == other._facts

    __hash__ = None  # type: ignore[assignment]

    def value(self, name: str, default: Any = None) -> Any:
        """The value of a known fact, else `default`. Only for uses where absent and unknown really mean the same."""
        fact = self[name]
        return fact.value if fact.is_known else default

    def updated(self, changes: Mapping[str, Fact[Any]]) -> Facts:
        """These facts with `changes` in their place."""
        merged = dict(self._facts)
        merged.update(changes)
        return Facts(merged)

    def without(self, names: Iterable[str]) -> Facts:
        gone = set(names)
        return Facts({name: fact for name, fact in self._facts.items() if name not in gone})

    def under(self, prefix: str) -> dict[str, Fact[Any]]:
        """The facts whose names begin with `prefix` and a dot, by the rest of their names."""
        start = prefix + "."
        return {name[len(start) :]: fact for name, fact in self._facts.items() if name.startswith(start)}

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": FACTS_SCHEMA,
            "facts": {name: fact.to_json() for name, fact in sorted(self._facts.items())},
        }

    @classmethod
    def from_json(cls, document: Any) -> Facts:
        """Reads what `to_json` wrote, or raises ParseError. Unknown keys of later versions are passed over."""
        if not isinstance(document, dict):
            raise ParseError("facts must be a JSON object with the keys 'schema' and 'facts'")
        schema = document.get("schema")
        if not isinstance(schema, str) or schema.rpartition("/")[0] != FACTS_SCHEMA.rpartition("/")[0]:
            raise ParseError(f"not a facts document: 'schema' is {schema!r}, expected {FACTS_SCHEMA!r}")
        if schema != FACTS_SCHEMA:
            raise ParseError(f"'schema' is {schema!r}; this cudadoctor reads {FACTS_SCHEMA!r}")
        entries = document.get("facts")
        if not isinstance(entries, dict):
            raise ParseError("'facts' must be an object that maps fact names to facts")
        facts: dict[str, Fact[Any]] = {}
        for name, entry in entries.items():
            if not isinstance(entry, dict) or entry.get("state") not in STATES:
                raise ParseError(f"fact {name!r} must be an object whose 'state' is one of {', '.join(STATES)}")
            if entry["state"] == KNOWN and "value" not in entry:
                raise ParseError(f"fact {name!r} is known and has no 'value'")
            for key in ("source", "reason"):
                if not isinstance(entry.get(key, ""), str):
                    raise ParseError(f"{key!r} of fact {name!r} must be a text")
            facts[name] = Fact(
                entry["state"],
                entry.get("value") if entry["state"] == KNOWN else None,
                entry.get("source", ""),
                entry.get("reason", ""),
            )
        return cls(facts)
