"""What stands against one torch build on one machine, in the order in which it matters.

GPU architecture first (the driver may be fine and `is_available()` True, and still nothing runs), the driver's floor by
CUDA major second, then platform, Python and glibc, then what the person has and asked for.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.matrix import Build, Matrix, TorchRelease
from cudadoctor.matrix.versions import Numbers, numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.versions import satisfies, split_local
from cudadoctor.resolve.need import (
    BY_COMPANION,
    BY_DRIVER,
    BY_GLIBC,
    BY_GPU,
    BY_INDEX,
    BY_PIN,
    BY_PLATFORM,
    BY_PYTHON,
    BY_REQUEST,
    Need,
    Objection,
)

# What a person or a package wishes, as against what the machine can: only these give way when nothing fits.
SOFT = (BY_PIN, BY_COMPANION)


class Driver(NamedTuple):
    """The driver that builds are judged by. `is_expected`: not the one at work, but the one that will be."""

    version: str
    numbering: str
    is_expected: bool = False


class Judged(NamedTuple):
    """One build before one need. `likely`: it should run, on the driver's PTX compiler or on a list not seen whole."""

    build: Build
    release: TorchRelease
    objections: tuple[Objection, ...]
    reasons: tuple[str, ...]
    likely: bool

    @property
    def hard(self) -> tuple[Objection, ...]:
        return tuple(o for o in self.objections if o.by not in SOFT)

    @property
    def passes(self) -> bool:
        return not self.hard

    @property
    def key(self) -> tuple[Numbers, Numbers]:
        """Newer is greater: torch first, CUDA second."""
        return numbers(self.build.torch) or (), numbers(self.build.cuda or "0") or ()

    def stands_only(self, *sides: str) -> bool:
        """Whether nothing but these sides object."""
        return all(o.by in sides for o in self.hard)


def judge(build: Build, release: TorchRelease, need: Need, matrix: Matrix, driver: Optional[Driver]) -> Judged:
    """Every objection to `build`. Without `driver` the driver rules nothing out."""
    objections: list[Objection] = []
    reasons: list[str] = []
    likely = False
    if build.cuda is not None:
        likely = _judge_gpus(build, need, matrix, driver, objections, reasons)
        _judge_driver(build, matrix, driver, objections, reasons)
    _judge_python(build, need, objections, reasons)
    _judge_glibc(build, need, objections, reasons)
    _judge_wishes(build, release, need, matrix, objections)
    if not build.seen:
        text = "may not exist" if build.guessed else "announced, but not seen on an index"
        objections.append(Objection(BY_INDEX, f"torch {build.torch} {build.variant}: {text}"))
    return Judged(build, release, tuple(objections), tuple(reasons), likely)


def _judge_gpus(
    build: Build, need: Need, matrix: Matrix, driver: Optional[Driver], objections: list[Objection], reasons: list[str]
) -> bool:
    likely = False
    said: set[str] = set()
    for gpu in need.gpus:
        if gpu.capability is None:
            continue
        verdict = matrix.build_runs_on(
            build, gpu.capability, driver.version if driver else None, driver.numbering if driver else None
        )
        if verdict.answer in ("no", "unknown"):
            objections.append(Objection(BY_GPU, f"{gpu.label}: {verdict.reason}"))
            continue
        likely = likely or verdict.answer == "likely"
        line = f"GPU: {verdict.via} code runs on {gpu.label} (compute capability {gpu.capability})"
        if verdict.answer == "likely":
            line = f"GPU: {gpu.label}: {verdict.reason}"
        if line not in said:
            said.add(line)
            reasons.append(line)
    return likely


def _judge_driver(
    build: Build, matrix: Matrix, driver: Optional[Driver], objections: list[Objection], reasons: list[str]
) -> None:
    if build.cuda is None or driver is None:
        return
    verdict = matrix.driver_serves(driver.version, driver.numbering, build.cuda)
    if verdict.answer in ("no", "unknown"):
        objections.append(Objection(BY_DRIVER, verdict.reason, verdict.needed))
        return
    floor = matrix.floor(int(build.cuda.partition(".")[0]), driver.numbering)
    if floor is None:
        reasons.append(f"driver: {verdict.reason}")
    elif driver.is_expected:
        reasons.append(f"driver: CUDA {build.cuda} needs {floor} or newer")
    else:
        major = build.cuda.partition(".")[0]
        reasons.append(f"driver: {driver.version} serves every CUDA {major}.x ({floor} or newer does)")


