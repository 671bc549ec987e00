"""The driver moves GPU memory into the machine's own (system memory fallback)

What it checks
    On Windows: whether torch holds more memory than the card has, which only this fallback allows; else whether steps
    take seconds under a driver that has it.

Why it matters
    Windows' driver does not refuse memory when the card is full: it takes the machine's own, which the GPU reaches
    through the bus. Nothing fails, and the work becomes ten to a hundred times slower.

How to fix
    Need less memory: a smaller batch, model or picture, or quantised weights. To get an error in its place: NVIDIA
    Control Panel, Manage 3D settings, CUDA - Sysmem Fallback Policy: Prefer No Sysmem Fallback, for the python.exe.

References
    https://nvidia.custhelp.com/app/answers/detail/a_id/5490
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import version
from cudadoctor.parse.sizes import show_size
from cudadoctor.parse.versions import at_least, is_plain
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD607",
    name="sysmem-fallback",
    title="The driver moves GPU memory into the machine's own (system memory fallback)",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=61,
)

# Steps that take this long are slow enough to ask where the memory lies. A rule of thumb, in seconds.
_SLOW_STEP = 5.0
# A card this full has moved, or is about to.
_FULL = 0.93


def judge(case: Case) -> Outcome:
    held, total = case.value("oom.allocated"), case.value("oom.total")
    slow, named = case.fact("symptom.work_is_slow"), case.fact("symptom.system_memory_fallback")
    system = case.value("system.os")
    if held is not None and total is not None and held > total and system != "linux":
        return _failed(
            case,
            f"torch holds {show_size(held)} on a card of {show_size(total)}: the rest lies in the machine's own memory",
            ("oom.allocated", "oom.total"),
            # A Jetson or a wrong number aside, nothing else lets a process hold more than there is.
            CERTAIN if system == "windows" else LIKELY,
            ERROR,
        )
    # Drivers of so new a number that are named beside Windows' own complaint are taken for Windows', unless the number
    # has three parts, as Linux' have and Windows' never.
    updated = case.fact("symptom.driver_updated")
    of_linux = updated.is_known and str(updated.get().get("driver", "")).count(".") > 1
    meant = named.is_known or (slow.is_known and updated.is_known and not of_linux and _has_it(case))
    if system != "windows" and not (system is None and meant):
        if system is None and not slow.is_known:
            return case.skipped("nobody reports slow work")
        if system is None:
            return case.undecided("cannot tell whether this is Windows, whose driver has it", ("system.os",))
        return case.skipped("only Windows' driver falls back to the machine's memory")
    if not slow.is_known:
        return case.skipped("nobody reports slow work")
    if _has_it(case) is False and not named.is_known:
        return case.passed("this driver has no fallback to the machine's memory", ("driver.smi_version",))
    return _slow(case)


def _slow(case: Case) -> Outcome:
    evidence = ["symptom.work_is_slow"]
    names = ("symptom.system_memory_fallback", "symptom.driver_updated", "driver.smi_version")
    evidence += [name for name in names if case.fact(name).is_known]
    full = _fullest(case)
    if full is not None:
        evidence.append("smi.gpus")
    seconds = float(case.value("symptom.work_is_slow", {}).get("seconds", 0) or 0)
    if case.fact("symptom.system_memory_fallback").is_known or (full or 0) >= _FULL:
        certainty = LIKELY
    elif full is not None:
        return case.passed(f"the card's memory is {full:.0%} full: nothing had to be moved", evidence)
    elif (seconds >= _SLOW_STEP or case.fact("symptom.driver_updated").is_known) and _has_it(case):
        certainty = LIKELY
    elif seconds >= _SLOW_STEP:
        certainty = POSSIBLE
    else:
        return case.undecided("the work is slow; how full the card is does not show", evidence)
    return _failed(
        case,
        "the work is slow: the card's memory may be full and the driver use the machine's own",
        evidence,
        certainty,
    )


def _failed(
    case: Case, message: str, evidence: list[str] | tuple[str, ...], certainty: str, severity: Optional[str] = None
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        fixes=(Remedy("refuse-sysmem-fallback"),),
        not_helping=("another torch build: the driver moves the memory",),
    )


def _has_it(case: Case) -> Optional[bool]:
    """Whether the driver is one that falls back; None where its number is not known."""
    since = case.matrix.sysmem_fallback_driver
    words = str(case.value("symptom.driver_updated", {}).get("driver", ""))
    if is_plain(words) and not case.derived(version).is_known:
        return at_least(words, since)
    driver = case.derived(version)
    if not driver.is_known or not is_plain(driver.get()):
        return None
    return at_least(driver.get(), since)


def _fullest(case: Case) -> Optional[float]:
    """How full the fullest card is, from 0 to 1, where nvidia-smi tells."""
    shares = [
        gpu["memory_used"] / gpu["memory_total"]
        for gpu in case.value("smi.gpus", [])
        if gpu.get("memory_used") is not None and gpu.get("memory_total")
    ]
    return max(shares, default=None)
