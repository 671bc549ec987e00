"""A GPU has another compute capability than the job needs

What it checks
    The compute capability of each GPU that the job sees, against gpu.compute_capability of the policy.

Why it matters
    bf16 needs 8.0, fp8 needs 8.9, and a program that was compiled for some capabilities runs on these alone ("no kernel
    image is available for execution on the device").

How to fix
    Ask the scheduler for cards of the right generation, or build the program for this one too.

References
    https://developer.nvidia.com/cuda-gpus
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name, in_range, plainly
from cudadoctor.rules.api import ALLOCATION, ERROR, Case, Outcome, Rule
from cudadoctor.rules.cards import another_card
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD003",
    name="gpu-compute-capability",
    title="A GPU has another compute capability than the job needs",
    severity=ERROR,
    blame=ALLOCATION,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD002",),
    precedence=13,
)

_ASKED = "policy.gpu.compute_capability"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted = str(asked.get())
    judged = each_gpu(case, "compute_capability", lambda value: None if value is None else in_range(value, wanted))
    facts = (_ASKED, *judged.facts)
    if judged.ok is None:
        return case.undecided(f"cannot tell each GPU's compute capability: {judged.reason}", facts)
    if judged.ok:
        return case.passed(f"each GPU has compute capability {plainly(wanted)}, as asked for", facts)
    return case.failed(
        f"{gpu_name(case, judged.worst)} has compute capability {judged.value}, {plainly(wanted)} is asked for",
        facts,
        data={"gpu": judged.worst, "value": judged.value, "wanted": wanted},
        fixes=(
            another_card(
                "Ask for another kind of card",
                "Where the program runs on this card, widen gpu.compute_capability of the policy.",
            ),
        ),
    )
