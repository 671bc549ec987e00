"""The kernel module is of the wrong flavour for this GPU

What it checks
    Whether the loaded NVIDIA module is the open or the proprietary one, where a card that the driver does not list
    works with the other one only.

Why it matters
    NVIDIA ships two kernel modules of the same driver. Cards from Blackwell on, and Grace Hopper, need the open one;
    cards before Turing need the proprietary one. With the wrong one the driver loads and finds no devices.

How to fix
    Install the other flavour of the same driver version (on Ubuntu nvidia-driver-580-open instead of
    nvidia-driver-580, say) and reboot. A card from before Turing and one from Blackwell on have no module in common:
    one machine cannot use both.

References
    https://github.com/NVIDIA/open-gpu-kernel-modules
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.left_out import (
    NEEDS_OPEN,
    NEEDS_PROPRIETARY,
    UNEXPLAINED,
    LeftOut,
    flavour_needed,
    left_out,
    listed,
)
from cudadoctor.derive.surroundings import in_report, maybe_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD108",
    name="wrong-kernel-module-flavour",
    title="The kernel module is of the wrong flavour for this GPU",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD107",),
    precedence=17,
)

_NEEDS = {NEEDS_OPEN: ("open", "proprietary"), NEEDS_PROPRIETARY: ("proprietary", "open")}


def judge(case: Case) -> Outcome:
    if not maybe_own_linux(case):
        return case.skipped("only a Linux machine of its own has a kernel module to choose")
    found = case.derived(gpus)
    if in_report(case):
        outcome = _reported(case)
        if outcome is not None:
            return outcome
    if not found:
        return case.skipped("no NVIDIA GPU is known to be here")
    missing = case.derived(left_out)
    if not missing and in_report(case) and not case.derived(listed):
        return case.skipped("no driver is seen to list a card")
    if not missing:
        return case.passed("the module serves every card", found[0].facts)
    for entry in missing:
        if entry.why in _NEEDS:
            return _failed(case, entry)
    if not any(entry.why == UNEXPLAINED for entry in missing):
        return case.passed("no card is left out for the module's flavour", missing[0].evidence)
    flavour = case.fact("driver.module_flavour")
    if flavour.is_absent:
        return case.skipped("no module is loaded")
    if not flavour.is_known:
        return case.undecided(f"cannot tell the module's flavour: {flavour.reason}", ("driver.module_flavour",))
    return case.passed(f"the {flavour.get()} module suits the card", ("driver.module_flavour", *found[0].facts))


_BY_LOG = (("needs-open-module", "open", "proprietary"), ("needs-proprietary-module", "proprietary", "open"))


def _reported(case: Case) -> Optional[Outcome]:
    """By the kernel log alone, which names the flavour, or tells that the open module could not start the card's own
    processor."""
    for kind, needed, other in _BY_LOG:
        if events(case, kind):
            return case.failed(
                f"a GPU of this machine needs the {needed} kernel module, and the {other} one is loaded",
                ("kernel.log_events",),
                severity=WARNING if case.derived(listed) else ERROR,
                data={"needed": needed},
                fixes=(Remedy(f"install-{needed}-kernel-module", {}),),
                not_helping=("another version of the same flavour",),
            )
    stuck = [event for event in events(case, "init-failed") if (event.get("values") or {}).get("gsp")]
    only_open = any(flavour_needed(case, gpu) == "open" for gpu in case.derived(gpus))
    if stuck and case.value("driver.module_flavour") == "open" and not only_open and not case.derived(listed):
        return case.failed(
            "the open kernel module cannot start the card's own processor (GSP): the proprietary one may",
            ("kernel.log_events", "driver.module_flavour"),
            certainty=LIKELY,
            data={"needed": "proprietary"},
            fixes=(Remedy("install-proprietary-kernel-module", {}),),
            not_helping=("another torch build or toolkit: the driver itself has no use of the card",),
        )
    return None


def _failed(case: Case, entry: LeftOut) -> Outcome:
    needed, other = _NEEDS[entry.why]
    certainty = CERTAIN if entry.by_log else LIKELY
    working = case.derived(listed)
    bound = [gpu for gpu in working if flavour_needed(case, gpu) == other]
    if bound:
        return case.failed(
            f"no module serves both the {entry.gpu.label} ({needed}) and the {bound[0].label} ({other})",
            entry.evidence,
            certainty=certainty,
            severity=WARNING,
            data={"needed": needed},
        )
    return case.failed(
        f"the {entry.gpu.label} needs the {needed} kernel module, and the {other} one is loaded",
        entry.evidence,
        certainty=certainty,
        severity=WARNING if working else ERROR,
        data={"needed": needed},
        fixes=(Remedy(f"install-{needed}-kernel-module", {}),),
        not_helping=("another version of the same flavour",),
    )
