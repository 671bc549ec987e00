"""The compatibility data as tables to look things up in, both ways.

What does this driver serve? Which builds have code for this GPU? What does this torch need, and this CUDA? Several of
them together narrow each other. Pure; nothing is decided here that the questions of :class:`Matrix` do not decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from cudadoctor.model.record import NamedTuple

from .drivers import counts_as_windows
from .query import Matrix
from .tables import (
    Architecture,
    Branch,
    Build,
    DriverBound,
    Floor,
    Gpu,
    GpuMatch,
    HostCompiler,
    Toolkit,
    TorchRelease,
    Verdict,
)
from .versions import capability, cuda_of_variant, numbers, torch_key

YES, LIKELY, NO, UNKNOWN = "yes", "likely", "no", "unknown"

# From bad to good: a build is as good as the worst that is said of it.
_ANSWERS = (NO, UNKNOWN, LIKELY, YES)


class Question(NamedTuple):
    """What is looked up. ``system`` ("linux", "windows", "wsl") is the numbering of ``driver`` and of driver floors;
    ``platforms`` are those whose builds are looked at. ``torch`` is "2.6", "2.6.0" or "2.6.0+cu124", ``cuda`` "12.4" or
    "12", ``python`` "3.12" or "3.13t"; None: not asked. ``day`` is today, for ends of life (None: the data's own)."""

    gpus: tuple[GpuMatch, ...] = ()
    driver: Optional[str] = None
    torch: Optional[str] = None
    cuda: Optional[str] = None
    python: Optional[str] = None
    system: str = "linux"
    platforms: tuple[str, ...] = ("linux-x86_64",)
    day: Optional[str] = None

    @property
    def variant(self) -> Optional[str]:
        """ "cu124" of torch 2.6.0+cu124."""
        return (self.torch or "").partition("+")[2] or None


class Line(NamedTuple):
    """A build, and what is said of it: for each GPU, for the driver, for the Python; each None where not asked.
    ``floor`` is the oldest driver for it, in the numbers of that system (None: a CPU build, or not known)."""

    build: Build
    release: TorchRelease
    floor: Optional[str]
    gpus: tuple[Verdict, ...]
    driver: Optional[Verdict]
    python: Optional[Verdict]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return (*self.gpus, *(verdict for verdict in (self.driver, self.python) if verdict is not None))

    @property
    def answer(self) -> str:
        """Whether it runs: "yes", "likely" (PTX), "unknown" or "no"."""
        return min((verdict.answer for verdict in self.verdicts), key=_ANSWERS.index, default=YES)

    @property
    def passes(self) -> bool:
        return self.answer in (YES, LIKELY)

    @property
    def reason(self) -> str:
        """What keeps it from running, or makes that uncertain; empty where nothing does."""
        worst = self.answer
        return "" if worst == YES else next(v.reason for v in self.verdicts if v.answer == worst)

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Newer is greater: torch first, CUDA second."""
        return torch_key(self.build.torch) or (), numbers(self.build.cuda or "0") or ()


class Served(NamedTuple):
    """Whether the driver runs programs of a CUDA major: ``cuda`` is "12.x", or "10.1" for the newest that it does."""

    cuda: str
    verdict: Verdict


class Driven(NamedTuple):
    """Whether the driver drives the GPUs of an architecture; for "no", ``needed`` is the branch that does."""

    architecture: Architecture
    verdict: Verdict


class DriverView(NamedTuple):
    """A driver. ``branch`` is None where its number belongs to none that is known; ``newest`` is the newest known
    one. ``over``: its support has ended, by every source (None: not known)."""

    driver: str
    system: str
    branch: Optional[Branch]
    newest: Branch
    serves: tuple[Served, ...]
    drives: tuple[Driven, ...]
    over: Optional[bool]

    @property
    def is_newer(self) -> bool:
        """Newer than every driver that the data knows."""
        if self.branch is not None:
            return False
        first = (numbers(self.driver) or (0,))[0]
        return first > max((self.newest.linux, *(self.newest.windows if self.system != "linux" else ())))


class GpuView(NamedTuple):
    """A GPU. ``products`` are all that the name can be. ``drives`` and ``compiles``: whether the driver that was asked
    for drives it, and the toolkit compiles for it. ``first`` and ``last``: the oldest and the newest build with code
    for it, of the newest CUDA where there are several."""

    match: GpuMatch
    capability: str
    architecture: Architecture
    products: tuple[Gpu, ...]
    first_branch: Optional[DriverBound]
    last_branch: Optional[DriverBound]
    drives: Optional[Verdict]
    compiles: Optional[Verdict]
    first: Optional[Line]
    last: Optional[Line]

    @property
    def label(self) -> str:
        if self.match.kind == "capability":
            return f"a GPU of compute capability {self.capability}"
        names = tuple(dict.fromkeys(row.name for row in self.match.rows))
        if len(names) == 1 or (names and self.match.text.strip().isdigit()):
            return names[0]
        return self.match.text.strip()

    @property
    def target(self) -> str:
        """ "sm_89"."""
        return "sm_" + self.capability.replace(".", "")


class TorchView(NamedTuple):
    """A torch release. ``others`` are the releases that the question could mean as well."""

    release: TorchRelease
    others: tuple[str, ...]


class CudaView(NamedTuple):
    """A CUDA version. ``toolkits`` are its releases, newest first (none: there never was such a toolkit, or it is not
    known); ``shown_by`` are the driver branches whose nvidia-smi shows it; ``ptx_branch`` the first one that compiles
    its PTX. ``served`` and ``ptx``: whether the driver that was asked for runs its programs and compiles its PTX."""

    cuda: str
    toolkits: tuple[Toolkit, ...]
    floor: Optional[Floor]
    shown_by: tuple[Branch, ...]
    ptx_branch: Optional[Branch]
    compilers: tuple[HostCompiler, ...]
    compiles_for: tuple[Architecture, ...]
    adds: tuple[Architecture, ...]
    drops: tuple[Architecture, ...]
    builds: tuple[Line, ...]
    served: Optional[Verdict]
    ptx: Optional[Verdict]


class Refused(NamedTuple):
    """A variant with no build that runs, and why its newest one does not."""

    variant: str
    line: Line


class Answer(NamedTuple):
    """Everything that a question is told.

    ``lines``: of one torch, all its builds; else the newest build of each variant that runs, newest CUDA first.
    ``unsure`` and ``announced`` are newer builds of which that is not known, or that no source has seen on an index.
    ``default``: what a plain ``pip install torch`` gives on each platform.
    """

    question: Question
    driver: Optional[DriverView]
    gpus: tuple[GpuView, ...]
    torch: Optional[TorchView]
    cuda: Optional[CudaView]
    lines: tuple[Line, ...]
    refused: tuple[Refused, ...]
    unsure: tuple[Line, ...]
    announced: tuple[Line, ...]
    default: tuple[Line, ...]

    @property
    def best(self) -> Optional[Line]:
        """The newest seen build that runs; a plain yes goes before a likely one."""
        fit = [line for line in self.lines if line.passes and line.build.seen]
        sure = [line for line in fit if line.answer == YES]
        return max(sure or fit, key=lambda line: line.key, default=None)


def look_up(question: Question, matrix: Matrix) -> Answer:
    """The answer to ``question``. ValueError for a torch or a CUDA that the data does not know."""
    torch = None if question.torch is None else torch_view(question.torch, matrix)
    cuda = None if question.cuda is None else cuda_view(question, matrix)
    lines: tuple[Line, ...] = ()
    refused: tuple[Refused, ...] = ()
    unsure: tuple[Line, ...] = ()
    announced: tuple[Line, ...] = ()
    if torch is not None:
        lines = tuple(line for line in _lines([torch.release], question, matrix, cpu=True))
    elif question.gpus or question.driver is not None:
        lines, refused, unsure, announced = _newest(question, matrix)
    return Answer(
        question,
        None if question.driver is None else driver_view(question, matrix),
        tuple(gpu_view(match, question, matrix) for match in question.gpus),
        torch,
        cuda,
        lines,
        refused,
        unsure,
        announced,
        tuple(_defaults(question, matrix)),
    )


# -- one thing of each kind


def driver_view(question: Question, matrix: Matrix) -> DriverView:
    """What the driver of the question serves."""
    driver, system = question.driver or "", question.system
    branch = matrix.branch_of(driver, system)
    over = None
    if branch is not None and not branch.guessed:
        over = is_over(branch, question.day or matrix.checked)
    return DriverView(
        driver,
        system,
        branch,
        matrix.branches()[0],
        tuple(_served(driver, system, matrix)),
        tuple(Driven(row, _drives(driver, system, row, matrix)) for row in matrix.architectures() if not row.tegra),
        over,
    )


def is_over(branch: Branch, day: str) -> Optional[bool]:
    """Whether the branch's support had ended on that day by every source that tells; None where none does."""
    ends = [end for end in (branch.end_of_life, branch.end_of_life_other) if end]
    # "2026-06" is the whole month: over from the next one on.
    return max(ends) < day[: len(max(ends))] if ends else None


def _served(driver: str, system: str, matrix: Matrix) -> Iterator[Served]:
    majors: dict[int, list[str]] = {}
    for row in matrix.toolkits():
        parts = numbers(row.cuda)
        if parts and row.cuda not in majors.setdefault(parts[0], []):
            majors[parts[0]].append(row.cuda)
    for major, minors in majors.items():
        if matrix.floor(major, system) is not None:
            yield Served(f"{major}.x", matrix.driver_serves(driver, system, str(major)))
            continue
        # Before the compatibility within a major, each minor has its own driver.
        verdicts = [(minor, matrix.driver_serves(driver, system, minor)) for minor in minors]
        able = [(minor, verdict) for minor, verdict in verdicts if verdict.answer == YES]
        if not able:
            yield Served(f"{major}.x", verdicts[-1][1])
        elif able[0][0] == minors[0]:
            yield Served(f"{major}.x", able[0][1])
        else:
            yield Served(able[0][0], able[0][1])


def _drives(driver: str, system: str, row: Architecture, matrix: Matrix, gpu: Optional[Gpu] = None) -> Verdict:
    """Whether the driver drives an architecture, or the one product of it. An unknown or guessed branch decides
    nothing; a GPU without a known first branch is older than all that are known."""
    branch = matrix.branch_of(driver, system)
    if branch is None or branch.guessed:
        return Verdict(UNKNOWN, f"the branch of driver {driver} is not known", None, None, "")
    first = matrix.first_branch_for(gpu or row.capability[0])
    last = matrix.last_branch_for(row.capability[0])
    if last is not None and branch.linux > last.number:
        return Verdict(NO, f"{last.branch} is the last branch that drives it", last.branch, None, last.source)
    if first is not None and branch.linux < first.number:
        if first.decisive:
            return Verdict(NO, f"it needs {first.branch} or newer", first.branch, None, first.source)
        reason = f"{first.branch} surely drives it; whether {branch.name} does is not known"
        return Verdict(UNKNOWN, reason, first.branch, None, first.source)
    return Verdict(YES, f"{branch.name} drives it", None, None, row.source)


def gpu_view(match: GpuMatch, question: Question, matrix: Matrix) -> GpuView:
    """A GPU whose name was understood. ValueError where the name stands for none, or for unlike ones."""
    architecture = None if match.capability is None else matrix.architecture(match.capability)
    if match.capability is None or architecture is None:
        raise ValueError(f"{match.text!r} is no GPU of one known compute capability")
    products = match.rows or tuple(row for row in matrix.gpus() if row.capability == match.capability)
    alone = match.exact
    drives = compiles = None
    if question.driver is not None:
        drives = _drives(question.driver, question.system, architecture, matrix, alone)
    if question.cuda is not None:
        compiles = _compiles(question.cuda, architecture)
    lines = [
        line
        for line in _lines(matrix.torch_releases(), Question((match,), platforms=question.platforms), matrix)
        if line.passes and line.build.seen
    ]
    sure = [line for line in lines if line.answer == YES] or lines
    return GpuView(
        match,
        match.capability,
        architecture,
        products,
        matrix.first_branch_for(alone or match.capability),
        matrix.last_branch_for(match.capability),
        drives,
        compiles,
        min(sure, key=lambda line: (line.key[0], tuple(-part for part in line.key[1])), default=None),
        max(sure, key=lambda line: line.key, default=None),
    )


def _compiles(cuda: str, row: Architecture) -> Verdict:
    """Whether the toolkit's compiler knows the architecture."""
    want = numbers(cuda) or ()
    if len(want) < 2:
        return Verdict(UNKNOWN, f"CUDA {cuda} stands for several toolkits", None, None, "")
    first, last = numbers(row.first_cuda or ""), numbers(row.last_cuda or "")
    if first is not None and want[:2] < first:
        return Verdict(NO, f"CUDA {row.first_cuda} is the first that compiles for it", None, None, row.source)
    if last is not None and want[:2] > last:
        return Verdict(NO, f"CUDA {row.last_cuda} is the last that compiles for it", None, None, row.source)
    if first is None:
        return Verdict(UNKNOWN, "the first CUDA that compiles for it is not known", None, None, row.source)
    return Verdict(YES, f"CUDA {cuda} compiles for it", None, None, row.source)


def torch_view(text: str, matrix: Matrix) -> TorchView:
    """The release of "2.6" (its newest), "2.6.0" or "2.6.0+cu124". ValueError where it is not known."""
    public = text.partition("+")[0]
    parts = numbers(public)
    wanted = parts or ()
    fitting = [version for version in matrix.torch_versions() if (numbers(version) or ())[: len(wanted)] == wanted]
    release = matrix.torch_release(fitting[0]) if parts and fitting else None
    if release is None:
        raise ValueError(f"torch {public} is not known")
    return TorchView(release, tuple(fitting[1:]))


def cuda_view(question: Question, matrix: Matrix) -> CudaView:
    """A CUDA version or a whole major. ValueError where neither a toolkit nor a driver branch knows it."""
    cuda = question.cuda or ""
    want = numbers(cuda) or ()
    toolkits = tuple(row for row in matrix.toolkits() if _within(row.cuda, want) and _within(row.release, want))
    # The branches follow each other in time; the later of two that show the same CUDA adds nothing.
    branches = [row for row in matrix.branches() if not row.guessed]
    shown_by = tuple(row for row in branches if _within(row.cuda, want[:2]))
    if not want or not (toolkits or shown_by):
        raise ValueError(f"CUDA {cuda} is not known")
    minors = tuple(dict.fromkeys(row.cuda for row in toolkits))
    single = minors[0] if len(minors) == 1 else None
    able = [row for row in branches if (numbers(row.cuda) or ()) >= want[:2]]
    rows = [row for row in matrix.architectures() if single is not None and _compiles(single, row).answer == YES]
    adds = [row for row in matrix.architectures() if row.first_cuda is not None and row.first_cuda in minors]
    before = _toolkit_before(minors, matrix)
    drops = [row for row in matrix.architectures() if before is not None and row.last_cuda in before]
    compilers = (matrix.host_compiler(minor) for minor in minors)
    asked = question._replace(gpus=(), driver=None, torch=None)
    builds = [
        line
        for line in _lines(matrix.torch_releases(), asked, matrix)
        if _within(line.build.cuda or "", want[:2]) and line.build.seen
    ]
    served = ptx = None
    if question.driver is not None:
        served = matrix.driver_serves(question.driver, question.system, cuda)
        ptx = matrix.ptx_ok(question.driver, question.system, cuda) if len(want) > 1 else None
    return CudaView(
        cuda,
        toolkits,
        next((row for row in matrix.floors() if row.cuda == want[0]), None),
        shown_by,
        able[-1] if able and len(want) > 1 else None,
        tuple(row for row in compilers if row is not None),
        tuple(rows),
        tuple(adds),
        tuple(drops),
        tuple(builds),
        served,
        ptx,
    )


def _toolkit_before(minors: tuple[str, ...], matrix: Matrix) -> Optional[tuple[str, ...]]:
    """The CUDA versions that end where these begin: what they still knew and these do not was dropped. For a whole
    major that is every version below its last."""
    every = list(dict.fromkeys(row.cuda for row in matrix.toolkits()))
    if not minors or minors[-1] not in every[:-1]:
        return None
    start, end = every.index(minors[0]), every.index(minors[-1])
    return tuple(every[start + 1 : end + 2])


def _within(version: str, want: tuple[int, ...]) -> bool:
    """Whether "12.4" is 12 or 12.4, and "12.4.1" is 12.4.1."""
    have = numbers(version) or ()
    size = min(len(have), len(want))
    return bool(have) and have[:size] == want[:size]


# -- builds


def _lines(releases: Iterable[TorchRelease], question: Question, matrix: Matrix, cpu: bool = False) -> Iterator[Line]:
    """The builds of ``releases`` on the platforms of the question, judged; CPU builds where nothing asks for a GPU."""
    want = numbers(question.cuda or "") or ()
    with_cpu = cpu and not question.gpus and question.driver is None and not want
    for release in releases:
        for platform in question.platforms:
            for build in release.builds(platform):
                if build.cuda is None and not with_cpu and question.variant != "cpu":
                    continue
                if question.variant is not None and build.variant != question.variant:
                    continue
                if want and not _within(build.cuda or "", want[:2]):
                    continue
                yield _line(build, release, question, matrix)


def _line(build: Build, release: TorchRelease, question: Question, matrix: Matrix) -> Line:
    gpus = tuple(_runs(build, match, question, matrix) for match in question.gpus)
    driver = python = None
    if question.driver is not None and build.cuda is not None:
        driver = matrix.driver_serves(question.driver, question.system, build.cuda)
    if question.python is not None:
        python = _has_python(build, question.python)
    windows = build.platform.startswith("windows") or counts_as_windows(question.system)
    return Line(build, release, floor_of(build, "windows" if windows else "linux", matrix), gpus, driver, python)


def _runs(build: Build, match: GpuMatch, question: Question, matrix: Matrix) -> Verdict:
    """Whether the build has code for the GPU. Without a driver, PTX counts as the oldest driver of that GPU sees it."""
    wanted = match.capability or ""
    driver, system = question.driver, question.system
    if driver is None:
        first = matrix.first_branch_for(wanted)
        driver, system = (str(first.number), "linux") if first is not None else (None, "linux")
    return matrix.build_runs_on(build, wanted, driver, system)


def _has_python(build: Build, python: str) -> Verdict:
    if build.has_python(python):
        return Verdict(YES, f"there is a wheel for Python {python}", None, None, build.listed)
    reason = f"torch {build.torch} {build.variant} has no wheel for Python {python}"
    return Verdict(NO, reason, None, None, build.listed)


_Found = tuple[tuple[Line, ...], tuple[Refused, ...], tuple[Line, ...], tuple[Line, ...]]


def _newest(question: Question, matrix: Matrix) -> _Found:
    """For each variant and platform the newest build that runs; where there is none, why the newest does not; and what
    is newer, but not known to run or not seen on an index."""
    by_variant: dict[tuple[str, str], list[Line]] = {}
    for line in _lines(matrix.torch_releases(), question, matrix):
        by_variant.setdefault((line.build.variant, line.build.platform), []).append(line)
    lines: list[Line] = []
    refused: list[Refused] = []
    unsure: list[Line] = []
    announced: list[Line] = []
    for (variant, _), every in by_variant.items():
        seen = [line for line in every if line.build.seen and not line.build.guessed]
        best = next((line for line in seen if line.passes), None)
        newer = seen[: seen.index(best)] if best is not None else seen
        unsure += [line for line in newer if line.answer == UNKNOWN][:1]
        announced += [line for line in every if not line.build.seen and line.passes][:1]
        if best is not None:
            lines.append(best)
        elif seen and not any(line.answer == UNKNOWN for line in seen):
            refused.append(Refused(variant, seen[0]))

    def by_cuda(line: Line) -> tuple[int, ...]:
        return numbers(cuda_of_variant(line.build.variant) or "0") or ()

    for found in (lines, unsure, announced):
        found.sort(key=by_cuda, reverse=True)
    refused.sort(key=lambda item: by_cuda(item.line), reverse=True)
    return tuple(lines), tuple(refused), tuple(unsure), tuple(announced)


def _defaults(question: Question, matrix: Matrix) -> Iterator[Line]:
    """What a plain ``pip install torch`` gives: of the release that was asked for, else of the newest one that has a
    wheel for the Python."""
    asked = None if question.torch is None else torch_view(question.torch, matrix).release
    releases = matrix.torch_releases() if asked is None else (asked,)
    for platform in question.platforms:
        for release in releases:
            build = release.build(release.default.get(platform, ""), platform)
            if build is None or not build.seen or (question.python and not build.has_python(question.python)):
                continue
            yield _line(build, release, question, matrix)
            break


def covers(archs: Iterable[Architecture]) -> tuple[str, ...]:
    """The compute capabilities of these architectures, in order."""
    found = {item for row in archs for item in row.capability}
    return tuple(sorted(found, key=lambda item: capability(item) or (0, 0)))


def floor_of(build: Build, system: str, matrix: Matrix) -> Optional[str]:
    """The oldest driver for a build, in the numbers of that system; None for a CPU build, or where it is not known."""
    if build.cuda is None:
        return None
    major = numbers(build.cuda)
    found = matrix.floor(major[0], system) if major else None
    if found is not None:
        return found
    row = matrix.toolkit(build.cuda)
    if row is None:
        return None
    return row.windows if counts_as_windows(system) else row.linux


def platforms_of(system: Optional[str], arch: Optional[str], matrix: Matrix) -> tuple[str, ...]:
    """The platforms of a system ("linux", "windows", "wsl") and an architecture; None: every one. In the order in
    which the newest release has them."""
    every = dict.fromkeys(
        build.platform
        for release in matrix.torch_releases()
        for variant in release.variants
        for build in variant.builds
    )
    name = "linux" if system == "wsl" else system
    return tuple(
        platform
        for platform in every
        if (name is None or platform.startswith(name + "-")) and (arch is None or platform.endswith("-" + arch))
    )
