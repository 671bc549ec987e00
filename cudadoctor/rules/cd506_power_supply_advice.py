"""The power supply may be too weak for the GPU

What it checks
    Whether something speaks of a supply that gives way: a machine that switches itself off or restarts under load, a
    power brake of the card, or a card that fell off the bus.

Why it matters
    Cards draw short peaks of up to twice their rated power. A supply that is too weak or old, or cables that share two
    connectors, make the machine restart or the card vanish the moment a training starts, with no error in any log.

How to fix
    One cable from the supply to each connector of the card, no splitters; a supply with the rating that the card's
    maker names. To test it, lower the limit: nvidia-smi -pl WATTS. If it holds then, it is the supply.

References
    https://docs.nvidia.com/deploy/xid-errors/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.parse.kernel_log import XID
from cudadoctor.rules.api import INFO, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD506",
    name="power-supply-advice",
    title="The power supply may be too weak for the GPU",
    # Advice: nobody sees a supply from here.
    severity=INFO,
    blame=MACHINE,
    follows_from=("CD503",),
    precedence=71,
)

_SAID = "symptom.power_off_under_load"
_FELL_OFF = "79"
_BRAKE = "hw_power_brake_slowdown"


def judge(case: Case) -> Outcome:
    if case.fact(_SAID).is_known:
        return _failed(
            case,
            "the machine goes off or restarts under load: the power supply or its cables are the first suspects",
            (_SAID,),
            LIKELY,
            WARNING,
        )
    for index in gpu_numbers(case.facts):
        fact = f"gpu.{index}.throttle_reasons"
        if _BRAKE in case.value(fact, []):
            name = case.value(f"gpu.{index}.name", f"GPU {index}")
            return _failed(case, f"a power brake holds the {name} back: look at its supply and cables", (fact,))
    if any(str((event.get("values") or {}).get("number")) == _FELL_OFF for event in events(case, XID)):
        return _failed(
            case, "a GPU fell off the bus (Xid 79): among the causes are supply and cables", ("kernel.log_events",)
        )
    lost = next((gpu for gpu in case.derived(gpus) if gpu.lost), None)
    if lost is not None:
        return _failed(case, "a GPU is lost: among the causes are supply and cables", lost.facts)
    if not case.derived(gpus):
        return case.skipped("no GPU is seen")
    if case.fact("kernel.log_events").is_known:
        return case.passed("nothing speaks of a weak power supply", ("kernel.log_events",))
    return case.skipped("nothing speaks of a weak power supply, and the kernel's log was not read")


def _failed(
    case: Case, message: str, evidence: tuple[str, ...], certainty: str = POSSIBLE, severity: Optional[str] = None
) -> Outcome:
    limits = [case.value(f"gpu.{index}.power_limit_default") for index in gpu_numbers(case.facts)]
    watts = [limit for limit in limits if limit]
    drawn = f" The cards of this machine draw up to {sum(watts):.0f} W by their limits alone." if watts else ""
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        data={"watts": sum(watts)} if watts else {},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Check the power supply",
                    "text": "One cable from the supply to each connector of the card, no splitters; a supply with the "
                    f"rating that the card's maker names.{drawn} To test it, lower the limit (as administrator): "
                    "nvidia-smi -pl WATTS; if the machine holds then, it is the supply.",
                    "kind": "manual",
                    "effect": {
                        _SAID: None,
                        "kernel.log_events": [],
                        **{f"gpu.{index}.throttle_reasons": [] for index in gpu_numbers(case.facts)},
                        **{f"gpu.{index}.lost": False for index in gpu_numbers(case.facts)},
                    },
                },
            ),
        ),
        not_helping=("another driver or torch: the machine loses its power",) if severity == WARNING else (),
    )
