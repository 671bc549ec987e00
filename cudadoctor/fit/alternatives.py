"""Where else it fits: a smaller model, more GPUs of this kind, the smallest card to buy or to rent."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Callable, Optional

from cudadoctor.fit.answer import FITS, Alternative
from cudadoctor.fit.architecture import Model
from cudadoctor.fit.catalogue import model_of_row
from cudadoctor.fit.change_kinds import over_fsdp, spreads
from cudadoctor.fit.cure import curable, cure
from cudadoctor.fit.need import Need
from cudadoctor.fit.sums import Setting, Sums, decide
from cudadoctor.fit.target import Card
from cudadoctor.fit.targets import card_of_product
from cudadoctor.fit.workload import Sharding
from cudadoctor.matrix.cards import Offer
from cudadoctor.matrix.models import ModelRow

MODEL, GPU, RENTED = "model", "gpu", "rented"
# In one machine there are 8 at most; training goes beyond.
_MOST_GPUS = 8
_NUMBERS = (2, 4, 8, 16, 32, 64)
# A stranger of less than a tenth is no substitute for anything.
_MUCH_SMALLER = 10


def alternatives(sums: Sums, setting: Setting, cured: bool = True) -> tuple[Alternative, ...]:
    """The largest smaller models that fit, how many GPUs of this kind it takes, and the smallest cards on which it
    fits as it is. `cured` False: no changes make it fit here, so smaller models are looked at with changes, too."""
    found = [*_models(sums, setting)]
    if not cured:
        found += _models_with_changes(sums, setting, found)
    here = sums.cards(setting)
    more = _more_gpus(sums, setting, here[0]) if here else None
    if more is not None:
        found.append(more)
    for kind in (GPU, RENTED):
        card = _smallest(sums, setting, kind)
        if card is not None:
            found.append(card)
    return tuple(found)


# -- another model -----------------------------------------------------------------------------------------------------


def _models(sums: Sums, setting: Setting) -> list[Alternative]:
    """The largest of the same line, and the largest of all, where that is another."""
    if sums.room(setting) is None:
        return []
    found: list[Alternative] = []
    largest = 0
    for shelf in _shelves(sums, setting):
        model = shelf.largest(lambda model: sums.fits(_with(setting, model)))
        if model is None or model.architecture.parameters <= largest:
            continue
        largest = model.architecture.parameters
        need = sums.need(_with(setting, model))
        if need is not None:
            found.append(Alternative(MODEL, model.architecture.name, setting.gpus, need.device))
    return found


def _models_with_changes(sums: Sums, setting: Setting, found: Sequence[Alternative]) -> list[Alternative]:
    """The largest of the same line that fits once something is changed, where it is larger than those found."""
    line, _ = _shelves(sums, setting)
    rest = line.up_to({other.name for other in found})
    model = rest.largest(lambda model: curable(sums, _with(setting, model)))
    way = cure(sums, _with(setting, model)) if model is not None else None
    if model is None or way is None:
        return []
    return [Alternative(MODEL, model.architecture.name, setting.gpus, way.need, None, way.changes)]


class _Shelf:
    """Models of the catalogue with their sizes, the largest first. Only those that are looked at are made."""

    def __init__(self, rows: Sequence[ModelRow], kind: str) -> None:
        self._rows = rows
        self._kind = kind
        self._made: dict[int, Optional[Model]] = {}

    def up_to(self, names: Container[str]) -> _Shelf:
        """Those that are larger than the first of these."""
        ends = next((place for place, row in enumerate(self._rows) if row.name in names), len(self._rows))
        return _Shelf(self._rows[:ends], self._kind)

    def largest(self, is_good: Callable[[Model], bool]) -> Optional[Model]:
        """Fewer parameters mostly need less: it is looked for by halves, and then among the next larger ones."""
        best = None
        low, high = 0, len(self._rows)
        while low < high:
            middle = place = (low + high) // 2
            while place < high and self._model(place) is None:
                place += 1
            model = self._model(place) if place < high else None
            if model is not None and not is_good(model):
                low = place + 1
            else:
                best = model if model is not None else best
                high = middle
        for place in range(max(0, low - 2), low):
            model = self._model(place)
            if model is not None and is_good(model):
                return model
        return best

    def _model(self, place: int) -> Optional[Model]:
        """None for a model of another kind."""
        if place not in self._made:
            model = model_of_row(self._rows[place])
            self._made[place] = model if model.architecture.kind == self._kind else None
        return self._made[place]


def _shelves(sums: Sums, setting: Setting) -> tuple[_Shelf, _Shelf]:
    """Smaller models of the same line, and all others."""
    shape = setting.model.architecture
    rows = sums.matrix.models()
    line = next((row.line for row in rows if row.name == shape.name), "")
    below = sorted((row for row in rows if row.parameters < shape.parameters), key=lambda row: -row.parameters)
    same = [row for row in below if line and row.line == line]
    others = [row for row in below if not line or row.line != line]
    alike = [row for row in others if row.parameters * _MUCH_SMALLER >= shape.parameters]
    return _Shelf(same, shape.kind), _Shelf(alike, shape.kind)


def _with(setting: Setting, model: Model) -> Setting:
    """The same work with another model, stored as the first one is where that is a choice of a person's."""
    if "quant" in setting.workload.stated or setting.model.stored is not None:
        model = model._replace(weights=setting.model.weights)
    limit = model.architecture.max_context
    workload = setting.workload
    if limit is not None and workload.context > limit and "seq" not in workload.stated:
        workload = workload._replace(context=limit)
    return Setting(model, workload)


