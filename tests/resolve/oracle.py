"""The answer to "which torch for this machine", by brute force and straight from the rows of compat/.

Written apart from the resolver, from the rules alone, and in another way: each rule becomes the set of builds that
pass it, and the answer is what is left when all sets are laid over each other. It reads the TOML as people edit it,
asks no Matrix and explains nothing.

The rules:

1. The wheel has code for every GPU. sm_XY runs on X.Z with Z >= Y of the same major; not a target with a suffix,
   and not from a desktop part to an embedded one or back. PTX runs on what is newer than it, where the driver can
   compile it, and then only "likely". Targets that sources dispute, and lists that are a guess, decide nothing.
2. The driver serves the CUDA of the wheel: the floor is one a CUDA major from 11 on, before the very toolkit's.
   Linux and Windows have two numberings; WSL counts as Windows.
3. There is a wheel for the platform, the Python (3.13 and 3.13t are two) and the glibc.
4. It is a torch that was asked for.
5. Fresh: the newest torch, and for it the newest CUDA. Between wheels of one release, one that was seen for this Python
   goes before one that is only inferred. What surely runs goes before what likely does, and an environment for each
   kind of GPU before one in which some likely run.
6. A build that nobody has seen on an index is never the choice; it is an alternative that says so. One that may not
   exist at all is nothing. A branch or a Windows number that is a guess decides nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from packaging.specifiers import SpecifierSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMPAT = Path(__file__).resolve().parent.parent.parent / "compat"

Numbers = tuple[int, ...]


def numbers(text: str) -> Numbers:
    """ "450.80.02" -> (450, 80, 2)."""
    return tuple(int(part) for part in text.split("."))


# ---------------------------------------------------------------------------------------------------- the rows


@functools.cache
def rows(name: str) -> dict[str, Any]:
    """One file of compat/, as it is written."""
    with (COMPAT / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


class Build(NamedTuple):
    """One row of a release's `builds`, with what it inherits from the release."""

    torch: str
    variant: str
    platform: str
    pythons: frozenset[str]
    inferred: frozenset[str]
    glibc: Numbers
    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    disputed: frozenset[str]
    archs_guessed: bool
    seen: bool
    guessed: bool
    default: bool

    @property
    def release(self) -> Numbers:
        return numbers(self.torch)

    @property
    def cuda(self) -> Numbers:
        """(12, 6) of cu126; () of a CPU build."""
        digits = self.variant[2:]
        return () if self.variant == "cpu" else (int(digits[:-1]), int(digits[-1]))

    def __str__(self) -> str:
        return f"{self.torch}+{self.variant} for {self.platform}"


@functools.cache
def builds() -> tuple[Build, ...]:
    """Every build of every release, oldest first: by torch, then by CUDA."""

    def read() -> Iterator[Build]:
        for path in sorted((COMPAT / "torch").glob("*.toml")):
            for release in rows(f"torch/{path.stem}")["release"]:
                for row in release["builds"]:
                    platform = row["platform"]
                    yield Build(
                        torch=release["version"],
                        variant=row["variant"],
                        platform=platform,
                        pythons=frozenset(row["pythons"].split()),
                        inferred=frozenset(row.get("pythons_inferred", "").split()),
                        glibc=numbers(row.get("glibc") or release["glibc"].get(platform, "0")),
                        sass=tuple(row.get("sass", "").split()),
                        ptx=tuple(row.get("ptx", "").split()),
                        disputed=frozenset(row.get("disputed", "").split()),
                        archs_guessed=row.get("archs_guessed", False),
                        seen=row.get("seen", True),
                        guessed=row.get("guessed", False),
                        default=release["default"].get(platform) == row["variant"],
                    )

    return tuple(sorted(read(), key=lambda build: (build.release, build.cuda)))


@functools.cache
def architecture(capability: str) -> dict[str, Any]:
    """The row of "8.9"."""
    return next(row for row in rows("architectures")["architecture"] if capability in row["capability"])


@functools.cache
def capabilities() -> tuple[str, ...]:
    """Every compute capability that has a row, oldest first."""
    found = [one for row in rows("architectures")["architecture"] for one in row["capability"]]
    return tuple(sorted(found, key=numbers))


