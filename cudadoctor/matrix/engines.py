"""What engines of inference allocate beside weights and cache, and how fast disks give models away."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple

from .memory import Range
from .sections import Sections, origin
from .versions import numbers


class DiskRate(NamedTuple):
    """Reading a large file, in bytes a second: between which it mostly lies."""

    low: float
    high: float
    source: str


class EngineQuestions(Sections):
    """What is not known is None, false, or an empty text."""

    def engine_number(self, engine: str, name: str) -> Range:
        """A number of compat/engines.toml. Raises KeyError for one that is not there."""
        return self.once("engine_numbers", self._make_numbers)[engine, name]

    def engine_has(self, engine: str, name: str, version: str) -> Optional[bool]:
        """Whether a version ("4.46") has what came with a certain one. None: the version is not known."""
        asked = numbers(version) if version else None
        for row in self.raw("engines")["since"]:
            if row["engine"] == engine and row["name"] == name:
                first = numbers(row["version"])
                return None if asked is None or first is None else asked >= first
        return None

    def engine_drops(self, engine: str, scheme: str) -> str:
        """What the files of a scheme hold that is given up after loading: "head"."""
        for row in self.raw("engines")["load"]:
            if row["engine"] == engine and row["scheme"] == scheme:
                return str(row["drops"])
        return ""

    def without_sdpa(self, family: str) -> bool:
        """Whether the layers of a model type compute every score unless they are run with flash attention."""
        return any(row["family"] == family for row in self.raw("engines")["eager"])

    def biased_scores(self, family: str) -> bool:
        """Whether a bias of positions is added to every score."""
        return any(row["family"] == family for row in self.raw("engines")["bias"])

    def disk_rate(self, kind: str) -> Optional[DiskRate]:
        """nvme, ssd, hdd, network, memory, virtual."""
        data = self.raw("engines")
        for row in data["disk"]:
            if row["kind"] == kind:
                return DiskRate(row["low_gbs"] * 1e9, row["high_gbs"] * 1e9, origin(data, row)[0])
        return None

    def _make_numbers(self) -> dict[tuple[str, str], Range]:
        data = self.raw("engines")
        return {
            (row["engine"], row["name"]): Range(
                row.get("low", row["value"]), row["value"], row.get("high", row["value"]), origin(data, row)[0]
            )
            for row in data["number"]
        }
