"""The machine has less memory than its GPU

What it checks
    Whether the memory (or the limit of the control group, if that is less) is smaller than that of the largest GPU.

Why it matters
    Weights usually pass through main memory on their way to the card, and data loaders work there. It is a rule of
    thumb, not a fault: much works with less.

How to fix
    More memory; or load weights in pieces (safetensors, low_cpu_mem_usage=True), with fewer data loader workers.

References
    https://huggingface.co/docs/safetensors/
"""

from __future__ import annotations

from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import INFO, MACHINE, Case, Outcome, Rule

RULE = Rule(
    id="CD507",
    name="ram-smaller-than-vram",
    title="The machine has less memory than its GPU",
    severity=INFO,
    blame=MACHINE,
    precedence=70,
)

_GIB = 1 << 30
# What firmware and kernel keep for themselves: 64 GiB of modules show as 62.
_NEARLY = 0.95


def judge(case: Case) -> Outcome:
    cards = [(case.value(f"gpu.{i}.memory_total"), f"gpu.{i}.memory_total") for i in gpu_numbers(case.facts)]
    sized = [(size, fact) for size, fact in cards if size]
    if not sized:
        return case.skipped("no GPU with memory of its own is seen")
    largest, fact = max(sized)
    total = case.fact("memory.total")
    if not total.is_known:
        return case.undecided(f"cannot tell the machine's memory: {total.reason}", ("memory.total",))
    memory, source = total.get(), "memory.total"
    limit = case.value("memory.cgroup_limit")
    if limit is not None and limit < memory:
        memory, source = limit, "memory.cgroup_limit"
    if memory < _NEARLY * largest:
        return case.failed(
            f"{memory / _GIB:.0f} GiB of memory beside a GPU of {largest / _GIB:.0f} GiB: large models may not load",
            (source, fact),
        )
    return case.passed(f"{memory / _GIB:.0f} GiB of memory, no less than the GPU's", (source, fact))
