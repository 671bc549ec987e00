"""From a JSON document to a snapshot of a node: a report that was judged there, or facts that are judged here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional, Union

from cudadoctor.fleet.judging import Judge
from cudadoctor.fleet.lines import EXPECTED, Document
from cudadoctor.fleet.model import Snapshot, Traits, Unreadable
from cudadoctor.fleet.traits import Entries, traits_of
from cudadoctor.model import CRASH, FAIL, UNDECIDED, Outcome, ParseError
from cudadoctor.model.outcome import BLAMES, CERTAINTIES, SEVERITIES, STATUSES

REPORT = "cudadoctor.report/1"
FACTS = "cudadoctor.facts/1"

# No name of a machine is longer.
_MOST_LETTERS = 253


class Reader:
    """Makes snapshots of documents. What many nodes have in common is kept once."""

    def __init__(self, judge: Judge, tool_version: str) -> None:
        self._judge = judge
        self._tool_version = tool_version
        self._traits: dict[Traits, Traits] = {}

    def snapshots(self, document: Document, written: float = 0.0) -> Iterator[Union[Snapshot, Unreadable]]:
        """The snapshots of a document: one, or those of a list (`jq -s`). `written`: when its file was."""
        values = document.value if isinstance(document.value, list) else [document.value]
        if not values:
            yield Unreadable(document.place, f"an empty list; {EXPECTED}", document.label, document.place.line)
        for number, value in enumerate(values):
            try:
                yield self._snapshot(value, document, written)
            except ParseError as error:
                where = f"entry {number}: " if len(values) > 1 else ""
                yield Unreadable(document.place, where + str(error), document.label, document.place.line)

    def _snapshot(self, value: Any, document: Document, written: float) -> Snapshot:
        if not isinstance(value, dict):
            raise ParseError(f"a {_KINDS.get(type(value), 'value')} of JSON; {EXPECTED}")
        schema = value.get("schema")
        if schema not in (REPORT, FACTS):
            told = f"'schema' is {_short(schema)}" if "schema" in value else "there is no 'schema'"
            raise ParseError(f"{told}; expected {REPORT!r} or {FACTS!r}")
        entries = value.get("facts")
        if not isinstance(entries, dict):
            raise ParseError("'facts' must be an object that maps fact names to facts")
        if schema == REPORT:
            there = value.get("exit")
            judgement = self._judge.of_outcomes(
                _outcomes(value.get("outcomes")), _root_causes(value), there if type(there) is int else None
            )
            tool, matrix = _text(value, "tool", "version"), _text(value, "matrix", "revision")
        else:
            judgement = self._judge.of_facts(entries)
            tool, matrix = self._tool_version, self._judge.revision
        traits = traits_of(entries)
        known = Entries(entries)
        node = str(known.value("scheduler.node") or document.label)[:_MOST_LETTERS].strip()
        return Snapshot(
            node,
            document.place,
            judgement,
            self._traits.setdefault(traits, traits),
            tool,
            matrix,
            str(known.value("system.date") or "")[:10],
            written,
        )


_KINDS = {str: "text", int: "number", float: "number", bool: "truth value", type(None): "null"}


def _outcomes(entries: Any) -> list[Outcome]:
    """The outcomes of a report that are neither a pass nor a skip."""
    if not isinstance(entries, list):
        raise ParseError("'outcomes' must be a list")
    found = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ParseError(f"outcomes[{number}] must be an object")
        status = _word(entry, number, "status", STATUSES)
        if status not in (FAIL, UNDECIDED, CRASH):
            continue
        because_of = entry.get("because_of")
        found.append(
            Outcome(
                _string(entry, number, "rule"),
                _string(entry, number, "name"),
                status,
                _word(entry, number, "severity", SEVERITIES),
                _word(entry, number, "certainty", CERTAINTIES),
                _word(entry, number, "blame", BLAMES),
                _string(entry, number, "message"),
                because_of=because_of if isinstance(because_of, str) else None,
                chain=entry.get("chain") is True,
            )
        )
    return found


def _root_causes(value: Mapping[str, Any]) -> list[str]:
    found = value.get("root_causes")
    if not isinstance(found, list) or not all(isinstance(rule_id, str) for rule_id in found):
        raise ParseError("'root_causes' must be a list of rule ids")
    return found


def _word(entry: Mapping[str, Any], number: int, key: str, words: tuple[str, ...]) -> str:
    found = entry.get(key)
    if found not in words:
        raise ParseError(f"{key!r} of outcomes[{number}] is {_short(found)}; expected one of {', '.join(words)}")
    return str(found)


def _string(entry: Mapping[str, Any], number: int, key: str) -> str:
    found = entry.get(key)
    if not isinstance(found, str):
        raise ParseError(f"{key!r} of outcomes[{number}] must be a text, not {_short(found)}")
    return found


def _text(value: Mapping[str, Any], key: str, part: str) -> str:
    entry = value.get(key)
    found: Optional[object] = entry.get(part) if isinstance(entry, dict) else None
    return found[:40] if isinstance(found, str) else ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