def _judge_python(build: Build, need: Need, objections: list[Objection], reasons: list[str]) -> None:
    if need.implementation != "CPython":
        objections.append(Objection(BY_PYTHON, f"torch has wheels for CPython only, this is {need.implementation}"))
        return
    if need.python_bits != 64:
        objections.append(
            Objection(BY_PYTHON, f"this Python is a {need.python_bits}-bit one, torch has 64-bit wheels only")
        )
        return
    tag = need.python_tag
    if tag is None:
        reasons.append(f"Python: not given; there are wheels for {', '.join(build.pythons)}")
    elif not build.has_python(tag):
        has = ", ".join(build.pythons)
        objections.append(
            Objection(BY_PYTHON, f"torch {build.torch} {build.variant} has no wheel for Python {tag}: it has {has}")
        )
    else:
        reasons.append(f"Python: there is a wheel for {tag}")


def _judge_glibc(build: Build, need: Need, objections: list[Objection], reasons: list[str]) -> None:
    if not need.platform.startswith("linux"):
        return
    if need.libc == "musl":
        objections.append(Objection(BY_PLATFORM, "this system's C library is musl; torch has wheels for glibc only"))
        return
    if build.glibc is None:
        return
    have = numbers(need.glibc) if need.glibc else None
    want = numbers(build.glibc) or ()
    if have is None:
        reasons.append(f"glibc: needs {build.glibc} or newer")
    elif have < want:
        objections.append(
            Objection(BY_GLIBC, f"torch {build.torch} needs glibc {build.glibc}, this is {need.glibc}", build.glibc)
        )
    else:
        reasons.append(f"glibc: {need.glibc} is {build.glibc} or newer")


def _judge_wishes(build: Build, release: TorchRelease, need: Need, matrix: Matrix, objections: list[Objection]) -> None:
    asked = torch_specifier(need.torch)
    if asked and not satisfies(build.torch, asked):
        objections.append(Objection(BY_REQUEST, f"torch {build.torch} is not the {need.torch} that was asked for"))
    if need.variant is not None and build.variant != need.variant:
        objections.append(Objection(BY_REQUEST, f"{build.variant} is not the {need.variant} that was asked for"))
    for pin in need.pins:
        # A package that does not fit the torch that is there has lost already: it may not dictate the next one.
        if not satisfies(build.torch, pin.specifier):
            objections.append(
                Objection(BY_PIN, f"{pin.package} {pin.version} requires torch{pin.specifier}, this is {build.torch}")
            )
    for name in wanted_companions(need):
        version = companion_version(name, build, release, matrix)
        if version is None:
            objections.append(
                Objection(BY_COMPANION, f"no {name} for torch {build.torch} {build.variant} was seen on the index")
            )
    for name in need.partners:
        if partner_version(name, build, matrix) is None:
            objections.append(Objection(BY_COMPANION, f"no known {name} goes with torch {build.torch} {build.variant}"))


def partner_version(name: str, build: Build, matrix: Matrix) -> Optional[str]:
    """The newest known release of a package such as vllm that goes with `build`."""
    for row in matrix.pins(name):
        cuda = build.cuda or ""
        fits = not row.cuda or cuda in row.cuda or cuda.partition(".")[0] in row.cuda
        if fits and satisfies(build.torch, row.torch):
            return row.version
    return None


def torch_specifier(asked: str) -> str:
    """What a person asks for as a specifier: "2.7" means any 2.7, "2.7.1+cu126" that release."""
    text = asked.strip().lower()
    if text in ("", "latest", "newest", "*"):
        return ""
    public, _ = split_local(text)
    parts = numbers(public)
    if parts is not None:
        return f"=={public}.*" if len(parts) < 3 else f"=={public}"
    return public


def wanted_companions(need: Need) -> tuple[str, ...]:
    """Companions that have to be there: those that are installed and those that were asked for."""
    installed = tuple(name for name, _ in need.installed.companions) if need.installed else ()
    return tuple(dict.fromkeys((*installed, *need.companions)))


def companion_version(name: str, build: Build, release: TorchRelease, matrix: Matrix) -> Optional[str]:
    """The version of torchvision or torchaudio that belongs to `build`, with its local part where it has one.

    A companion that several torch releases share was built beside the first of them, for the variants of that time.
    """
    version = release.companions.get(name)
    if version is None or not numbers(version):
        return None
    first = _first_release_with(name, version, matrix) or release
    twin = first.build(build.variant, build.platform)
    if twin is None or (not twin.seen and twin.torch != build.torch):
        return None
    tagged = twin.local is not None and name not in first.companions_untagged
    return version + (f"+{twin.local}" if tagged else "")


def _first_release_with(name: str, version: str, matrix: Matrix) -> Optional[TorchRelease]:
    for release in reversed(matrix.torch_releases()):
        if release.companions.get(name) == version:
            return release
    return None
