"""What stands against each torch build on one machine, in the order in which it matters.

GPU architecture first (the driver may be fine and `is_available()` True, and still nothing runs), the driver's floor by
CUDA major second, then platform, Python and glibc, then what the person has and asked for.

Whether something objects is worked out for every build, its sentence only for those that are shown: a machine is judged
against some hundred builds, several times over for what would open a better one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Optional

from cudadoctor.matrix import Build, Matrix, TorchRelease, Verdict
from cudadoctor.matrix.versions import Numbers, numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.versions import satisfies, split_local
from cudadoctor.resolve import dependents
from cudadoctor.resolve.companions import companion_version, wanted_companions
from cudadoctor.resolve.drivers import Driver, branch_of, driver_needed, serves
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
    Gpu,
    Need,
    Objection,
    Pin,
)

# What a person or a package wishes, as against what the machine can: only these give way when nothing fits.
SOFT = (BY_PIN, BY_COMPANION)

RUNS = ("yes", "likely")
NO_WISH = (0, 0)


class Candidate(NamedTuple):
    """A build, its release, and the numbers that all machines compare. `key`: newer is greater, torch first, CUDA
    second."""

    build: Build
    release: TorchRelease
    key: tuple[Numbers, Numbers]
    glibc: Optional[Numbers]
    glibc_below: Optional[Numbers]


def candidates(matrix: Matrix, platform: str, cuda: bool) -> tuple[Candidate, ...]:
    """Every build for a platform with (or without) CUDA, newest torch first and in a release the newest CUDA first."""

    def make() -> tuple[Candidate, ...]:
        return tuple(
            Candidate(
                build,
                release,
                (numbers(build.torch) or (), numbers(build.cuda or "0") or ()),
                numbers(build.glibc) if build.glibc else None,
                numbers(build.glibc_below) if build.glibc_below else None,
            )
            for release in matrix.torch_releases()
            for build in reversed(release.builds(platform))
            if (build.cuda is not None) == cuda
        )

    return matrix.once(f"candidates {platform} {cuda}", make)


class Judged:
    """One build before one need.

    `sides` are those that object, each once; `hard_count` counts the objections that no wish can lift, `unmet` the
    pins and the companions that the build cannot have. `likely`: it should run, on the driver's PTX compiler or on a
    list not seen whole.
    """

    __slots__ = ("_objections", "build", "hard_count", "judge", "key", "likely", "release", "sides", "unmet")

    def __init__(
        self,
        judge: Judge,
        candidate: Candidate,
        sides: Sequence[str],
        hard_count: int,
        unmet: tuple[int, int],
        likely: bool,
    ) -> None:
        self.judge = judge
        self.build, self.release, self.key = candidate[:3]
        self.sides = sides
        self.hard_count = hard_count
        self.unmet = unmet
        self.likely = likely
        self._objections: Optional[tuple[Objection, ...]] = None

    @property
    def objections(self) -> tuple[Objection, ...]:
        if self._objections is None:
            self._objections = tuple(self.judge.objections(self)) if self.sides else ()
        return self._objections

    @property
    def reasons(self) -> tuple[str, ...]:
        """What speaks for the build, a line a subject."""
        return tuple(self.judge.reasons(self))

    @property
    def hard(self) -> tuple[Objection, ...]:
        return tuple(o for o in self.objections if o.by not in SOFT)

    @property
    def soft(self) -> tuple[Objection, ...]:
        return tuple(o for o in self.objections if o.by in SOFT)

    @property
    def passes(self) -> bool:
        return not self.hard_count

    def stands_only(self, side: str) -> bool:
        """Whether nothing but this side objects, wishes apart."""
        return all(by == side or by in SOFT for by in self.sides)


class Judge:
    """One need and one driver before the builds of a platform, with CUDA or without. Without `driver` the driver rules
    nothing out."""

    def __init__(self, need: Need, matrix: Matrix, driver: Optional[Driver], cuda: bool = True) -> None:
        self.need = need
        self.matrix = matrix
        self.driver = driver
        self.rows = candidates(matrix, need.platform, cuda)
        self.gpus = tuple(dict.fromkeys(Gpu(gpu.label, gpu.capability) for gpu in need.gpus if gpu.capability))
        self.companions = wanted_companions(need)
        self.partners = dependents.wanted(need, matrix)
        self.asked = torch_specifier(need.torch)
        self._has_wishes = bool(
            self.asked or need.variant or need.cuda_major or need.pins or self.companions or self.partners
        )
        self._codes = [code(matrix, need.platform, gpu.capability or "", driver) for gpu in self.gpus] if cuda else []
        self._served: Mapping[str, Verdict] = serves(driver, matrix) if cuda and driver is not None else {}
        self._any_python = need.implementation == "CPython" and need.python_bits == 64
        self._tag = need.python_tag
        self._is_linux = need.platform.startswith("linux")
        self._is_musl = self._is_linux and need.libc == "musl"
        self._glibc = numbers(need.glibc) if need.glibc and self._is_linux else None
        self._requested: dict[str, bool] = {}
        self._pins: dict[tuple[str, Optional[str]], tuple[Pin, ...]] = {}
        self._partners: dict[tuple[dependents.Partner, str, str], bool] = {}

    def __iter__(self) -> Iterator[Judged]:
        """Every build, newest torch first and in a release the newest CUDA first."""
        return (self._judge(place, candidate) for place, candidate in enumerate(self.rows))

    def newest(self) -> Iterator[Judged]:
        """The same without what is older than a build of its variant that surely runs and meets every wish: no such
        build is chosen or shown where no present torch keeps its version."""
        done = set()
        for place, candidate in enumerate(self.rows):
            variant = candidate.build.variant
            if variant in done:
                continue
            found = self._judge(place, candidate)
            if not found.hard_count and not found.likely and found.unmet == NO_WISH:
                done.add(variant)
            yield found

    def _judge(self, place: int, candidate: Candidate) -> Judged:
        build = candidate.build
        sides: list[str] = []
        hard = 0
        likely = False
        for answers in self._codes:
            answer = answers[place]
            if answer == "likely":
                likely = True
            elif answer != "yes":
                if not hard:
                    sides.append(BY_GPU)
                hard += 1
        if self._served and self._served[build.cuda or ""].answer not in RUNS:
            sides.append(BY_DRIVER)
            hard += 1
        if not self._any_python or (self._tag is not None and self._tag not in build.pythons):
            sides.append(BY_PYTHON)
            hard += 1
        if self._is_musl:
            sides.append(BY_PLATFORM)
            hard += 1
        elif self._glibc is not None and not _loads(self._glibc, candidate):
            sides.append(BY_GLIBC)
            hard += 1
        unmet = NO_WISH
        if self._has_wishes:
            requests, unmet = self._wishes(build, candidate.release)
            if requests:
                sides.append(BY_REQUEST)
                hard += requests
            if unmet[0]:
                sides.append(BY_PIN)
            if unmet[1]:
                sides.append(BY_COMPANION)
        if not build.seen:
            sides.append(BY_INDEX)
            hard += 1
        return Judged(self, candidate, sides, hard, unmet, likely)

    def _wishes(self, build: Build, release: TorchRelease) -> tuple[int, tuple[int, int]]:
        """How many requests, and how many pins and companions the build does not meet."""
        requests = int(not self._is_asked(build)) + int(not self._is_variant(build))
        requests += sum(1 for _ in self._unmet_partners(build, release))
        pins = len(self._unmet_pins(build)) if self.need.pins else 0
        return requests, (pins, sum(1 for _ in self._missing_companions(build, release)))

    def meets_torch(self, build: Build) -> bool:
        """Whether it is the torch that was asked for, whatever else was asked for."""
        return self._is_asked(build) and self._is_variant(build)

    def _is_variant(self, build: Build) -> bool:
        if self.need.cuda_major not in (None, (build.cuda or "").partition(".")[0]):
            return False
        return self.need.variant is None or build.variant == self.need.variant

    def _unmet_partners(self, build: Build, release: TorchRelease) -> Iterator[dependents.Partner]:
        for partner in self.partners:
            key = (partner, build.torch, build.variant)
            if key not in self._partners:
                self._partners[key] = partner.release(build, release, self.need, self.matrix) is not None
            if not self._partners[key]:
                yield partner

    def _is_asked(self, build: Build) -> bool:
        if not self.asked:
            return True
        if build.torch not in self._requested:
            self._requested[build.torch] = bool(satisfies(build.torch, self.asked))
        return self._requested[build.torch]

    def _unmet_pins(self, build: Build) -> tuple[Pin, ...]:
        key = (build.torch, build.cuda)
        if key not in self._pins:
            self._pins[key] = tuple(pin for pin in self.need.pins if not dependents.holds(pin, build))
        return self._pins[key]

    def _missing_companions(self, build: Build, release: TorchRelease) -> Iterator[tuple[str, str]]:
        for name, specifier in self.companions:
            version = companion_version(name, build, release, self.matrix)
            if version is None or (specifier and not satisfies(split_local(version).public, specifier)):
                yield name, specifier

    # -- in words ---------------------------------------------------------------------------------------------------

    def objections(self, judged: Judged) -> Iterator[Objection]:
        """Every objection to the build, in the order of `sides`."""
        build, need = judged.build, self.need
        for by in judged.sides:
            if by == BY_GPU:
                for gpu, verdict in self._code(build):
                    if verdict.answer not in RUNS:
                        yield Objection(by, _no_code(gpu, verdict, build))
            elif by == BY_DRIVER:
                verdict = self._served[build.cuda or ""]
                yield Objection(by, verdict.reason, verdict.needed)
            elif by == BY_PYTHON:
                yield Objection(by, self._no_python(build))
            elif by == BY_PLATFORM:
                yield Objection(by, "this system's C library is musl; torch has wheels for glibc only")
            elif by == BY_GLIBC:
                yield self._glibc_objection(build)
            elif by == BY_REQUEST:
                if not self._is_asked(build):
                    yield Objection(by, f"torch {build.torch} is not the {need.torch} that was asked for")
                if need.cuda_major is not None and not self._is_variant(build):
                    wants = f"the partners bring CUDA {need.cuda_major}"
                    yield Objection(by, f"torch {name(build)} is not of CUDA {need.cuda_major}: {wants}")
                elif not self._is_variant(build):
                    yield Objection(by, f"{build.variant} is not the {need.variant} that was asked for")
                for partner in self._unmet_partners(build, judged.release):
                    yield Objection(by, partner.refusal(build, judged.release, need, self.matrix))
            elif by == BY_PIN:
                for pin in self._unmet_pins(build):
                    yield Objection(by, dependents.refusal(pin, build))
            elif by == BY_COMPANION:
                for package, specifier in self._missing_companions(build, judged.release):
                    reason = f"no {package}{specifier} for torch {name(build)} was seen on the index"
                    yield Objection(by, reason)
            elif by == BY_INDEX:
                text = "may not exist" if build.guessed else "was announced, but not seen on an index"
                yield Objection(by, f"torch {name(build)} {text}")

    def reasons(self, judged: Judged) -> Iterator[str]:
        build = judged.build
        if build.cuda is not None:
            yield from self._gpu_reasons(build)
            yield from self._driver_reasons(build)
        if BY_PYTHON not in judged.sides:
            tag = self.need.python_tag
            if tag is None:
                yield f"Python: not given; there are wheels for {', '.join(build.pythons)}"
            else:
                yield f"Python: there is a wheel for {tag}"
        if self._is_linux and build.glibc is not None and not {BY_GLIBC, BY_PLATFORM} & set(judged.sides):
            if self._glibc is None:
                below = f", and is not loaded from {build.glibc_below} on" if build.glibc_below else ""
                yield f"glibc: needs {build.glibc} or newer{below}"
            else:
                yield f"glibc: {self.need.glibc} is {build.glibc} or newer"

    def _gpu_reasons(self, build: Build) -> Iterator[str]:
        for gpu, verdict in self._code(build):
            if verdict.answer == "likely":
                yield f"GPU: {_named(gpu, verdict.reason)}"
            elif verdict.answer == "yes":
                yield f"GPU: {verdict.via} code runs on {gpu.label} (compute capability {gpu.capability})"

    def _driver_reasons(self, build: Build) -> Iterator[str]:
        driver, major = self.driver, (build.cuda or "").partition(".")[0]
        if driver is None or not major:
            return
        verdict = self._served[build.cuda or ""]
        if verdict.answer not in RUNS:
            return
        floor = self.matrix.floor(int(major), driver.numbering)
        if floor is None:
            yield "driver: " + verdict.reason.removeprefix("driver ")
        elif driver.is_expected:
            needed = driver_needed(build, self.need, self.matrix)
            more = "" if needed == floor else f", the GPU {needed} or newer"
            yield f"driver: CUDA {build.cuda} needs {floor} or newer{more}"
        else:
            yield f"driver: {driver.version} serves every CUDA {major}.x ({floor} or newer does)"

    def is_unknown(self, build: Build) -> bool:
        """Whether it is not known if the build has code for a GPU, and no GPU is known to be without."""
        answers = {verdict.answer for _, verdict in self._code(build)}
        return "unknown" in answers and "no" not in answers

    def _code(self, build: Build) -> Iterator[tuple[Gpu, Verdict]]:
        return ((gpu, _runs_on(self.matrix, build, gpu.capability or "", self.driver)) for gpu in self.gpus)

    def _glibc_objection(self, build: Build) -> Objection:
        have = self.need.glibc
        if build.glibc_below is not None and (self._glibc or ()) >= (numbers(build.glibc_below) or ()):
            reason = f"glibc from {build.glibc_below} on does not load torch {name(build)}, this is {have}"
            return Objection(BY_GLIBC, f"{reason}: one of its libraries asks for an executable stack")
        return Objection(
            BY_GLIBC, f"torch {name(build)} needs glibc {build.glibc} or newer, this is {have}", build.glibc
        )

    def _no_python(self, build: Build) -> str:
        need = self.need
        if need.implementation != "CPython":
            return f"torch has wheels for CPython only, this is {need.implementation}"
        if need.python_bits != 64:
            return f"this Python is a {need.python_bits}-bit one, torch has 64-bit wheels only"
        has = ", ".join(build.pythons)
        return f"torch {name(build)} has no wheel for Python {need.python_tag}: it has {has}"


def _loads(glibc: Numbers, candidate: Candidate) -> bool:
    oldest, below = candidate.glibc, candidate.glibc_below
    return (oldest is None or glibc >= oldest) and (below is None or glibc < below)


def name(build: Build) -> str:
    """As people know it: 2.14.1+cu126."""
    return f"{build.torch}+{build.variant}"


def _no_code(gpu: Gpu, verdict: Verdict, build: Build) -> str:
    """Why a build does not run on a GPU, which is called by its name."""
    if build.archs_guessed or build.guessed:
        return f"which GPUs torch {name(build)} on {build.platform} has code for is not known"
    reason = _named(gpu, verdict.reason)
    return f"torch {name(build)} {reason[3:]}" if reason.startswith("it has ") else f"torch {name(build)}: {reason}"


def _named(gpu: Gpu, reason: str) -> str:
    """The matrix speaks of sm_61; here that is a card with a name."""
    target = "sm_" + (gpu.capability or "").replace(".", "")
    named = reason.replace(f" {target}", f" {gpu.label} ({target})", 1)
    return named if named != reason else f"{gpu.label}: {reason}"


def judge_all(need: Need, matrix: Matrix, driver: Optional[Driver], cuda: bool = True) -> list[Judged]:
    """Every build for the platform before this need, newest torch first and in a release the newest CUDA first."""
    return list(Judge(need, matrix, driver, cuda))


def code(matrix: Matrix, platform: str, capability: str, driver: Optional[Driver]) -> tuple[str, ...]:
    """Whether each candidate of a platform has code for that compute capability: yes, likely, no or unknown. The driver
    matters for PTX only, and there by its branch."""
    name = "none"
    if driver is not None:
        branch = branch_of(driver.version, driver.numbering, matrix)
        name = branch.name if branch is not None and not branch.guessed else "unknown"

    def make() -> tuple[str, ...]:
        rows = candidates(matrix, platform, True)
        return tuple(_runs_on(matrix, row.build, capability, driver).answer for row in rows)

    return matrix.once(f"code {platform} {capability} {name}", make)


def _runs_on(matrix: Matrix, build: Build, capability: str, driver: Optional[Driver]) -> Verdict:
    if driver is None:
        return matrix.build_runs_on(build, capability)
    return matrix.build_runs_on(build, capability, driver.version, driver.numbering)


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
