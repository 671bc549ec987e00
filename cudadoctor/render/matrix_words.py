"""What `matrix query` comes to, in one sentence, and the names that all its output uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import Build
from cudadoctor.matrix.views import LIKELY, NO, UNKNOWN, YES, Answer, CudaView, DriverView, GpuView, Line
from cudadoctor.model.record import NamedTuple

OK = "OK"
FAIL = "FAIL"
UNDECIDED = "????"

_EXITS = {"": 0, OK: 0, FAIL: 1, UNDECIDED: 3}

PLATFORMS = {
    "linux-x86_64": "Linux x86_64",
    "linux-aarch64": "Linux aarch64",
    "windows-x86_64": "Windows",
    "macos-arm64": "macOS on Apple silicon",
    "macos-x86_64": "macOS on Intel",
}
_SYSTEMS = {"linux": "Linux", "windows": "Windows", "wsl": "WSL"}


class Said(NamedTuple):
    """The first line: `word` is empty for a plain look-up, else OK, FAIL or ????, and decides the exit status."""

    word: str
    text: str

    @property
    def exit(self) -> int:
        return _EXITS[self.word]


def verdict(answer: Answer) -> Said:
    """What the whole answer comes to."""
    question = answer.question
    asked = (answer.gpus, question.driver, answer.torch, answer.cuda, question.python)
    if sum(bool(one) for one in asked) < 2 and len(answer.gpus) < 2 and question.variant is None:
        return _alone(answer)
    clash = _clash(answer)
    if clash is not None:
        return clash
    if answer.gpus or question.driver or answer.torch:
        return _builds(answer)
    return _alone(answer)


def _alone(answer: Answer) -> Said:
    if answer.driver is not None:
        return Said("", _driver(answer.driver))
    if answer.gpus:
        return _gpu(answer)
    if answer.torch is not None:
        return Said("", _torch(answer))
    assert answer.cuda is not None
    return Said("", _cuda(answer.cuda))


def _clash(answer: Answer) -> Optional[Said]:
    """Two of the things that were asked for cannot go together, whatever the build."""
    for gpu in answer.gpus:
        if gpu.drives is not None and gpu.drives.answer == NO and answer.driver is not None:
            branch = answer.driver.branch
            name = f" ({branch.name})" if branch is not None else ""
            return Said(FAIL, f"driver {answer.driver.driver}{name} does not drive {named(gpu)}: {gpu.drives.reason}")
        if gpu.compiles is not None and gpu.compiles.answer == NO and answer.cuda is not None:
            return Said(FAIL, f"CUDA {answer.cuda.cuda} does not know {named(gpu)}: {gpu.compiles.reason}")
    served = answer.cuda.served if answer.cuda is not None else None
    if served is not None and served.answer == NO:
        return Said(FAIL, served.reason)
    return None


def _builds(answer: Answer) -> Said:
    """Which build runs, or why none does."""
    best, on = answer.best, _machine(answer)
    if best is not None:
        if answer.torch is not None:
            sentence = _release_runs(answer, best, on)
        else:
            sentence = f"torch {version(best.build)} is the newest that runs on {on}"
        if best.answer == LIKELY:
            sentence += f", likely: {best.reason}"
        doubt = next(
            (gpu.drives for gpu in answer.gpus if gpu.drives is not None and gpu.drives.answer == UNKNOWN), None
        )
        return Said(OK, sentence + (f", if the driver drives it: {doubt.reason}" if doubt is not None else ""))
    unsure = answer.unsure or tuple(line for line in answer.lines if line.answer == UNKNOWN)
    if unsure and any(gpu.architecture.tegra for gpu in answer.gpus):
        return Said(FAIL, _jetson(answer.gpus[0]))
    if unsure:
        return Said(
            UNDECIDED, f"whether torch {version(unsure[0].build)} runs on {on} is not known: {unsure[0].reason}"
        )
    where = f" on {places(answer.question.platforms)}"
    if answer.torch is not None and not answer.lines:
        return Said(FAIL, _no_such_build(answer))
    if answer.torch is not None and not (answer.gpus or answer.driver) and answer.question.python:
        return Said(FAIL, f"torch {answer.torch.release.version} has no wheel for Python {answer.question.python}")
    what = (
        "no torch build that is known" if answer.torch is None else f"no build of torch {answer.torch.release.version}"
    )
    if len(answer.gpus) > 1 and answer.torch is None and all(gpu.best is not None for gpu in answer.gpus):
        each = "; ".join(f"{named(gpu)} takes up to {version(gpu.best.build)}" for gpu in answer.gpus if gpu.best)
        return Said(FAIL, f"{what} has code for all of {on}: {each}")
    refused = [line for line in answer.lines if line.reason] or [item.line for item in answer.refused]
    # The nearest build tells the cause: where one has code for the GPU, that another has none is not it.
    refused.sort(key=lambda line: sum(verdict.answer == NO for verdict in line.gpus))
    reasons = [line.reason for line in refused]
    why = f": {reasons[0]}" if reasons else ""
    return Said(FAIL, f"{what} runs on {on}{why}" if on else f"{what} fits{where}{why}")


def _not_known(line: Line, on: str) -> str:
    return f"whether torch {version(line.build)} runs on {on} is not known: {line.reason}"


def _release_runs(answer: Answer, best: Line, on: str) -> str:
    fit = sorted((line for line in answer.lines if line.passes), key=lambda line: line.key, reverse=True)
    names = list(dict.fromkeys(line.build.variant for line in fit if line.build.seen))
    if answer.gpus or answer.driver:
        kind = "builds" if len(names) > 1 else "build"
        return f"torch {best.build.torch} runs on {on}: take its {kind} {' or '.join(names)}"
    if answer.question.python is not None:
        return f"torch {best.build.torch} has wheels for Python {answer.question.python}: {listed(names)}"
    return f"torch {version(best.build)} exists, on {places([line.build.platform for line in answer.lines])}"


def _no_such_build(answer: Answer) -> str:
    assert answer.torch is not None
    release = answer.torch.release
    wanted = answer.question.variant or f"for CUDA {answer.cuda.cuda if answer.cuda is not None else ''}"
    there = set(answer.question.platforms)
    has = [
        variant.name
        for variant in reversed(release.variants)
        if any(build.seen and build.platform in there for build in variant.builds)
    ]
    return f"torch {release.version} has no build {wanted}: it has {listed(has) or 'none there'}"


def _machine(answer: Answer) -> str:
    """ "GeForce GTX 1080 with driver 580.95, Python 3.12"."""
    question = answer.question
    said = listed(list(dict.fromkeys(gpu.label for gpu in answer.gpus)))
    has = [f"driver {question.driver}"] if question.driver is not None else []
    has += [f"Python {question.python}"] if question.python is not None else []
    if has:
        said = f"{said or 'a machine'} with {listed(has)}"
    if answer.cuda is not None and said:
        said += f", of those built with CUDA {answer.cuda.cuda}"
    return said


def _driver(driver: DriverView) -> str:
    start = f"driver {driver.driver} on {_SYSTEMS[driver.system]}"
    if driver.system == "wsl":
        start = f"the Windows driver {driver.driver} under WSL"
    if driver.is_newer:
        start = f"{start} is newer than all that are known (up to {driver.newest.name}); it"
    able = [item for item in driver.serves if item.verdict.answer == YES]
    refused = [item for item in driver.serves if item.verdict.answer == NO]
    if not able:
        unsure = next((item for item in driver.serves if item.verdict.answer == UNKNOWN), None)
        return unsure.verdict.reason if unsure is not None else f"{start} runs no CUDA that is known"
    sentence = f"{start} runs programs built with CUDA {able[0].cuda} or older"
    if refused:
        sentence += f"; CUDA {refused[-1].cuda} needs driver {refused[-1].verdict.needed} or newer"
    return sentence


def _gpu(answer: Answer) -> Said:
    gpu, best = answer.gpus[0], answer.best
    where = places(answer.question.platforms)
    if best is not None and best.answer == YES:
        built = f"built with CUDA {best.build.cuda} ({best.build.variant})"
        return Said("", f"{named(gpu)} runs torch up to {best.build.torch}, {built}, on {where}")
    if best is not None:
        return Said("", f"{named(gpu)} runs torch {version(best.build)} at best, on {where}: {best.reason}")
    if gpu.architecture.tegra:
        return Said(FAIL, _jetson(gpu))
    if answer.unsure:
        return Said(UNDECIDED, _not_known(answer.unsure[0], named(gpu)))
    return Said(FAIL, f"no torch build that is known has code for {named(gpu)}, on {where}")


def _jetson(gpu: GpuView) -> str:
    return f"{named(gpu)} takes torch from NVIDIA's index for its JetPack, not from PyTorch's"


def _torch(answer: Answer) -> str:
    """By CUDA major with its driver floor: what the release needs."""
    assert answer.torch is not None
    release = answer.torch.release
    # Floors are the first platform's: those of others stand in their tables.
    floors: dict[str, Optional[str]] = {}
    cudas: dict[str, list[str]] = {}
    for line in sorted(answer.lines, key=lambda line: line.key, reverse=True):
        if line.build.cuda is not None and line.build.seen:
            major = line.build.cuda.partition(".")[0]
            floors.setdefault(major, line.floor)
            cudas.setdefault(major, []).append(line.build.cuda)
    parts = []
    for major, minors in cudas.items():
        floor = f" (driver {floors[major]} or newer)" if floors[major] else ""
        parts.append(f"CUDA {listed(list(dict.fromkeys(minors)))}{floor}")
    if any(line.build.cuda is None for line in answer.lines):
        parts.append("the CPU alone" if parts else "the CPU only")
    return f"torch {release.version} is built for {listed(parts)}"


def _cuda(cuda: CudaView) -> str:
    if not cuda.toolkits:
        names = listed([branch.name for branch in cuda.shown_by])
        return f"there is no CUDA {cuda.cuda} toolkit; {cuda.cuda} is what nvidia-smi shows with driver branch {names}"
    if cuda.floor is not None:
        low, windows = cuda.floor.linux, cuda.floor.windows
        if "." not in cuda.cuda:
            return f"programs built with any CUDA {cuda.cuda}.x run on driver {low} or newer (Windows: {windows})"
        return (
            f"programs built with CUDA {cuda.cuda} run on driver {low} or newer (Windows: {windows}), as those of any "
            f"CUDA {cuda.floor.cuda}.x"
        )
    oldest = cuda.toolkits[-1]
    if oldest.linux is None and oldest.windows is None:
        return f"CUDA {cuda.cuda}: newest release {cuda.toolkits[0].release}; its driver is not known"
    return f"programs built with CUDA {oldest.cuda} run on driver {oldest.linux} or newer (Windows: {oldest.windows})"


# -- pieces ---------------------------------------------------------------------------------------------------------


def version(build: Build) -> str:
    """As torch.__version__ says it on PyTorch's own index: "2.14.1+cu126"."""
    return f"{build.torch}+{build.variant}"


def named(gpu: GpuView) -> str:
    return gpu.label if gpu.match.kind == "capability" else f"{gpu.label} ({gpu.target})"


def places(platforms: Sequence[str]) -> str:
    return listed([PLATFORMS.get(platform, platform) for platform in dict.fromkeys(platforms)])


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)
