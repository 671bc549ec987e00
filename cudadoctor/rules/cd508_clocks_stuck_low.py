"""A GPU works at idle clocks

What it checks
    Whether a GPU that is busy stays in a power state for idling, or far below its highest clock, while neither heat nor
    power holds it back.

Why it matters
    The work runs at a small part of the card's speed, at a utilisation of nearly 100 %. It comes from clocks that
    somebody locked (nvidia-smi -lgc), from a laptop on battery or with the wrong adapter, from a driver that did not
    wake the card after suspend, or from a power limit far too low.

How to fix
    Take locked clocks back: nvidia-smi -rgc (and -rac). On a laptop, plug in its own adapter and take the maker's
    performance mode; else restart, and update the driver if it comes again.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import HELD_DOWN
from cudadoctor.derive.surroundings import in_report
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD508",
    name="clocks-stuck-low",
    title="A GPU works at idle clocks",
    severity=WARNING,
    blame=MACHINE,
    follows_from=("CD502", "CD503", "CD603"),
    precedence=63,
)

# Rules of thumb: from this utilisation on (in %) a card leaves its idle states, which begin at this number; at work no
# card runs below this share of its highest clock unless something holds it.
_BUSY = 70
_IDLE_STATE = 5
_LOW_SHARE = 0.3
_SAID = "symptom.clocks_stuck"


def judge(case: Case) -> Outcome:
    readable = False
    for index in gpu_numbers(case.facts):
        prefix = f"gpu.{index}."
        use, state = case.value(prefix + "utilization"), case.value(prefix + "performance_state")
        clock, highest = case.value(prefix + "clock_sm"), case.value(prefix + "clock_sm_max")
        readable = readable or (use is not None and (state is not None or clock is not None))
        reasons = case.value(prefix + "throttle_reasons", [])
        if use is None or use < _BUSY or any(reason in reasons for reason in HELD_DOWN):
            continue
        name = case.value(prefix + "name", f"GPU {index}")
        locked = "applications_clocks_setting" in reasons
        share = clock / highest if clock and highest else None
        if state is not None and state >= _IDLE_STATE and (share is None or share < 2 * _LOW_SHARE):
            return _failed(
                case,
                f"the {name} is busy ({use} %) in power state P{state}, which is one for idling",
                (prefix + "utilization", prefix + "performance_state"),
                index,
                locked,
            )
        # One look may fall into a moment before the clocks have risen: it takes a reason for their staying down.
        held = locked or case.fact(_SAID).is_known
        if share is not None and share < _LOW_SHARE and held and "sw_power_cap" not in reasons:
            return _failed(
                case,
                f"the {name} is busy ({use} %) at {clock} MHz of {highest}",
                (prefix + "utilization", prefix + "clock_sm", prefix + "clock_sm_max"),
                index,
                locked,
            )
    if case.fact(_SAID).is_known:
        return _failed(
            case,
            "somebody says that the GPU's clocks stay low under load",
            (_SAID,),
            None,
            False,
            POSSIBLE,
        )
    if not readable:
        if not gpu_numbers(case.facts) or in_report(case):
            return case.skipped("nothing tells of clocks under load")
        return case.undecided("clocks and utilisation cannot be read", ("gpu.0.utilization", "gpu.0.clock_sm"))
    return case.passed("no busy GPU stays at idle clocks", ("gpu.0.utilization", "gpu.0.performance_state"))


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    index: Optional[int],
    locked: bool,
    certainty: str = LIKELY,
) -> Outcome:
    windows = case.value("system.os") == "windows"
    which = f" -i {index}" if index is not None else ""
    reset = f"{'' if windows else 'sudo '}nvidia-smi{which} -rgc"
    prefix = f"gpu.{index}."
    effect: dict[str, object] = {_SAID: None}
    if index is not None:
        effect.update({prefix + "utilization": 0})
    battery = case.value("windows.on_battery", False)
    return case.failed(
        message + ("; somebody has set its clocks" if locked else "; it runs on battery" if battery else ""),
        (*evidence, *((prefix + "throttle_reasons",) if locked else ()), *(("windows.on_battery",) if battery else ())),
        certainty=certainty,
        data={"gpu": index} if index is not None else {},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Give the clocks free",
                    "text": f"As administrator: {reset}; likewise with -rac for application clocks. On a laptop: its "
                    "own adapter, and the maker's performance mode. If it stays so, restart the machine.",
                    "kind": "setting",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("another torch build: the card itself runs slowly",),
    )
