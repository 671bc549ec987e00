"""The driver reported errors of a GPU (Xid)

What it checks
    The Xids in the kernel log that no narrower rule takes: CD113 has the GPU that fell off the bus, CD115 the errors of
    its memory, CD122 those of NVLink. Xids from before the driver was loaded anew, or of more than a day ago, are
    history.

Why it matters
    An Xid is the number under which the driver reports what went wrong on a GPU. Most often (13, 31, 43, 45) it is the
    fault of the program that ran, and the card is well. Others say that the card hangs, has no power, or is not fit for
    use.

How to fix
    It depends on the number: cudadoctor explain "Xid 31" tells its meaning and what helps. Act on the first Xid of a
    series: 43, 45 and 154 only follow. A program's fault is looked for with compute-sanitizer; suspect the card only
    when programs that are known to work fail on it, too.

References
    https://docs.nvidia.com/deploy/xid-errors/
    https://docs.nvidia.com/compute-sanitizer/
"""

from __future__ import annotations

from cudadoctor.derive.gpus import NONE, gpus_answer, presence
from cudadoctor.derive.surroundings import maybe_own_linux
from cudadoctor.derive.xids import XidEvent, worst_xid, xids
from cudadoctor.rules.api import ERROR, INFO, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD114",
    name="xid-errors",
    title="The driver reported errors of a GPU (Xid)",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113", "CD109", "CD115", "CD122"),
    precedence=40,
)

_OWN_FAMILIES = (
    *("hardware", "power", "gsp", "init", "driver", "bus", "vgpu", "confidential", "video", "display", "other", ""),
    *("program", "follow-up"),
)
# Rules that take the rest.
_ELSEWHERE = {"lost": "CD113", "memory": "CD115", "nvlink": "CD122"}
_SEVERITY = {"critical": ERROR, "error": WARNING, "warning": INFO, "info": INFO}
_LOG = "kernel.log_events"


def judge(case: Case) -> Outcome:
    log = case.fact(_LOG)
    found = case.derived(xids)
    if not found:
        if log.is_absent:
            return case.skipped("this system's kernel log tells of no Xids")
        if not log.is_known and case.derived(presence).state == NONE:
            return case.skipped("no NVIDIA GPU is here")
        if not log.is_known and case.derived(gpus_answer):
            # On many systems only root may read it; a grave Xid would show in other ways.
            return case.skipped(f"the kernel log was not read ({log.reason}); the GPUs answer", unread=(_LOG,))
        if not log.is_known and not case.derived(maybe_own_linux):
            return case.skipped(f"the kernel log is another system's ({log.reason})", unread=(_LOG,))
        if not log.is_known:
            return case.undecided(f"the kernel log was not read: {log.reason}", (_LOG,))
        return case.passed("the kernel log tells of no Xid", (_LOG,))
    worst = worst_xid(case, *_OWN_FAMILIES)
    if worst is not None:
        return _failed(case, worst)
    elsewhere = sorted({_ELSEWHERE[event.family] for event in found if event.family in _ELSEWHERE and not event.past})
    if elsewhere:
        return case.skipped(f"{' and '.join(elsewhere)} judges the Xids of this log")
    return case.passed("the Xids of the kernel log are history", (found[0].fact,))


def _failed(case: Case, worst: XidEvent) -> Outcome:
    counting = [event for event in case.derived(xids) if not event.past]
    data = {
        "xids": sorted({event.number for event in counting}),
        "bus_id": worst.bus_id,
        "log": [event.text for event in counting][:5],
    }
    where = f" of GPU {worst.bus_id}" if worst.bus_id else ""
    if worst.row is None:
        return case.failed(
            f"the driver reported Xid {worst.number}{where}, which cudadoctor does not know",
            (worst.fact,),
            certainty=POSSIBLE,
            severity=INFO,
            data=data,
        )
    advice = worst.row.advice
    if worst.row.is_programs_fault:
        return case.failed(
            f"{worst.words}{where}: as a rule the program's own fault, not the card's",
            (worst.fact,),
            certainty=LIKELY,
            severity=INFO,
            data=data,
            not_helping=("another driver or torch build, before the program itself is looked at",),
        )
    return case.failed(
        f"the driver reported {worst.words}{where}",
        (worst.fact,),
        certainty=LIKELY,
        severity=_SEVERITY[worst.row.severity],
        data=data,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": f"Act on Xid {worst.number}",
                    "text": advice[0].upper() + advice[1:] + ".",
                    "kind": "manual",
                    "effect": _without(case, worst),
                },
            ),
        ),
        not_helping=("another torch build: the driver reports an error of the GPU",),
    )


def _without(case: Case, worst: XidEvent) -> dict[str, object]:
    if worst.fact != _LOG:
        return {worst.fact: None}
    return {_LOG: [e for e in case.value(_LOG, []) if e.get("kind") != "xid"]}
