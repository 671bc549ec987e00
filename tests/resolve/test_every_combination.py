"""The resolver on every combination: driver branch x GPU architecture x Python x platform, mixtures and requests.

Whatever is chosen has code for every GPU, a driver floor that holds, a wheel for that Python, platform and glibc, and
was seen on an index; and nothing newer would do. An oracle that was written apart from the resolver (oracle.py) says
what the answer is, and the two agree everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Build, Machine, numbers

from cudadoctor.matrix import load_matrix
from cudadoctor.resolve import Blocker, Choice, Gpu, Installed, Need, Resolution, resolve
from cudadoctor.resolve.need import NONE, PRESENT, UNKNOWN, WORKS

# What it asks takes minutes, and no Python answers otherwise than another.
pytestmark = pytest.mark.once

MATRIX = load_matrix()

PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.15t")


class Place(NamedTuple):
    """A system: how its drivers are numbered, what its wheels are called, its glibc."""

    name: str
    numbering: str
    platform: str
    glibc: Optional[str]


LINUX = Place("Linux", "linux", "linux-x86_64", "2.35")
ARM = Place("Linux on ARM", "linux", "linux-aarch64", "2.35")
WINDOWS = Place("Windows", "windows", "windows-x86_64", None)
WSL = Place("WSL", "windows", "linux-x86_64", "2.35")
PLACES = (LINUX, ARM, WINDOWS, WSL)
OLD_GLIBC = tuple(
    place._replace(name=f"{place.name}, glibc {glibc}", glibc=glibc)
    for place in (LINUX, ARM)
    for glibc in ("2.17", "2.28")
)

# A few drivers where not every branch is needed: one for each CUDA major, below the floors of two, and the newest.
SOME_DRIVERS = {
    "linux": (
        None,
        "418.39",
        "450.36.06",
        "470.256.02",
        "520.61.05",
        "550.163.01",
        "570.211.01",
        "580.95.05",
        "620.70.06",
    ),
    "windows": (None, "427.45", "451.22", "475.14", "522.06", "527.41", "553.74", "573.76", "581.57", "617.42"),
}


def drivers(place: Place) -> Iterator[Optional[str]]:
    """No driver; then one of each branch, the newest that is known, and the oldest too where it serves less."""
    yield None
    cudas = {build.cuda for build in oracle.builds() if build.cuda}
    for known in oracle.known_drivers(place.numbering).values():
        oldest, newest = known[0], known[-1]
        if any(
            oracle.serves(oldest, place.numbering, cuda) != oracle.serves(newest, place.numbering, cuda)
            for cuda in cudas
        ):
            yield oldest
        yield newest


def architectures(place: Place) -> Iterator[str]:
    """Every architecture, with each of its compute capabilities for which wheels have code of their own; embedded ones
    only on ARM."""
    targets = {target for build in oracle.builds() for target in build.sass}
    for row in oracle.rows("architectures")["architecture"]:
        if row.get("tegra", False) and place.platform != "linux-aarch64":
            continue
        known = [one for one in row["capability"] if one.replace(".", "") in targets]
        yield from known or row["capability"][-1:]


def at(place: Place, *gpus: str, driver: Optional[str], python: str = "3.12", request: str = "") -> Machine:
    return Machine(gpus, driver, place.numbering, place.platform, python, place.glibc, request)


def need_of(machine: Machine, **more: Any) -> Need:
    """The machine as somebody describes it who plans for it (--gpu, --driver)."""
    known: dict[str, Any] = {
        "gpus": tuple(Gpu(f"a GPU of {capability}", capability) for capability in machine.gpus),
        "gpu_state": PRESENT if machine.gpus else NONE,
        "driver": machine.driver,
        "driver_state": UNKNOWN,
        "numbering": machine.numbering,
        "platform": machine.platform,
        "python": machine.python.rstrip("t"),
        "free_threaded": machine.python.endswith("t"),
        "glibc": machine.glibc,
        "wsl": machine.numbering == "windows" and machine.platform.startswith("linux"),
        "torch": machine.request,
        "welcome": ("torchvision",),
    }
    return Need(**{**known, **more})


def named(builds: Iterable[Any]) -> list[str]:
    return [f"{build.torch}+{build.variant}" for build in builds]


def differences(machine: Machine, found: Resolution) -> list[str]:
    """In what the resolver's answer differs from the oracle's."""
    wanted = oracle.answer(machine)
    pairs = (
        ("choice", named([found.choice] if found.choice else []), named([wanted.choice] if wanted.choice else [])),
        ("alternatives", named(one for one in found.alternatives if one.seen), named(wanted.alternatives)),
        ("unseen", named(one for one in found.alternatives if not one.seen), named(wanted.unseen)),
        ("likely", found.choice is not None and found.choice.certainty == "likely", wanted.likely),
        ("driver first", found.driver_first is not None, wanted.driver_first),
        (
            "each by itself",
            {gpu.capability: f"{part.choice.torch}+{part.choice.variant}" for part in found.split for gpu in part.gpus},
            {one: f"{build.torch}+{build.variant}" for one, build in oracle.split(machine).items()},
        ),
    )
    return [f"{what}: {ours} instead of {theirs}" for what, ours, theirs in pairs if ours != theirs]


def check(machines: Iterable[Machine]) -> None:
    wrong = []
    for machine in machines:
        found = differences(machine, resolve(need_of(machine), MATRIX))
        if found:
            wrong.append(f"{tuple(machine)}: {'; '.join(found)}")
    assert not wrong, "\n".join([f"{len(wrong)} machines", *wrong[:10]])


# ------------------------------------------------------------------------------------- everything with everything


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_every_driver_and_every_architecture(place: Place, python: str) -> None:
    check(one_gpu_each(place, python))


def one_gpu_each(place: Place, python: str) -> Iterator[Machine]:
    for driver in drivers(place):
        for capability in architectures(place):
            yield at(place, capability, driver=driver, python=python)


def test_they_are_tens_of_thousands_and_leave_nothing_out() -> None:
    machines = [machine for place in PLACES for python in PYTHONS for machine in one_gpu_each(place, python)]
    assert len(set(machines)) == len(machines) > 30_000
    branches = {oracle.branch_of(m.driver, m.numbering) for m in machines if m.driver and m.numbering == "linux"}
    assert branches == set(oracle.branch_numbers())
    names = {oracle.architecture(machine.gpus[0])["name"] for machine in machines}
    assert names == {row["name"] for row in oracle.rows("architectures")["architecture"]}
    # And the answers are not all the same.
    chosen = {oracle.answer(machine).choice for machine in machines[::7]}
    assert None in chosen and len(chosen) > 30


@pytest.mark.parametrize("place", OLD_GLIBC, ids=lambda place: place.name)
def test_an_old_glibc(place: Place) -> None:
    some = SOME_DRIVERS[place.numbering][::2]
    check(at(place, one, driver=driver, python=p) for one in architectures(place) for driver in some for p in PYTHONS)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_without_a_gpu_it_is_the_newest_cpu_build(place: Place) -> None:
    check(at(place, driver=driver, python=python) for driver in (None, "580.95.05") for python in PYTHONS)


@pytest.mark.parametrize("request_", ["2.15.*", "2.14.*", "2.6.*", "2.7.1", ">=2.8,<2.10", "1.*", "~=2.4.0", "3.0"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_torch_that_was_asked_for(place: Place, request_: str) -> None:
    check(
        at(place, one, driver=driver, python=python, request=request_)
        for one in architectures(place)
        for driver in SOME_DRIVERS[place.numbering][1::2]
        for python in ("3.9", "3.13t")
    )


RELEASES = [
    release
    for path in (oracle.COMPAT / "torch").glob("*.toml")
    for release in oracle.rows(f"torch/{path.stem}")["release"]
]


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release["version"])
def test_torchvision_is_the_one_of_that_release(release: dict[str, Any]) -> None:
    for build in oracle.builds():
        if build.torch == release["version"] and build.platform == "linux-x86_64" and build.cuda and build.seen:
            machine = at(LINUX, "7.0", driver="580.95.05", python=max(build.pythons, key=_python), request=build.torch)
            choice = resolve(need_of(machine), MATRIX).choice
            if not oracle.faults(build, machine):
                assert choice is not None and choice.torch == build.torch
                ((name, version),) = choice.companions
                assert (name, version.partition("+")[0]) == ("torchvision", release["companions"]["torchvision"])


def _python(tag: str) -> tuple[bool, tuple[int, ...]]:
    return not tag.endswith("t"), numbers(tag.rstrip("t"))


@pytest.mark.parametrize("python", ["3.9", "3.12"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_two_unlike_gpus(place: Place, python: str) -> None:
    pairs = itertools.combinations(architectures(place), 2)
    check(
        at(place, *pair, driver=driver, python=python)
        for pair in pairs
        if not any(oracle.architecture(one).get("tegra", False) for one in pair)
        for driver in SOME_DRIVERS[place.numbering][::2]
    )


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_driver_at_work_makes_no_other_answer_than_a_planned_one(place: Place) -> None:
    for capability in architectures(place):
        for driver in SOME_DRIVERS[place.numbering]:
            machine = at(place, capability, driver=driver)
            if driver is not None and oracle.drives(machine):
                assert not differences(machine, resolve(need_of(machine, driver_state=WORKS), MATRIX)), machine


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_driver_that_is_missing_comes_first_and_then_the_same_build(place: Place) -> None:
    for capability in architectures(place):
        machine = at(place, capability, driver=None)
        found = resolve(need_of(machine, driver_state=NONE), MATRIX)
        if not oracle.architecture(capability).get("tegra", False):
            assert found.driver_first, machine
            assert not differences(machine, found._replace(driver_first=None)), machine


# ------------------------------------------------------------------------------------------------ what would help


@pytest.mark.parametrize("place", (*PLACES, *OLD_GLIBC), ids=lambda place: place.name)
def test_a_change_opens_what_it_is_said_to_open(place: Place) -> None:
    """Each change that is offered, made: the build that it opens runs then, is better than the choice, and nothing
    newer would run. And a newer driver is offered wherever it alone opens something better."""
    for capability in architectures(place):
        for driver in SOME_DRIVERS[place.numbering]:
            for python, request in (("3.8", ""), ("3.12", ""), ("3.15", ""), ("3.9", "2.6.*")):
                machine = at(place, capability, driver=driver, python=python, request=request)
                found = resolve(need_of(machine), MATRIX)
                for blocker in found.blocked_by:
                    _check_opened(machine, found.choice, blocker)
                if driver is not None and oracle.drives(machine):
                    newest = oracle.answer(machine._replace(driver=None)).choice
                    helps = newest is not None and (found.choice is None or _rank(newest) > _rank(found.choice))
                    assert helps == ("driver" in {blocker.by for blocker in found.blocked_by}), machine


def _rank(build: Any) -> tuple[Any, Any]:
    return numbers(build.torch), int(build.variant[2:])


def _check_opened(machine: Machine, best: Optional[Choice], blocker: Blocker) -> None:
    changed = machine
    build = build_of(blocker.opens, machine)
    kinds = blocker.by.split(" and ")
    for by in kinds:
        if by == "driver":
            changed = changed._replace(driver=blocker.needed if len(kinds) == 1 else None)
        elif by == "python":
            python = blocker.needed if len(kinds) == 1 else None
            changed = changed._replace(python=python or min(build.pythons))
        elif by == "glibc":
            changed = changed._replace(glibc=None)
        else:
            assert by == "request", blocker
            changed = changed._replace(request="")
    assert not oracle.faults(build, changed), (machine, blocker.change)
    assert best is None or _rank(build) > _rank(best), (machine, blocker.change)
    if len(kinds) == 1:
        newest = oracle.answer(changed).choice
        assert newest is not None and newest.torch == build.torch, (machine, blocker.change)


# ---------------------------------------------------------------------------------------------- what is there already


INSTALLED = [(build.torch, build.variant) for build in oracle.builds() if build.platform == "linux-x86_64"]


@pytest.mark.parametrize("torch", sorted({torch for torch, _ in INSTALLED}))
def test_an_installed_torch_changes_as_little_as_cures(torch: str) -> None:
    """A build that runs stays. Else its release stays, where a build of it runs; else it is one of the nearest minor
    release of which one runs."""
    for variant in (variant for release, variant in INSTALLED if release == torch):
        for capability in ("3.7", "6.1", "8.9", "12.0"):
            for driver in ("470.256.02", "580.95.05"):
                for python in ("3.8", "3.11"):
                    machine = at(LINUX, capability, driver=driver, python=python)
                    need = need_of(machine, installed=Installed(torch, variant), driver_state=WORKS)
                    if oracle.drives(machine):
                        _check_kept(machine, torch, variant, resolve(need, MATRIX))


def _check_kept(machine: Machine, torch: str, variant: str, found: Resolution) -> None:
    run = [build for build in oracle.builds() if not oracle.faults(build, machine)]
    if not run:
        assert found.choice is None and not found.nothing_to_do, machine
        return
    assert found.choice is not None, machine
    where = (machine, torch, variant, found.choice.version)
    assert found.nothing_to_do == any((build.torch, build.variant) == (torch, variant) for build in run), where
    if found.nothing_to_do:
        assert (found.choice.torch, found.choice.variant) == (torch, variant), where
    elif any(build.torch == torch for build in run):
        assert found.choice.torch == torch, where
    else:
        low, high = sorted((numbers(found.choice.torch)[:2], numbers(torch)[:2]))
        assert not [str(build) for build in run if low < build.release[:2] < high], where


# ------------------------------------------------------------------------------------------- the oracle itself

MACHINES = st.builds(
    lambda place, gpus, index, python, request: at(
        place,
        *gpus,
        driver=list(drivers(place))[index % len(list(drivers(place)))],
        python=python,
        request=request,
    ),
    st.sampled_from((*PLACES, *OLD_GLIBC)),
    st.lists(st.sampled_from(list(architectures(LINUX))), min_size=1, max_size=2, unique=True),
    st.integers(0, 200),
    st.sampled_from(PYTHONS),
    st.sampled_from(["", "", "2.6.*", "<2"]),
)


@given(MACHINES)
@settings(max_examples=100)
def test_the_choice_stands_and_nothing_newer_does(machine: Machine) -> None:
    """One build at a time, by the rules in words: the choice has no fault, and every newer build has one."""
    found = resolve(need_of(machine), MATRIX)
    choice = None if found.choice is None else build_of(found.choice, machine)
    if choice is not None:
        assert not oracle.faults(choice, machine)
    for build in oracle.builds():
        newer = choice is None or (build.release, build.cuda) > (choice.release, choice.cuda)
        if newer and build.platform == machine.platform and not oracle.faults(build, machine):
            # What runs all the same, and was passed over: less sure than the choice, or than a build for each GPU.
            surer = choice is not None and (build.release == choice.release and machine.python in build.inferred)
            likely = any(oracle.has_code(build, one, 10_000) != "certain" for one in machine.gpus)
            assert surer or likely, (machine, str(build))


def build_of(choice: Choice, machine: Machine) -> Build:
    return next(
        build
        for build in oracle.builds()
        if (build.torch, build.variant, build.platform) == (choice.torch, choice.variant, machine.platform)
    )


@given(MACHINES)
@settings(max_examples=100)
def test_the_oracle_agrees_with_its_own_rules_in_words(machine: Machine) -> None:
    wanted = oracle.answer(machine)
    for build in (wanted.choice, *wanted.alternatives):
        assert build is None or not oracle.faults(build, machine), str(build)
    for build in wanted.unseen:
        assert oracle.faults(build, machine) == ["nobody has seen it on an index"]


def _mutants(found: Resolution) -> dict[str, Resolution]:
    """The resolver's answer, wrong in one thing each."""
    choice = found.choice
    assert choice is not None
    seen = [one for one in found.alternatives if one.seen]
    unseen = [one for one in found.alternatives if not one.seen]
    return {
        "an older torch": found._replace(choice=seen[0]),
        "another CUDA": found._replace(choice=choice._replace(variant="cu118")),
        "nothing": found._replace(choice=None),
        "one that nobody has seen": found._replace(choice=unseen[0]._replace(seen=True)),
        "one that likely runs": found._replace(choice=choice._replace(certainty="likely")),
        "an alternative too few": found._replace(alternatives=(*seen[1:], *unseen)),
        "an older alternative": found._replace(alternatives=(seen[0]._replace(torch="2.0.0"), *seen[1:], *unseen)),
        "an unseen one said to be seen": found._replace(
            alternatives=tuple(one._replace(seen=True) for one in found.alternatives)
        ),
        "the driver first": found._replace(driver_first="it is old"),
    }


