"""There is no swap

What it checks
    Whether a Linux machine of its own has swap space, and whether the kernel has ended a process for want of memory
    since it was started. It is silent in containers, in jobs and on the nodes of a cluster, where there is none by
    design.

Why it matters
    When a data loader or the loading of a model outgrows the memory, a machine without swap kills the process at once.

How to fix
    Add a swap file. It is no replacement for memory: it catches peaks.

References
    https://man7.org/linux/man-pages/man8/swapon.8.html
"""

from __future__ import annotations

from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, in_job
from cudadoctor.rules.api import INFO, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

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
    swap = case.fact("memory.swap_total")
    if case.value("system.os", "linux" if swap.is_known else "") != "linux":
        return case.skipped("swap space is a matter of Linux (Windows: CD602)")
    if in_container(case) or in_job(case) or case.fact("scheduler.kind").is_known:
        return case.skipped("nodes and containers have no swap by design")
    if not swap.is_known:
        return case.undecided(f"cannot tell how much swap there is: {swap.reason}", ("memory.swap_total",))
    if swap.get() > 0:
        return case.passed(f"{_size(swap.get())} of swap", ("memory.swap_total",))
    fix = Remedy("add-swap", {"size": _SWAP})
    killed = [event for event in events(case, "process-killed") if event.get("values", {}).get("scope") != "cgroup"]
    if killed:
        name = killed[-1].get("values", {}).get("name") or "a process"
        return case.failed(
            f"no swap, and the kernel has ended {name} for want of memory",
            ("memory.swap_total", "memory.total", "kernel.log_events"),
            certainty=LIKELY,
            fixes=(fix,),
        )
    memory = case.value("memory.total")
    ample = memory is None or memory >= _AMPLE_MEMORY
    # That there is none is certain; that anybody will miss it is not.
    return case.failed(
        "no swap: a data loader that outgrows the memory is killed at once",
        ("memory.swap_total", "memory.total"),
        certainty=POSSIBLE,
        severity=INFO if ample else WARNING,
        fixes=(fix,),
    )


def _size(amount: int) -> str:
    return f"{amount / _GIB:.0f} GiB" if amount >= _GIB else f"{amount >> 20} MiB"
