"""A GPU slows itself down because it is hot

What it checks
    Whether a thermal slowdown reason is active, or the temperature is at the card's own slowdown threshold. From 80
    degrees C on it is advice.

Why it matters
    A card that throttles runs at a fraction of its speed, and heat ages it.

How to fix
    Clean the filters and fans, leave room around the card, raise the fan curve, or lower the power limit a little
    (nvidia-smi -pl): the last tenth of the power gives little speed.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from cudadoctor.derive.gpus import THERMAL
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import INFO, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD502",
    name="thermal-throttling",
    title="A GPU slows itself down because it is hot",
    severity=WARNING,
    blame=MACHINE,
    precedence=60,
)

# A rule of thumb, in degrees C: no card is made to run hotter than this for long, many slow down soon after.
_WARM = 80


def judge(case: Case) -> Outcome:
    numbers = gpu_numbers(case.facts)
    if not numbers:
        return case.skipped("NVML shows no GPU")
    readable = 0
    warm: tuple[str, ...] = ()
    for index in numbers:
        prefix = f"gpu.{index}."
        name = case.value(prefix + "name", f"GPU {index}")
        reasons = case.fact(prefix + "throttle_reasons")
        temperature = case.fact(prefix + "temperature")
        limit = case.value(prefix + "temperature_slowdown")
        readable += reasons.is_known or temperature.is_known
        active = [reason for reason in (reasons.value or ()) if reason in THERMAL]
        at = f" at {temperature.get()} degrees C" if temperature.is_known else ""
        evidence = (prefix + "throttle_reasons", prefix + "temperature")
        if active:
            return _failed(case, f"the {name} slows itself down because it is hot{at}", evidence, index)
        if temperature.is_known and limit and temperature.get() >= limit:
            return _failed(
                case,
                f"the {name} is at {temperature.get()} degrees C, where it slows itself down ({limit})",
                (*evidence, prefix + "temperature_slowdown"),
                index,
            )
        if temperature.is_known and temperature.get() >= _WARM and not warm:
            warm = (f"the {name} runs warm, at {temperature.get()} degrees C", prefix + "temperature")
    if warm:
        return case.failed(warm[0], (warm[1],), severity=INFO)
    if not readable:
        return case.undecided("temperatures cannot be read", ("gpu.0.temperature", "gpu.0.throttle_reasons"))
    return case.passed("no GPU is too hot", ("gpu.0.temperature", "gpu.0.throttle_reasons"))


def _failed(case: Case, message: str, evidence: tuple[str, ...], index: int) -> Outcome:
    prefix = f"gpu.{index}."
    rest = [reason for reason in case.value(prefix + "throttle_reasons", []) if reason not in THERMAL]
    return case.failed(
        message,
        evidence,
        data={"gpu": index},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Cool the card",
                    "text": "Clean filters and fans, leave room around the card, raise the fan curve, or lower the "
                    "power limit with nvidia-smi -pl.",
                    "kind": "manual",
                    "effect": {prefix + "throttle_reasons": rest, prefix + "temperature": 60},
                },
            ),
        ),
    )
