"""There is no swap

What it checks
    Whether a Linux machine of its own has swap space. It is silent in containers, in jobs and under Kubernetes, where
    there is none by design.

Why it matters
    When a data loader or the loading of a model outgrows the memory, a machine without swap kills the process at once.

How to fix
    Add a swap file. It is no replacement for memory: it catches peaks.

References
    https://man7.org/linux/man-pages/man8/swapon.8.html
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_container
from cudadoctor.rules.api import INFO, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD601",
    name="swap-too-small",
    title="There is no swap",
    severity=WARNING,
    blame=MACHINE,
    precedence=80,
)

_GIB = 1 << 30
# With this much memory a missing swap is advice; with less it is felt when a model is loaded. Rules of thumb.
_AMPLE_MEMORY = 32 * _GIB
_SWAP = 8 * _GIB


def judge(case: Case) -> Outcome:
    if case.value("system.os") != "linux":
        return case.skipped("Windows has page files (CD602)")
    if in_container(case) or case.value("scheduler.in_job", False) or case.fact("scheduler.kind").is_known:
        return case.skipped("nodes and containers have no swap by design")
    swap = case.fact("memory.swap_total")
    if not swap.is_known:
        return case.undecided(f"cannot tell how much swap there is: {swap.reason}", ("memory.swap_total",))
    if swap.get() > 0:
        return case.passed(f"{swap.get() / _GIB:.0f} GiB of swap", ("memory.swap_total",))
    memory = case.value("memory.total")
    ample = memory is None or memory >= _AMPLE_MEMORY
    return case.failed(
        "no swap: a data loader that outgrows the memory is killed at once",
        ("memory.swap_total", "memory.total"),
        severity=INFO if ample else WARNING,
        fixes=(Remedy("add-swap", {"size": _SWAP}),),
    )
