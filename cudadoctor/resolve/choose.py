"""The choice of a torch build: what runs, what is kept, what stands in the way of better, and what would open it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from cudadoctor.matrix import Branch, Build, Matrix, numbers
from cudadoctor.matrix.versions import Numbers
from cudadoctor.resolve.judge import SOFT, Driver, Judged, companion_version, judge, partner_version, wanted_companions
from cudadoctor.resolve.need import (
    BROKEN,
    BY_COMPANION,
    BY_DRIVER,
    BY_GLIBC,
    BY_GPU,
    BY_INDEX,
    BY_PIN,
    BY_PYTHON,
    BY_REQUEST,
    CPU,
    LINUX,
    NONE,
    PRESENT,
    UNKNOWN,
    WORKS,
    Blocker,
    Choice,
    Gpu,
    Need,
    Objection,
    Resolution,
    Split,
)


def resolve(need: Need, matrix: Matrix) -> Resolution:
    """Which build this need is served by. Pure; the same need and matrix always give the same answer."""
    if need.variant == CPU or need.gpu_state == NONE:
        return _for_cpu(need, matrix)
    if need.jetson and not need.gpus:
        return _on_jetson()
    if need.gpu_state == UNKNOWN or not need.gpus:
        return Resolution(None, undecided="which GPU the machine has is not known")
    nameless = [gpu.label for gpu in need.gpus if gpu.capability is None]
    if nameless:
        return Resolution(None, undecided=f"the compute capability of {nameless[0]} is not known")
    embedded = _embedded(need, matrix)
    if embedded is not None:
        return embedded
    driver, driver_first = _driver(need, matrix)
    return _for_gpus(need, matrix, driver, driver_first)


# -- which driver counts ------------------------------------------------------------


def _driver(need: Need, matrix: Matrix) -> tuple[Optional[Driver], Optional[str]]:
    """The driver to judge by, and why it has to be mended first (None: it need not)."""
    if need.driver_state in (BROKEN, NONE):
        reason = "no NVIDIA driver is at work" if need.driver_state == NONE else "the driver does not work"
        if need.driver is not None and _misfit(need, matrix) is None:
            return Driver(need.driver, need.numbering, True), reason
        return expected_driver(need.gpus, need.numbering, matrix), reason
    if need.driver is None:
        return expected_driver(need.gpus, need.numbering, matrix), None
    misfit = _misfit(need, matrix)
    if misfit is not None:
        return expected_driver(need.gpus, need.numbering, matrix), misfit
    return Driver(need.driver, need.numbering), None


def _misfit(need: Need, matrix: Matrix) -> Optional[str]:
    """Why `need.driver` does not drive one of the GPUs: too old or too new for it."""
    branch = matrix.branch_of(need.driver, need.numbering) if need.driver else None
    if branch is None or branch.guessed:
        return None
    for gpu in need.gpus:
        # A card that a working driver lists (it has a number then) is driven by it, whatever the tables say.
        if gpu.capability is None or (need.driver_state == WORKS and gpu.number is not None):
            continue
        first, last = matrix.first_branch_for(gpu.capability), matrix.last_branch_for(gpu.capability)
        if first is not None and first.decisive and branch.linux < first.number:
            return f"driver {need.driver} is {branch.name}, and {gpu.label} needs {first.branch} or newer"
        if last is not None and branch.linux > last.number:
            return (
                f"driver {need.driver} is {branch.name}, and {last.branch} is the last branch that drives {gpu.label}"
            )
    return None


def bounds(gpus: Iterable[Gpu], matrix: Matrix) -> tuple[int, int]:
    """First and last driver branch (Linux numbers) that drive all of `gpus`; the last may lie below the first."""
    lowest, highest = 0, 10**6
    for gpu in gpus:
        if gpu.capability is None:
            continue
        first, last = matrix.first_branch_for(gpu.capability), matrix.last_branch_for(gpu.capability)
        if first is not None:
            lowest = max(lowest, first.number)
        if last is not None:
            highest = min(highest, last.number)
    return lowest, highest


def fitting_branch(gpus: Iterable[Gpu], matrix: Matrix, at_least: int = 0) -> Optional[Branch]:
    """The branch to install for `gpus`: of the newest CUDA major that they can have, the oldest long-lived branch that
    is still maintained, since that is the one that distributions carry; for old cards the last that drives them."""
    lowest, highest = bounds(gpus, matrix)
    lowest = max(lowest, at_least)
    able = [row for row in matrix.branches() if not row.guessed and lowest <= row.linux <= highest]
    if not able:
        return None
    newest = able[0].cuda.partition(".")[0]
    able = [row for row in able if row.cuda.partition(".")[0] == newest]
    alive = [row for row in able if max(row.end_of_life or "", row.end_of_life_other or "") > matrix.checked[:7]]
    for kind in ("lts", "production"):
        fit = [row for row in alive if row.kind == kind]
        if fit:
            return fit[-1]
    return able[0]


def expected_driver(gpus: Iterable[Gpu], numbering: str, matrix: Matrix) -> Optional[Driver]:
    """The driver that a machine with `gpus` will have once it is installed; None where no branch drives them all."""
    branch = fitting_branch(gpus, matrix)
    return None if branch is None else _as_driver(branch, numbering, True)


def _as_driver(branch: Branch, numbering: str, is_expected: bool) -> Driver:
    number = branch.latest_linux or branch.first_linux
    if numbering != LINUX:
        number = branch.latest_windows or (f"{branch.windows[-1]}.99" if branch.windows else None)
    return Driver(number or branch.number(numbering), numbering, is_expected)


def _newest_driver(need: Need, matrix: Matrix) -> Optional[Driver]:
    """The newest driver that the GPUs can have."""
    lowest, highest = bounds(need.gpus, matrix)
    for branch in matrix.branches():
        if not branch.guessed and lowest <= branch.linux <= highest and (need.numbering == LINUX or branch.windows):
            return _as_driver(branch, need.numbering, True)
    return None


# -- machines with NVIDIA GPUs ------------------------------------------------------------


def _for_gpus(need: Need, matrix: Matrix, driver: Optional[Driver], driver_first: Optional[str]) -> Resolution:
    judged = _judge_all(need, matrix, driver)
    best = _pick(judged, need)
    choice = None
    nothing_to_do = False
    split: tuple[Split, ...] = ()
    if best is None or best.likely:
        # An old build whose PTX a new card might compile is no choice where each card can have a build of its own.
        split = _split(need, matrix, driver)
        best = None if split else best
    if best is not None:
        choice = _choice(best, need, matrix, judged, driver)
        nothing_to_do = _is_installed(best, need) and driver_first is None
    blocked = () if nothing_to_do else _blockers(need, matrix, driver, best)
    reasons = () if choice is not None else _why_nothing(judged, need)
    if split:
        names = " and ".join(dict.fromkeys(gpu.label for gpu in need.gpus))
        reasons = (f"no single build of torch serves {names} together", *reasons)
    return Resolution(
        choice,
        _alternatives(judged, best, need, matrix, driver),
        blocked,
        reasons,
        split,
        nothing_to_do,
        driver_first,
        objections=() if best is not None else _typical(judged),
    )


def _judge_all(need: Need, matrix: Matrix, driver: Optional[Driver], cuda: bool = True) -> list[Judged]:
    """Every build for the platform, newest torch first and in a release the newest CUDA first."""
    found = []
    for release in matrix.torch_releases():
        for build in reversed(release.builds(need.platform)):
            if (build.cuda is not None) == cuda:
                found.append(judge(build, release, need, matrix, driver))
    return found


def _pick(judged: Sequence[Judged], need: Need) -> Optional[Judged]:
    """The best build that passes. Wishes that cannot be had (a pin, a companion) give way last."""
    able = [j for j in judged if j.passes]
    if not able:
        return None
    for given_up in ((), (BY_COMPANION,), (BY_PIN,), SOFT):
        fit = [j for j in able if all(o.by in given_up for o in j.objections)]
        sure = [j for j in fit if not j.likely] or fit
        if sure:
            return _nearest(sure, need) if _keeps(need) else _newest(sure, need)
    return None


def _keeps(need: Need) -> bool:
    return need.keep and need.installed is not None and numbers(need.installed.torch) is not None


def _newest(fit: Sequence[Judged], need: Need) -> Judged:
    newest = max(j.key[0] for j in fit)
    return max((j for j in fit if j.key[0] == newest), key=lambda j: (not _is_inferred(j, need), j.key[1]))


def _is_inferred(j: Judged, need: Need) -> bool:
    return need.python_tag is not None and need.python_tag in j.build.pythons_inferred


def _nearest(fit: Sequence[Judged], need: Need) -> Judged:
    """As little change as cures: this very build, this version, this minor's newest patch, the nearest minor's."""
    assert need.installed is not None
    here = numbers(need.installed.torch) or ()
    minors = sorted({j.key[0][:2] for j in fit} | {here[:2]})
    position = {minor: number for number, minor in enumerate(minors)}

    def distance(j: Judged) -> tuple[int, int, int, Numbers, bool, Numbers]:
        torch = j.key[0]
        steps = position[torch[:2]] - position[here[:2]]
        same_build = _is_installed_build(j, need)
        return (
            0 if torch == here else 1,
            abs(steps),
            0 if steps >= 0 else 1,  # as near on both sides: the newer one
            tuple(-n for n in torch),
            not same_build,
            tuple(-n for n in (int(not _is_inferred(j, need)), *j.key[1])),
        )

    return min(fit, key=distance)


def _is_installed_build(j: Judged, need: Need) -> bool:
    return (
        need.installed is not None
        and numbers(need.installed.torch) == j.key[0]
        and need.installed.variant == j.build.variant
    )


def _is_installed(j: Judged, need: Need) -> bool:
    return _is_installed_build(j, need) and need.installed is not None and not need.installed.broken


# -- spelling the choice out ------------------------------------------------------------


def _choice(
    j: Judged, need: Need, matrix: Matrix, judged: Sequence[Judged] = (), driver: Optional[Driver] = None
) -> Choice:
    build = j.build
    companions, by_name = [], []
    for name in dict.fromkeys((*wanted_companions(need), *need.welcome)):
        version = companion_version(name, build, j.release, matrix)
        if version is not None:
            companions.append((name, version))
            if "+" not in version:
                by_name.append(name)
    assumes = []
    if driver is not None and driver.is_expected and build.cuda is not None:
        floor = matrix.floor(int(build.cuda.partition(".")[0]), driver.numbering)
        assumes.append(f"a driver of {floor} or newer" if floor else f"driver {driver.version}")
    if _is_inferred(j, need):
        assumes.append(
            f"a wheel for Python {need.python_tag}, which was seen for this release, not for this very build"
        )
    return Choice(
        torch=build.torch,
        variant=build.variant,
        cuda=build.cuda,
        local=build.local,
        index_url=build.index_url,
        python=need.python_tag,
        pythons=build.pythons,
        companions=tuple(companions),
        replaces_by_name=tuple(by_name if build.local else ["torch", *by_name]),
        sass=build.sass,
        ptx=build.ptx,
        reasons=(*j.reasons, *_why_this(j, need, judged)),
        certainty="likely" if j.likely else "certain",
        assumes=tuple(assumes),
        breaks=tuple(o.reason for o in j.objections if o.by in SOFT),
        platform=build.platform,
        seen=build.seen,
        nvidia=tuple(sorted(j.release.nvidia.items())),
        triton=j.release.companions.get("triton"),
        partners=tuple(
            (name, version) for name in need.partners if (version := partner_version(name, build, matrix)) is not None
        ),
    )


def _why_this(j: Judged, need: Need, judged: Sequence[Judged]) -> tuple[str, ...]:
    if not judged:
        return ()
    lines = []
    here = need.installed.torch if need.installed is not None else None
    if here is not None and _keeps(need):
        if numbers(here) == j.key[0]:
            lines.append(f"keeps torch {here}")
        else:
            lines.append(f"torch {j.build.torch} is the nearest release to {here} that serves this machine")
            same = [other for other in judged if other.key[0] == numbers(here)]
            lines.extend(f"not torch {here}: {line}" for line in _first_hard(same))
    newest = max(other.key[0] for other in judged)
    if j.key[0] < newest and not _keeps(need):
        version = ".".join(map(str, newest))
        for line in _first_hard([other for other in judged if other.key[0] == newest]):
            lines.append(f"not torch {version}: {line}")
    return tuple(dict.fromkeys(lines))


def _first_hard(judged: Sequence[Judged]) -> tuple[str, ...]:
    """Why none of these builds passes, in one line: of the build with the fewest objections."""
    standing = [j for j in judged if j.hard]
    if not standing or len(standing) < len(judged):
        return ()
    return (min(standing, key=lambda j: len(j.hard)).hard[0].reason,)


def _alternatives(
    judged: Sequence[Judged], best: Optional[Judged], need: Need, matrix: Matrix, driver: Optional[Driver]
) -> tuple[Choice, ...]:
    """The newest torch of each variant that passes, the choice apart, and what was announced for a variant since, but
    never seen."""
    found: dict[str, Judged] = {}
    unseen: dict[str, Judged] = {}
    for j in judged:  # newest first
        if j.likely and best is not None and not best.likely:
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
    return tuple(_choice(j, need, matrix, (), driver) for j in rows)


def _why_nothing(judged: Sequence[Judged], need: Need) -> tuple[str, ...]:
    if not judged:
        return (f"PyTorch has no CUDA wheels for {need.platform}",)
    return tuple(dict.fromkeys(o.reason for o in _typical(judged)))


def _typical(judged: Sequence[Judged]) -> tuple[Objection, ...]:
    """What stands against the build that comes nearest to passing (the newest of equals)."""
    standing = [j for j in judged if j.hard]
    if not standing:
        return ()
    return min(standing, key=lambda j: (len({o.by for o in j.hard}), len(j.hard))).hard


def _split(need: Need, matrix: Matrix, driver: Optional[Driver]) -> tuple[Split, ...]:
    """Which build serves which of several unlike GPUs."""
    capabilities = list(dict.fromkeys(gpu.capability for gpu in need.gpus))
    if len(capabilities) < 2:
        return ()
    groups: list[tuple[list[Gpu], Choice]] = []
    for capability in capabilities:
        members = [gpu for gpu in need.gpus if gpu.capability == capability]
        alone = need._replace(gpus=tuple(members), keep=False)
        judged = _judge_all(alone, matrix, driver)
        best = _pick(judged, alone)
        if best is None or best.likely:
            return ()
        choice = _choice(best, alone, matrix, judged, driver)
        for group, chosen in groups:
            if (chosen.torch, chosen.variant) == (choice.torch, choice.variant):
                group.extend(members)
                break
        else:
            groups.append((members, choice))
    # One build for all of them would have been found before.
    return tuple(Split(tuple(group), choice) for group, choice in groups) if len(groups) > 1 else ()


# -- what would open a better one ------------------------------------------------------------


def _blockers(need: Need, matrix: Matrix, driver: Optional[Driver], best: Optional[Judged]) -> tuple[Blocker, ...]:
    """The single changes that open something better than `best`, the one that opens most first. Where no single change
    opens anything, two together."""
    fresh = need._replace(keep=False, variant=None if need.variant != CPU else CPU)
    changes: list[tuple[str, Need, Optional[Driver]]] = []
    newest = _newest_driver(need, matrix)
    if driver is not None and newest is not None and not (driver.is_expected and need.driver is None):
        changes.append((BY_DRIVER, fresh, newest))
    if need.python is not None:
        changes.append((BY_PYTHON, fresh._replace(python=None, free_threaded=False, python_bits=64), driver))
    if need.glibc is not None and need.libc == "glibc":
        changes.append((BY_GLIBC, fresh._replace(glibc=None), driver))
    if need.torch or need.variant:
        changes.append((BY_REQUEST, fresh._replace(torch="", variant=None), driver))
    if need.pins:
        changes.append((BY_PIN, fresh._replace(pins=()), driver))
    # What is kept for the sake of little change is no measure of what could be had.
    if best is not None and _keeps(need):
        best = _pick(_judge_all(fresh, matrix, driver), fresh) or best
    found = [b for by, changed, under in changes if (b := _opened(by, changed, under, need, matrix, best)) is not None]
    if not found and best is None and newest is not None and need.python is not None:
        both = fresh._replace(python=None, free_threaded=False, python_bits=64)
        pair = _opened(BY_DRIVER, both, newest, need, matrix, best)
        if pair is not None:
            python = _nearest_python(need.python, pair.opens.pythons)
            found = [
                Blocker(f"{BY_DRIVER} and {BY_PYTHON}", pair.needed, f"{pair.change}, and Python {python}", pair.opens)
            ]
    found.sort(key=lambda b: (numbers(b.opens.torch) or (), numbers(b.opens.cuda or "0") or ()), reverse=True)
    return tuple(found)


def _opened(
    by: str, changed: Need, driver: Optional[Driver], need: Need, matrix: Matrix, best: Optional[Judged]
) -> Optional[Blocker]:
    judged = _judge_all(changed, matrix, driver)
    better = _pick(judged, changed)
    if better is None or (best is not None and better.key <= best.key):
        return None
    choice = _choice(better, changed, matrix, (), driver)
    needed, change = _wording(by, better.build, need, matrix)
    return Blocker(by, needed, change, choice)


def _wording(by: str, build: Build, need: Need, matrix: Matrix) -> tuple[Optional[str], str]:
    if by == BY_DRIVER:
        needed = _driver_needed(build, need, matrix)
        _, highest = bounds(need.gpus, matrix)
        change = f"a driver of {needed} or newer"
        if need.numbering != LINUX:
            change += " (Windows' numbers)"
        last = matrix.branch(str(highest))
        if last is not None:
            change += f", {last.name} being the last branch for this card"
        return needed, change
    if by == BY_PYTHON:
        python = _nearest_python(need.python or "", build.pythons)
        return python, f"Python {python}"
    if by == BY_GLIBC:
        return build.glibc, f"a system with glibc {build.glibc} or newer"
    if by == BY_REQUEST:
        return None, f"not asking for {' '.join(filter(None, (need.torch, need.variant)))}"
    names = ", ".join(dict.fromkeys(pin.package for pin in need.pins if pin.package))
    return None, f"doing without {names} or updating it"


def _driver_needed(build: Build, need: Need, matrix: Matrix) -> str:
    """The oldest driver number, in this system's numbering, that serves `build` and drives every GPU."""
    floor = matrix.floor(int((build.cuda or "0").partition(".")[0]), need.numbering) or "0"
    lowest, _ = bounds(need.gpus, matrix)
    branch = matrix.branch(str(lowest)) if lowest else None
    if branch is None:
        return floor
    first = branch.first_linux or str(branch.linux)
    if need.numbering != LINUX:
        first = str(branch.windows[0]) if branch.windows else "0"
    return max(floor, first, key=lambda text: numbers(text) or ())


