"""Which driver counts: the one that is there, or the one that the GPUs will get; and which branches drive them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional

from cudadoctor.matrix import Architecture, Branch, Build, GpuMatch, Matrix, Verdict, numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.resolve.need import BROKEN, LINUX, NONE, WORKS, DriverRange, Gpu, Need

# Beyond every branch, where a GPU's last one is not known to have come.
NO_LAST = 10**6


class Driver(NamedTuple):
    """The driver that builds are judged by. `is_expected`: not the one at work, but the one that will be."""

    version: str
    numbering: str
    is_expected: bool = False


def driver_for(need: Need, matrix: Matrix) -> tuple[Optional[Driver], Optional[str]]:
    """The driver to judge by, and why it has to be mended first (None: it need not)."""
    expected = expected_driver(need.gpus, need.numbering, matrix)
    if need.driver_state in (BROKEN, NONE):
        reason = "no NVIDIA driver is at work" if need.driver_state == NONE else "the driver does not work"
        if need.driver is not None and misfit(need, matrix) is None:
            return Driver(need.driver, need.numbering, True), reason
        return expected, reason
    if need.driver is None:
        return expected, None
    wrong = misfit(need, matrix)
    if wrong is not None:
        return expected, wrong
    return Driver(need.driver, need.numbering), None


def misfit(need: Need, matrix: Matrix) -> Optional[str]:
    """Why `need.driver` does not drive one of the GPUs: too old or too new for it."""
    for gpu in need.gpus:
        reason = _misfit(gpu, need, matrix)
        if reason is not None:
            return reason
    return None


def is_driven(gpu: Gpu, need: Need, matrix: Matrix) -> bool:
    """Whether nothing is known against `need.driver` driving this GPU."""
    return _misfit(gpu, need, matrix) is None


def _misfit(gpu: Gpu, need: Need, matrix: Matrix) -> Optional[str]:
    # A card that a working driver lists (it has a number then) is driven by it, whatever the tables say.
    if gpu.capability is None or need.driver is None or (need.driver_state == WORKS and gpu.number is not None):
        return None
    have, name = _branch_number(need.driver, need.numbering, matrix)
    if have is None:
        return None
    first, last = matrix.first_branch_for(gpu.capability), matrix.last_branch_for(gpu.capability)
    row = product(gpu.label, matrix).exact
    if row is not None and row.capability == gpu.capability:
        first = matrix.first_branch_for(row)
    if first is not None and first.decisive and have < first.number:
        return f"driver {need.driver} is {name}, and {gpu.label} needs {first.branch} or newer"
    if last is not None and have > last.number:
        return f"driver {need.driver} is {name}, and {last.branch} is the last branch that drives {gpu.label}"
    return None


def _branch_number(driver: str, numbering: str, matrix: Matrix) -> tuple[Optional[int], str]:
    """The branch of a driver by its Linux number, and how to call it. A driver that came after the data is newer than
    every branch in it; any other unknown number is None."""
    branch = branch_of(driver, numbering, matrix)
    if branch is not None:
        return (None, "") if branch.guessed else (branch.linux, branch.name)
    first = (numbers(driver) or (0,))[0]
    newest = matrix.branches()[0]
    known = max((max(row.windows, default=0) for row in matrix.branches()), default=0)
    if first > (newest.linux if numbering == LINUX else known):
        return newest.linux + 1, f"newer than {newest.name}"
    return None, ""


def branch_of(driver: str, numbering: str, matrix: Matrix) -> Optional[Branch]:
    """The branch of a driver; see `Matrix.branch_of`."""
    return matrix.once(f"branch of {driver} {numbering}", lambda: matrix.branch_of(driver, numbering))


def family(capability: Optional[str], matrix: Matrix) -> Optional[Architecture]:
    """The architecture of a compute capability."""
    return matrix.once(f"family {capability}", lambda: matrix.architecture(capability) if capability else None)


def serves(driver: Driver, matrix: Matrix) -> Mapping[str, Verdict]:
    """Whether the driver runs each CUDA that some build of torch was made with."""

    def make() -> dict[str, Verdict]:
        known = {variant.cuda for release in matrix.torch_releases() for variant in release.variants}
        return {cuda: matrix.driver_serves(driver.version, driver.numbering, cuda) for cuda in known if cuda}

    return matrix.once(f"serves {driver.version} {driver.numbering}", make)


def driver_needed(build: Build, need: Need, matrix: Matrix) -> str:
    """The oldest driver number, in this system's numbering, that serves `build` and drives every GPU."""
    floor = matrix.floor(int((build.cuda or "0").partition(".")[0]), need.numbering)
    if floor is None and build.cuda is not None:
        row = matrix.toolkit(build.cuda)
        floor = None if row is None else row.linux if need.numbering == LINUX else row.windows
    lowest, _ = bounds(need.gpus, matrix)
    branch = matrix.branch(str(lowest)) if lowest else None
    if branch is None:
        return floor or "0"
    first = branch.first_linux or str(branch.linux)
    if need.numbering != LINUX:
        first = str(branch.windows[0]) if branch.windows else "0"
    return max(floor or "0", first, key=lambda text: numbers(text) or ())


