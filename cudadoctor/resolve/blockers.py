"""What stands in the way of a better build, and which single change opens most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, Optional

from cudadoctor.matrix import Build, Matrix, numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.resolve import dependents
from cudadoctor.resolve.drivers import Driver, branch_of, driver_needed, driver_words, newest_driver, product
from cudadoctor.resolve.judge import Judge, Judged
from cudadoctor.resolve.need import (
    BY_DRIVER,
    BY_GLIBC,
    BY_PIN,
    BY_PLATFORM,
    BY_PYTHON,
    BY_REQUEST,
    FORWARD_COMPAT,
    LINUX,
    Blocker,
    Need,
    OtherWay,
)
from cudadoctor.resolve.pick import keeps, pick_better
from cudadoctor.resolve.spell import spell


class _Change(NamedTuple):
    """One thing made other than it is: fields of the need, or the driver."""

    by: str
    fields: dict[str, Any]
    driver: Optional[Driver] = None
    words: str = ""


def blockers(
    need: Need, matrix: Matrix, driver: Optional[Driver], best: Optional[Judged], sure_only: bool = False
) -> tuple[Blocker, ...]:
    """The single changes that open something better than `best`, the one that opens most first. Where nothing serves
    the machine and no single change opens anything, the fewest together that do. `sure_only` leaves out what only
    should run."""
    fresh = need._replace(keep=False)
    # What is kept for the sake of little change is no measure of what could be had.
    if best is not None and keeps(need):
        best = pick_better(Judge(fresh, matrix, driver), None) or best
    changes = [
        one
        for one in _changes(need, matrix, driver)
        # Where pins give way in any case, `moves` says what becomes of the packages.
        if one.by != BY_PIN or best is None or not best.unmet[0]
    ]
    found = [b for one in changes if (b := _opened((one,), fresh, matrix, driver, best)) is not None]
    if best is None:
        for count in range(2, len(changes) + 1):
            if found:
                break
            found = [
                b
                for several in combinations(changes, count)
                if (b := _opened(several, fresh, matrix, driver, best)) is not None
            ]
    found = [b for b in found if not sure_only or b.opens.certainty == "certain"]
    # To give up a wish is the last resort.
    found.sort(key=lambda b: (b.by != BY_REQUEST, numbers(b.opens.torch) or (), numbers(b.opens.cuda or "0") or ()))
    found.reverse()
    return tuple(found)


def _changes(need: Need, matrix: Matrix, driver: Optional[Driver]) -> Iterator[_Change]:
    newest = newest_driver(need, matrix)
    if driver is not None and newest is not None and not (driver.is_expected and need.driver is None):
        yield _Change(BY_DRIVER, {}, newest)
    if need.python is not None or need.python_bits != 64 or need.implementation != "CPython":
        yield _Change(
            BY_PYTHON, {"python": None, "free_threaded": False, "python_bits": 64, "implementation": "CPython"}
        )
    if need.platform.startswith(LINUX):
        if need.libc == "musl":
            yield _Change(BY_PLATFORM, {"libc": "glibc", "glibc": None})
        elif need.glibc is not None:
            yield _Change(BY_GLIBC, {"glibc": None})
    asked = " ".join(filter(None, (need.torch, need.variant)))
    if asked:
        yield _Change(BY_REQUEST, {"torch": "", "variant": None}, words=f"not asking for {asked}")
    if need.partners:
        yield _Change(
            BY_REQUEST, {"partners": (), "cuda_major": None}, words=f"not asking for {' and '.join(need.partners)}"
        )
    if need.pins:
        yield _Change(BY_PIN, {"pins": ()})


def _opened(
    changes: tuple[_Change, ...], need: Need, matrix: Matrix, driver: Optional[Driver], best: Optional[Judged]
) -> Optional[Blocker]:
    changed = need
    for one in changes:
        changed = changed._replace(**one.fields)
        driver = one.driver or driver
    found = pick_better(Judge(changed, matrix, driver), best)
    if found is None:
        return None
    choice = spell(found, changed)
    words = [(None, one.words) if one.words else _wording(one.by, found.build, need, matrix) for one in changes]
    needed = next((needed for needed, _ in words if needed is not None), None)
    return Blocker(" and ".join(one.by for one in changes), needed, ", and ".join(text for _, text in words), choice)


def _wording(by: str, build: Build, need: Need, matrix: Matrix) -> tuple[Optional[str], str]:
    """What the change takes, and how to say it."""
    if by == BY_DRIVER:
        needed = driver_needed(build, need, matrix)
        return needed, driver_words(needed, need, matrix)
    if by == BY_PYTHON:
        python = nearest_python(need.python, build.pythons)
        return python, _python_words(python, need)
    if by == BY_GLIBC:
        if build.glibc_below is not None and (numbers(need.glibc or "") or ()) >= (numbers(build.glibc_below) or ()):
            return None, f"a system with a glibc before {build.glibc_below}"
        return build.glibc, f"a system with glibc {build.glibc} or newer"
    if by == BY_PLATFORM:
        return build.glibc, f"a system with glibc {build.glibc} or newer in place of musl"
    pins = list(dict.fromkeys(pin.package for pin in need.pins if not dependents.holds(pin, build)))
    if not pins:
        return None, "doing without " + " and ".join(dict.fromkeys(pin.package for pin in need.pins))
    them = "a release of it that takes" if len(pins) == 1 else "releases of them that take"
    return None, f"doing without {' and '.join(pins)}, or with {them} torch {build.torch}"


def _python_words(python: str, need: Need) -> str:
    if need.implementation != "CPython":
        return f"CPython {python}"
    if need.python_bits != 64:
        return f"a 64-bit Python {python}"
    if need.free_threaded and python == need.python:
        return f"Python {python} with the GIL (not {need.python_tag})"
    return f"Python {python}"


def nearest_python(python: Optional[str], pythons: Iterable[str]) -> str:
    """Of the Pythons that a build has wheels for the nearest to `python`, else the newest; free-threaded ones apart."""
    plain = [numbers(text) or () for text in pythons if not text.endswith("t")]
    here = numbers(python) if python else None
    if here is None or len(here) < 2:
        return ".".join(map(str, max(plain)))
    near = min(plain, key=lambda p: (abs(p[1] - here[1]), -p[1]))
    return ".".join(map(str, near))


# -- without a new kernel driver ------------------------------------------------------------------------------------


def other_ways(need: Need, matrix: Matrix, found: Iterable[Blocker]) -> tuple[OtherWay, ...]:
    """NVIDIA's forward compatibility package in place of a driver update: on Linux, for data-center GPUs, and for the
    branches that NVIDIA names for it."""
    if need.driver is None or need.numbering != LINUX or not need.platform.startswith(LINUX) or need.jetson:
        return ()
    branch = branch_of(need.driver, need.numbering, matrix)
    blocker = next((b for b in found if b.by == BY_DRIVER), None)
    if branch is None or branch.guessed or blocker is None or blocker.opens.cuda is None:
        return ()
    if any(_may_use_compat(gpu.label, matrix) != "yes" or product(gpu.label, matrix).vgpu for gpu in need.gpus):
        return ()
    capabilities = [gpu.capability for gpu in need.gpus if gpu.capability is not None]
    row = matrix.forward_compat(branch.name, blocker.opens.cuda, capabilities)
    if row is None or row.confidence == "guessed":
        return ()
    major = blocker.opens.cuda.partition(".")[0]
    change = f"{row.package} beside the {branch.name} driver"
    reason = (
        f"{row.package} brings the user library of driver {row.driver}, which lets the {branch.name} kernel driver run "
        f"CUDA {major}.x; NVIDIA supports that on data-center GPUs only, and its folder has to be the first in "
        "LD_LIBRARY_PATH"
    )
    return (OtherWay(FORWARD_COMPAT, change, row.package, blocker.opens, reason),)


def _may_use_compat(label: str, matrix: Matrix) -> str:
    """Whether every product of that name may: yes, some, no or unknown."""
    answers = {matrix.forward_compat_for(row.klass) for row in product(label, matrix).rows}
    return answers.pop() if len(answers) == 1 else "unknown"