def _nearest_python(python: str, pythons: Iterable[str]) -> str:
    """Of the Pythons that a build has wheels for, the nearest to `python` (free-threaded ones apart)."""
    here = numbers(python) or (3, 0)
    plain = [numbers(text) or () for text in pythons if not text.endswith("t")]
    near = min(plain, key=lambda p: (abs(p[1] - here[1]), -p[1]) if len(p) > 1 and len(here) > 1 else (0, 0))
    return ".".join(map(str, near))


# -- machines without an NVIDIA GPU ----------------------------------------------------------------------------------


def _for_cpu(need: Need, matrix: Matrix) -> Resolution:
    """The CPU index, spelled out: a plain `pip install torch` is a CUDA build on Linux."""
    plain = need._replace(gpus=(), variant=None)
    judged = _judge_all(plain, matrix, None, cuda=False)
    installed = need.installed
    if installed is not None and not installed.broken and need.variant is None and not need.torch:
        # A CUDA build runs on the CPU as well: it is bigger than need be, and no fault.
        return Resolution(None, nothing_to_do=True, reasons=("torch is installed, and there is no GPU for it to use",))
    best = _pick(judged, plain)
    if best is None:
        return Resolution(
            None, (), _cpu_blockers(plain, matrix), _why_nothing(judged, plain), objections=_typical(judged)
        )
    choice = _choice(best, plain, matrix, judged)
    why = "no NVIDIA GPU: the CPU build, which a plain `pip install torch` is not on Linux"
    if need.variant == CPU and need.gpu_state != NONE:
        why = "the CPU build was asked for"
    return Resolution(choice._replace(reasons=(why, *choice.reasons)), nothing_to_do=_is_installed(best, plain))


