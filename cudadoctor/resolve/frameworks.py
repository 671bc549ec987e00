"""Packages that were asked for and are bound to CUDA and the driver, not to a torch release: jax, cupy, tensorflow.

Each comes for one or several CUDA majors, as an extra or as a package of its own. Which of them, and in which release,
is decided as for torch: the GPU first, the driver's floor second, then platform and Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Framework as Row
from cudadoctor.matrix import FrameworkRelease, Matrix, numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.versions import satisfies
from cudadoctor.resolve import dependents
from cudadoctor.resolve.companions import asked
from cudadoctor.resolve.drivers import Driver, family
from cudadoctor.resolve.need import (
    BY_DRIVER,
    BY_GPU,
    BY_PLATFORM,
    BY_PYTHON,
    BY_REQUEST,
    LINUX,
    NONE,
    Framework,
    Need,
    Objection,
)

# How a framework is tied to torch: any release will do.
ANY = "any"


class _Offer(NamedTuple):
    """One release for one CUDA major before one need."""

    release: FrameworkRelease
    major: str
    objections: tuple[Objection, ...]
    likely: tuple[str, ...]

    @property
    def requirement(self) -> str:
        return self.release.install[self.major]


def frameworks(
    need: Need, matrix: Matrix, driver: Optional[Driver], torch_cuda: Optional[str]
) -> tuple[Framework, ...]:
    """What was asked for beside torch and is not bound to its releases. `torch_cuda` is the CUDA of the torch that goes
    into the same environment: where a release comes for it as well, it is taken for the same major."""
    found = []
    for text in need.partners:
        name, specifier = asked(text)
        if not dependents.releases(name, matrix):
            major = (torch_cuda or "").partition(".")[0]
            found.append(_framework(text[: len(text) - len(specifier)], specifier, need, matrix, driver, major))
    return tuple(found)


def _framework(
    name: str, specifier: str, need: Need, matrix: Matrix, driver: Optional[Driver], torch_major: str
) -> Framework:
    row = matrix.framework(name.partition("[")[0])
    if row is None:
        return Framework(name, None, reasons=(f"what {name} needs is not known",))
    if need.gpu_state == NONE:
        return Framework(row.name, None, reasons=(f"{row.name} for a GPU was asked for, and there is none",))
    releases = matrix.framework_releases(row.name)
    if releases and row.tied_to_torch:
        reason = f"{row.name} comes with torch, in the release that torch wants: another would contradict it"
        return Framework(row.name, None, reasons=(reason,))
    if not releases:
        return _follows_torch(row, specifier, need, torch_major)
    offers = [
        _offer(row, release, major, specifier, need, matrix, driver)
        for release in releases
        for major in sorted(release.cuda, key=lambda major: (major == torch_major, int(major)), reverse=True)
    ]
    if name != row.name:
        # Who says cupy-cuda12x or jax[cuda12] has chosen the CUDA already.
        offers = [offer for offer in offers if offer.requirement.startswith((f"{name}==", f"{name}["))] or offers
    best = next((offer for offer in offers if not offer.objections), None)
    if best is None:
        return Framework(row.name, None, reasons=_why_none(offers, row, specifier), better=tuple(_better(offers, None)))
    reasons = (
        f"{row.name} {best.release.version} comes for CUDA {_and(best.release.cuda)}",
        *_why(best, row, need, driver),
        *best.likely,
    )
    return Framework(
        row.name,
        best.requirement,
        best.major,
        reasons,
        tuple(_better(offers, best)),
        "likely" if best.likely else "certain",
        _brings_cuda(best),
    )


def _brings_cuda(offer: _Offer) -> bool:
    """Whether it requires NVIDIA's cudnn or nccl from PyPI: jax[cuda12], tensorflow[and-cuda], not cupy."""
    extras = offer.requirement.partition("[")[2].partition("]")[0]
    return "cuda" in extras or bool({"cudnn", "nccl"} & set(offer.release.needs))


def _follows_torch(row: Row, specifier: str, need: Need, torch_major: str) -> Framework:
    """A package without releases of its own for a CUDA: it takes the one of the torch that is there."""
    lowest = row.capability.get(torch_major)
    low = _too_old(lowest, need)
    reasons: list[str] = []
    if low is not None:
        reasons.append(f"{row.name} {low}")
    elif need.platform not in row.platforms:
        reasons.append(_no_platform(row, need))
    elif not torch_major:
        reasons.append(f"{row.name} follows torch, and there is no torch for it here")
    elif row.torch != ANY:
        # Its binaries fit one torch, and no index says which: no command of ours can be right.
        reasons.append(row.note or f"{row.name} is built for one torch release each")
    else:
        plain = row.cuda.get(torch_major, row.name if not row.cuda else "")
        if plain:
            return Framework(row.name, plain + specifier, torch_major, (f"{row.name} goes with any torch",))
        reasons.append(f"{row.name} comes for CUDA {_and(tuple(row.cuda))}, torch is for CUDA {torch_major}")
    return Framework(row.name, None, reasons=tuple(reasons))


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _offer(
    row: Row,
    release: FrameworkRelease,
    major: str,
    specifier: str,
    need: Need,
    matrix: Matrix,
    driver: Optional[Driver],
) -> _Offer:
    likely: list[str] = []
    found: list[Objection] = []
    if specifier and not satisfies(release.version, specifier):
        found.append(Objection(BY_REQUEST, f"{row.name} {release.version} is not the {specifier} that was asked for"))
    found += _gpu_objections(row, release, major, need, matrix)
    likely += _gpu_doubts(row, release, major, need, matrix)
    found += _driver_objections(row, major, driver)
    if need.platform not in row.platforms:
        found.append(Objection(BY_PLATFORM, _no_platform(row, need)))
    elif need.libc == "musl" and need.platform.startswith(LINUX):
        found.append(Objection(BY_PLATFORM, f"this system's C library is musl; {row.name} has wheels for glibc only"))
    if need.python is not None and release.python and satisfies(need.python, release.python) is False:
        reason = f"{row.name} {release.version} wants Python {release.python}, this is {need.python}"
        found.append(Objection(BY_PYTHON, reason, release.python))
    if need.free_threaded:
        likely.append(f"whether {row.name} has a wheel for the free-threaded Python {need.python_tag} is not known")
    return _Offer(release, major, tuple(found), tuple(likely))


