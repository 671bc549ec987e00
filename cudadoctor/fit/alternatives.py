"""Where else it fits: a smaller model, more GPUs of this kind, the smallest card to buy or to rent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.fit.answer import FITS, Alternative
from cudadoctor.fit.architecture import Model
from cudadoctor.fit.catalogue import smaller
from cudadoctor.fit.changes import cure, spreads
from cudadoctor.fit.need import Need
from cudadoctor.fit.sums import Setting, Sums, decide
from cudadoctor.fit.target import Card
from cudadoctor.fit.targets import card_of_product
from cudadoctor.fit.workload import Sharding
from cudadoctor.matrix.cards import Offer

MODEL, GPU, RENTED = "model", "gpu", "rented"
_MOST_GPUS = 8


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
    for models in _line_and_rest(sums, setting):
        model = _largest_that_fits(sums, setting, models)
        if model is None or model.architecture.parameters <= largest:
            continue
        largest = model.architecture.parameters
        need = sums.need(_with(setting, model))
        if need is not None:
            found.append(Alternative(MODEL, model.architecture.name, setting.gpus, need.device))
    return found


def _models_with_changes(sums: Sums, setting: Setting, found: Sequence[Alternative]) -> list[Alternative]:
    """The largest of the same line that fits once something is changed, where it is larger than those found."""
    line, _ = _line_and_rest(sums, setting)
    known = {other.name for other in found}
    larger = [model for model in line if model.architecture.name not in known]
    # Each of them is searched like a question of its own: it is looked for by halves.
    best: Optional[Alternative] = None
    low, high = 0, next((place for place, model in enumerate(line) if model.architecture.name in known), len(larger))
    while low < high:
        middle = (low + high) // 2
        changed = _with(setting, larger[middle])
        way = cure(sums, changed)
        if way is None:
            low = middle + 1
        else:
            high = middle
            best = Alternative(MODEL, larger[middle].architecture.name, changed.gpus, way.need, None, way.changes)
    return [best] if best is not None else []


def _line_and_rest(sums: Sums, setting: Setting) -> tuple[tuple[Model, ...], tuple[Model, ...]]:
    """Smaller models of the same line, and all others; the largest of each first."""
    found = smaller(sums.matrix, setting.model)
    sizes = [model.architecture.parameters for model in found]
    ends = next((place for place in range(1, len(sizes)) if sizes[place] > sizes[place - 1]), len(sizes))
    return found[:ends], found[ends:]


def _largest_that_fits(sums: Sums, setting: Setting, models: Sequence[Model]) -> Optional[Model]:
    """Of models, the largest first. Fewer parameters mostly need less: it is looked for by halves, and then among the
    next larger ones."""
    low, high = 0, len(models)
    while low < high:
        middle = (low + high) // 2
        if sums.fits(_with(setting, models[middle])):
            high = middle
        else:
            low = middle + 1
    near = range(max(0, low - 2), min(len(models), low + 1))
    return next((models[place] for place in near if sums.fits(_with(setting, models[place]))), None)


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
    if card.free is None:
        return None
    for sharding in _shardings(setting, (2, 4, 8)):
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
    return setting._replace(workload=setting.workload._replace(sharding=sharding))


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
