"""A probe did not end in time

What it checks
    Whether a part of the examination was left behind at the deadline (--timeout).

Why it matters
    What that probe would have told is unknown. A driver that does not answer is a fault of the machine and is said by
    CD106. A folder of PATH, of the environment or of the home that does not answer lies on a network mount whose
    server is gone, or is slow: it is left alone, and so is all that lies on that mount.

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
    folders = [entry for entry in late.get() if entry.get("folder")]
    if folders:
        return case.failed(
            f"{folders[0]['folder']} did not answer within {folders[0].get('seconds')} s: what lies there is unknown",
            ("examination.timed_out",),
            data={"timed_out": late.get()},
        )
    more = f" (and {len(late.get()) - 1} more)" if len(late.get()) > 1 else ""
    return case.failed(
        f"the probe {first.get('probe')} did not end within {first.get('seconds')} s{more}",
        ("examination.timed_out",),
        data={"timed_out": late.get()},
    )