def _gpu_objections(row: Row, release: FrameworkRelease, major: str, need: Need, matrix: Matrix) -> Iterator[Objection]:
    low = _too_old(row.capability.get(major), need)
    if low is not None:
        yield Objection(BY_GPU, f"{row.name} for CUDA {major} {low}")
        return
    for gpu in need.gpus:
        known = family(gpu.capability, matrix)
        if known is None:
            continue
        name = f"{gpu.label} (compute capability {gpu.capability})"
        if known.last_cuda is not None and int(known.last_cuda.partition(".")[0]) < int(major):
            yield Objection(
                BY_GPU, f"CUDA {major} does not compile for {name} any more: {known.last_cuda} was the last"
            )
            return
        first = known.first_cuda
        if first is None:
            continue
        runtime = release.needs.get("cuda-runtime", "")
        within = not runtime or first.partition(".")[0] != major or satisfies(first, runtime) is not False
        if int(first.partition(".")[0]) > int(major) or not within:
            has = f"CUDA {major}" if within else f"CUDA {runtime.lstrip('=')}"
            yield Objection(BY_GPU, f"{row.name} {release.version} brings {has}, and {name} needs {first} or newer")
            return


def _gpu_doubts(row: Row, release: FrameworkRelease, major: str, need: Need, matrix: Matrix) -> Iterator[str]:
    """A GPU that came after the oldest CUDA that a release may have been built with."""
    oldest = release.needs.get("cuda-runtime", "").lstrip(">=~").partition(",")[0]
    for gpu in need.gpus:
        known = family(gpu.capability, matrix)
        first = known.first_cuda if known is not None else None
        if not oldest or first is None or first.partition(".")[0] != major:
            continue
        if (numbers(oldest) or ()) < (numbers(first) or ()):
            yield (
                f"GPU: it takes CUDA {oldest} and newer, and {gpu.label} came with {first}: it may have to compile its "
                "code for that GPU at first use"
            )
            return


def _driver_objections(row: Row, major: str, driver: Optional[Driver]) -> Iterator[Objection]:
    floor = None if driver is None else _floor(row, major, driver)
    if driver is not None and floor is not None and (numbers(driver.version) or ()) < (numbers(floor) or ()):
        system = "Linux" if driver.numbering == LINUX else "Windows"
        yield Objection(
            BY_DRIVER,
            f"{row.name} for CUDA {major} needs driver {floor} or newer on {system}, this is {driver.version}",
            floor,
        )


def _floor(row: Row, major: str, driver: Driver) -> Optional[str]:
    return (row.linux if driver.numbering == LINUX else row.windows_driver).get(major)


def _too_old(lowest: Optional[str], need: Need) -> Optional[str]:
    """Why a GPU is below the lowest compute capability; None: none is, or no such bound is known."""
    if lowest is None:
        return None
    for gpu in need.gpus:
        if gpu.capability is not None and (numbers(gpu.capability) or ()) < (numbers(lowest) or ()):
            return f"wants compute capability {lowest} or newer, {gpu.label} has {gpu.capability}"
    return None


def _no_platform(row: Row, need: Need) -> str:
    if need.platform.startswith("windows") and row.windows == "wsl":
        return f"{row.name} uses the GPU on Windows only inside WSL"
    return f"{row.name} has no wheels with CUDA for {need.platform}"


def _why(offer: _Offer, row: Row, need: Need, driver: Optional[Driver]) -> Iterator[str]:
    floor = None if driver is None else _floor(row, offer.major, driver)
    if driver is not None and floor is not None:
        have = "" if driver.is_expected else f", this is {driver.version}"
        yield f"driver: {row.name} for CUDA {offer.major} needs {floor} or newer{have}"
    if offer.release.python is not None:
        have = f", this is {need.python}" if need.python is not None else ""
        yield f"Python: {offer.release.python}{have}"


def _why_none(offers: Sequence[_Offer], row: Row, specifier: str) -> tuple[str, ...]:
    able = [offer for offer in offers if all(o.by != BY_REQUEST for o in offer.objections)]
    if not able:
        return (f"no {row.name}{specifier} is known",)
    nearest = min(able, key=lambda offer: len(offer.objections))
    return tuple(o.reason for o in nearest.objections)


def _better(offers: Sequence[_Offer], best: Optional[_Offer]) -> Iterator[str]:
    """What a newer driver or another Python alone would open, newer than `best`."""
    said: set[str] = set()
    for offer in offers if best is None else offers[: offers.index(best)]:
        sides = {o.by for o in offer.objections}
        if len(sides) != 1 or sides & said:
            continue
        objection = offer.objections[0]
        if objection.by == BY_DRIVER:
            yield f"a driver of {objection.needed} or newer opens {offer.requirement}"
        elif objection.by == BY_PYTHON:
            yield f"Python {objection.needed} opens {offer.requirement}"
        said |= sides
