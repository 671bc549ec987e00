"""A probe did not end in time

What it checks
    Whether a part of the examination was left behind at the deadline (--timeout).

Why it matters
    What that probe would have told is unknown. A driver that does not answer is a fault of the machine and is said by
    CD106; a slow network folder in PATH or in the environment is only slow.

How to fix
    Give it more time with --timeout, or look at what it waits for.

References
    https://docs.nvidia.com/deploy/driver-persistence/index.html
"""

from __future__ import annotations

from cudadoctor.rules.api import MACHINE, WARNING, Case, Outcome, Rule

RULE = Rule(
    id="CD903",
    name="probe-timed-out",
    title="A probe did not end in time",
    severity=WARNING,
    blame=MACHINE,
    follows_from=("CD106",),
    precedence=89,
)


def judge(case: Case) -> Outcome:
    late = case.fact("examination.timed_out")
    if not late.is_known:
        return case.skipped("the facts do not come from an examination")
    if not late.get():
        return case.passed("every probe ended in time", ("examination.timed_out",))
    first = late.get()[0]
    more = f" (and {len(late.get()) - 1} more)" if len(late.get()) > 1 else ""
    return case.failed(
        f"the probe {first.get('probe')} did not end within {first.get('seconds')} s{more}",
        ("examination.timed_out",),
        data={"timed_out": late.get()},
    )
