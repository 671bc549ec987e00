"""The first combination of changes, cheapest first, with which a model fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, Combination
from cudadoctor.fit.change_kinds import CHANGES, DIFFUSERS, LIKE_TRANSFORMERS
from cudadoctor.fit.changes import Alone, cost, framework_of, needs_less, ordered, shown, variants_of
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.model.record import NamedTuple

_ALL = 1 << 62
# Of a group one is enough: the mildest first. What fits with a strong one is tried with the milder ones, too.
_GROUPS = (
    ("weights-q8", "weights-q6", "weights-q5", "weights-q4", "weights-q3", "weights-q2"),
    ("weights-16bit", "weights-fp8", "weights-int8", "weights-4bit"),
    ("kv-8bit", "kv-4bit"),
    ("optimizer-8bit", "optimizer-paged", "offload-optimizer", "offload-all"),
    ("sdpa", "flash-attention"),
    ("lora", "qlora"),
)
# What takes from the work itself is left until everything else was tried without it.
_RELUCTANT = ("shorter-context", "shorter-sequences")


class _Step(NamedTuple):
    """A change, and which of its variants (counted from the mildest; None: the mildest that fits, else the last)."""

    change: str
    variant: Optional[int] = None


def cure(sums: Sums, setting: Setting) -> Optional[Combination]:
    """The first combination, cheapest first, with which it fits; where none surely does, one that fits tightly. None:
    it fits already, nothing is known of the room, or nothing helps."""
    room = sums.room(setting)
    if room is None or sums.need(setting) is None or sums.fits(setting):
        return None
    steps: list[_Step] = []
    for order in _orders(sums, setting):
        tried = _greedy(sums, setting, order)
        steps = tried or steps
        if _reaches(sums, setting, tried):
            break
    end = _played(sums, setting, steps)
    if sums.verdict(end) in (FITS, TIGHT):
        wanted = sums.verdict(end)
        steps = _milder(sums, setting, _pruned(sums, setting, steps, wanted), wanted)
        return _combination(sums, setting, steps)
    return None


def curable(sums: Sums, setting: Setting) -> bool:
    """Whether any changes make it fit: `cure` without the search for the cheapest."""
    if sums.fits(setting):
        return True
    rows = sums.matrix.changes()
    order = sorted(CHANGES, key=lambda change: cost(rows[change]))
    steps = _greedy(sums, setting, [*(change for change in order if change not in _RELUCTANT), *_RELUCTANT])
    return _reaches(sums, setting, steps)


def _orders(sums: Sums, setting: Setting) -> list[list[str]]:
    """In which order changes are tried: without last resorts, and without a shorter context; then with either, then
    with both."""
    rows = sums.matrix.changes()
    everything = [change for change in _order(sums, setting) if change not in _RELUCTANT]
    mild = [change for change in everything if not cost(rows[change])[0]]
    return [mild, [*mild, *_RELUCTANT], everything, [*everything, *_RELUCTANT]]


def _order(sums: Sums, setting: Setting) -> list[str]:
    """All changes, cheapest first. One that applies only after another (a smaller rank after LoRA) has nothing to save
    yet, and follows those of its price."""
    alone = {found.change: found.saves for found in ordered(sums, setting)}
    rows = sums.matrix.changes()
    return sorted(CHANGES, key=lambda change: (*cost(rows[change]), -alone.get(change, 0)))


def _greedy(sums: Sums, start: Setting, order: Sequence[str]) -> list[_Step]:
    """Change after change until it fits. A stronger one of a group takes the place of a milder one."""
    steps: list[_Step] = []
    setting = start
    for change in order:
        if sums.fits(setting):
            break
        rest = [step for step in steps if step.change not in _instead_of(sums, start, change)]
        before = setting if len(rest) == len(steps) else _played(sums, start, rest)
        variants = [variant for variant in variants_of(sums, before, change) if needs_less(sums, variant, setting)]
        if not variants:
            continue
        chosen = next((variant for variant in variants if sums.fits(variant)), None)
        if chosen is None and change in _RELUCTANT:
            continue
        setting = chosen if chosen is not None else variants[-1]
        steps = [*rest, _Step(change)]
    return steps


def _instead_of(sums: Sums, setting: Setting, change: str) -> tuple[str, ...]:
    """What it takes the place of: its group, and layers that move that of what bitsandbytes keeps on the GPU."""
    moves = change == "offload-layers" and framework_of(sums, setting) in (LIKE_TRANSFORMERS, DIFFUSERS)
    return ("weights-int8", "weights-4bit") if moves else _group(change)


def _group(change: str) -> tuple[str, ...]:
    return next((group for group in _GROUPS if change in group), ())


def _played(sums: Sums, setting: Setting, steps: Sequence[_Step]) -> Setting:
    """The setting after all steps; one that no longer applies or saves nothing is passed over."""
    for step in steps:
        variants = variants_of(sums, setting, step.change)
        if variants:
            setting = _variant(sums, variants, step)
    return setting


def _variant(sums: Sums, variants: Sequence[Setting], step: _Step) -> Setting:
    if step.variant is not None:
        return variants[min(step.variant, len(variants) - 1)]
    return next((variant for variant in variants if sums.fits(variant)), variants[-1])


def _reaches(sums: Sums, setting: Setting, steps: Sequence[_Step], wanted: str = FITS) -> bool:
    found = sums.verdict(_played(sums, setting, steps))
    return found == FITS or found == wanted != DOES_NOT_FIT


def _pruned(sums: Sums, setting: Setting, steps: list[_Step], wanted: str) -> list[_Step]:
    """Without those that are not needed for it, the dearest first."""
    for step in reversed(list(steps)):
        rest = [other for other in steps if other is not step]
        if _does_as_well(sums, setting, rest, steps, wanted):
            steps = rest
    return steps


def _does_as_well(sums: Sums, setting: Setting, tried: Sequence[_Step], steps: Sequence[_Step], wanted: str) -> bool:
    """Whether other steps reach as much. What spares a harder step of the rest is worth its place."""
    end = _played(sums, setting, tried)
    return _reaches(sums, setting, tried, wanted) and not _harder(end, _played(sums, setting, steps))


def _harder(one: Setting, other: Setting) -> bool:
    """Whether the first takes more away than the second: sequences, tokens, layers on the GPU."""
    return any(
        (value if value is not None else _ALL) < (than if than is not None else _ALL)
        for value, than in (
            (one.workload.batch, other.workload.batch),
            (one.workload.context, other.workload.context),
            (one.workload.gpu_layers, other.workload.gpu_layers),
        )
    )


def _milder(sums: Sums, setting: Setting, steps: list[_Step], wanted: str) -> list[_Step]:
    """With the mildest of each group and the mildest variant of each that still do."""
    for place, step in enumerate(steps):
        group = _group(step.change) or (step.change,)
        for change in group[: group.index(step.change)]:
            tried = [*steps[:place], _Step(change), *steps[place + 1 :]]
            if _does_as_well(sums, setting, tried, steps, wanted):
                steps = tried
                break
    for place, step in enumerate(steps):
        before = _played(sums, setting, steps[:place])
        for number in range(len(variants_of(sums, before, step.change))):
            tried = [*steps[:place], step._replace(variant=number), *steps[place + 1 :]]
            if _does_as_well(sums, setting, tried, steps, wanted):
                steps = tried
                break
    return steps


def _combination(sums: Sums, setting: Setting, steps: Sequence[_Step]) -> Optional[Combination]:
    changes = []
    for step in steps:
        variants = variants_of(sums, setting, step.change)
        if not variants:
            continue
        after = _variant(sums, variants, step)
        before_need, after_need = sums.need(setting), sums.need(after)
        assert before_need is not None and after_need is not None  # variants_of() summed both up
        saves = before_need.device.expected - after_need.device.expected
        changes.append(shown(sums, setting, Alone(step.change, after, saves)))
        setting = after
    need = sums.need(setting)
    if need is None or not changes:
        return None
    return Combination(tuple(changes), need.device, sums.room(setting), sums.verdict(setting))