@functools.cache
def branch_numbers() -> tuple[int, ...]:
    """The driver branches by their Linux numbers, oldest first."""
    return tuple(sorted(row["linux"] for row in rows("driver_branches")["branch"]))


@functools.cache
def branch_of(driver: str, numbering: str) -> int:
    """The branch that a driver belongs to, by its Linux number."""
    first = numbers(driver)[0]
    if numbering == "windows":
        for row in rows("driver_branches")["branch"]:
            if first in row.get("windows", []) + row.get("windows_guessed", []):
                return int(row["linux"])
        raise KeyError(driver)
    return max(number for number in branch_numbers() if number <= first)


@functools.cache
def is_guess(driver: str, numbering: str) -> bool:
    """Whether it is a guess which branch the driver belongs to."""
    branch = branch_of(driver, numbering)
    row = next(row for row in rows("driver_branches")["branch"] if row["linux"] == branch)
    first = numbers(driver)[0]
    return row.get("confidence") == "guessed" or (numbering == "windows" and first in row.get("windows_guessed", []))


@functools.cache
def known_drivers(numbering: str) -> dict[int, tuple[str, ...]]:
    """The oldest and the newest driver that any row names, by the Linux number of the branch; for a branch without one,
    and for a guess, a made-up release of it."""
    found: dict[int, set[str]] = {number: set() for number in branch_numbers()}
    named = [row.get(column) for row in rows("driver_branches")["branch"] for column in _named(numbering)]
    for table in ("toolkit", "floor"):
        named += [
            row.get(column) for row in rows("cuda_toolkits")[table] for column in (numbering, f"{numbering}_seen")
        ]
    for driver in named:
        if driver is not None and "." in driver:
            found[branch_of(driver, numbering)].add(driver)
    for row in rows("driver_branches")["branch"]:
        firsts = [row["linux"]] if numbering == "linux" else row.get("windows", []) + row.get("windows_guessed", [])
        if not found[row["linux"]]:
            found[row["linux"]] |= {f"{first}.10" for first in firsts[:1]}
    ranked = {number: sorted(drivers, key=numbers) for number, drivers in found.items()}
    return {number: tuple(dict.fromkeys((own[0], own[-1]))) for number, own in ranked.items() if own}


def _named(numbering: str) -> tuple[str, str]:
    return f"first_{numbering}", f"latest_{numbering}"


# --------------------------------------------------------------------------------------------------- the machine


class Machine(NamedTuple):
    """One question. `gpus` are compute capabilities, none of them: a machine without a GPU. `driver` in its numbering,
    "linux" or "windows"; None: not known, any can be installed. `python` is "3.12" or "3.13t", `request` a range."""

    gpus: tuple[str, ...]
    driver: Optional[str]
    numbering: str
    platform: str
    python: str
    glibc: Optional[str] = None
    request: str = ""


Set = frozenset[int]


@functools.cache
def _with_wheels(platform: str, python: str, glibc: Optional[str]) -> Set:
    return frozenset(
        number
        for number, build in enumerate(builds())
        if build.platform == platform and python in build.pythons and (glibc is None or numbers(glibc) >= build.glibc)
    )


@functools.cache
def _for_cpu() -> Set:
    return frozenset(number for number, build in enumerate(builds()) if build.variant == "cpu")


@functools.cache
def _wanted(request: str) -> SpecifierSet:
    """ "2.6.*" and "2.6.0" are as good as "==2.6.*"."""
    return SpecifierSet(f"=={request}" if request[:1].isdigit() else request)


@functools.cache
def _asked_for(request: str) -> Set:
    return frozenset(number for number, build in enumerate(builds()) if _wanted(request).contains(build.torch))


def at_least(driver: Numbers, floor: Numbers) -> bool:
    """A driver that is given in part ("580.65") may be any that begins so."""
    return driver >= floor or driver == floor[: len(driver)]


@functools.cache
def floor(cuda: Numbers, numbering: str) -> Numbers:
    """The oldest driver that runs wheels of this CUDA. The first toolkits of a major came with a driver older than its
    floor, and run on that one."""
    majors = [row for row in rows("cuda_toolkits")["floor"] if row["cuda"] == cuda[0]]
    exact = [row for row in rows("cuda_toolkits")["toolkit"] if numbers(row["cuda"]) == cuda]
    return min(numbers(row[numbering]) for row in majors + exact if numbering in row)


