"""Packages that are bound to torch: what the installed ones want of it, which release of an asked-for one goes with it,
and which have to move when torch does."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Optional

from cudadoctor.matrix import Build, Framework, Matrix, TorchRelease, numbers
from cudadoctor.matrix import Pin as Release
from cudadoctor.matrix.versions import Numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.versions import satisfies, split_local
from cudadoctor.resolve.companions import asked, companion_version
from cudadoctor.resolve.need import AWAY, DOWN, REBUILD, UP, Move, Need, Pin


@lru_cache(maxsize=4096)
def accepts(version: str, specifier: str) -> Optional[bool]:
    """`satisfies`, each question answered once: a machine asks the same of every build."""
    return satisfies(version, specifier)


class Partner(NamedTuple):
    """A package that was asked for and is bound to torch; `specifier` is what its version has to be ("" for any)."""

    name: str
    specifier: str

    @property
    def asked(self) -> str:
        return self.name + self.specifier

    def release(
        self, build: Build, torch: TorchRelease, need: Need, matrix: Matrix, with_companions: bool = True
    ) -> Optional[Release]:
        """Its newest known release that goes with `build` and the Python, and whose companions come in that build."""
        for row in releases_for(self.name, build.torch, matrix):
            if (
                _has_cuda(row.cuda, build.cuda or "")
                and self._is_asked(row)
                and _has_python(row, need)
                and not (with_companions and _missing(row, build, torch, matrix))
                and self._unfit((build.cuda or "").partition(".")[0], need, matrix) is None
            ):
                return row
        return None

    def refusal(self, build: Build, torch: TorchRelease, need: Need, matrix: Matrix) -> str:
        """Why no release goes with `build`."""
        rows = [row for row in releases(self.name, matrix) if self._is_asked(row)]
        hopeless = self._unfit(None, need, matrix)
        if hopeless is not None or not rows:
            return hopeless or f"no {self.asked} is known"
        with_torch = [row for row in rows if accepts(build.torch, row.torch)]
        if not with_torch:
            return f"no known {self.asked} takes torch {build.torch}; {rows[0].version} wants torch{rows[0].torch}"
        with_cuda = [row for row in with_torch if _takes(row, build)]
        if not with_cuda:
            has = ", ".join(with_torch[0].cuda)
            return f"{self.name} {with_torch[0].version} is built for CUDA {has}, not for {build.cuda or 'the CPU'}"
        row = next((row for row in with_cuda if _has_python(row, need)), None)
        if row is None:
            return f"{self.name} {with_cuda[0].version} wants Python {_python(with_cuda[0])}, this is {need.python}"
        unfit = self._unfit((build.cuda or "").partition(".")[0], need, matrix)
        if unfit is not None:
            return unfit
        missing = _missing(row, build, torch, matrix)
        return f"{self.name} {row.version} wants {missing}, of which no build for {build.variant} was seen"

    def _unfit(self, cuda: Optional[str], need: Need, matrix: Matrix) -> Optional[str]:
        """What the package itself cannot do on this machine with that CUDA major (None: with any), whatever its
        release."""
        row = known_framework(self.name, matrix)
        if row is None:
            return None
        if row.platforms and need.platform not in row.platforms:
            if need.platform.startswith("windows") and row.windows == "wsl":
                return f"{row.name} uses the GPU on Windows only inside WSL"
            return f"{row.name} has no wheels with CUDA for {need.platform}"
        known = [row.capability.get(cuda)] if cuda is not None else list(row.capability.values())
        lowest = min((found for found in known if found is not None), key=lambda text: numbers(text) or (), default="")
        for gpu in need.gpus:
            if gpu.capability is not None and (numbers(gpu.capability) or ()) < (numbers(lowest) or ()):
                return f"{row.name} wants compute capability {lowest} or newer, {gpu.label} has {gpu.capability}"
        return None

    def is_unknown(self, matrix: Matrix) -> bool:
        """Whether no known release is the one that was asked for."""
        return not any(self._is_asked(row) for row in releases(self.name, matrix))

    def _is_asked(self, row: Release) -> bool:
        return not self.specifier or bool(accepts(row.version, self.specifier))


def _missing(row: Release, build: Build, torch: TorchRelease, matrix: Matrix) -> Optional[str]:
    """The companion that a release wants and that does not come in the build of torch: another build of it would be
    installed beside it. None: there is none."""
    for package, wants in wanted_companions_of(row):
        version = companion_version(package, build, torch, matrix)
        if version is None or accepts(split_local(version).public, wants) is False:
            return f"{package}{wants}"
    return None


def wanted_companions_of(row: Release) -> tuple[tuple[str, str], ...]:
    """torchvision and torchaudio, where a release of a package wants them, with the version that it wants."""
    pairs = (("torchvision", row.torchvision), ("torchaudio", row.torchaudio))
    return tuple((package, wants) for package, wants in pairs if wants)


def wanted(need: Need, matrix: Matrix) -> tuple[Partner, ...]:
    """The asked-for packages that are bound to torch releases."""
    if not need.partners:
        return ()
    return tuple(Partner(*asked(text)) for text in need.partners if releases(asked(text)[0], matrix))


def releases(package: str, matrix: Matrix) -> tuple[Release, ...]:
    """Known releases with the torch that each wants, newest first."""
    return matrix.once(f"releases of {package}", lambda: matrix.pins(package))


def known_framework(name: str, matrix: Matrix) -> Optional[Framework]:
    """What is known of a package, whatever its release."""
    return matrix.once(f"framework {name}", lambda: matrix.framework(name))


def releases_for(package: str, torch: str, matrix: Matrix) -> tuple[Release, ...]:
    """Those of them that take a release of torch."""

    def make() -> tuple[Release, ...]:
        return tuple(row for row in releases(package, matrix) if satisfies(torch, row.torch))

    return matrix.once(f"releases of {package} for torch {torch}", make)


def _takes(row: Release, build: Build) -> bool:
    return _has_cuda(row.cuda, build.cuda or "") and bool(accepts(build.torch, row.torch))


def lies_beside_torch(row: Release, build: Build, matrix: Matrix) -> bool:
    """Whether a release is seen on PyTorch's index in a build for the very CUDA: it is installed with torch then."""
    known = known_framework(row.package, matrix)
    return known is not None and known.torch_index and build.cuda in row.cuda


