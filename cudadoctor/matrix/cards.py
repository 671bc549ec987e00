"""What of a card's memory a program can use, and which cards people buy or rent."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple

from .products import ProductQuestions
from .sections import origin
from .tables import Gpu

_GIB = 1 << 30


class Usable(NamedTuple):
    """Bytes that CUDA shows as a card's memory. `seen`: on such a card; else worked out from what is on the box."""

    bytes: int
    seen: bool
    source: str
    checked: str


class Offer(NamedTuple):
    """A card to propose. `kind` is own or rented, `counts` how many of them one machine has."""

    gpu: Gpu
    kind: str
    counts: tuple[int, ...]
    source: str
    checked: str


class CardQuestions(ProductQuestions):
    def usable_memory(self, gpu: Gpu) -> Usable:
        """Of a card with nothing else on it, its error correction as it comes from the factory."""
        data = self.raw("cards")
        for row in data["usable"]:
            if row["name"] == gpu.name:
                return Usable(int(row["gib"] * _GIB), True, *origin(data, row))
        gib = gpu.memory_gib
        for row in data["ecc"]:
            if row["class"] == gpu.klass and gpu.memory_type in row["memory"]:
                gib *= 1 - row["share"]
        return self.less_held(gib)

    def less_held(self, gib: float) -> Usable:
        """Of so much memory what the driver leaves; also for a part of a card (a MIG device)."""
        data = self.raw("cards")
        row = data["held"][0]
        left = max(0.0, gib * (1 - row["share"]) - row["gib"])
        return Usable(int(left * _GIB), False, *origin(data, row))

    def offers(self) -> tuple[Offer, ...]:
        """Cards to propose, in the data's order."""
        return self.once("card offers", self._offers)

    def _offers(self) -> tuple[Offer, ...]:
        data = self.raw("cards")
        found = []
        for row in data["offer"]:
            gpu = self._product(row["name"])
            if gpu is not None:
                found.append(Offer(gpu, row["kind"], tuple(row["counts"]), *origin(data, row)))
        return tuple(found)

    def _product(self, name: str) -> Optional[Gpu]:
        for gpu in self.gpu(name).rows:
            if gpu.name == name:
                return gpu
        return None
