"""The compatibility data as tables to look things up in, both ways.

What does this driver serve? Which builds have code for this GPU? What does this torch need, and this CUDA? Several of
them together narrow each other. Pure; nothing is decided here that the questions of :class:`Matrix` do not decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from .drivers import counts_as_windows
from .query import Matrix
from .tables import Architecture, Branch, Build, DriverBound, Gpu, GpuMatch, TorchRelease, Verdict
from .versions import capability, cuda_of_variant, numbers
from .views import (
    INFERRED,
    NO,
    UNKNOWN,
    YES,
    Answer,
    CudaView,
    Driven,
    DriverView,
    GpuView,
    Line,
    Question,
    Refused,
    Served,
    TorchView,
    UnknownVersion,
    best_of,
)


def look_up(question: Question, matrix: Matrix) -> Answer:
    """The answer to ``question``. UnknownVersion for a torch or a CUDA that the data does not have."""
    torch = None if question.torch is None else torch_view(question.torch, matrix)
    cuda = None if question.cuda is None else cuda_view(question, matrix)
    lines: tuple[Line, ...] = ()
    refused: tuple[Refused, ...] = ()
    unsure: tuple[Line, ...] = ()
    announced: tuple[Line, ...] = ()
    if torch is not None:
        lines = tuple(_lines([torch.release], question, matrix, cpu=True))
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
        matrix.torch_versions()[-1],
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
        return Verdict(UNKNOWN, "its branch is not known", None, None, "")
    first = matrix.first_branch_for(gpu or row.capability[0])
    seen = _seen_branch(gpu, matrix)
    last = matrix.last_branch_for(row.capability[0])
    if last is not None and branch.linux > last.number:
        return Verdict(NO, f"{last.branch} is the last branch that drives it", last.branch, None, last.source)
    if first is not None and first.decisive and branch.linux < first.number:
        return Verdict(NO, f"it needs {first.branch} or newer", first.branch, None, first.source)
    known = seen or first
    if known is not None and branch.linux < known.number:
        reason = f"{known.branch} is the first branch known to drive it, {branch.name} may not"
        return Verdict(UNKNOWN, reason, known.branch, None, known.source)
    return Verdict(YES, f"{branch.name} drives it", None, None, row.source)


def _seen_branch(gpu: Optional[Gpu], matrix: Matrix) -> Optional[DriverBound]:
    """The first branch that is known to drive this very product, where that is later than the first that can."""
    if gpu is None or gpu.min_driver is None or "min_driver" in gpu.guessed:
        return None
    seen = DriverBound(gpu.min_driver, gpu.min_driver_bound or "at-most", gpu.source)
    first = matrix.first_branch_for(gpu)
    return seen if first is None or seen.number > first.number else None


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
    alone_asked = question._replace(gpus=(match,))
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
        _seen_branch(alone, matrix),
        matrix.last_branch_for(match.capability),
        drives,
        compiles,
        min(sure, key=lambda line: (line.key[0], tuple(-part for part in line.key[1])), default=None),
        max(sure, key=lambda line: line.key, default=None),
        best_of(_lines(matrix.torch_releases(), alone_asked, matrix)) if len(question.gpus) > 1 else None,
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
    """The release of "2.6" (its newest), "2.6.0" or "2.6.0+cu124". UnknownVersion where the data has none."""
    public = text.partition("+")[0]
    parts = numbers(public)
    wanted = parts or ()
    fitting = [version for version in matrix.torch_versions() if (numbers(version) or ())[: len(wanted)] == wanted]
    release = matrix.torch_release(fitting[0]) if parts and fitting else None
    if release is None:
        raise UnknownVersion("torch", public)
    return TorchView(release, tuple(fitting[1:]))


def cuda_view(question: Question, matrix: Matrix) -> CudaView:
    """A CUDA version or a whole major. UnknownVersion where neither a toolkit nor a driver branch has it."""
    cuda = question.cuda or ""
    want = numbers(cuda) or ()
    toolkits = tuple(row for row in matrix.toolkits() if _within(row.cuda, want) and _within(row.release, want))
    # The branches follow each other in time; the later of two that show the same CUDA adds nothing.
    branches = [row for row in matrix.branches() if not row.guessed]
    shown_by = tuple(row for row in branches if _within(row.cuda, want[:2]))
    if not want or not (toolkits or shown_by):
        raise UnknownVersion("CUDA", cuda)
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
        if driver.answer != NO:
            driver = _misfit(question, matrix) or driver
    if question.python is not None:
        python = _has_python(build, question.python)
    windows = build.platform.startswith("windows") or counts_as_windows(question.system)
    floor = floor_of(build, "windows" if windows else "linux", matrix)
    branch = _later_branch(floor, "windows" if windows else "linux", question, matrix)
    return Line(build, release, floor, branch, gpus, driver, python)


def _misfit(question: Question, matrix: Matrix) -> Optional[Verdict]:
    """That the driver does not drive one of the GPUs: no build helps then."""

    def find() -> Optional[Verdict]:
        for match in question.gpus:
            row = matrix.architecture(match.capability or "")
            if row is not None and not row.tegra:
                verdict = _drives(question.driver or "", question.system, row, matrix, match.exact)
                if verdict.answer == NO:
                    return verdict
        return None

    names = " ".join(match.text for match in question.gpus)
    return matrix.once(f"misfit {question.driver} {question.system} {names}", find)


def _later_branch(floor: Optional[str], system: str, question: Question, matrix: Matrix) -> Optional[str]:
    """The first branch that drives all the GPUs, where it is surely later than the one of ``floor``."""
    bounds = [matrix.first_branch_for(match.exact or match.capability or "") for match in question.gpus]
    firm = [bound for bound in bounds if bound is not None and bound.decisive]
    own = matrix.branch_of(floor, system) if floor is not None else None
    last = max(firm, key=lambda bound: bound.number, default=None)
    return last.branch if last is not None and own is not None and last.number > own.linux else None


def _runs(build: Build, match: GpuMatch, question: Question, matrix: Matrix) -> Verdict:
    """Whether the build has code for the GPU. Without a driver, PTX counts as the oldest driver of that GPU sees it."""
    wanted = match.capability or ""
    driver, system = question.driver, question.system
    if driver is None:
        first = matrix.first_branch_for(wanted)
        driver, system = (str(first.number), "linux") if first is not None else (None, "linux")
    return matrix.build_runs_on(build, wanted, driver, system)


def _has_python(build: Build, python: str) -> Verdict:
    if python in build.pythons_inferred:
        reason = f"its release has wheels for Python {python}; this very build was not seen for it"
        return Verdict(YES, reason, None, INFERRED, build.listed)
    if build.has_python(python):
        return Verdict(YES, f"there is a wheel for Python {python}", None, None, build.listed)
    return Verdict(NO, f"it has no wheel for Python {python}", None, None, build.listed)


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
        newer = seen[: seen.index(best)] if best is not None else seen[:1]
        unsure += [line for line in newer if line.answer == UNKNOWN][:1]
        announced += [line for line in every if not line.build.seen and line.passes][:1]
        if best is not None:
            lines.append(best)
        elif seen and seen[0].answer != UNKNOWN:
            refused.append(Refused(variant, seen[0]))
    if not lines:  # then what is not known of an older build counts, too
        unsure = [line for every in by_variant.values() for line in every if line.build.seen and line.answer == UNKNOWN]
        unsure = list({(line.build.variant, line.build.platform): line for line in reversed(unsure)}.values())

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
            if build is None or not build.seen or not _on_default_index(build, question.python):
                continue
            yield _line(build, release, question, matrix)
            break


def _on_default_index(build: Build, python: Optional[str]) -> bool:
    """Whether a plain ``pip install torch`` finds a wheel of this default build; True where no Python was asked for."""
    return python is None or (build.has_python(python) and python not in build.pythons_index_only)


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