WITH_UNSEEN = at(WINDOWS, "8.9", driver="581.57")


@pytest.mark.parametrize("wrong", sorted(_mutants(resolve(need_of(WITH_UNSEEN), MATRIX))))
def test_a_wrong_answer_is_found_out(wrong: str) -> None:
    found = resolve(need_of(WITH_UNSEEN), MATRIX)
    assert not differences(WITH_UNSEEN, found)
    assert differences(WITH_UNSEEN, _mutants(found)[wrong])


# What the rules say of one build, in the oracle's words. These are read by people, and stand against a slip in it.
FAULTS: list[tuple[str, str, Machine, list[str]]] = [
    ("2.14.1", "cu126", at(LINUX, "6.1", driver="580.95.05"), []),
    ("2.14.1", "cu130", at(LINUX, "6.1", driver="580.95.05"), ["no code for 6.1"]),
    ("2.14.1", "cu126", at(LINUX, "8.9", driver="525.60.13"), []),
    ("2.13.0", "cu129", at(LINUX, "12.1", driver="575.57.08"), []),
    ("2.14.1", "cu126", at(LINUX, "8.9", driver="525.53"), ["driver 525.53 does not serve its CUDA"]),
    ("2.14.1", "cu126", at(WSL, "8.9", driver="527.41"), ["driver 527.41 does not serve its CUDA"]),
    ("2.14.1", "cu126", at(WSL, "8.9", driver="528.33"), []),
    ("2.15.0", "cu132", at(LINUX, "12.0", driver="580.65"), []),
    ("2.15.0", "cu132", at(LINUX, "12.0", driver="575.57.08"), ["driver 575.57.08 does not serve its CUDA"]),
    ("2.15.0", "cu132", at(LINUX, "8.9", driver="580.95.05", python="3.10"), ["no wheel for Python 3.10"]),
    ("2.14.1", "cu132", at(WINDOWS, "8.9", driver="581.57"), []),
    ("2.15.0", "cu132", at(WINDOWS, "8.9", driver="581.57"), ["nobody has seen it on an index"]),
    ("2.15.0", "cu132", at(OLD_GLIBC[0], "8.9", driver="580.95.05"), ["it needs a newer glibc than 2.17"]),
    ("2.10.0", "cu129", at(LINUX, "7.0", driver="580.95.05"), []),
    ("2.10.0", "cu128", at(WINDOWS, "7.0", driver="581.57"), ["no code for 7.0"]),  # sources disagree on it
    ("2.15.0", "cu132", at(ARM, "11.0", driver="580.95.05"), []),
    ("2.15.0", "cu132", at(ARM, "8.7", driver="580.95.05"), ["no code for 8.7"]),  # a Jetson is no desktop part
    ("2.15.0", "cpu", at(LINUX, "8.9", driver="580.95.05"), ["it has no CUDA"]),
]


@pytest.mark.parametrize(("torch", "variant", "machine", "wanted"), FAULTS)
def test_what_the_oracle_says_of_one_build(torch: str, variant: str, machine: Machine, wanted: list[str]) -> None:
    build = next(
        build
        for build in oracle.builds()
        if (build.torch, build.variant, build.platform) == (torch, variant, machine.platform)
    )
    assert oracle.faults(build, machine) == wanted
