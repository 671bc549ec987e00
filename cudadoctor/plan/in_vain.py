"""What people try first and what would not help: the newest torch of the default index. Pure.

That a newer driver changes nothing is the resolver's to say, what else helps nothing against a finding is its rule's.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.resolve import Need, Resolution
from cudadoctor.resolve.drivers import driver_for
from cudadoctor.resolve.judge import Judged, judge_all
from cudadoctor.resolve.need import BY_DRIVER, BY_GLIBC, BY_GPU, BY_INDEX, BY_PLATFORM, BY_PYTHON, PRESENT

# What keeps pip from taking a wheel at all: it takes an older one then.
_NOT_TAKEN = {BY_PLATFORM, BY_PYTHON, BY_GLIBC, BY_INDEX}


def in_vain(need: Need, found: Resolution, matrix: Matrix) -> tuple[str, ...]:
    """Sentences "what: why not", for a machine with a GPU that some build serves."""
    if found.nothing_to_do or found.undecided is not None or (found.choice is None and not found.split):
        return found.not_helping
    line = _newest_torch(need, found, matrix)
    return (*([line] if line else []), *found.not_helping)


def _newest_torch(need: Need, found: Resolution, matrix: Matrix) -> str:
    """What a plain `pip install -U torch` brings, where it does not run."""
    if need.gpu_state != PRESENT or not need.gpus or need.jetson:
        return ""
    brought = _brought(need, matrix)
    if brought is None:
        return ""
    build = brought.build
    if found.choice is not None and (found.choice.torch, found.choice.variant) == (build.torch, build.variant):
        return ""
    if build.cuda is None:
        return f"`pip install -U torch`: it brings torch {build.torch} without CUDA, as always on {_system(need)}"
    for side in (BY_GPU, BY_DRIVER):
        for objection in brought.hard:
            if objection.by == side:
                version = f"torch {build.torch}+{build.variant}"
                brings = "" if objection.reason.startswith(version) else f"it brings {version}; "
                return f"`pip install -U torch`: {brings}{objection.reason}"
    return ""


def _brought(need: Need, matrix: Matrix) -> Optional[Judged]:
    """The build that the default index gives to this Python and system: of the newest release that has one."""
    plain = need._replace(torch="", variant=None, keep=False, pins=(), partners=(), companions=(), installed=None)
    driver, _ = driver_for(plain, matrix)
    judged = {
        (j.build.torch, j.build.variant): j
        for j in (*judge_all(plain, matrix, driver), *judge_all(plain, matrix, None, cuda=False))
    }
    for release in matrix.torch_releases():
        found = judged.get((release.version, release.default.get(need.platform, "")))
        if found is not None and not _NOT_TAKEN.intersection(found.sides):
            return found
    return None


def _system(need: Need) -> str:
    return {"windows": "Windows", "macos": "macOS"}.get(need.platform.partition("-")[0], "Linux")
