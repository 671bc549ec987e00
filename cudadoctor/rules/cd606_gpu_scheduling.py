"""Hardware-accelerated GPU scheduling (HAGS) makes the speed vary

What it checks
    Whether somebody reports slow or uneven work on a Windows machine on which hardware-accelerated GPU scheduling is
    on. Without such a report the setting is left alone: most machines run well with it on, others with it off.

Why it matters
    With it the card itself decides what runs next, not Windows. On some drivers and programs a long compute job then
    runs at changing speed from one start to the next, or gives way to the desktop.

How to fix
    Try the other setting: Settings, System, Display, Graphics, Default graphics settings; then restart. Keep what is
    faster.

References
    https://devblogs.microsoft.com/directx/hardware-accelerated-gpu-scheduling/
"""

from __future__ import annotations

import re

from cudadoctor.derive.surroundings import in_report
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD606",
    name="gpu-scheduling",
    title="Hardware-accelerated GPU scheduling (HAGS) makes the speed vary",
    severity=WARNING,
    blame=MACHINE,
    precedence=66,
)

_FACT = "windows.hardware_scheduling"
_COMPLAINTS = ("symptom.work_is_slow", "symptom.cpu_is_busy")
_SAID_OFF = pattern(r"\A\W{0,6}(was |is |being )?(off|disabled)\b", re.IGNORECASE)


def judge(case: Case) -> Outcome:
    setting = case.fact(_FACT)
    named = case.fact("symptom.hardware_scheduling_named")
    system = case.value("system.os", "windows" if named.is_known or setting.is_known else "")
    if system != "windows":
        return case.skipped("hardware-accelerated GPU scheduling is Windows' own")
    slow = next((name for name in _COMPLAINTS if case.fact(name).is_known), None)
    if slow is None:
        if setting.is_unknown:
            return case.undecided(f"cannot tell how GPUs are scheduled: {setting.reason}", (_FACT,))
        return case.passed(f"hardware-accelerated GPU scheduling: {setting.value or 'the default'}", (_FACT,))
    said_off = named.is_known and _SAID_OFF.match(str(named.get().get("words", ""))) is not None
    if setting.value == "off" or (said_off and not setting.is_known):
        return case.passed("hardware-accelerated GPU scheduling is off", (_FACT,))
    if setting.value == "on" or named.is_known:
        evidence = [name for name in (_FACT, "symptom.hardware_scheduling_named") if case.fact(name).is_known]
        complaint = "the processor is kept busy" if slow == _COMPLAINTS[1] else "the work is slow or uneven"
        return case.failed(
            f"{complaint}, and hardware-accelerated GPU scheduling (HAGS) is on",
            (*evidence, slow),
            # Who reports the setting beside the complaint has it in mind.
            certainty=LIKELY if named.is_known or in_report(case) else POSSIBLE,
            fixes=(Remedy("turn-off-gpu-scheduling"),),
        )
    return case.undecided("the work is slow; cannot tell whether HAGS is on", (_FACT, slow))
