"""A probe of cudadoctor failed

What it checks
    Whether a part of the examination ended in an error of cudadoctor's own.

Why it matters
    What that probe would have told is unknown, and is shown as unknown.

How to fix
    It is a bug of cudadoctor: report it with what cudadoctor facts prints.

References
    CONTRIBUTING.md of the project
"""

from __future__ import annotations

from cudadoctor.rules.api import TOOL, WARNING, Case, Outcome, Rule

RULE = Rule(
    id="CD902",
    name="probe-failed",
    title="A probe of cudadoctor failed",
    severity=WARNING,
    blame=TOOL,
    precedence=91,
)


# What is shown of an error's words; the facts hold all.
_WORDS = 60


def judge(case: Case) -> Outcome:
    failed = case.fact("examination.failed")
    if not failed.is_known:
        return case.skipped("the facts do not come from an examination")
    if not failed.get():
        return case.passed("every probe came to its end", ("examination.failed",))
    first = failed.get()[0]
    reason = str(first.get("reason"))
    more = f" (and {len(failed.get()) - 1} more)" if len(failed.get()) > 1 else ""
    return case.failed(
        f"the probe {first.get('probe')} failed{more}: {reason if len(reason) <= _WORDS else reason[:_WORDS] + '...'}",
        ("examination.failed",),
        data={"failed": failed.get()},
    )
