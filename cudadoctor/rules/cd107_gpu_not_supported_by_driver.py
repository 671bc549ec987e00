"""The driver does not support this GPU

What it checks
    Whether a loaded driver leaves out a card of the machine because the card is older than the driver's branch still
    serves, or newer than it knows. Beside a card that works, one that the branch has dropped is only mentioned.

Why it matters
    NVIDIA drops old GPUs from newer branches and adds new ones: a card outside of both ends is not found ("No devices
    were found"), however well the driver is installed.

How to fix
    For an old card, install the last branch that has it, and keep it from being updated beyond. For a new card,
    install a branch that knows it.

References
    https://www.nvidia.com/en-us/drivers/unix/legacy-gpu/
    https://docs.nvidia.com/datacenter/tesla/drivers/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.left_out import TOO_NEW, TOO_OLD, UNEXPLAINED, LeftOut, left_out, listed
from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, on_jetson
from cudadoctor.rules.api import CERTAIN, ERROR, INFO, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD107",
    name="gpu-not-supported-by-driver",
    title="The driver does not support this GPU",
    severity=ERROR,
    blame=MACHINE,
    precedence=16,
)


def judge(case: Case) -> Outcome:
    if in_wsl(case) or in_container(case) or on_jetson(case):
        return case.skipped("which cards the driver leaves out shows on the machine itself")
    found = case.derived(gpus)
    legacy = events(case, "needs-legacy-driver")
    if in_report(case) and legacy:
        return _logged(case, legacy[-1])
    unknown = events(case, "unsupported-gpu")
    if in_report(case) and unknown and not any(entry.why in (TOO_NEW, TOO_OLD) for entry in case.derived(left_out)):
        outcome = _refused(case, unknown[-1].get("values") or {})
        if outcome is not None:
            return outcome
    if not found:
        return case.skipped("no NVIDIA GPU is known to be here")
    # What NVML or nvidia-smi lists, the driver supports.
    missing = case.derived(left_out)
    if not missing and in_report(case) and not case.derived(listed):
        return case.skipped("no driver is seen to list a card")
    if not missing:
        return case.passed("the driver lists every card", found[0].facts)
    for why in (TOO_NEW, TOO_OLD):
        for entry in missing:
            if entry.why == why:
                return _too_new(case, entry) if why == TOO_NEW else _too_old(case, entry)
    driver = case.derived(version)
    evidence = (case.derived(version_fact), *missing[0].evidence)
    if not any(entry.why == UNEXPLAINED for entry in missing):
        return case.passed("no card is left out for its age", evidence)
    if driver.is_absent:
        return case.skipped("no driver is at work")
    if not driver.is_known:
        return case.undecided("cannot tell the driver's version", evidence[:1])
    if case.matrix.branch_of(driver.get(), case.derived(numbering)) is None:
        reason = f"driver {driver.get()} is of a branch that the matrix does not know"
        return case.undecided(reason, evidence[:1])
    return case.passed("nothing says that the branch leaves this card out", evidence)


def _logged(case: Case, event: Mapping[str, Any]) -> Outcome:
    branch = str((event.get("values") or {}).get("branch", ""))
    until = f"R{branch} was the last branch for it" if branch else "an older branch does"
    works = bool(case.derived(listed))
    return case.failed(
        f"the driver no longer supports a GPU of this machine, says the kernel log: {until}",
        ("kernel.log_events",),
        severity=INFO if works else ERROR,
        data={"last_branch": f"R{branch}" if branch else None},
        fixes=(Remedy("install-driver", _last(case, int(branch)) if branch.isdigit() else {}),) if not works else (),
        not_helping=("a newer driver: support for this card has ended",),
    )


def _last(case: Case, number: int) -> dict[str, Any]:
    """The branch that was the last for a card, and the kernel module that all such cards demand."""
    branch = case.matrix.branch_of(f"{number}.0", "linux")
    rows = [row for row in case.matrix.architectures() if branch is not None and row.name in branch.last_for]
    demanded = {row.modules for row in rows} - {None}
    flavour = {"flavour": demanded.pop()} if len(demanded) == 1 and demanded < {"open", "proprietary"} else {}
    return {"branch": number, **flavour}


def _refused(case: Case, told: Mapping[str, Any]) -> Optional[Outcome]:
    """The module says that it does not serve a card. It also says so of a card that it serves and whose memory it read
    wrongly: then the data knows better, and CD109 judges."""
    driver = str(told.get("driver", ""))
    branch = case.matrix.branch_of(driver, "linux") if driver else None
    match = case.matrix.gpu_by_pci(str(told["device_id"])) if told.get("device_id") else None
    card = (match.exact or match.capability) if match is not None else None
    last = case.matrix.last_branch_for(card) if card is not None else None
    first = case.matrix.first_branch_for(card) if card is not None else None
    until: Optional[int] = None
    words, certainty = "the card is newer or older than it", LIKELY
    if branch is not None and last is not None and branch.linux > last.number:
        words, certainty, until = f"{last.branch} was the last branch for it", CERTAIN, last.number
    elif branch is not None and first is not None and branch.linux < first.number:
        words, certainty = f"it needs {first.branch} or newer", CERTAIN
    elif branch is not None and card is not None:
        return None
    works = bool(case.derived(listed))
    which = f"driver {driver}" if driver else "the driver"
    return case.failed(
        f"{which} does not support a GPU of this machine, says the kernel log: {words}",
        ("kernel.log_events",),
        certainty=certainty,
        severity=INFO if works else ERROR,
        fixes=(Remedy("install-driver", _last(case, until) if until else {}),) if not works else (),
    )


def _too_new(case: Case, entry: LeftOut) -> Outcome:
    number = int((entry.branch or "R0")[1:])
    driver = case.derived(version)
    which = f"driver {driver.get()}" if driver.is_known else "the driver"
    return case.failed(
        f"{which} is too old for the {entry.gpu.label}: it needs {entry.branch} or newer",
        entry.evidence,
        certainty=LIKELY,
        severity=WARNING if case.derived(listed) else ERROR,
        data={"first_branch": entry.branch},
        fixes=(Remedy("update-driver", {"minimum_branch": number, "for": "gpu"}),),
    )


def _too_old(case: Case, entry: LeftOut) -> Outcome:
    certainty = CERTAIN if entry.by_log else LIKELY
    until = f"{entry.branch} was the last branch for it" if entry.branch else "an older branch does"
    if case.derived(listed):
        # As a rule a card that only drives a screen. The older branch would leave out the others.
        return case.failed(
            f"the driver leaves out the {entry.gpu.label} ({until}); the other cards work",
            entry.evidence,
            certainty=certainty,
            severity=INFO,
            data={"last_branch": entry.branch},
        )
    number = (entry.branch or "")[1:]
    return case.failed(
        f"the installed driver no longer supports the {entry.gpu.label}: {until}",
        entry.evidence,
        certainty=certainty,
        data={"last_branch": entry.branch},
        fixes=(Remedy("install-driver", {"branch": int(number)} if number.isdigit() else {}),),
        not_helping=(f"a newer driver: support for this card ended with {entry.branch or 'an older branch'}",),
    )
