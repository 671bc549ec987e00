"""Python is a 32-bit build

What it checks
    Whether the environment's interpreter is a 32-bit program.

Why it matters
    torch has 64-bit wheels only: pip finds "no matching distribution". On Windows, the first download button of some
    years gave the 32-bit installer.

How to fix
    Install the 64-bit Python and make the environment anew.

References
    https://www.python.org/downloads/windows/
"""

from __future__ import annotations

from cudadoctor.derive.wheel import platform_key
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD402",
    name="python-32-bit",
    title="Python is a 32-bit build",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=28,
)


def judge(case: Case) -> Outcome:
    bits = case.fact("python.bits")
    if bits.is_absent:
        return case.skipped("no Python environment is looked at")
    if not bits.is_known:
        return case.undecided(f"cannot tell whether Python is a 64-bit build: {bits.reason}", ("python.bits",))
    if bits.get() == 64:
        return case.passed("Python is a 64-bit build", ("python.bits",))
    if case.fact("torch.version").is_known:
        return case.skipped(f"Python is a {bits.get()}-bit build, and torch was built for it")
    version = case.value("python.version", "")
    return case.failed(
        f"Python {version} is a {bits.get()}-bit build, and torch has 64-bit wheels only".replace("  ", " "),
        ("python.bits", "python.executable"),
        fixes=(
            Remedy("use-python", {"version": _python_with_wheels(case, version), "bits": 64}),
            Remedy("install-torch", {}),
        ),
        not_helping=("a newer pip or another index: there are no 32-bit wheels",),
    )


def _python_with_wheels(case: Case, version: str) -> str:
    """This very minor where the current torch has wheels for it, else one below the newest that it has: companions
    follow later than torch itself."""
    minor = ".".join(version.split(".")[:2])
    pythons: tuple[str, ...] = ()
    for release in case.matrix.torch_releases():
        for build in release.builds(case.derived(platform_key) or "linux-x86_64"):
            if build.seen and not build.guessed and not pythons:
                pythons = tuple(python for python in build.pythons if not python.endswith("t"))
    if not pythons or minor in pythons:
        return minor
    return pythons[-2] if len(pythons) > 1 else pythons[-1]