def driver_words(needed: str, need: Need, matrix: Matrix) -> str:
    """Which driver it takes, in the numbers of the system, and up to which branch."""
    change = f"a driver of {needed} or newer"
    if need.wsl:
        change = f"a Windows driver of {needed} or newer"
    elif need.numbering != LINUX:
        change += " (Windows' numbers)"
    _, highest = bounds(need.gpus, matrix)
    last = matrix.branch(str(highest)) if highest != NO_LAST else None
    if last is not None:
        card = "this card" if len(need.gpus) == 1 else names(ending_with(last, need.gpus, matrix))
        change += f", {last.name} being the last branch for {card}"
    if any(product(gpu.label, matrix).vgpu for gpu in need.gpus):
        change += " (vGPU: guest and host drivers must match, so the host's administrator updates both)"
    return change


# -- branches for GPUs ----------------------------------------------------------------------------------------------


def product(label: str, matrix: Matrix) -> GpuMatch:
    """The products that a GPU's name stands for."""
    return matrix.once(f"product {label}", lambda: matrix.gpu(label))


def gpu_bounds(gpu: Gpu, matrix: Matrix) -> tuple[int, int]:
    """First and last driver branch (Linux numbers) of one GPU; 0 and NO_LAST where there is no such bound."""

    def make() -> tuple[int, int]:
        if gpu.capability is None:
            return 0, NO_LAST
        first, last = matrix.first_branch_for(gpu.capability), matrix.last_branch_for(gpu.capability)
        lowest = first.number if first is not None else 0
        row = product(gpu.label, matrix).exact
        if row is not None and row.capability == gpu.capability:
            own = matrix.first_branch_for(row)
            if own is not None and own.decisive:
                lowest = max(lowest, own.number)
        return lowest, last.number if last is not None else NO_LAST

    return matrix.once(f"branches {gpu.capability} {gpu.label}", make)


def bounds(gpus: Iterable[Gpu], matrix: Matrix) -> tuple[int, int]:
    """First and last driver branch (Linux numbers) that drive all of `gpus`; the last may lie below the first."""
    lowest, highest = 0, NO_LAST
    for gpu in gpus:
        first, last = gpu_bounds(gpu, matrix)
        lowest, highest = max(lowest, first), min(highest, last)
    return lowest, highest


def fitting_branch(gpus: Iterable[Gpu], matrix: Matrix, at_least: int = 0, numbering: str = LINUX) -> Optional[Branch]:
    """The branch to install for `gpus`: of the newest CUDA major that they can have, the oldest long-lived branch that
    is still maintained, since that is the one that distributions carry; for old cards the last that drives them. On
    Windows one of which a Windows driver has been seen."""
    lowest, highest = bounds(gpus, matrix)
    lowest = max(lowest, at_least)
    return matrix.once(
        f"fitting branch {lowest} {highest} {numbering}", lambda: _fitting(lowest, highest, numbering, matrix)
    )


def _fitting(lowest: int, highest: int, numbering: str, matrix: Matrix) -> Optional[Branch]:
    able = [row for row in matrix.branches() if not row.guessed and lowest <= row.linux <= highest]
    if numbering != LINUX:
        able = [row for row in able if row.windows]
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


