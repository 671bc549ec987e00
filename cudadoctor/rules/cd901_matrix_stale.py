"""The compatibility data is old

What it checks
    How long ago the compatibility matrix was checked against its sources.

Why it matters
    Drivers, toolkits and wheels that appeared since are not in it: cudadoctor then says that it does not know them, and
    the newest choice may not be offered. What it says about older ones stays true.

How to fix
    Install a newer cudadoctor.

References
    https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from cudadoctor.rules.api import INFO, TOOL, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD901",
    name="matrix-stale",
    title="The compatibility data is old",
    severity=INFO,
    blame=TOOL,
    precedence=90,
)


def judge(case: Case) -> Outcome:
    today = case.fact("system.date")
    if not today.is_known:
        return case.undecided("cannot tell the date", ("system.date",))
    try:
        age = case.matrix.age_days(today.get())
        stale = case.matrix.is_stale(today.get())
    except ValueError:
        return case.undecided(f"the date {today.get()!r} is none", ("system.date",))
    if stale:
        return case.failed(
            f"the compatibility data (revision {case.matrix.revision}) is {age} days old",
            ("system.date",),
            data={"age_days": age},
            fixes=(Remedy("update-cudadoctor", {"effect": {"system.date": case.matrix.checked}}),),
        )
    return case.passed(f"compatibility data of {case.matrix.checked}", ("system.date",))