def _cpu_blockers(need: Need, matrix: Matrix) -> tuple[Blocker, ...]:
    changed = need._replace(python=None, free_threaded=False, python_bits=64)
    found = _pick(_judge_all(changed, matrix, None, cuda=False), changed)
    if need.python is None or found is None:
        return ()
    python = _nearest_python(need.python, found.build.pythons)
    return (Blocker(BY_PYTHON, python, f"Python {python}", _choice(found, changed, matrix)),)


def _embedded(need: Need, matrix: Matrix) -> Optional[Resolution]:
    """Jetson boards: their driver comes with JetPack, and PyTorch's index is not where their wheels are."""
    rows = [matrix.architecture(gpu.capability) for gpu in need.gpus if gpu.capability]
    if not need.jetson and not any(row is not None and row.tegra for row in rows):
        return None
    # Thor takes the server builds: some build of this platform has its very own code.
    own = {(gpu.capability or "").replace(".", "") for gpu in need.gpus}
    if any(own <= set(build.sass) for release in matrix.torch_releases() for build in release.builds(need.platform)):
        return None
    return _on_jetson()


def _on_jetson() -> Resolution:
    reason = (
        "Jetson: its GPU driver comes with JetPack, and torch for it comes from NVIDIA's index for that JetPack, "
        "not from PyTorch's"
    )
    return Resolution(None, reasons=(reason,), objections=(Objection(BY_GPU, reason),))


__all__ = ["PRESENT", "bounds", "expected_driver", "fitting_branch", "resolve"]
