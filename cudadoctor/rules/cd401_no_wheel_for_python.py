"""There is no torch wheel for this Python

What it checks
    Whether any torch release has a wheel for this version of Python (and for its free-threaded kind) on this platform.

Why it matters
    pip then says "Could not find a version that satisfies the requirement torch (from versions: none)". New Pythons get
    their wheels some months after their release; old ones lose them.

How to fix
    Use a Python that torch has wheels for; cudadoctor fix names one and makes a virtual environment with it.

References
    https://pytorch.org/get-started/locally/
    https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from __future__ import annotations

from cudadoctor.derive.wheel import MISSING, UNCLEAR, platform_key, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD401",
    name="no-wheel-for-python",
    title="There is no torch wheel for this Python",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=("CD402",),
    precedence=33,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind not in (MISSING, UNCLEAR):
        return case.passed("torch is installed, so there was a wheel", ("torch.version",))
    version = case.fact("python.version")
    platform = case.derived(platform_key)
    if version.is_absent:
        return case.skipped("no Python environment to install into")
    if not version.is_known or platform is None:
        return case.undecided("cannot tell Python's version or the platform", ("python.version", "system.arch"))
    if case.value("python.implementation", "CPython") != "CPython":
        message = f"{case.value('python.implementation')} has no torch wheels: they are for CPython"
        return _failed(case, message, (), ("python.implementation",), CERTAIN)
    tag = ".".join(version.get().split(".")[:2]) + ("t" if case.value("python.free_threaded", False) else "")
    pythons = case.matrix.wheel_pythons(platform)
    if not pythons:
        return case.undecided(f"the matrix knows no wheels for {platform}", ("system.os", "system.arch"))
    if tag in pythons:
        return case.passed(f"torch {pythons[tag]} has wheels for Python {tag}", ("python.version",))
    if build.kind == UNCLEAR:
        return case.undecided("cannot tell whether torch is installed", ("torch.version",))
    plain = sorted((p for p in pythons if not p.endswith("t")), key=lambda p: numbers(p) or ())
    # A Python that came out after the matrix may have its wheels by now.
    is_newer = (numbers(tag.rstrip("t")) or ()) > (numbers(plain[-1]) or ())
    known = " that cudadoctor knows" if is_newer else ""
    return _failed(
        case,
        f"no torch release{known} has a wheel for Python {tag} on {platform}, only for {plain[0]} to {plain[-1]}",
        tuple(plain),
        ("python.version", "system.os", "system.arch"),
        LIKELY if is_newer else CERTAIN,
    )


def _failed(case: Case, message: str, pythons: tuple[str, ...], evidence: tuple[str, ...], certainty: str) -> Outcome:
    newest = case.matrix.torch_releases()[0]
    # One below the newest Python that has wheels: companions and extensions follow later than torch itself.
    usable = pythons or tuple(
        python for wheel in newest.builds("linux-x86_64")[:1] for python in wheel.pythons if not python.endswith("t")
    )
    wanted = usable[-2] if len(usable) > 1 else usable[-1]
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"pythons": list(pythons)},
        fixes=(
            Remedy("use-python", {"version": wanted, "effect": {"python.implementation": "CPython"}}),
            Remedy("install-torch", {}),
        ),
        not_helping=("another index or a newer pip: there is no such wheel to find",),
    )
