"""A build of torch with code of its own for this GPU is there

What it checks
    Whether the installed torch has machine code for this GPU or only PTX, which the driver has to compile first. How
    old the release is it tells whoever looks (--verbose); that is never a finding.

Why it matters
    It is no fault: a torch that works needs no update, and this is never more than advice. Without machine code the
    first start takes minutes.

How to fix
    Nothing has to be done. `cudadoctor fix --print --torch NEWEST` shows which build would serve this machine.

References
    https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.coverage import coverage
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import CUDA, MISSING, UNCLEAR, torch_build
from cudadoctor.rules.api import ENVIRONMENT, INFO, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD311",
    name="newer-build-available",
    title="A build of torch with code of its own for this GPU is there",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=90,
)

# Nobody is told of a newer release before the installed one is older than it by this many years.
_YEARS = 3


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind == UNCLEAR:
        return case.undecided("cannot tell which build of torch this is", ("torch.version",))
    if build.kind == MISSING:
        return case.skipped("torch is not installed")
    if build.kind != CUDA or build.is_own_build or on_jetson(case) or build.release is None:
        return case.skipped("not a CUDA build of PyTorch's: its maker has the newer ones")
    evidence = ("torch.version",)
    covered = case.derived(coverage)
    by_ptx = [entry for entry in covered if entry.answer == "likely"]
    if by_ptx and len(by_ptx) == len(covered):
        gpu = by_ptx[0].gpu
        return case.failed(
            f"torch {build.version} has only PTX for the {gpu.label}: the driver compiles it first, which makes the "
            "first start slow; a build with code of its own starts at once",
            (build.sass_fact, *gpu.facts),
            certainty=LIKELY,
            fixes=(Remedy("install-torch", {"keep": False}),),
        )
    newest = case.matrix.torch_versions()[0]
    behind = _years_behind(case, build.release)
    if behind is not None and behind >= _YEARS:
        # A torch that does what it should may stay: this is told to whoever looks, and is no finding.
        return case.passed(f"torch {build.version} is {behind} years old, and works ({newest} is the newest)", evidence)
    if build.release == newest:
        return case.passed(f"torch {build.version} is the newest release that is known", evidence)
    return case.passed(f"torch {build.version} is no old release ({newest} is the newest that is known)", evidence)


def _years_behind(case: Case, release: str) -> Optional[int]:
    """Whole years between a release and the day of the data; None where its date is not known."""
    row = case.matrix.torch_release(release)
    if row is None:
        return None
    start, end = row.date, case.matrix.checked
    years = int(end[:4]) - int(start[:4])
    return years if end[5:] >= start[5:] else years - 1
