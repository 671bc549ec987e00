"""Persistence mode is off

What it checks
    Whether persistence mode is off on a data-center card of a Linux server. It is advice, since everything works
    without it, unless somebody tells of a slow start.

Why it matters
    While no program uses a GPU, the driver lets go of it, and the next program waits for seconds (on a server with many
    cards, for ten and more) until it is set up again. Settings such as a power limit are lost in between.

How to fix
    Start the persistence daemon, which the driver's packages bring: sudo systemctl enable --now nvidia-persistenced.
    Without the service, nvidia-smi -pm 1 as root does it until the next reboot. On a desktop, the screen keeps the
    driver at work.

References
    https://docs.nvidia.com/deploy/driver-persistence/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import in_container, in_wsl, on_jetson
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import ERROR, INFO, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD117",
    name="persistence-mode-off",
    title="Persistence mode is off",
    severity=INFO,
    blame=MACHINE,
    follows_from=("CD106", "CD113", "CD304", "CD305", "CD312"),
    precedence=90,
)

_DATA_CENTER = "datacenter"
_SLOW, _TIMED_OUT = "symptom.start_is_slow", "symptom.driver_start_timed_out"


def judge(case: Case) -> Outcome:
    if case.value("system.os") in ("windows", "darwin") or in_wsl(case) or on_jetson(case):
        return case.skipped("persistence mode is a matter of Linux servers")
    if in_container(case):
        return case.skipped("the container's host sets it")
    numbers = gpu_numbers(case.facts)
    if case.fact(_TIMED_OUT).is_known:
        off = [n for n in numbers if case.value(f"gpu.{n}.persistence_mode") is False]
        return _timed_out(case, off)
    if case.fact(_SLOW).is_known:
        outcome = _slow(case, [n for n in numbers if case.value(f"gpu.{n}.persistence_mode") is False])
        if outcome is not None:
            return outcome
    if not numbers:
        return case.skipped("NVML shows no GPU")
    read = [n for n in numbers if not case.fact(f"gpu.{n}.persistence_mode").is_unknown]
    if not read:
        return case.undecided("persistence mode could not be read", ("gpu.0.persistence_mode",))
    off = [n for n in read if case.value(f"gpu.{n}.persistence_mode") is False]
    if not off:
        return case.passed("persistence mode is on", (f"gpu.{read[0]}.persistence_mode",))
    servers = [n for n in off if _is_server_card(case, n)]
    if not servers:
        return case.passed(
            "persistence mode is off, which matters on servers only", (f"gpu.{off[0]}.persistence_mode",)
        )
    name = _name(case, servers[0])
    more = f" and {len(servers) - 1} more" if len(servers) > 1 else ""
    return case.failed(
        f"persistence mode is off on the {name}{more}: the first use of CUDA takes seconds longer",
        (f"gpu.{servers[0]}.persistence_mode",),
        data={"gpus": servers},
        fixes=(
            Remedy(
                "restart-service",
                {
                    "service": "nvidia-persistenced",
                    "effect": {f"gpu.{n}.persistence_mode": True for n in off},
                },
            ),
        ),
    )


def _timed_out(case: Case, off: list[int]) -> Outcome:
    facts = tuple(f"gpu.{n}.persistence_mode" for n in off)
    return case.failed(
        "the container toolkit gave up on the driver, which took too long to set the GPUs up: persistence mode keeps "
        "them ready",
        (_TIMED_OUT, *facts),
        certainty=LIKELY if off else POSSIBLE,
        severity=ERROR,
        data={"gpus": off},
        fixes=(
            Remedy(
                "restart-service",
                {"service": "nvidia-persistenced", "effect": {_TIMED_OUT: None, **dict.fromkeys(facts, True)}},
            ),
        ),
        not_helping=("another image: the container does not even start",),
    )


def _slow(case: Case, off: list[int]) -> Optional[Outcome]:
    """Somebody tells of a slow start: where persistence mode is off, this is the likeliest reason."""
    if not off and any(case.value(f"gpu.{n}.persistence_mode") for n in gpu_numbers(case.facts)):
        return None
    # A slow first use of CUDA may as well be code that is compiled for the card; nvidia-smi compiles none.
    said = str(case.value(_SLOW).get("text", "")).lower()
    facts = tuple(f"gpu.{n}.persistence_mode" for n in off)
    effect = {_SLOW: None, **dict.fromkeys(facts, True)}
    state = "persistence mode is off, so the driver" if off else "without persistence mode the driver"
    return case.failed(
        f"the start is slow: {state} is set up anew for each program",
        (_SLOW, *facts),
        certainty=LIKELY if off or "first cuda" not in said else POSSIBLE,
        severity=WARNING,
        data={"gpus": off},
        fixes=(Remedy("restart-service", {"service": "nvidia-persistenced", "effect": effect}),),
        not_helping=("another torch build: the driver needs the time",),
    )


def _is_server_card(case: Case, number: int) -> bool:
    name = _name(case, number)
    if not name or case.value(f"gpu.{number}.display_active", False):
        return False
    return {product.klass for product in case.matrix.gpu(name).rows} == {_DATA_CENTER}


def _name(case: Case, number: int) -> str:
    return next((gpu.label for gpu in case.derived(gpus) if gpu.index == number), "")
