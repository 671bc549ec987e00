"""A GPU is held back by its power supply

What it checks
    Whether the hardware brakes the card (a power brake or a hardware slowdown without heat), or whether its power
    limit is set clearly below the one that it ships with while the limit is what holds it back. "SW Power Cap" alone is
    normal under load: every card meets its limit.

Why it matters
    A brake comes from the supply or the board: the card runs at a small part of its speed, and may crash under load.

How to fix
    Check the power cables (one cable for each connector, no splitters) and the supply's rating. A lowered limit is set
    back with nvidia-smi -pl and the default limit.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from cudadoctor.derive.gpus import THERMAL
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import CERTAIN, INFO, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD503",
    name="power-throttling",
    title="A GPU is held back by its power supply",
    severity=WARNING,
    blame=MACHINE,
    precedence=61,
)

# Below this share of the default limit somebody has lowered it on purpose or a laptop runs on battery.
_LOWERED = 0.9


def judge(case: Case) -> Outcome:
    numbers = gpu_numbers(case.facts)
    if not numbers:
        return case.skipped("NVML shows no GPU")
    readable = 0
    lowered: Outcome | None = None
    for index in numbers:
        prefix = f"gpu.{index}."
        name = case.value(prefix + "name", f"GPU {index}")
        fact = case.fact(prefix + "throttle_reasons")
        readable += fact.is_known
        reasons = fact.value or []
        # The hardware slowdown bit covers heat as well; then CD502 speaks.
        hot = any(reason in reasons for reason in THERMAL)
        brake = "hw_power_brake_slowdown" in reasons
        if brake or ("hw_slowdown" in reasons and not hot):
            # A laptop slows the card down on purpose while its battery feeds it.
            on_battery = case.value("windows.on_battery", False)
            why = "it runs on battery" if on_battery else "a power brake" if brake else "power or heat"
            evidence = (prefix + "throttle_reasons", prefix + "power")
            return case.failed(
                f"the {name} is slowed down by the hardware: {why}",
                (*evidence, "windows.on_battery") if on_battery else evidence,
                certainty=CERTAIN if brake else LIKELY,
                severity=INFO if on_battery else WARNING,
                data={"gpu": index},
                fixes=(
                    Remedy(
                        "manual",
                        {
                            "title": "Check the card's power",
                            "text": "One cable from the supply to each connector, no splitters; a supply that is rated "
                            "for the card; on a laptop, its own mains adapter; on a server, the rack's power capping.",
                            "kind": "manual",
                            "effect": {prefix + "throttle_reasons": []},
                        },
                    ),
                ),
            )
        limit, default = case.value(prefix + "power_limit"), case.value(prefix + "power_limit_default")
        if limit and default and limit < _LOWERED * default and "sw_power_cap" in reasons and lowered is None:
            lowered = case.failed(
                f"the {name} is held to {limit:g} W; it ships with {default:g} W",
                (prefix + "power_limit", prefix + "power_limit_default", prefix + "throttle_reasons"),
                severity=INFO,
                data={"gpu": index},
            )
    if lowered is not None:
        return lowered
    if not readable:
        return case.undecided("what holds the clocks back cannot be read", ("gpu.0.throttle_reasons",))
    return case.passed("no GPU is held back by its power", ("gpu.0.throttle_reasons",))
