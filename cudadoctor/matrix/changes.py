"""How a change that saves memory is written for a framework or an engine, and what it needs to work."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple

from .sections import Sections, origin
from .versions import capability as read_capability

# What a change costs, the cheapest first.
COSTS = ("none", "a little", "some", "much")


class ChangeLines(NamedTuple):
    """`lines` are what a person writes; words in braces stand for numbers."""

    lines: tuple[str, ...]
    source: str
    checked: str


class ChangeRow(NamedTuple):
    """What a change is called, how it helps, and what it costs: none, a little, some or much."""

    id: str
    title: str
    quality: str
    speed: str
    why: str
    source: str
    checked: str


class EngineShare(NamedTuple):
    """Of a GPU an engine takes this share, however little the model needs, unless its flag says another."""

    share: float
    flag: str
    source: str
    checked: str


class Demand(NamedTuple):
    """What a feature needs: at least that compute capability, none of these systems, one of these families of models
    (empty: any)."""

    capability: str
    not_on: tuple[str, ...]
    families: tuple[str, ...]
    source: str
    checked: str


class ChangeQuestions(Sections):
    def change_lines(self, change: str, framework: str, sharding: str = "") -> Optional[ChangeLines]:
        """How it is written, where the work is shared in that way. None: nobody wrote down how that framework does it,
        or it cannot."""
        lines: dict[tuple[str, str, str], ChangeLines] = self.once("change lines", self._change_lines)
        return lines.get((change, framework, sharding)) or lines.get((change, framework, ""))

    def _change_lines(self) -> dict[tuple[str, str, str], ChangeLines]:
        data = self.raw("changes")
        return {
            (row["change"], framework, row.get("sharding", "")): ChangeLines(tuple(row["lines"]), *origin(data, row))
            for row in data["line"]
            for framework in row["frameworks"]
        }

    def changes(self) -> dict[str, ChangeRow]:
        """All changes by their id, in the data's order."""
        return self.once("changes", self._changes)

    def _changes(self) -> dict[str, ChangeRow]:
        data = self.raw("changes")
        return {
            row["id"]: ChangeRow(row["id"], row["title"], row["quality"], row["speed"], row["why"], *origin(data, row))
            for row in data["change"]
        }

    def frameworks_of_changes(self) -> frozenset[str]:
        """Those for which it is known how changes are written."""
        return self.once(
            "change frameworks",
            lambda: frozenset(name for row in self.raw("changes")["line"] for name in row["frameworks"]),
        )

    def engine_share(self, engine: str) -> Optional[EngineShare]:
        """None: it takes what it needs."""
        data = self.raw("changes")
        for row in data["engine"]:
            if row["name"] == engine:
                return EngineShare(row["share"], row["flag"], *origin(data, row))
        return None

    def demands(self, feature: str) -> tuple[Demand, ...]:
        """What it needs; empty: nothing is known to stand against it."""
        data = self.raw("changes")
        return tuple(
            Demand(
                row.get("capability", ""),
                tuple(row.get("not_on", ())),
                tuple(row.get("families", ())),
                *origin(data, row),
            )
            for row in data["demand"]
            if row["feature"] == feature
        )

    def serves(self, feature: str, capability: str, system: str, family: str) -> bool:
        """Whether nothing stands against a feature on such a GPU (empty: not known), system and model. What is not
        known about the GPU or the system does not stand against it; a model's family has to be among those named."""
        return all(_met(demand, capability, system, family) for demand in self.demands(feature))


def _met(demand: Demand, capability: str, system: str, family: str) -> bool:
    if demand.capability and capability and _number(capability) < _number(demand.capability):
        return False
    if system in demand.not_on:
        return False
    return not demand.families or _stem(family) in demand.families


def _number(capability: str) -> tuple[int, int]:
    return read_capability(capability) or (0, 0)


def _stem(family: str) -> str:
    return family.lower().replace("-", "_")
