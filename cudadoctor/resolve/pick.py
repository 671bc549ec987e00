"""The best of the builds that pass: the newest for a new environment, the nearest to what is there for another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import numbers
from cudadoctor.matrix.versions import Numbers
from cudadoctor.resolve.companions import asked
from cudadoctor.resolve.judge import NO_WISH, Judge, Judged
from cudadoctor.resolve.need import Need


def pick(judged: Sequence[Judged], need: Need) -> Optional[Judged]:
    """The best build that passes. What surely runs goes before what only should; wishes that cannot be had (a pin, a
    companion) give way last, as few of them as can be."""
    able = [j for j in judged if not j.hard_count]
    if not able:
        return None
    able = [j for j in able if not j.likely] or able
    least = min(j.unmet for j in able)
    fit = [j for j in able if j.unmet == least]
    return _nearest(fit, need) if keeps(need) else _newest(fit)


def pick_better(judge: Judge, than: Optional[Judged]) -> Optional[Judged]:
    """What `pick` gives for a need that keeps nothing, where that is better than another build; else None. Asks for no
    more builds than decide: the builds come newest first."""
    need = judge.need
    found: list[Judged] = []
    for j in judge:
        if than is not None and not than.likely and than.unmet == NO_WISH and j.key[0] < than.key[0]:
            break
        if found and found[0].key[0] != j.key[0]:
            break
        if j.hard_count:
            continue
        if j.likely or j.unmet != NO_WISH:
            if found:
                continue
            # Something older may do without that.
            best = pick(list(judge), need)
            return best if best is not None and is_better(best, than) else None
        found.append(j)
    best = _newest(found) if found else None
    return best if best is not None and is_better(best, than) else None


def keeps(need: Need) -> bool:
    """Whether an installed torch is to keep its version where it can."""
    return need.keep and need.installed is not None and numbers(need.installed.torch) is not None


def is_better(one: Judged, than: Optional[Judged]) -> bool:
    """Whether a build is more than another: surely runs, meets more wishes, is newer."""
    if than is None:
        return True
    if one.likely != than.likely:
        return than.likely
    return (-one.unmet[0], -one.unmet[1], _rank(one)) > (-than.unmet[0], -than.unmet[1], _rank(than))


def is_installed(j: Judged, need: Need) -> bool:
    """Whether that very build is there and works."""
    return _is_installed_build(j, need) and need.installed is not None and not need.installed.broken


def is_more_asked(need: Need) -> bool:
    """Whether packages were asked for that the environment is not known to have."""
    here = {name for name, _ in need.installed.companions} if need.installed is not None else set()
    return bool(need.partners) or not {asked(text)[0] for text in need.companions} <= here


def is_inferred(j: Judged) -> bool:
    """Whether a wheel for the Python was seen for the release, but not for this very build."""
    return bool(j.build.pythons_inferred) and j.judge.need.python_tag in j.build.pythons_inferred


def _rank(j: Judged) -> tuple[Numbers, bool, Numbers]:
    """Newer is greater; in a release what was seen for this Python goes before what is only inferred."""
    return j.key[0], not is_inferred(j), j.key[1]


def _is_installed_build(j: Judged, need: Need) -> bool:
    return (
        need.installed is not None
        and numbers(need.installed.torch) == j.key[0]
        and need.installed.variant == j.build.variant
    )


def _newest(fit: Sequence[Judged]) -> Judged:
    return max(fit, key=_rank)


def _nearest(fit: Sequence[Judged], need: Need) -> Judged:
    """As little change as cures: this very build, this version, this minor's newest patch, the nearest minor's."""
    assert need.installed is not None
    here = numbers(need.installed.torch) or ()
    minors = sorted({j.key[0][:2] for j in fit} | {here[:2]})
    position = {minor: number for number, minor in enumerate(minors)}

    def distance(j: Judged) -> tuple[int, int, int, Numbers, bool, Numbers]:
        torch = j.key[0]
        steps = position[torch[:2]] - position[here[:2]]
        return (
            0 if torch == here else 1,
            abs(steps),
            0 if steps >= 0 else 1,  # as near on both sides: the newer one
            tuple(-n for n in torch),
            not _is_installed_build(j, need),
            tuple(-n for n in (int(not is_inferred(j)), *j.key[1])),
        )

    return min(fit, key=distance)
