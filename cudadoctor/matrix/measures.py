"""What a healthy machine measures: a PCIe link's rate, a card's memory, and which share of them passes."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple

from .products import ProductQuestions
from .sections import origin

# Two products of one name whose memory differs by less than this are told apart by nothing that a driver says.
_SAME_SIZE = 0.12


class Rate(NamedTuple):
    """What a way for data can carry at most, in GB/s (10^9 bytes), and where that stands."""

    gbs: float
    source: str
    checked: str


class Share(NamedTuple):
    """Of that: from `good` on a measurement passes, below `least` something is broken."""

    good: float
    least: float
    source: str
    checked: str


class MeasureQuestions(ProductQuestions):
    """What is not known is None: then a measurement is shown and not judged."""

    def pcie_rate(self, generation: int, lanes: int) -> Optional[Rate]:
        """One direction of a link of that generation with so many lanes."""
        data = self.raw("verify")
        for row in data["pcie"]:
            if row["generation"] == generation and lanes > 0:
                return Rate(row["lane_gbs"] * lanes, *origin(data, row))
        return None

    def share(self, check: str) -> Optional[Share]:
        """What part of the rate a check of `verify` ("bandwidth", "memory-bandwidth") expects."""
        data = self.raw("verify")
        for row in data["share"]:
            if row["check"] == check:
                return Share(row["good"], row["least"], *origin(data, row))
        return None

    def memory_rate(self, name: str, memory_bytes: int = 0, pci_device: str = "") -> Optional[Rate]:
        """The memory of the card that calls itself `name`. Of several products with that name and about that much
        memory the slowest; None where one of them has no figure, and for a MIG device or a vGPU, which has a part of
        it."""
        match = self.gpu(name)
        if match.mig or match.vgpu or match.kind != "name":
            return None
        rows = match.rows
        if pci_device:
            same = {row.name for row in self.gpu_by_pci(pci_device).rows}
            rows = tuple(row for row in rows if row.name in same) or rows
        if memory_bytes:
            rows = tuple(row for row in rows if _is_about(row.memory_gib, memory_bytes))
        figures = [(row.bandwidth_gbs, row) for row in rows]
        if not figures or any(gbs is None or "bandwidth_gbs" in row.guessed for gbs, row in figures):
            return None
        slowest = min((row for _, row in figures), key=lambda row: row.bandwidth_gbs or 0.0)
        return Rate(slowest.bandwidth_gbs or 0.0, slowest.source, slowest.checked)


def _is_about(gib: float, memory_bytes: int) -> bool:
    """What a driver shows is a little less than what is written on the box."""
    return abs(memory_bytes / 2**30 - gib) <= _SAME_SIZE * gib
