"""Several unlike GPUs in one machine: which build serves which, where one for all is old or there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.resolve.drivers import Driver, branch_of, expected_driver
from cudadoctor.resolve.judge import Judge, Judged
from cudadoctor.resolve.need import Gpu, Need, Split
from cudadoctor.resolve.pick import pick_better
from cudadoctor.resolve.spell import spell


def are_unlike(need: Need) -> bool:
    return len({gpu.capability for gpu in need.gpus}) > 1


def split(need: Need, matrix: Matrix, driver: Optional[Driver], single: Optional[Judged] = None) -> tuple[Split, ...]:
    """The newest build for each kind of GPU, kinds that share one taken together. Empty where that gains nothing: one
    kind, a kind that nothing serves by itself, or no newer torch than that of the `single` build for all."""
    parts = parts_of(need, matrix, driver)
    if len(parts) < 2:
        return ()
    if single is not None and all(best.key[0] <= single.key[0] for _, best, _ in parts):
        return ()
    return tuple(Split(gpus, spell(best, alone)) for gpus, best, alone in parts)


def parts_of(need: Need, matrix: Matrix, driver: Optional[Driver]) -> list[tuple[tuple[Gpu, ...], Judged, Need]]:
    """The kinds of GPU, those together that one build serves best, with that build; empty where nothing serves one."""
    found: list[tuple[tuple[Gpu, ...], Judged, Need]] = []
    for gpus in kinds(need.gpus):
        alone = need._replace(gpus=gpus, keep=False)
        best = pick_better(Judge(alone, matrix, driver), None)
        if best is None or best.likely:
            return []
        for place, (group, chosen, asked) in enumerate(found):
            if (chosen.build.torch, chosen.build.variant) == (best.build.torch, best.build.variant):
                together = asked._replace(gpus=(*group, *gpus))
                found[place] = (together.gpus, _same(chosen, together, matrix, driver), together)
                break
        else:
            found.append((gpus, best, alone))
    return found


def _same(chosen: Judged, need: Need, matrix: Matrix, driver: Optional[Driver]) -> Judged:
    return next(j for j in Judge(need, matrix, driver) if j.build is chosen.build)


def kinds(gpus: Sequence[Gpu]) -> list[tuple[Gpu, ...]]:
    """The GPUs by compute capability, in the order in which they were named."""
    capabilities = dict.fromkeys(gpu.capability for gpu in gpus)
    return [tuple(gpu for gpu in gpus if gpu.capability == capability) for capability in capabilities]


def each_alone(need: Need, matrix: Matrix) -> list[str]:
    """What each kind of GPU gets by itself, with the driver that it then has: for those that cannot be together."""
    lines = []
    for gpus in kinds(need.gpus):
        driver = expected_driver(gpus, need.numbering, matrix)
        alone = need._replace(gpus=gpus, keep=False, driver=None)
        best = pick_better(Judge(alone, matrix, driver), None) if driver is not None else None
        branch = branch_of(driver.version, driver.numbering, matrix) if driver is not None else None
        name = branch.name if branch is not None else "a driver of its own"
        if best is not None:
            lines.append(f"{gpus[0].label} alone: torch {best.build.torch}+{best.build.variant}, on {name}")
    return lines