def _has_cuda(known: tuple[str, ...], cuda: str) -> bool:
    """Whether "12.6" is among CUDA versions such as "12.6" or "13" (any 13.x). Where none is known, it is."""
    return not known or cuda in known or cuda.partition(".")[0] in known


def _python(row: Release) -> str:
    return row.python or ""


def _has_python(row: Release, need: Need) -> bool:
    return need.python is None or not _python(row) or accepts(need.python, _python(row)) is not False


# -- what is installed ----------------------------------------------------------------------------------------------


def holds(pin: Pin, build: Build) -> bool:
    """Whether an installed package accepts `build`. What it wants and nobody can read does not count against it."""
    if accepts(build.torch, pin.specifier) is False:
        return False
    return build.cuda is None or _has_cuda(pin.cuda, build.cuda)


def refusal(pin: Pin, build: Build) -> str:
    """What stands between an installed package and `build`."""
    name = f"{pin.package} {pin.version}".strip()
    if accepts(build.torch, pin.specifier) is not False:
        return f"{name} is built for CUDA {', '.join(pin.cuda)}, torch {build.torch}+{build.variant} is not"
    if pin.built:
        return f"{name} was built for torch {pin.specifier.lstrip('=').removesuffix('.*')}, this is {build.torch}"
    return f"{name} requires torch{pin.specifier}, this is {build.torch}"


def moves(build: Build, torch: TorchRelease, need: Need, matrix: Matrix) -> tuple[Move, ...]:
    """What has to change beside torch once `build` is there."""
    found: dict[str, Move] = {}
    for pin in need.pins:
        if not holds(pin, build):
            found.setdefault(pin.package, _move(pin, build, torch, need, matrix))
    return tuple(found.values())


def _move(pin: Pin, build: Build, torch: TorchRelease, need: Need, matrix: Matrix) -> Move:
    reason = refusal(pin, build)
    # As little change as can be: the same release for another build, else the newest that goes with it.
    same = Partner(pin.package, f"=={pin.version}").release(build, torch, need, matrix, with_companions=False)
    release = same or Partner(pin.package, "").release(build, torch, need, matrix, with_companions=False)
    if release is not None:
        have, to = _release_of(pin.version), _release_of(release.version)
        direction = REBUILD if release.version == pin.version else DOWN if to < have else UP
        return Move(pin.package, pin.version, release.version, direction, reason)
    if pin.built:
        return Move(pin.package, pin.version, None, REBUILD, reason)
    if releases(pin.package, matrix):
        return Move(pin.package, pin.version, None, AWAY, reason)
    return Move(pin.package, pin.version, None, UP if _release_of(build.torch) > _limit(pin) else DOWN, reason)


def _limit(pin: Pin) -> Numbers:
    return _release_of(pin.specifier.lstrip("=<>~! "))


def _release_of(version: str) -> Numbers:
    """The leading numbers of a version: (0, 0, 32) of 0.0.32.post2."""
    found = re.match(r"[0-9]{1,9}(?:\.[0-9]{1,9})*", version)
    return (numbers(found.group()) or ()) if found else ()
