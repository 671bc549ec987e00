"""Windows ended a kernel that ran too long (TDR)

What it checks
    Whether a program reported that a kernel was ended for its time, or Windows that it has reset the display driver,
    and what the registry says of the limit (TdrDelay, TdrLevel). Without such a report the setting is left alone.

Why it matters
    Windows takes a GPU that does not answer for two seconds as hung and resets it: the program loses the GPU and all
    that is on it. A long kernel on a card that also draws the desktop is ended that way though nothing is broken. Linux
    has a like limit for cards on which an X server runs.

How to fix
    Make kernels shorter (a smaller batch or tile), use a card without a display, or raise TdrDelay in the registry and
    restart. A raised limit hides a GPU that really hangs: the screen then stands still for as long.

References
    https://learn.microsoft.com/windows-hardware/drivers/display/timeout-detection-and-recovery
    https://learn.microsoft.com/windows-hardware/drivers/display/tdr-registry-keys
"""

from __future__ import annotations

from cudadoctor.rules.api import ERROR, INFO, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD605",
    name="timeout-detection",
    title="Windows ended a kernel that ran too long (TDR)",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113",),
    precedence=60,
)

_SYMPTOMS = ("symptom.launch_timed_out", "symptom.display_driver_reset")
_BLACK = "symptom.screen_went_black"
# What Windows does without a value, and one that outlasts ordinary kernels: seconds.
_DEFAULT = 2
_AMPLE = 60
# TdrLevel's value for no watchdog at all.
_OFF = 0


def judge(case: Case) -> Outcome:
    delay, level = case.fact("windows.tdr_delay"), case.fact("windows.tdr_level")
    reported = [name for name in _SYMPTOMS if case.fact(name).is_known]
    system = case.value("system.os", "windows" if "symptom.display_driver_reset" in reported else "")
    if not reported and case.fact(_BLACK).is_known and system in ("", "windows"):
        return case.failed(
            "the screen went black for a moment: perhaps Windows reset the display driver, because the GPU worked for "
            "too long",
            (_BLACK,),
            certainty=POSSIBLE,
            fixes=(Remedy("raise-tdr-delay", {"effect": {_BLACK: None}}),),
        )
    if not reported:
        if system != "windows":
            return case.skipped("no program reported a kernel that ran too long")
        return _setting(case)
    evidence = (*reported, *(name for name in ("windows.tdr_delay", "windows.tdr_level") if case.fact(name).is_known))
    if system == "linux" and not case.fact("system.wsl").is_known:
        return case.failed(
            "a kernel was ended because it ran too long: the card also draws a display, which sets a limit",
            evidence,
            certainty=POSSIBLE,
            fixes=(_without_display(),),
            not_helping=("another torch build or driver: the limit is not theirs",),
        )
    if level.value == _OFF or (delay.value or 0) > _AMPLE:
        return case.failed(
            "a kernel was ended because it ran too long, though Windows' limit is off or ample: the GPU may hang",
            evidence,
            certainty=POSSIBLE,
        )
    shown = f"{delay.value} s" if delay.value is not None else f"{_DEFAULT} s, unless it was changed"
    if not system and reported == [_SYMPTOMS[0]]:
        return case.failed(
            f"a kernel was ended: it ran longer than a system lets one run on a card with a display (Windows: {shown})",
            evidence,
            certainty=LIKELY,
            fixes=(Remedy("raise-tdr-delay", {"effect": dict.fromkeys(reported)}), _without_display()),
            not_helping=("another torch build: the limit is the system's",),
        )
    what = "a kernel was ended: it ran longer than Windows lets one run on a card with a display"
    if reported == [_SYMPTOMS[1]] or "nvlddmkm" in str(case.value(reported[0]).get("text", "")):
        what = "Windows has reset the display driver: something ran on the GPU for longer than Windows lets it"
    return case.failed(
        f"{what} ({shown})",
        evidence,
        certainty=LIKELY,
        fixes=(Remedy("raise-tdr-delay", {"effect": dict.fromkeys(reported)}),),
        not_helping=("another torch build: the limit is Windows'",),
    )


def _setting(case: Case) -> Outcome:
    delay, level = case.fact("windows.tdr_delay"), case.fact("windows.tdr_level")
    if delay.is_unknown and level.is_unknown:
        return case.undecided(f"cannot tell Windows' time limit for kernels: {delay.reason}", ("windows.tdr_delay",))
    if delay.value is not None and delay.value < _DEFAULT and level.value != _OFF:
        return case.failed(
            f"Windows ends a kernel after {delay.value} s (TdrDelay), less than its default of {_DEFAULT} s",
            ("windows.tdr_delay",),
            severity=INFO,
            certainty=POSSIBLE,
            fixes=(Remedy("raise-tdr-delay"),),
        )
    shown = "its default" if delay.value is None else f"{delay.value} s"
    if level.value == _OFF:
        shown = "off"
    return case.passed(f"Windows' time limit for kernels: {shown}", ("windows.tdr_delay", "windows.tdr_level"))


def _without_display() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Run long kernels on a card without a display",
            "text": "Use another card (CUDA_VISIBLE_DEVICES), or stop the desktop: sudo systemctl isolate "
            "multi-user.target. Where that cannot be, make the kernels shorter: a smaller batch or tile.",
            "kind": "setting",
        },
    )
