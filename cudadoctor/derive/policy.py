"""What a policy asks for, held against what is known: which GPUs the job sees, and words that its rules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from cudadoctor.derive.driver import NO, answer
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_container, in_job
from cudadoctor.model import ALLOCATION, MACHINE, Fact, known, unknown
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.digits import is_digits
from cudadoctor.parse.versions import satisfies
from cudadoctor.parse.visible_devices import INDEX, parse_visible_devices, usable

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

_VISIBLE = "env.CUDA_VISIBLE_DEVICES"
_ORDER = "env.CUDA_DEVICE_ORDER"

NOT_ASKED = "no policy asks for it"


class Seen(NamedTuple):
    """The GPUs that a program started here would see.

    `how_many`, as far as that is known. `numbers`: NVML's numbers of those that are meant, and `sure` is False
    where CUDA_VISIBLE_DEVICES leaves some of them out and it cannot be told which: `numbers` are then all GPUs.
    `facts`: what it rests on.
    """

    how_many: Fact[int]
    numbers: tuple[int, ...]
    sure: bool
    facts: tuple[str, ...]


def seen(case: Case) -> Seen:
    """The GPUs that answer and that CUDA_VISIBLE_DEVICES leaves."""
    total, facts = _total(case)
    if not total.is_known:
        return Seen(total, (), False, facts)
    numbers = tuple(gpu_numbers(case.facts)) or tuple(range(total.get()))
    alive = tuple(number for number in numbers if not _is_lost(case, number))
    variable = case.fact(_VISIBLE)
    if not variable.is_known:
        return Seen(known(len(alive), total.source), alive, True, facts)
    facts = (*facts, _VISIBLE)
    devices = parse_visible_devices(str(variable.get()))
    left = usable(devices, total.get())
    if left is None:  # UUIDs, which no fact holds to compare with, or parts of a GPU
        if devices.entries[0].kind not in (INDEX, "uuid"):
            return Seen(known(len(devices.entries), variable.source), alive, len(alive) == 1, facts)
        count = min(len(devices.entries), len(alive))
        return Seen(known(count, variable.source), alive, count == len(alive), facts)
    chosen = tuple(number for number in left if number in alive)
    if len(chosen) == len(alive) or _counts_as_nvml(case, numbers):
        return Seen(known(len(chosen), variable.source), chosen, True, facts)
    return Seen(known(len(chosen), variable.source), alive, False, facts)


def _total(case: Case) -> tuple[Fact[int], tuple[str, ...]]:
    """How many GPUs the driver shows, and the facts behind it."""
    count: Fact[int] = case.fact("gpu.count")
    if count.is_known:
        return count, ("gpu.count",)
    listed = case.fact("smi.gpus")
    if listed.is_known:
        return known(len(listed.get()), listed.source), ("smi.gpus",)
    there = case.derived(presence)
    if there.state == NONE:
        return known(0, there.reason), there.evidence
    state = case.derived(answer)
    if state.state == NO:
        return unknown(f"the driver does not answer ({state.reason})"), state.evidence
    return unknown(count.reason or "nobody told how many GPUs there are"), ("gpu.count",)


def _is_lost(case: Case, number: int) -> bool:
    return bool(case.value(f"gpu.{number}.lost", False))


def _counts_as_nvml(case: Case, numbers: Sequence[int]) -> bool:
    """Whether CUDA's numbers of the GPUs are NVML's: CUDA puts the fastest first where cards differ, unless told."""
    names = {case.value(f"gpu.{number}.name") for number in numbers}
    return case.value(_ORDER) == "PCI_BUS_ID" or (len(names) == 1 and None not in names)


class Judged(NamedTuple):
    """What became of one requirement on each GPU: `ok` True, False or None (cannot be told, for `reason`); `worst` is
    the number of the GPU that decides, `facts` what it rests on."""

    ok: Optional[bool]
    reason: str
    worst: Optional[int]
    facts: tuple[str, ...]
    value: Any = None


def is_split(case: Case, number: int) -> bool:
    """Whether programs get parts of this GPU (MIG devices), as far as that is known."""
    return bool(case.value(f"gpu.{number}.mig_mode")) or str(case.value(_VISIBLE, "")).startswith("MIG-")


def each_gpu(case: Case, key: str, good: Callable[[Any], Optional[bool]], divided: bool = False) -> Judged:
    """Whether the fact `gpu.N.<key>` of every GPU that is seen is `good` (None: cannot be told; an absent one is judged
    as None). A single bad GPU decides; one that is not known leaves the matter open where no other is bad. `divided`:
    a part of a GPU has less of it than the GPU, of which the fact tells.
    """
    here = case.derived(seen)
    if not here.how_many.is_known:
        return Judged(None, here.how_many.reason, None, here.facts)
    if not here.numbers:
        return Judged(None, "no GPU is seen that could be asked", None, here.facts)
    good_ones: list[tuple[int, Fact[Any]]] = []
    bad_ones: list[tuple[int, Fact[Any]]] = []
    open_ones: list[tuple[int, Fact[Any]]] = []
    for number in here.numbers:
        fact: Fact[Any] = case.fact(f"gpu.{number}.{key}")
        verdict = good(fact.get()) if fact.is_known else good(None) if fact.is_absent else None
        if divided and verdict and is_split(case, number):
            verdict = None
        (good_ones if verdict else open_ones if verdict is None else bad_ones).append((number, fact))
    names = tuple(f"gpu.{number}.{key}" for number, _ in (bad_ones or open_ones or good_ones)[:2])
    if bad_ones and (here.sure or not (good_ones or open_ones)):
        number, fact = bad_ones[0]
        return Judged(False, "", number, names, fact.value)
    if bad_ones:
        why = "CUDA_VISIBLE_DEVICES leaves some of the GPUs out, and it cannot be told which"
        return Judged(None, why, bad_ones[0][0], (*names, _VISIBLE), bad_ones[0][1].value)
    if open_ones:
        number, fact = open_ones[0]
        why = "MIG splits it, and what its parts have is not told" if fact.is_known and divided else "it does not tell"
        return Judged(None, fact.reason or f"GPU {number}: {why}", number, names)
    return Judged(True, "", good_ones[0][0], names, good_ones[0][1].value)


def gpu_name(case: Case, number: Optional[int]) -> str:
    """A GPU as messages call it: its number, and its product name where that is known."""
    name = case.value(f"gpu.{number}.name")
    return f"GPU {number} ({name})" if name else f"GPU {number}"


def in_range(value: Any, wanted: str) -> Optional[bool]:
    """Whether a version or number lies in a range; None where that cannot be told."""
    return satisfies(str(value), wanted)


def plainly(wanted: str) -> str:
    """A range as a sentence has it: "==8" is 8."""
    return wanted[2:] if wanted.startswith("==") and "," not in wanted else wanted


def givers_blame(case: Case) -> str:
    """Who can mend what a container or a job was given too little of: who asks for it; elsewhere who runs the
    machine."""
    return ALLOCATION if in_container(case) or in_job(case) else MACHINE


def smaller(first: Fact[int], second: Fact[int]) -> Fact[int]:
    """The smaller of two limits; one that is absent does not limit. Unknown where one that may be smaller is."""
    if first.is_absent or second.is_absent:
        return second if first.is_absent else first
    if first.is_unknown or second.is_unknown:
        return first if first.is_unknown else second
    return first if first.get() <= second.get() else second


def least(value: Fact[Any], wanted: str) -> Optional[bool]:
    """Whether a limit (absent: unlimited) reaches `wanted`, digits or "unlimited"; None where it is not known."""
    if value.is_unknown or not (wanted == "unlimited" or is_digits(wanted, 20)):
        return None
    if value.is_absent:
        return True
    return wanted != "unlimited" and int(value.get()) >= int(wanted)


__all__ = [
    "NOT_ASKED",
    "Judged",
    "Seen",
    "each_gpu",
    "givers_blame",
    "gpu_name",
    "in_range",
    "is_split",
    "least",
    "plainly",
    "seen",
    "smaller",
]