@functools.cache
def serves(driver: str, numbering: str, cuda: Numbers) -> bool:
    """Whether a driver runs programs of this CUDA."""
    return at_least(numbers(driver), floor(cuda, numbering))


@functools.cache
def compiles(branch: int, cuda: Numbers) -> bool:
    """Whether the drivers of a branch understand PTX of this CUDA: it is not newer than what nvidia-smi shows."""
    return any(row["linux"] == branch and numbers(row["cuda"]) >= cuda for row in rows("driver_branches")["branch"])


def has_code(build: Build, capability: str, branch: int) -> Optional[str]:
    """ "certain", "likely" or None: how surely a build has code for a GPU on a driver of that branch."""
    if build.archs_guessed:
        return None
    major, minor = numbers(capability)
    embedded = architecture(capability).get("tegra", False)
    for target in build.sass:
        if target in build.disputed or not target.isdigit():
            continue
        own_major, own_minor = int(target[:-1]), int(target[-1])
        same_world = architecture(f"{own_major}.{own_minor}").get("tegra", False) == embedded
        if own_major == major and own_minor <= minor and same_world:
            return "certain"
    for target in build.ptx:
        if target in build.disputed or not target.isdigit() or embedded:
            continue
        if (int(target[:-1]), int(target[-1])) <= (major, minor) and compiles(branch, build.cuda):
            return "likely"
    return None


@functools.cache
def _running_on(capability: str, branch: int, certainty: str) -> Set:
    return frozenset(
        number
        for number, build in enumerate(builds())
        if build.variant != "cpu" and has_code(build, capability, branch) in ("certain", certainty)
    )


@functools.cache
def _served(driver: Optional[str], numbering: str, branch: int) -> Set:
    """Builds whose CUDA this driver serves; without a driver, some driver of a branch up to this one."""
    return frozenset(
        number
        for number, build in enumerate(builds())
        if build.variant != "cpu"
        and (
            serves(driver, numbering, build.cuda)
            if driver is not None
            # Floors are compared as branches here: any later driver of that branch can be installed.
            else _branch_of_floor(floor(build.cuda, numbering), numbering) <= branch
        )
    )


def _branch_of_floor(number: Numbers, numbering: str) -> int:
    return branch_of(".".join(str(part) for part in number), numbering)


def driver_range(gpus: Iterable[str]) -> tuple[int, int]:
    """First and last branch that drive all these GPUs; the first is after the last where none does."""
    first, last = branch_numbers()[0], branch_numbers()[-1]
    for capability in gpus:
        row = architecture(capability)
        first = max(first, int(row.get("min_driver", "R0")[1:]))
        last = min(last, int(row.get("max_driver", "R9999")[1:]))
    return first, last


def drives(machine: Machine) -> bool:
    """Whether the driver of the machine knows all of its GPUs; true where it is yet to be installed."""
    if machine.driver is None:
        return True
    if is_guess(machine.driver, machine.numbering):
        return True
    first, last = driver_range(machine.gpus)
    return first <= branch_of(machine.driver, machine.numbering) <= last


# ---------------------------------------------------------------------------------------------------- the answer


class Answer(NamedTuple):
    """`choice`, and for each other variant the newest that runs as surely (`alternatives`); then what nobody has seen
    and is newer than all that was seen of its variant (`unseen`). Newest first. `likely`: the choice runs by PTX.
    `driver_first`: the driver cannot drive these GPUs, and the choice is for one that can."""

    choice: Optional[Build]
    alternatives: tuple[Build, ...] = ()
    unseen: tuple[Build, ...] = ()
    likely: bool = False
    driver_first: bool = False


def answer(machine: Machine) -> Answer:
    """The newest torch that runs there."""
    if not machine.gpus:
        allowed = _with_wheels(machine.platform, machine.python, machine.glibc) & _asked_for(machine.request)
        return _best(machine, allowed & _for_cpu())._replace(alternatives=(), unseen=())
    first, last = driver_range(machine.gpus)
    if first > last:  # no driver is any better than this one
        return Answer(None)
    driver, branch = _driver(machine, last)
    best = _running(machine, driver, branch)
    if best.likely and len(machine.gpus) > 1:
        own = [_running(machine._replace(gpus=(one,)), driver, branch) for one in machine.gpus]
        if all(one.choice is not None and not one.likely for one in own):
            best = Answer(None)
    return best._replace(driver_first=not drives(machine))


