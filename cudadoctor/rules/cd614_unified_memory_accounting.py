"""GPU and processor share one memory: what "free" means there

What it checks
    Whether the GPU is of a kind that has no memory of its own (Jetson, GB10) or sees the processor's as its own
    (GH200), and whether a program on it reported too little memory.

Why it matters
    On such machines "free" GPU memory is what the system has free. The page cache counts as used there, though the
    system would give it back: after a large download or the reading of weights a program sees far less than it could
    have. nvidia-smi shows "Not Supported" as its memory. Swap and other programs take from the same pool.

How to fix
    Drop the page cache before the start, let an engine take a smaller share (--gpu-memory-utilization), end what else
    holds memory, and read weights with mmap, so that they are not there twice.

References
    https://docs.nvidia.com/dgx/dgx-spark/known-issues.html
    https://docs.nvidia.com/cuda/cuda-for-tegra-appnote/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import Gpu, gpus
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD614",
    name="unified-memory-accounting",
    title='GPU and processor share one memory: what "free" means there',
    severity=WARNING,
    blame=MACHINE,
    follows_from=("CD607",),
    precedence=54,
)

# The matrix's classes of products whose GPU is on the processor's chip.
_ON_THE_CHIP = ("jetson", "soc")
_NAMED = "symptom.unified_memory_named"
_NVMAP = "symptom.jetson_memory_refused"
_SYMPTOMS = (
    "symptom.engine_memory_share",
    _NVMAP,
    "symptom.cuda_out_of_memory",
    "symptom.kv_cache_too_small",
    "symptom.killed_for_memory",
    "symptom.killed_by_signal",
)


def judge(case: Case) -> Outcome:
    shared = next((gpu for gpu in case.derived(gpus) if _is_shared(case, gpu)), None)
    named = case.fact(_NAMED).is_known and not case.derived(gpus)
    jetson = case.derived(on_jetson) or case.fact(_NVMAP).is_known or named
    if shared is None and not jetson:
        if any(gpu.name_is_cut for gpu in case.derived(gpus)):
            return case.undecided("the GPU's name is cut: it may be one without memory of its own", ("smi.gpus",))
        return case.skipped("the GPU has memory of its own, or none is seen")
    name = shared.label if shared is not None else "this machine" if named else "a Jetson"
    facts: tuple[str, ...] = shared.facts if shared is not None else ()
    if shared is None and case.fact("system.kernel_release").is_known:
        facts = ("system.kernel_release",)
    if named:
        facts = (*facts, _NAMED)
    reported = [symptom for symptom in _SYMPTOMS if case.fact(symptom).is_known]
    if not reported:
        return case.passed(f"{name} shares one memory with the processor", facts)
    first = reported[0]
    # That an engine finds less free than it wants is what the page cache does; a kernel's kill is plain want.
    cached = first in _SYMPTOMS[:2]
    if first == _NVMAP:
        message = f"{name} shares one memory with the processor, and its driver found no piece large enough"
        return case.failed(
            message,
            (*reported, *facts),
            certainty=LIKELY,
            severity=ERROR,
            fixes=(_drop_caches(first),),
            not_helping=("a card's number from a table: there is no second pool of memory",),
        )
    return case.failed(
        f"{name} shares one memory with the processor: what the page cache and programs hold counts as used",
        (*reported, *facts),
        certainty=LIKELY if cached or named else CERTAIN,
        severity=ERROR if cached else WARNING,
        fixes=(_drop_caches(first),),
        not_helping=("a card's number from a table: there is no second pool of memory",),
    )


def _is_shared(case: Case, gpu: Gpu) -> bool:
    if gpu.name_is_cut:
        return False
    found = case.matrix.gpu(gpu.label)
    return bool(found.rows) and all(_of_one_pool(row.klass, row.on_arm) for row in found.rows)


def _of_one_pool(klass: str, on_arm: Optional[bool]) -> bool:
    return klass in _ON_THE_CHIP or (klass == "datacenter" and bool(on_arm))


def _drop_caches(symptom: str) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Free the one memory before the program starts",
            "text": "Give the page cache back:\n    sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'\nLet an "
            "engine take less (--gpu-memory-utilization 0.7), and end what else holds memory: free -h shows it, "
            "nvidia-smi not.",
            "kind": "setting",
            "id": "drop-caches",
            "effect": {symptom: None},
        },
    )
