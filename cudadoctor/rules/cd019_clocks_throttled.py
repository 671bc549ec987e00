"""A GPU's clocks are held down

What it checks
    Whether anything slows a GPU that the job sees (heat, the power supply, the board's own brake), where gpu.throttled
    = false of the policy forbids it. That an idle card clocks down, and that a card at work stays within its power
    limit, is normal and not counted.

Why it matters
    In a job on many nodes every step waits for the slowest GPU.

How to fix
    nvidia-smi -q -d PERFORMANCE names the reason. Heat: see to the cooling. Power brake: the power supply or the
    chassis asks for it. Take another node meanwhile.

References
    https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD019",
    name="clocks-throttled",
    title="A GPU's clocks are held down",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD502", "CD503", "CD508"),
    precedence=47,
)

_ASKED = "policy.gpu.throttled"
_REASONS = {
    "hw_slowdown": "the hardware",
    "sw_thermal_slowdown": "heat",
    "hw_thermal_slowdown": "heat",
    "hw_power_brake_slowdown": "the power brake",
}
_HELP = {
    "the hardware": "Look at cooling and power supply.",
    "heat": "See to the cooling: fans, dust, the air that comes in.",
    "the power brake": "Power supply or chassis ask for it: have them looked at.",
}


def judge(case: Case) -> Outcome:
    if case.value(_ASKED) is not False:
        return case.skipped(NOT_ASKED)
    judged = each_gpu(case, "throttle_reasons", _is_free)
    facts = (_ASKED, *judged.facts)
    if judged.ok is None:
        return case.undecided(f"cannot tell what holds each GPU's clocks: {judged.reason}", facts)
    if judged.ok:
        return case.passed("nothing holds a GPU's clocks down", facts)
    active = [reason for reason in judged.value if reason in _REASONS]
    # The plain slowdown is set along with whatever causes it.
    what = _REASONS[active[-1]]
    return case.failed(
        f"{gpu_name(case, judged.worst)} is slowed down by {what}",
        facts,
        data={"gpu": judged.worst, "reasons": active},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Find out what slows the GPU down",
                    "text": f"nvidia-smi -i {judged.worst} -q -d PERFORMANCE,TEMPERATURE,POWER shows it. {_HELP[what]} "
                    "Take another node meanwhile.",
                },
            ),
        ),
    )


def _is_free(reasons: Any) -> Optional[bool]:
    return None if reasons is None else not any(reason in _REASONS for reason in reasons)
