"""Pinned memory is refused, or the limit on locked memory too low

What it checks
    Whether a program reported that memory could not be pinned or registered, and what the limit on locked memory
    (memlock) is. A low limit without such a report is the default of many systems and is left alone.

Why it matters
    Pinned memory cannot be moved or swapped out; a GPU and a network card read it directly. InfiniBand, GPUDirect and
    the offloading of optimizers lock gigabytes, under the user's limit. What CUDA itself pins is not counted there: it
    fails where the machine's memory is short, and in WSL, which can pin only a part of it.

How to fix
    Raise memlock: docker run --ulimit memlock=-1; in a service LimitMEMLOCK=infinity; for users a line in
    /etc/security/limits.d; Slurm has PropagateResourceLimitsExcept=MEMLOCK. For CUDA's own: pin_memory=False, fewer
    workers, less offloading, or more memory for WSL in .wslconfig.

References
    https://docs.nvidia.com/cuda/wsl-user-guide/
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_container, in_report, in_wsl
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import (
    ALLOCATION,
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    LIKELY,
    MACHINE,
    POSSIBLE,
    Case,
    Outcome,
    Remedy,
    Rule,
)

RULE = Rule(
    id="CD613",
    name="pinned-memory-limit",
    title="Pinned memory is refused, or the limit on locked memory too low",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD602", "CD610", "CD612"),
    precedence=58,
)

_PINNED, _LOCKED, _LIMIT = "symptom.pinned_memory_failed", "symptom.memlock_too_small", "limits.memlock"


def judge(case: Case) -> Outcome:
    limit = case.fact(_LIMIT)
    shown = (_LIMIT,) if limit.is_known or limit.is_absent else ()
    if case.fact(_LOCKED).is_known:
        if limit.is_absent:
            return _failed(
                case,
                "memory could not be registered, though the limit on locked memory is off: the memory itself may be "
                "short",
                (_LOCKED, *shown),
                POSSIBLE,
            )
        size = f" ({show_size(limit.get())})" if limit.is_known else ""
        return case.failed(
            f"the limit on locked memory is too low{size}: a network card or an offloading library locks more",
            (_LOCKED, *shown),
            certainty=CERTAIN if limit.is_known else LIKELY,
            blame=ALLOCATION if in_container(case) else MACHINE,
            fixes=(_raise(),),
        )
    if case.fact(_PINNED).is_known:
        where = ": WSL can pin only a part of the memory" if in_wsl(case) else ": the machine's memory is short"
        return _failed(
            case, f"the system gave no pinned memory{where}", (_PINNED,), LIKELY if in_wsl(case) else POSSIBLE
        )
    if limit.is_absent:
        return case.passed("locked memory is not limited", (_LIMIT,))
    if limit.is_known:
        return case.passed(f"up to {show_size(limit.get())} may be locked, and nothing asked for more", (_LIMIT,))
    if in_report(case) or case.value("system.os") != "linux":
        return case.skipped("no program reported that memory could not be pinned")
    return case.undecided(f"cannot tell the limit on locked memory: {limit.reason}", (_LIMIT,))


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str) -> Outcome:
    more = " WSL: memory= in %UserProfile%\\.wslconfig, then wsl --shutdown." if in_wsl(case) else ""
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        blame=ENVIRONMENT,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Pin less memory",
                    "text": "DataLoader(pin_memory=False), fewer workers, a smaller batch, less offloading." + more,
                    "kind": "setting",
                    "id": "pin-less-memory",
                    "effect": {_PINNED: None},
                },
            ),
        ),
    )


def _raise() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Let programs lock memory",
            "text": "A container:\n    docker run --ulimit memlock=-1 --ulimit stack=67108864 ...\nA user: the lines "
            "'* soft memlock unlimited' and '* hard memlock unlimited' in /etc/security/limits.d/memlock.conf, then "
            "log in again. A service: LimitMEMLOCK=infinity.",
            "kind": "setting",
            "id": "raise-memlock",
            "effect": {_LOCKED: None},
        },
    )