def driver_range(gpus: Iterable[Gpu], matrix: Matrix, numbering: str = LINUX) -> DriverRange:
    """The branches for `gpus`: first, last, the one to install, and which kernel modules it has to have on Linux."""
    cards = tuple(gpus)
    lowest, highest = bounds(cards, matrix)
    flavours = {_flavour(gpu.capability, matrix) for gpu in cards}
    flavours.discard("either")
    flavour = "either" if not flavours else flavours.pop() if len(flavours) == 1 else None
    return DriverRange(
        matrix.branch(str(lowest)) if lowest else None,
        matrix.branch(str(highest)) if highest != NO_LAST else None,
        fitting_branch(cards, matrix, numbering=numbering),
        flavour,
    )


def _flavour(capability: Optional[str], matrix: Matrix) -> Optional[str]:
    row = family(capability, matrix)
    return None if row is None else row.modules


def ending_with(last: Branch, gpus: Iterable[Gpu], matrix: Matrix) -> tuple[Gpu, ...]:
    """The GPUs for which no branch after that one exists."""
    return tuple(gpu for gpu in gpus if gpu_bounds(gpu, matrix)[1] == last.linux)


def modules_clash(need: Need, matrix: Matrix) -> Optional[str]:
    """Why one Linux system cannot drive all the GPUs, of which some need the open kernel modules and others the
    proprietary ones; None where it can, or where a driver lists them all."""
    if need.numbering != LINUX or (need.driver_state == WORKS and all(gpu.number is not None for gpu in need.gpus)):
        return None
    wanting = {_flavour(gpu.capability, matrix): gpu for gpu in need.gpus}
    new, old = wanting.get("open"), wanting.get("proprietary")
    if new is None or old is None:
        return None
    return (
        f"one Linux system cannot drive {new.label} and {old.label} together: {new.label} needs NVIDIA's open kernel "
        f"modules, {old.label} the proprietary ones, and only one kind is loaded: the other card stays idle"
    )


def names(gpus: Iterable[Gpu]) -> str:
    """ "GTX 1080, RTX 3090 and RTX 5090", each once."""
    labels = list(dict.fromkeys(gpu.label for gpu in gpus))
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"


def exclude_each_other(gpus: Iterable[Gpu], matrix: Matrix) -> Optional[str]:
    """Why no driver branch drives all of these GPUs; None where one does."""
    cards = tuple(gpus)
    lowest, highest = bounds(cards, matrix)
    if lowest <= highest:
        return None
    new = next(gpu for gpu in cards if gpu_bounds(gpu, matrix)[0] == lowest)
    old = next(gpu for gpu in cards if gpu_bounds(gpu, matrix)[1] == highest)
    return (
        f"no driver drives {old.label} and {new.label} together: R{highest} is the last branch for {old.label}, "
        f"R{lowest} the first for {new.label}"
    )


def expected_driver(gpus: Iterable[Gpu], numbering: str, matrix: Matrix) -> Optional[Driver]:
    """The driver that a machine with `gpus` will have once it is installed; None where no branch drives them all."""
    branch = fitting_branch(gpus, matrix, numbering=numbering)
    return None if branch is None else _as_driver(branch, numbering)


def newest_driver(need: Need, matrix: Matrix) -> Optional[Driver]:
    """The newest driver that the GPUs can have."""
    lowest, highest = bounds(need.gpus, matrix)

    def make() -> Optional[Driver]:
        for branch in matrix.branches():
            if not branch.guessed and lowest <= branch.linux <= highest and (need.numbering == LINUX or branch.windows):
                return _as_driver(branch, need.numbering)
        return None

    return matrix.once(f"newest driver {lowest} {highest} {need.numbering}", make)


def _as_driver(branch: Branch, numbering: str) -> Driver:
    number = branch.latest_linux or branch.first_linux
    if numbering != LINUX:
        number = branch.latest_windows or (f"{branch.windows[-1]}.99" if branch.windows else None)
    return Driver(number or branch.number(numbering), numbering, True)
