"""A GPU has less free memory than the job needs

What it checks
    The free device memory of each GPU that the job sees, against gpu.memory_free of the policy.

Why it matters
    What another program holds, the job does not get: it ends with "CUDA out of memory" on a card that is large enough.
    On a node that was given to one job alone, memory in use is a left-over of the job before.

How to fix
    nvidia-smi lists the processes; end those that are yours. A process that is gone and still holds memory: fuser -v
    /dev/nvidia* as root shows it. On a shared machine take another GPU. A card that has no more memory than that in all
    is the wrong card: ask for a larger one, or for less.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ALLOCATION, ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.cards import another_card
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD005",
    name="gpu-memory-free",
    title="A GPU has less free memory than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD004",),
    precedence=15,
)

_ASKED = "policy.gpu.memory_free"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted: int = asked.get()
    judged = each_gpu(case, "memory_free", lambda value: None if value is None else value >= wanted, divided=True)
    facts = (_ASKED, *judged.facts)
    if judged.ok is None:
        return case.undecided(f"cannot tell each GPU's free memory: {judged.reason}", facts)
    if judged.ok:
        return case.passed(f"each GPU has {show_size(wanted)} free, as asked for", facts)
    total = case.value(f"gpu.{judged.worst}.memory_total")
    of = f" of {show_size(total)}" if total else ""
    if total and total < wanted:  # nobody could free as much: the card is the wrong one, and not ill
        return case.failed(
            f"{gpu_name(case, judged.worst)} has {show_size(total)} in all, {show_size(wanted)} free is asked for",
            (*facts, f"gpu.{judged.worst}.memory_total"),
            blame=ALLOCATION,
            data={"gpu": judged.worst, "value": judged.value, "wanted": wanted},
            fixes=(another_card("Ask for a card with more memory", "Or ask for less: gpu.memory_free of the policy."),),
        )
    held = case.value(f"gpu.{judged.worst}.processes", [])
    by = f", {len(held)} process{'es' if len(held) > 1 else ''} on it" if held else ""
    return case.failed(
        f"{gpu_name(case, judged.worst)} has {show_size(judged.value)}{of} free{by}, {show_size(wanted)} is asked for",
        (*facts, f"gpu.{judged.worst}.processes") if held else facts,
        data={"gpu": judged.worst, "value": judged.value, "wanted": wanted},
        fixes=(_free_it(bool(held)),),
    )


def _free_it(held: bool) -> Remedy:
    if held:
        text = "nvidia-smi shows who holds it. End what is left over, or take another GPU or node."
    else:
        text = (
            "No process is seen on it. As root, fuser -v /dev/nvidia* shows those that nvidia-smi does not: end what "
            "is left over. Or take another GPU or node."
        )
    return Remedy("manual", {"title": "Free the GPU's memory", "text": text})
