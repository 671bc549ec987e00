"""A build that was picked, spelled out: what is installed with it, why it is this one, what it takes for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Pin as Release
from cudadoctor.matrix import numbers
from cudadoctor.parse.versions import satisfies
from cudadoctor.resolve import dependents
from cudadoctor.resolve.companions import companion_version
from cudadoctor.resolve.drivers import driver_needed, driver_words
from cudadoctor.resolve.judge import SOFT, Judged, name
from cudadoctor.resolve.need import BY_INDEX, BY_REQUEST, Choice, Need
from cudadoctor.resolve.pick import is_inferred, keeps


def spell(j: Judged, need: Need, judged: Sequence[Judged] = ()) -> Choice:
    """The choice; `judged` are all builds, out of which it says why no other one."""
    build = j.build
    matrix = j.judge.matrix
    partners = [
        (partner.name, row)
        for partner in j.judge.partners
        if (row := partner.release(build, j.release, need, matrix)) is not None
    ]
    companions: list[tuple[str, str]] = []
    for package in dict.fromkeys((*(package for package, _ in j.judge.companions), *need.welcome)):
        version = companion_version(package, build, j.release, matrix)
        if version is not None:
            companions.append((package, version))
    for package, version in _brought(partners, j):
        if package not in dict(companions):
            companions.append((package, version))
    beside = [(package, row.version) for package, row in partners if dependents.lies_beside_torch(row, build, matrix)]
    companions += beside
    by_name = [package for package, version in companions if "+" not in version]
    return Choice(
        torch=build.torch,
        variant=build.variant,
        cuda=build.cuda,
        local=build.local,
        index_url=build.index_url,
        python=need.python_tag,
        pythons=build.pythons,
        companions=tuple(companions),
        replaces_by_name=tuple(by_name if build.local else ["torch", *by_name]),
        sass=build.sass,
        ptx=build.ptx,
        reasons=tuple(dict.fromkeys((*j.reasons, *_why_this(j, need, judged)))),
        certainty="likely" if j.likely else "certain",
        assumes=tuple(_assumes(j, need, partners)),
        breaks=tuple(o.reason for o in j.soft),
        platform=build.platform,
        seen=build.seen,
        nvidia=tuple(sorted(j.release.nvidia.items())),
        triton=j.release.companions.get("triton"),
        partners=tuple((package, row.version) for package, row in partners if (package, row.version) not in beside),
        sources=_sources(j),
    )


def _brought(partners: Sequence[tuple[str, Release]], j: Judged) -> Iterator[tuple[str, str]]:
    """Companions that an asked-for package wants: they come from torch's index beforehand, in the right build."""
    for _, row in partners:
        for package, _ in dependents.wanted_companions_of(row):
            version = companion_version(package, j.build, j.release, j.judge.matrix)
            if version is not None:
                yield package, version


def _assumes(j: Judged, need: Need, partners: Sequence[tuple[str, Release]]) -> Iterator[str]:
    driver = j.judge.driver
    if driver is not None and driver.is_expected and j.build.cuda is not None:
        yield driver_words(driver_needed(j.build, need, j.judge.matrix), need, j.judge.matrix)
    if is_inferred(j):
        yield f"a wheel for Python {need.python_tag}, which was seen for this release, not for this very build"
    for package, row in partners:
        if need.python is None and not all(_takes_python(row, python) for python in j.build.pythons):
            yield f"Python {row.python}, which {package} {row.version} wants"


def _takes_python(row: Release, python: str) -> bool:
    return row.python is None or satisfies(python.rstrip("t"), row.python) is not False


def _sources(j: Judged) -> tuple[str, ...]:
    """Where the numbers in the reasons come from: the wheel, its GPU list, the driver's floor."""
    found = [j.build.listed, j.build.source]
    if j.build.cuda is not None:
        major = int(j.build.cuda.partition(".")[0])
        found += [row.source for row in j.judge.matrix.floors() if row.cuda == major]
    return tuple(dict.fromkeys(text for text in found if text))


def _why_this(j: Judged, need: Need, judged: Sequence[Judged]) -> Iterator[str]:
    if not judged:
        return
    here = need.installed.torch if need.installed is not None else None
    if here is not None and keeps(need):
        if numbers(here) == j.key[0]:
            yield f"keeps torch {here}"
        else:
            yield f"torch {j.build.torch} is the nearest release to {here} that serves this machine"
            for line in why_none([other for other in judged if other.key[0] == numbers(here)]):
                yield f"not torch {here}: {line}"
        return
    yield from _why_not_newer(j, judged)


def _why_not_newer(j: Judged, judged: Sequence[Judged]) -> Iterator[str]:
    """Why not the newest release whose builds were seen, and why not what was only announced since."""
    seen = [other for other in judged if other.build.seen]
    newest = max(other.key[0] for other in seen)
    if j.key[0] < newest:
        for line in why_none([other for other in seen if other.key[0] == newest], j):
            yield f"not torch {'.'.join(map(str, newest))}: {line}"
    # What the machine could have without what was asked for beside torch.
    wished = [other for other in judged if other.key[0] < newest and other.key > j.key]
    for other in wished:
        if other.sides == [BY_REQUEST] and other.judge.meets_torch(other.build) and not other.likely:
            yield f"not torch {other.build.torch}: {_without_name(other.hard[0].reason, other)}"
            break
    announced = [other for other in judged if other.key[0] > newest and other.stands_only(BY_INDEX)]
    if announced:
        yield f"not torch {announced[0].build.torch}: {_without_name(announced[0].hard[0].reason, announced[0])}"


def why_none(judged: Sequence[Judged], chosen: Optional[Judged] = None) -> tuple[str, ...]:
    """Why none of these builds passes, in one line: of the build with the fewest objections. With `chosen` also why
    none of those that pass was chosen: a wish that they cannot meet."""
    standing = [j for j in judged if j.hard_count]
    if standing and len(standing) == len(judged):
        near = min(standing, key=lambda j: j.hard_count)
        # Its own name stands before this.
        return (_without_name(near.hard[0].reason, near),)
    able = [j for j in judged if not j.hard_count]
    if chosen is not None and able:
        near = min(able, key=lambda j: (j.likely, j.unmet))
        if near.likely > chosen.likely:
            return ("it would have to rely on PTX",)
        if near.unmet > chosen.unmet:
            return (_without_name(near.soft[0].reason, near),)
    return ()


def _without_name(reason: str, j: Judged) -> str:
    own = f"torch {name(j.build)} "
    return f"its {j.build.variant} build {reason[len(own) :]}" if reason.startswith(own) else reason


def typical(judged: Sequence[Judged]) -> Optional[Judged]:
    """The build that comes nearest to passing, the newest of equals: what stands against it stands for all. Where
    something was asked for, one of the builds that it names: that the others are not it says nothing."""
    standing = [j for j in judged if j.hard_count]
    for named in (
        [j for j in standing if BY_REQUEST not in j.sides],
        [j for j in standing if j.judge.meets_torch(j.build)],
        standing,
    ):
        if named:
            return min(named, key=lambda j: (sum(1 for by in j.sides if by not in SOFT), j.hard_count))
    return None
