"""This Python belongs to the system's package manager

What it checks
    Whether the interpreter into which torch would be installed is marked as externally managed (PEP 668).

Why it matters
    pip refuses to install there: "error: externally-managed-environment". Forcing it can break programs of the system.

How to fix
    Make a virtual environment and install into that; cudadoctor fix prints both commands.

References
    https://peps.python.org/pep-0668/
    https://packaging.python.org/en/latest/specifications/externally-managed-environments/
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_container
from cudadoctor.derive.wheel import MISSING, UNCLEAR, torch_build
from cudadoctor.rules.api import ENVIRONMENT, ERROR, INFO, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD404",
    name="externally-managed-python",
    title="This Python belongs to the system's package manager",
    # Advice: nothing is broken until somebody installs, and the printed steps make an environment first.
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=45,
)


def judge(case: Case) -> Outcome:
    managed = case.fact("python.externally_managed")
    if managed.is_absent:
        return case.skipped("no Python environment is looked at")
    if not managed.is_known:
        return case.undecided("cannot tell whether the system owns this Python", ("python.externally_managed",))
    if not managed.get():
        return case.passed("pip may install into this Python", ("python.externally_managed",))
    reported = case.fact("symptom.externally_managed").is_known
    kind = case.derived(torch_build).kind
    if kind == UNCLEAR and not reported:
        return case.undecided("cannot tell whether torch has still to be installed", ("torch.version",))
    if kind != MISSING and not reported:
        return case.skipped("torch is there already")
    where = " of the container" if in_container(case) else ""
    return case.failed(
        f"the Python{where} belongs to the system's package manager: pip refuses to install into it",
        ("python.externally_managed", "python.executable", *(("symptom.externally_managed",) if reported else ())),
        severity=ERROR if reported else None,
        fixes=(Remedy("make-venv", {"effect": {"symptom.externally_managed": None}}),),
        not_helping=("sudo pip, or --break-system-packages: both can break the system's own programs",),
    )