def split(machine: Machine) -> dict[str, Build]:
    """Which build each GPU could have by itself, on the one driver that the machine can have. Empty where that gains
    nothing (one GPU has none that surely runs, or one build for all is as new), and where no driver drives them all."""
    first, last = driver_range(machine.gpus)
    if first > last or len(machine.gpus) < 2:
        return {}
    driver, branch = _driver(machine, last)
    own = {one: _running(machine._replace(gpus=(one,)), driver, branch) for one in machine.gpus}
    found = {one: best.choice for one, best in own.items() if best.choice is not None and not best.likely}
    together = answer(machine).choice
    newer = together is None or any(build.release > together.release for build in found.values())
    return found if len(found) == len(own) and newer else {}


def _driver(machine: Machine, last: int) -> tuple[Optional[str], int]:
    """The driver that counts and its branch: the machine's own where it drives the GPUs, else (None) any up to `last`.
    A branch that is a guess is none (0)."""
    if machine.driver is None or not drives(machine):
        return None, last
    guess = is_guess(machine.driver, machine.numbering)
    return machine.driver, 0 if guess else branch_of(machine.driver, machine.numbering)


def _running(machine: Machine, driver: Optional[str], branch: int) -> Answer:
    """The newest that runs on this driver; without one, on some driver up to that branch."""
    allowed = _with_wheels(machine.platform, machine.python, machine.glibc) & _asked_for(machine.request)
    allowed &= _served(driver, machine.numbering, branch)
    certain, likely = allowed, allowed
    for capability in machine.gpus:
        certain &= _running_on(capability, branch, "certain")
        likely &= _running_on(capability, branch, "likely")
    surely = _best(machine, certain)
    if surely.choice is not None:
        return surely
    perhaps = _best(machine, likely)
    return perhaps._replace(likely=perhaps.choice is not None)


def _best(machine: Machine, found: Set) -> Answer:
    def rank(build: Build) -> tuple[Numbers, bool, Numbers]:
        return build.release, machine.python not in build.inferred, build.cuda

    seen: dict[str, Build] = {}
    unseen: dict[str, Build] = {}
    for number in sorted(found, reverse=True):
        build = builds()[number]
        if not build.guessed:
            (seen if build.seen else unseen).setdefault(build.variant, build)
    choice = max(seen.values(), key=rank, default=None)
    return Answer(
        choice,
        tuple(build for build in seen.values() if build is not choice),
        tuple(
            build
            for build in unseen.values()
            if build.variant not in seen or build.release > seen[build.variant].release
        ),
    )


def faults(build: Build, machine: Machine) -> list[str]:
    """Why this build is nothing for this machine, in words; empty: it runs there. One build at a time, and without the
    sets above, so that the two can be held against each other."""
    found = []
    if build.platform != machine.platform:
        found.append(f"it is for {build.platform}")
    if machine.python not in build.pythons:
        found.append(f"no wheel for Python {machine.python}")
    if machine.glibc is not None and numbers(machine.glibc) < build.glibc:
        found.append(f"it needs a newer glibc than {machine.glibc}")
    if not build.seen or build.guessed:
        found.append("nobody has seen it on an index")
    if not _wanted(machine.request).contains(build.torch):
        found.append(f"{machine.request} was asked for")
    if not machine.gpus:
        return found
    if build.variant == "cpu":
        return [*found, "it has no CUDA"]
    first, last = driver_range(machine.gpus)
    oldest = floor(build.cuda, machine.numbering)
    driver, branch = _driver(machine, last)
    if driver is not None and not at_least(numbers(driver), oldest):
        found.append(f"driver {driver} does not serve its CUDA")
    if driver is None and _branch_of_floor(oldest, machine.numbering) > last:
        found.append("the last driver of these GPUs does not serve its CUDA")
    if first > last:
        found.append("no driver drives all of these GPUs")
    found += [f"no code for {one}" for one in machine.gpus if has_code(build, one, branch) is None]
    return found
