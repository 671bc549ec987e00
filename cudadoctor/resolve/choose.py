"""The choice of a torch build: what runs, what is kept, what stands in the way of better, and what would open it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.resolve import dependents
from cudadoctor.resolve.any_gpu import NOT_KNOWN, for_any_gpu
from cudadoctor.resolve.blockers import blockers, other_ways
from cudadoctor.resolve.drivers import (
    Driver,
    driver_for,
    driver_range,
    ending_with,
    exclude_each_other,
    is_driven,
    modules_clash,
    names,
)
from cudadoctor.resolve.frameworks import frameworks
from cudadoctor.resolve.judge import Judge, Judged
from cudadoctor.resolve.mixture import are_unlike, each_alone, split
from cudadoctor.resolve.need import (
    BY_DRIVER,
    BY_GPU,
    BY_INDEX,
    CPU,
    NONE,
    UNKNOWN,
    WORKS,
    Blocker,
    Choice,
    Framework,
    Need,
    Objection,
    Resolution,
    Split,
)
from cudadoctor.resolve.pick import is_installed, is_more_asked, keeps, pick
from cudadoctor.resolve.spell import spell, typical
from cudadoctor.resolve.without_gpu import embedded, for_cpu, is_embedded, on_jetson


def resolve(need: Need, matrix: Matrix) -> Resolution:
    """Which build this need is served by. Pure; the same need and matrix always give the same answer."""
    found = _torch(need, matrix)
    if not need.partners:
        return found
    if found.choice is None and found.undecided is None:
        missing = [one.asked for one in dependents.wanted(need, matrix) if one.is_unknown(matrix)]
        if missing:
            found = found._replace(undecided=f"{missing[0]} is not in our data: which torch it wants is not known")
    driver = driver_for(need, matrix)[0]
    beside = frameworks(need, matrix, driver, found.choice.cuda if found.choice else None)
    other = next((one for one in beside if _overwrites(one, found.choice)), None)
    if other is None:
        return found._replace(frameworks=beside)
    of_same = _torch(need._replace(cuda_major=other.cuda), matrix)
    if of_same.choice is not None:
        beside = frameworks(need, matrix, driver, of_same.choice.cuda)
        if not any(_overwrites(one, of_same.choice) for one in beside):
            line = f"of CUDA {other.cuda} as {other.name}: {SAME_FILES}"
            choice = of_same.choice._replace(reasons=(*of_same.choice.reasons, line))
            return of_same._replace(choice=choice, frameworks=beside)
        beside = frameworks(need, matrix, driver, found.choice.cuda if found.choice else None)
    return found._replace(
        frameworks=tuple(_apart(one, found.choice) if _overwrites(one, found.choice) else one for one in beside)
    )


SAME_FILES = "NVIDIA's cudnn and nccl of two CUDA majors overwrite each other in one environment"


def _overwrites(framework: Framework, choice: Optional[Choice]) -> bool:
    """Whether its CUDA libraries are of another major than those of torch."""
    if choice is None or choice.cuda is None or framework.requirement is None or not framework.brings_cuda:
        return False
    return framework.cuda != choice.cuda.partition(".")[0]


def _apart(framework: Framework, choice: Optional[Choice]) -> Framework:
    torch = choice.version if choice is not None else ""
    reason = f"{framework.requirement} brings CUDA {framework.cuda}, and torch is {torch}: {SAME_FILES}"
    return framework._replace(requirement=None, reasons=(f"{reason}; it takes an environment of its own",))


def _torch(need: Need, matrix: Matrix) -> Resolution:
    if need.variant == CPU or need.gpu_state == NONE:
        return for_cpu(need, matrix)
    if need.jetson and not need.gpus:
        return on_jetson()
    if need.gpu_state == UNKNOWN and not need.gpus and need.driver is not None:
        return for_any_gpu(need, matrix)
    if need.gpu_state == UNKNOWN or not need.gpus:
        return Resolution(None, undecided=NOT_KNOWN)
    nameless = [gpu.label for gpu in need.gpus if gpu.capability is None]
    if nameless:
        return Resolution(None, undecided=f"the compute capability of {nameless[0]} is not known")
    board = embedded(need, matrix)
    if board is not None:
        return board
    apart = exclude_each_other(need.gpus, matrix)
    if apart is not None:
        return _for_what_is_driven(need, matrix, apart)
    driver, driver_first = driver_for(need, matrix)
    return _for_gpus(need, matrix, driver, driver_first)


def _for_what_is_driven(need: Need, matrix: Matrix, apart: str) -> Resolution:
    """GPUs that no driver drives together: those that the driver at work drives are served, the rest stay idle."""
    drivers = driver_range(need.gpus, matrix, need.numbering)
    driven = tuple(gpu for gpu in need.gpus if is_driven(gpu, need, matrix))
    if need.driver is None or need.driver_state != WORKS or not driven or len(driven) == len(need.gpus):
        objection = Objection(BY_GPU, apart)
        return Resolution(None, reasons=(apart, *each_alone(need, matrix)), objections=(objection,), drivers=drivers)
    found = _torch(need._replace(gpus=driven), matrix)
    idle = tuple(gpu for gpu in need.gpus if gpu not in driven)
    line = f"{names(idle)}: left idle; {apart}"
    choice = found.choice
    if choice is not None:
        choice = choice._replace(reasons=(*choice.reasons, line))
    return found._replace(choice=choice, reasons=(*found.reasons, line) if choice is None else found.reasons)


def _for_gpus(need: Need, matrix: Matrix, driver: Optional[Driver], driver_first: Optional[str]) -> Resolution:
    judge = Judge(need, matrix, driver)
    judged = list(judge if keeps(need) else judge.newest())
    best = pick(judged, need)
    nothing_to_do = best is not None and is_installed(best, need) and driver_first is None and not is_more_asked(need)
    parts: tuple[Split, ...] = ()
    clash = modules_clash(need, matrix) if are_unlike(need) else None
    if are_unlike(need) and not nothing_to_do:
        parts = split(need, matrix, driver, None if best is None or best.likely else best)
        # An old build whose PTX a new card might compile is no choice where each card can have a build of its own.
        if parts and best is not None and best.likely:
            best = None
    blocked = () if nothing_to_do else blockers(need, matrix, driver, best, sure_only=bool(parts))
    reasons: tuple[str, ...] = () if best is not None else _why_nothing(judged, need)
    if parts and best is None:
        reasons = (f"no single build of torch serves {names(need.gpus)} together", *reasons)
    choice = None if best is None else spell(best, need, judged)
    if clash is not None:
        reasons = (*reasons, clash)
        choice = choice if choice is None else choice._replace(reasons=(*choice.reasons, clash))
    return Resolution(
        choice,
        _alternatives(judged, best, need, sure_only=bool(parts) or (best is not None and not best.likely)),
        blocked,
        reasons,
        parts,
        nothing_to_do,
        driver_first,
        objections=nearest.hard if best is None and (nearest := typical(judged)) is not None else (),
        moves=() if best is None else dependents.moves(best.build, best.release, need, matrix),
        other_ways=other_ways(need, matrix, blocked),
        undecided=None if best is not None or parts else _not_known(judged),
        clash=clash,
        drivers=None if is_embedded(need, matrix) else driver_range(need.gpus, matrix, need.numbering),
        not_helping=()
        if nothing_to_do or driver_first is not None
        else _not_helping(need, matrix, driver, judged, best, blocked),
    )


def _alternatives(judged: Sequence[Judged], best: Optional[Judged], need: Need, sure_only: bool) -> tuple[Choice, ...]:
    """The newest torch of each variant that passes and meets as many wishes, the choice apart, and what was announced
    for a variant since, but never seen. `sure_only` leaves out what only should run."""
    found: dict[str, Judged] = {}
    unseen: dict[str, Judged] = {}
    for j in judged:  # newest first
        if (j.likely and sure_only) or (best is not None and j.unmet > best.unmet):
            continue
        if j.passes:
            found.setdefault(j.build.variant, j)
        elif j.stands_only(BY_INDEX):
            unseen.setdefault(j.build.variant, j)
    chosen = best.build if best is not None else None
    rows = [j for j in found.values() if j.build is not chosen]
    for variant, j in unseen.items():
        if variant not in found or j.key[0] > found[variant].key[0]:
            rows.append(j)
    rows.sort(key=lambda j: j.key, reverse=True)
    return tuple(spell(j, need) for j in rows)


def _why_nothing(judged: Sequence[Judged], need: Need) -> tuple[str, ...]:
    nearest = typical(judged)
    if nearest is None:
        own = "; NVIDIA has some on an index of its own" if need.platform == "windows-aarch64" else ""
        return (f"PyTorch has no CUDA wheels for {need.platform}{own}",)
    judge = nearest.judge
    if not judge.meets_torch(nearest.build):
        asked = " ".join(filter(None, (need.torch, need.variant)))
        newest = max(judged, key=lambda j: (j.build.seen, j.key)).build
        return (f"no torch {asked} is known for {need.platform}; the newest is {newest.torch}+{newest.variant}",)
    build, release = nearest.build, nearest.release
    wanted = [
        f"{partner.name} {row.version} goes with torch {build.torch}+{build.variant}"
        for partner in judge.partners
        if (row := partner.release(build, release, need, judge.matrix)) is not None
    ]
    return tuple(dict.fromkeys((*wanted, *(o.reason for o in nearest.hard))))


def _not_known(judged: Sequence[Judged]) -> Optional[str]:
    """What is not known of the build that comes nearest, where nothing speaks against it but that."""
    nearest = typical(judged)
    if nearest is None or list(nearest.sides) != [BY_GPU] or not nearest.judge.is_unknown(nearest.build):
        return None
    return nearest.hard[0].reason


def _not_helping(
    need: Need,
    matrix: Matrix,
    driver: Optional[Driver],
    judged: Sequence[Judged],
    best: Optional[Judged],
    blocked: Sequence[Blocker],
) -> tuple[str, ...]:
    """The change that people try first, where it opens nothing: a newer driver for a GPU that newer builds left out."""
    if driver is None or need.driver is None or need.torch or need.variant or any(BY_DRIVER in b.by for b in blocked):
        return ()
    newer = [j for j in judged if j.build.seen and (best is None or j.key > best.key)]
    if not newer or not all(BY_GPU in j.sides for j in newer):
        return ()
    what = f"no torch build for {need.platform}" if best is None else f"no build newer than {best.build.torch}"
    last = driver_range(need.gpus, matrix).last
    end = ""
    if last is not None:
        end = f"{last.name} is the last branch for {names(ending_with(last, need.gpus, matrix))}, and "
    return (f"a newer driver: {end}{what} has code for {'all of them' if are_unlike(need) else names(need.gpus)}",)


__all__ = ["resolve"]
