"""A GPU's PCIe link is narrower or slower than it could be

What it checks
    The link's lanes and generation against what card and slot can do together. A link idles down to the first
    generation to save power, so its speed counts only while the GPU works; its lanes stay.

Why it matters
    A quarter of the lanes is a quarter of the speed at which data reaches the card: loading models, offloading to main
    memory and training on several GPUs slow down. A card that is not fully seated, a riser or a dirty contact shows
    itself this way, often before the card is lost.

How to fix
    With the power off, seat the card anew and leave risers out; look in the board's manual for which slots share lanes;
    set the slot's generation in the firmware to a fixed one if the link is unstable. Read it again under load.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_report
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.parse.kernel_log import PCIE_ERROR
from cudadoctor.rules.api import INFO, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD504",
    name="pcie-link-degraded",
    title="A GPU's PCIe link is narrower or slower than it could be",
    severity=WARNING,
    blame=MACHINE,
    follows_from=("CD113",),
    precedence=62,
)

# Rules of thumb. From this utilisation on (in %) the link is awake; a state of this number or less is one for work.
_BUSY = 30
_WORKING_STATE = 2
# Lanes that are so many times fewer are a fault; half of them is how many boards share them.
_FAR_FEWER = 4
_SAID = ("symptom.pcie_link_fell_back",)


def judge(case: Case) -> Outcome:
    readable = False
    half: Optional[tuple[str, tuple[str, ...]]] = None
    for index in gpu_numbers(case.facts):
        prefix = f"gpu.{index}."
        name = case.value(prefix + "name", f"GPU {index}")
        width, most = case.value(prefix + "pcie_width"), case.value(prefix + "pcie_width_max")
        now, best = case.value(prefix + "pcie_generation"), case.value(prefix + "pcie_generation_max")
        readable = readable or None not in (width, most) or None not in (now, best)
        busy = _busy_fact(case, prefix)
        if width and most and width * _FAR_FEWER <= most:
            return _failed(
                case,
                f"the {name} has {width} PCIe lane{'s' if width > 1 else ''}; card and slot could do {most}",
                (prefix + "pcie_width", prefix + "pcie_width_max"),
                {prefix + "pcie_width": most},
                # By design for a second card in many boards, and for one outside the case.
                severity=None if busy or in_report(case) else INFO,
            )
        if now and best and now < best and busy:
            return _failed(
                case,
                f"the {name} works over PCIe generation {now}; card and slot could do {best}",
                (prefix + "pcie_generation", prefix + "pcie_generation_max", busy),
                {prefix + "pcie_generation": best},
            )
        if width and most and width < most and half is None:
            half = (
                f"the {name} has {width} of {most} PCIe lanes, as boards do that share them among slots",
                (prefix + "pcie_width", prefix + "pcie_width_max"),
            )
    for entry in case.value("pci.gpus", []):
        lanes, most_lanes = entry.get("link_width"), entry.get("max_link_width")
        if isinstance(lanes, int) and isinstance(most_lanes, int) and 0 < lanes * _FAR_FEWER <= most_lanes:
            return _failed(
                case,
                f"the card at {entry.get('address')} has {lanes} of {most_lanes} PCIe lanes",
                ("pci.gpus",),
                {
                    "pci.gpus": [
                        dict(card, link_width=card.get("max_link_width")) for card in case.value("pci.gpus", [])
                    ]
                },
                severity=None if in_report(case) else INFO,
            )
    said = next((symptom for symptom in _SAID if case.fact(symptom).is_known), None)
    # Corrected errors come and go on healthy machines.
    severities = [str((event.get("values") or {}).get("severity", "")).lower() for event in events(case, PCIE_ERROR)]
    grave = any("uncorrected" in severity or "fatal" in severity for severity in severities)
    if said is not None or grave:
        return _failed(
            case,
            "the kernel's log, or somebody, speaks of a PCIe link that fell back or has errors",
            (said or "kernel.log_events",),
            dict.fromkeys(_SAID),
            certainty=POSSIBLE,
        )
    if half is not None:
        return case.passed(*half)
    if not readable:
        if not gpu_numbers(case.facts) or in_report(case):
            return case.skipped("nothing tells of the PCIe link")
        return case.undecided("the PCIe link cannot be read", ("gpu.0.pcie_width", "gpu.0.pcie_generation"))
    return case.passed("no PCIe link is narrower than it should be", ("gpu.0.pcie_width", "gpu.0.pcie_generation"))


def _busy_fact(case: Case, prefix: str) -> Optional[str]:
    """The fact that shows that the GPU works, so that its link is awake; None: it does not, or nobody knows."""
    state = case.value(prefix + "performance_state")
    if case.value(prefix + "utilization", 0) >= _BUSY and (state is None or state <= _WORKING_STATE):
        return prefix + "utilization"
    return None


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    effect: dict[str, object],
    certainty: str = LIKELY,
    severity: Optional[str] = None,
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Look at the card's slot",
                    "text": "With the power off: seat the card anew, leave out risers and extension cables, and take "
                    "the slot that the board's manual gives all lanes. Then, while the GPU works: nvidia-smi "
                    "--query-gpu=pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max "
                    "--format=csv",
                    "kind": "manual",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("another driver or torch: the link is made by board, slot and card",),
    )
