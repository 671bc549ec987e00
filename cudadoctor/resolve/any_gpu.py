"""A driver, and nobody said which GPU: what serves every GPU that the driver drives, else which build serves which."""

from __future__ import annotations

from typing import Optional

from cudadoctor.matrix import Branch, Matrix
from cudadoctor.resolve.drivers import Driver, branch_of
from cudadoctor.resolve.judge import Judge
from cudadoctor.resolve.mixture import kinds, parts_of
from cudadoctor.resolve.need import UNKNOWN, WORKS, Gpu, Need, Resolution, Split
from cudadoctor.resolve.pick import pick_better
from cudadoctor.resolve.spell import spell

NOT_KNOWN = "which GPU the machine has is not known"


def for_any_gpu(need: Need, matrix: Matrix) -> Resolution:
    """A choice only where one build is the best for every GPU that it can be; it says what it takes for granted."""
    branch = branch_of(need.driver, need.numbering, matrix) if need.driver else None
    if need.driver is None or branch is None or branch.guessed or need.driver_state not in (UNKNOWN, WORKS):
        return Resolution(None, undecided=NOT_KNOWN)
    driver = Driver(need.driver, need.numbering)
    cards, unserved = _cards(need, matrix, driver, branch)
    parts = parts_of(need._replace(gpus=cards), matrix, driver)
    if not parts:
        return Resolution(None, undecided=NOT_KNOWN, reasons=(f"no torch build is known for a GPU on {branch.name}",))
    named = ", ".join(dict.fromkeys(gpu.label for gpu in cards))
    if unserved:
        named += f"; not compute capability {', '.join(gpu.capability or '' for gpu in unserved)}"
    if len(parts) > 1:
        split = tuple(Split(gpus, spell(best, alone)) for gpus, best, alone in parts)
        return Resolution(None, undecided=f"{NOT_KNOWN}, and it decides", split=split)
    _, best, alone = parts[0]
    choice = spell(best, alone)
    others = tuple(line for line in choice.reasons if not line.startswith("GPU:"))
    return Resolution(
        choice._replace(
            reasons=(f"GPU: not named; there is code for what {branch.name} drives: {named}", *others),
            assumes=(f"the GPU is one that {branch.name} drives ({named})", *choice.assumes),
        )
    )


def _cards(need: Need, matrix: Matrix, driver: Driver, branch: Branch) -> tuple[tuple[Gpu, ...], tuple[Gpu, ...]]:
    """A GPU of each kind that the driver drives, embedded ones apart: those that some build serves, and the others."""
    found: list[Gpu] = []
    for row in matrix.architectures():
        for capability in () if row.tegra else row.capability:
            first, last = matrix.first_branch_for(capability), matrix.last_branch_for(capability)
            if (first is None or first.number <= branch.linux) and (last is None or branch.linux <= last.number):
                found.append(Gpu(row.name, capability))
    served = tuple(gpu for gpus in kinds(found) if _is_served(gpus, need, matrix, driver) for gpu in gpus)
    return served, tuple(gpu for gpu in found if gpu not in served)


def _is_served(gpus: tuple[Gpu, ...], need: Need, matrix: Matrix, driver: Optional[Driver]) -> bool:
    alone = need._replace(gpus=gpus, keep=False)
    best = pick_better(Judge(alone, matrix, driver), None)
    return best is not None and not best.likely
