"""A GPU has less memory than the job needs

What it checks
    The whole device memory of each GPU that the job sees, against gpu.memory_total of the policy. Cards keep some for
    themselves: one that is sold as 80 GB shows a little less, so ask for a little less (78 GiB).

Why it matters
    A model that does not fit ends with "CUDA out of memory" after it has loaded for minutes.

How to fix
    Ask for a card with more memory; where the name of one stands for two sizes, ask for the size. A part of a card
    (MIG) has a part of its memory.

References
    https://developer.nvidia.com/cuda-gpus
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ALLOCATION, ERROR, Case, Outcome, Rule
from cudadoctor.rules.cards import another_card
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD004",
    name="gpu-memory-total",
    title="A GPU has less memory than the job needs",
    severity=ERROR,
    blame=ALLOCATION,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD002",),
    precedence=14,
)

_ASKED = "policy.gpu.memory_total"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted: int = asked.get()
    judged = each_gpu(case, "memory_total", lambda value: None if value is None else value >= wanted, divided=True)
    facts = (_ASKED, *judged.facts)
    if judged.ok is None:
        return case.undecided(f"cannot tell each GPU's memory: {judged.reason}", facts)
    if judged.ok:
        return case.passed(f"each GPU has {show_size(wanted)} or more, as asked for", facts)
    return case.failed(
        f"{gpu_name(case, judged.worst)} has {show_size(judged.value)}, {show_size(wanted)} is asked for",
        facts,
        data={"gpu": judged.worst, "value": judged.value, "wanted": wanted},
        fixes=(
            another_card(
                "Ask for a card with more memory",
                "Where this is the card that is meant, gpu.memory_total of the policy asks for too much: each card "
                "keeps some of its memory for itself.",
            ),
        ),
    )
