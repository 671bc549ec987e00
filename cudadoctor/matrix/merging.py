"""What the parts of a merge share: what is told about it, and the care for rows and their sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from cudadoctor.model.record import NamedTuple

from .observed import PLATFORMS, Observed, cuda_numbers
from .versions import Numbers, numbers, target

# Sources that an update names end in the day of it.
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}(-\d+)?\Z")


class Change(NamedTuple):
    """One thing that is new. `kind`: release, build, seen (announced before), branch, driver, toolkit, pythons (more of
    them), confirmed (inferred before)."""

    kind: str
    subject: str
    text: str
    builds: int = 0


class Log:
    """One merge: what was seen, what is new, and what was seen and not taken."""

    def __init__(self, observed: Observed) -> None:
        self.observed, self.day = observed, observed.day
        self.changes: list[Change] = []
        self.notes: list[str] = []

    def cite(self, data: dict[str, Any], row: dict[str, Any], key: str, column: str = "source") -> None:
        """Adds a source to those that a row names. Those of earlier updates give way: it has been looked at again."""
        have = row.get(column, [])
        kept = [name for name in ([have] if isinstance(have, str) else have) if name == key or not _DATED.search(name)]
        names = kept if key in kept else [*kept, key]
        row[column] = names if len(names) > 1 or isinstance(have, list) else names[0]
        if column == "source":
            set_day(row, data, self.day)


def source_of(data: dict[str, Any], key: str, text: str) -> str:
    """The key in [sources] under which this text stands, put there where it does not."""
    sources: dict[str, str] = data.setdefault("sources", {})
    for known, other in sources.items():
        if other == text:
            return known
    name, number = key, 2
    while name in sources:
        name, number = f"{key}-{number}", number + 1
    sources[name] = text
    return name


def prune_sources(data: dict[str, Any], table: str, inner: Iterable[str]) -> None:
    """Takes out sources that no row names any more, in whichever column."""
    rows = [data, *data[table]]
    rows += [item for row in data[table] for column in inner for item in row.get(column, ())]
    values = [value for row in rows for value in row.values()]
    used = {value for value in values if isinstance(value, str)}
    used |= {item for value in values if isinstance(value, list) for item in value if isinstance(item, str)}
    sources = data.get("sources", {})
    for key in [key for key in sources if key not in used]:
        del sources[key]


def set_index_only(item: dict[str, Any], pythons: Iterable[str]) -> None:
    """Notes which Pythons of a default build have no wheel on the default index."""
    found = set(pythons)
    if found:
        item["pythons_index_only"] = joined(found)
    else:
        item.pop("pythons_index_only", None)


def set_day(row: dict[str, Any], data: Mapping[str, Any], day: str) -> None:
    row["checked"] = day
    if data["checked"] == day:
        del row["checked"]


def without_default_day(row: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its day of checking where that is the file's."""
    return {key: value for key, value in row.items() if key != "checked" or value != data["checked"]}


def put_after(row: dict[str, Any], column: str, value: Any, places: Iterable[str]) -> None:
    """Sets a column; a new one goes behind the first of `places` that the row has."""
    if column in row:
        row[column] = value
        return
    place = next((name for name in places if name in row), None)
    items = list(row.items())
    row.clear()
    for name, old in items:
        row[name] = old
        if name == place:
            row[column] = value
    row.setdefault(column, value)


def joined(pythons: Iterable[str]) -> str:
    return " ".join(sorted(pythons, key=lambda python: (int(python.rstrip("t").split(".")[1]), python.endswith("t"))))


def build_order(item: Mapping[str, Any]) -> tuple[Numbers, int]:
    return cuda_numbers(item["variant"]), PLATFORMS.index(item["platform"])


def order(text: str) -> Numbers:
    return numbers(text) or ()


def capability_of(text: str) -> Optional[str]:
    found = target(text)
    return f"{found.major}.{found.minor}" if found else None
