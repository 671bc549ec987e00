"""One question and its many variants: each need is worked out once, and held against what is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, Optional

from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, UNKNOWN
from cudadoctor.fit.architecture import Architecture, Model
from cudadoctor.fit.estimate import estimate as estimate_need
from cudadoctor.fit.need import Interval, Need
from cudadoctor.fit.target import Card, Target
from cudadoctor.fit.targets import available, used_cards
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import ParseError

Estimate = Callable[[Matrix, Model, Workload], Need]
Key = tuple[Architecture, str, Optional[tuple[str, int]], Workload]


class Setting(NamedTuple):
    """A model and what is done with it: what a change makes another of."""

    model: Model
    workload: Workload

    @property
    def gpus(self) -> int:
        return max(1, self.workload.sharding.degree)


def decide(need: Interval, room: Optional[int]) -> str:
    """Whether what is needed (of one GPU, as nvidia-smi shows it) finds room there. fits: the upper bound does. tight:
    the best number does, the upper bound does not."""
    if room is None:
        return UNKNOWN
    if need.high <= room:
        return FITS
    return TIGHT if need.expected <= room else DOES_NOT_FIT


def capability_of(target: Target, workload: Workload) -> str:
    """The lowest compute capability among the GPUs that the work runs on; empty where one is not known."""
    found = [card.compute_capability for card in used_cards(target, max(1, workload.sharding.degree))]
    if not found or not all(found):
        return ""
    return min(found, key=lambda text: [int(part) for part in text.split(".") if part.isdigit()])


class Sums:
    """What settings need on a target, and whether they fit. A setting that cannot be summed up does not fit."""

    def __init__(self, matrix: Matrix, target: Target, estimate: Estimate = estimate_need) -> None:
        self.matrix = matrix
        self.target = target
        self._estimate = estimate
        self._needs: dict[Key, Optional[Need]] = {}
        self.variants: dict[tuple[Key, str], Sequence[Setting]] = {}
        """What changes make of settings, as far as it was asked."""

    def key(self, setting: Setting) -> Key:
        """Equal for settings that need the same. What a file holds cannot be hashed; its path and size stand for it."""
        model, stored = setting.model, setting.model.stored
        of_file = None if stored is None else (stored.path, stored.total)
        return model.architecture, model.weights, of_file, setting.workload

    def need(self, setting: Setting) -> Optional[Need]:
        key = self.key(setting)
        if key not in self._needs:
            try:
                self._needs[key] = self._estimate(self.matrix, setting.model, setting.workload)
            except ParseError:
                self._needs[key] = None
        return self._needs[key]

    def need_or_error(self, setting: Setting) -> Need:
        """The same, raising the ParseError that says why it cannot be summed up."""
        found = self.need(setting)
        return found if found is not None else self._estimate(self.matrix, setting.model, setting.workload)

    def room(self, setting: Setting) -> Optional[int]:
        """Bytes that each of the GPUs that it runs on has free."""
        return available(self.target, setting.gpus)

    def verdict(self, setting: Setting) -> str:
        need = self.need(setting)
        if need is None:
            return UNKNOWN
        return decide(need.device, self.room(setting))

    def fits(self, setting: Setting) -> bool:
        return self.verdict(setting) == FITS

    def cards(self, setting: Setting) -> tuple[Card, ...]:
        return used_cards(self.target, setting.gpus)

    def capability(self, setting: Setting) -> str:
        """The lowest compute capability among the GPUs that it runs on; empty where one is not known."""
        return capability_of(self.target, setting.workload)
