"""A GPU's PCIe link is narrower or slower than the job needs

What it checks
    The PCIe lanes of each GPU that the job sees, and the generation that card and slot can do together, against
    gpu.pcie_width and gpu.pcie_generation of the policy. An idle link runs at a lower generation: the generation now
    counts only where the card is at work.

Why it matters
    Data goes to the card, and between cards without NVLink, over this link. One node with x4 instead of x16 holds up
    every step of all others.

How to fix
    Reseat the card, look at risers and cables and at the firmware's settings of the slot. Take another node meanwhile.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.policy import NOT_ASKED, Judged, each_gpu, gpu_name
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD015",
    name="gpu-pcie-link",
    title="A GPU's PCIe link is narrower or slower than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD504",),
    precedence=45,
)

_WIDTH, _GENERATION = "policy.gpu.pcie_width", "policy.gpu.pcie_generation"
# From this share of time (in %) on, the link is awake.
_AT_WORK = 30


def judge(case: Case) -> Outcome:
    asked = [name for name in (_WIDTH, _GENERATION) if case.fact(name).is_known]
    if not asked:
        return case.skipped(NOT_ASKED)
    judged: list[tuple[str, str, Judged]] = []
    best: Optional[Judged] = None
    if _WIDTH in asked:
        judged.append((_WIDTH, "PCIe lanes", _at_least(case, "pcie_width", case.value(_WIDTH))))
    if _GENERATION in asked:
        wanted: int = case.value(_GENERATION)
        best = _at_least(case, "pcie_generation_max", wanted)
        judged.append((_GENERATION, "as its PCIe generation", best))
        now = _at_least(case, "pcie_generation", wanted)
        if now.ok is False and case.value(f"gpu.{now.worst}.utilization", 0) >= _AT_WORK:
            judged.append((_GENERATION, "as its PCIe generation while it works", now))
    for name, words, one in judged:
        if one.ok is False:
            return case.failed(
                f"{gpu_name(case, one.worst)} has {one.value} {words}, {case.value(name)} is asked for",
                (name, *one.facts),
                data={"gpu": one.worst, "value": one.value, "wanted": case.value(name)},
                fixes=(_slower(one.worst) if one is best else _held_down(one.worst),),
            )
    for name, _, one in judged:
        if one.ok is None:
            return case.undecided(f"cannot tell each GPU's PCIe link: {one.reason}", (name, *one.facts))
    return case.passed("each GPU's PCIe link is what is asked for", (*asked, *judged[0][2].facts))


def _at_least(case: Case, key: str, wanted: int) -> Judged:
    return each_gpu(case, key, lambda value: None if value is None else value >= wanted)


def _held_down(gpu: Optional[int]) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Find out what holds the PCIe link down",
            "text": f"nvidia-smi -i {gpu} -q shows the link as it is, and what card and host can do (GPU Link Info). "
            "Where both can do more: reseat the card, and look at riser, slot and firmware settings. Where they "
            "cannot, gpu.pcie_width or gpu.pcie_generation of the policy asks for too much.",
        },
    )


def _slower(gpu: Optional[int]) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Take a machine whose card and slot can do it",
            "text": f"nvidia-smi -i {gpu} -q shows which of the two is the slower (GPU Link Info: Device Max, Host "
            "Max). A card in a slow slot can be moved, and firmware settings may hold a slot down. Or ask for less: "
            "gpu.pcie_generation of the policy.",
        },
    )
