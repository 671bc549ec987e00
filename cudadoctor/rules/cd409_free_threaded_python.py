"""Python is a free-threaded build

What it checks
    Whether the environment's Python is a free-threaded build (python3.13t), and whether torch has wheels for it.

Why it matters
    Its packages are files of their own (cp313t). Few projects have them: pip then says "from versions: none", or builds
    from source, although the same version of the usual Python has a wheel.

How to fix
    Make the environment with the usual build of the same Python (3.13 in place of 3.13t).

References
    https://docs.python.org/3/howto/free-threading-python.html
    https://py-free-threading.github.io/tracking/
"""

from __future__ import annotations

from collections.abc import Iterable

from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.wheel import MISSING, UNCLEAR, platform_key, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD409",
    name="free-threaded-python",
    title="Python is a free-threaded build",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=("CD402",),
    precedence=32,
)

_PIP_SAYS = ("symptom.no_matching_wheel", "symptom.wheel_not_supported", "symptom.version_not_on_index")


def judge(case: Case) -> Outcome:
    fact = case.fact("python.free_threaded")
    if fact.is_absent:
        return case.skipped("no Python environment is looked at")
    if not fact.is_known:
        if in_report(case):
            return case.skipped("nothing speaks of a free-threaded Python")
        return case.undecided(f"cannot tell whether Python is free-threaded: {fact.reason}", ("python.free_threaded",))
    if not fact.get():
        return case.passed("Python is the usual build", ("python.free_threaded",))
    build = case.derived(torch_build)
    said = next((name for name in _PIP_SAYS if case.fact(name).is_known), None)
    version = case.fact("python.version")
    if build.kind not in (MISSING, UNCLEAR) and said is None:
        return case.passed(f"torch {build.version} is installed in a free-threaded Python", ("python.free_threaded",))
    platform = case.derived(platform_key) or "linux-x86_64"
    pythons = case.matrix.wheel_pythons(platform)
    if not pythons:
        return case.skipped(f"torch has no wheels for {platform}, whatever the Python")
    minor = ".".join(str(version.value).split(".")[:2]) if version.is_known else ""
    evidence = ("python.free_threaded", "python.version", *((said,) if said else ()))
    if minor and f"{minor}t" not in pythons:
        usual = minor if minor in pythons else _usual(pythons)
        return _failed(case, f"torch has no wheel for the free-threaded Python {minor}t", usual, evidence, CERTAIN)
    if said is not None:
        shown = f" {minor}t" if minor else ""
        return _failed(
            case,
            f"pip found no wheel for the free-threaded Python{shown}: many packages have none for it",
            minor if minor in pythons else _usual(pythons),
            evidence,
            LIKELY,
        )
    if not minor:
        return case.undecided("cannot tell which Python it is, and so whether torch has wheels", ("python.version",))
    return case.failed(
        f"Python {minor}t is free-threaded: torch {pythons[f'{minor}t']} has wheels for it, many other packages none",
        evidence,
        severity=INFO,
    )


def _usual(pythons: Iterable[str]) -> str:
    plain = [name for name in pythons if not name.endswith("t")]
    newest = sorted(plain, key=lambda name: tuple(map(int, name.split("."))))
    return newest[-2] if len(newest) > 1 else newest[-1]


def _failed(case: Case, message: str, usual: str, evidence: tuple[str, ...], certainty: str) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"python": usual},
        fixes=(
            Remedy("use-python", {"version": usual, "effect": dict.fromkeys(_PIP_SAYS)}),
            Remedy("install-torch", {}),
        ),
        not_helping=("PYTHON_GIL=1: the packages are other files all the same",),
    )
