"""A GPU is hotter than the site allows

What it checks
    The temperature of each GPU that the job sees now, against gpu.temperature of the policy (degrees C, at most).

Why it matters
    Before a job starts, a card is idle and cool. One that is hot all the same has a fan, a heat sink or a cooling loop
    that fails, or a neighbour that heats it: under load it slows itself down and holds up all others.

How to fix
    Look at nvidia-smi -q -d TEMPERATURE and at what runs on the card. Give it time after a job, then have the cooling
    looked at; take another node meanwhile.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD014",
    name="gpu-temperature",
    title="A GPU is hotter than the site allows",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD502",),
    precedence=44,
)

_ASKED = "policy.gpu.temperature"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    most: int = asked.get()
    judged = each_gpu(case, "temperature", lambda value: None if value is None else value <= most)
    facts = (_ASKED, *judged.facts)
    if judged.ok is None:
        return case.undecided(f"cannot tell each GPU's temperature: {judged.reason}", facts)
    if judged.ok:
        return case.passed(f"no GPU is hotter than {most} degrees C, as asked for", facts)
    return case.failed(
        f"{gpu_name(case, judged.worst)} is at {judged.value} degrees C, {most} at most is asked for",
        facts,
        data={"gpu": judged.worst, "value": judged.value, "wanted": most},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Let the GPU cool down, or see to its cooling",
                    "text": f"nvidia-smi -i {judged.worst} -q -d TEMPERATURE,UTILIZATION tells whether something still "
                    "runs on it. Where nothing does and it stays hot, have the cooling looked at; take another node "
                    "meanwhile.",
                },
            ),
        ),
    )