# -- other cards -------------------------------------------------------------------------------------------------------


def _more_gpus(sums: Sums, setting: Setting, card: Card) -> Optional[Alternative]:
    """How many GPUs of this kind it takes."""
    if card.free is None or card.shared:  # nobody puts a second chip beside the first
        return None
    for sharding in _shardings(setting, _NUMBERS):
        if sharding.degree <= len(sums.target.cards):
            continue  # those are at hand: a change, and not another machine
        need = sums.need(_shared(setting, sharding))
        if need is not None and decide(need.device, card.free) == FITS:
            return Alternative(GPU, card.name, sharding.degree, need.device, card)
    return None


def _shardings(setting: Setting, numbers: Sequence[int]) -> list[Sharding]:
    if setting.workload.trains:
        return [Sharding("fsdp", number) for number in numbers]
    return [sharding for sharding in spreads(setting, _MOST_GPUS) if sharding.degree in numbers]


def _shared(setting: Setting, sharding: Sharding) -> Setting:
    workload = setting.workload
    if sharding.kind == "fsdp":
        return setting._replace(workload=over_fsdp(workload, sharding.degree))
    return setting._replace(workload=workload._replace(sharding=sharding))


def _smallest(sums: Sums, setting: Setting, kind: str) -> Optional[Alternative]:
    """The smallest card to buy or to rent on which it fits: one of them, else as few as it takes."""
    wanted = "own" if kind == GPU else "rented"
    offers = [offer for offer in sums.matrix.offers() if offer.kind == wanted and _runs(sums, setting, offer)]
    offers.sort(key=lambda offer: (sums.matrix.usable_memory(offer.gpu).bytes, -(offer.gpu.tflops or 0.0)))
    alone = setting if setting.gpus == 1 else _shared(setting, Sharding())
    need = sums.need(alone)
    found = _first(sums, kind, offers, need, 1)
    if found is not None:
        return found
    for sharding in _shardings(setting, (2, 4, 8)):
        enough = [offer for offer in offers if sharding.degree in offer.counts]
        found = _first(sums, kind, enough, sums.need(_shared(setting, sharding)), sharding.degree)
        if found is not None:
            return found
    return None


def _first(sums: Sums, kind: str, offers: Sequence[Offer], need: Optional[Need], number: int) -> Optional[Alternative]:
    if need is None:
        return None
    for offer in offers:
        if decide(need.device, sums.matrix.usable_memory(offer.gpu).bytes) == FITS:
            card = card_of_product(sums.matrix, offer.gpu)
            return Alternative(kind, card.name, number, need.device, card)
    return None


def _runs(sums: Sums, setting: Setting, offer: Offer) -> bool:
    """Whether the card can do it at all: bfloat16 for training in it, what the engine needs."""
    workload = setting.workload
    family = setting.model.architecture.family
    features = [workload.engine] if not workload.trains else []
    if workload.trains and workload.precision in ("bf16", "mixed"):
        features.append("bf16")
    if workload.attention == "flash" and workload.engine != "llama.cpp":
        features.append("flash-attention")
    return all(sums.matrix.serves(feature, offer.gpu.capability, "", family) for feature in features)
