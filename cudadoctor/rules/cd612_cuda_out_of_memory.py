"""The GPU's memory did not suffice

What it checks
    Whether a program reported that the GPU's memory did not suffice, and what its numbers say of the reason: the work
    needs more than the card has; other processes hold the memory; torch holds memory in pieces that are too small
    (fragmentation: much reserved, little of it allocated); or a limit was set.

Why it matters
    The four need different cures. "Allocated" is what tensors hold; "reserved" is what torch took from the driver and
    keeps for later. When torch gives up it has handed back every block that is wholly free: what then is reserved and
    not allocated lies between tensors that live.

How to fix
    Real need: a smaller batch with gradient accumulation, checkpointing, lower precision or quantised weights, shorter
    sequences, a smaller model. Other processes: end them. Fragmentation:
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (on Windows, where there are none, max_split_size_mb:128).

References
    https://pytorch.org/docs/stable/notes/cuda.html#memory-management
    https://pytorch.org/docs/stable/torch_cuda_memory.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD612",
    name="cuda-out-of-memory",
    title="The GPU's memory did not suffice",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD505", "CD607", "CD614"),
    precedence=55,
)

_REPORTED = "symptom.cuda_out_of_memory"
_EXPLAINED_BY = ("symptom.cudnn_version_differs", "symptom.library_symbol_missing", "symptom.jax_cudnn_outdated")
_UNSURE = ("symptom.cublas_not_initialized", "symptom.cudnn_not_initialized")
_PINNED = "symptom.pinned_memory_failed"
_VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
# Other processes that hold less than this share of the card, or less than this much, are a desktop and the driver.
_FEW = 0.1
_DESKTOP = 1 << 30
# What CUDA's context and its libraries take in a process, at most; torch before 2.1 does not name it.
_CONTEXT = 3 << 28
# Free memory below this share of the card serves nobody: the driver hands it out in blocks.
_LEFT_OVER = 0.03
# Of the card: what torch holds idle below this share is what every run leaves over. A rule of thumb.
_MUCH = 0.1


class Numbers(NamedTuple):
    """What the report says, in bytes; None where it does not. `idle` is reserved and not allocated; `others` what other
    processes hold, by name or by what is left over."""

    tried: Optional[int]
    total: Optional[int]
    free: Optional[int]
    allocated: Optional[int]
    idle: Optional[int]
    others: Optional[int]
    allowed: Optional[int]


def judge(case: Case) -> Outcome:
    if case.fact(_REPORTED).is_known or case.fact("oom.tried").is_known:
        return _reported(case, _numbers(case))
    if case.value("allocator.ooms", 0) > 0:
        return _by_table(case)
    for name in _UNSURE:
        if case.fact(name).is_known and not any(case.fact(other).is_known for other in _EXPLAINED_BY):
            return case.failed(
                "a library of CUDA could not start: mostly because no GPU memory is left for it",
                (name,),
                certainty=POSSIBLE,
                fixes=(_need_less(),),
            )
    if case.fact("allocator.ooms").is_known:
        return case.passed("torch's table counts no case in which memory did not suffice", ("allocator.ooms",))
    return case.skipped("no program reported that the GPU's memory did not suffice")


def _numbers(case: Case) -> Numbers:
    total, free, allocated = (case.value(f"oom.{name}") for name in ("total", "free", "allocated"))
    reserved, process, others = (case.value(f"oom.{name}") for name in ("reserved", "process", "others"))
    if others is None and total is not None and free is not None and process is not None:
        others = max(0, total - free - process)
    if others is None and total is not None and free is not None and reserved is not None and process is None:
        others = max(0, total - free - reserved - _CONTEXT)
    idle = max(0, reserved - allocated) if reserved is not None and allocated is not None else None
    return Numbers(case.value("oom.tried"), total, free, allocated, idle, others, case.value("oom.allowed"))


def _reported(case: Case, told: Numbers) -> Outcome:
    evidence = [_REPORTED] if case.fact(_REPORTED).is_known else []
    names = ("tried", "total", "free", "allocated", "reserved", "process", "others", "allowed")
    evidence += [f"oom.{name}" for name in names if case.fact(f"oom.{name}").is_known]
    asked = f"asked for {show_size(told.tried)}" if told.tried is not None else "asked for more"
    if told.tried is not None and told.total is not None and told.tried > told.total:
        message = f"the program {asked} at once, and the whole GPU has {show_size(told.total)}"
        return _failed(case, "real", message, evidence, CERTAIN, (_need_less(),), (_NO_FRAGMENTS,))
    if _is_fragmented(told):
        message = (
            f"GPU memory is fragmented: torch {asked} while it holds {show_size(told.idle or 0)} "
            "that no tensor uses, in pieces that are too small"
        )
        return _failed(case, "fragmentation", message, evidence, LIKELY, (_defragment(case), _need_less()))
    if _is_limited(told):
        message = (
            f"torch was told to keep within {show_size(told.allowed or 0)} of the GPU's {show_size(told.total or 0)}"
        )
        return _failed(case, "limit", message, evidence, CERTAIN, (_lift(), _need_less()))
    if _others_hold_it(told):
        message = f"other processes hold {show_size(told.others or 0)} of the GPU's {show_size(told.total or 0)}"
        return _failed(case, "others", message, evidence, LIKELY, (_end_others(case), _need_less()))
    if told.tried is not None and told.free is not None and told.free >= told.tried + (told.idle or 0):
        message = f"torch {asked} while {show_size(told.free)} of the GPU's memory are free: the driver gave none of it"
        if case.value("system.os") == "windows":
            # Windows sets memory and page file aside for what a program takes of the GPU.
            message += "; on Windows mostly because the page file is full"
            return _failed(
                case, "refused", message, evidence, LIKELY, (Remedy("enlarge-page-file", {"effect": _EFFECT}),)
            )
        return _failed(case, "refused", message, evidence, POSSIBLE, (_look_further(), _need_less()))
    if told.total is None and told.tried is None and case.fact(_PINNED).is_known:
        return case.undecided("memory was refused; that of the GPU, or of the machine, is not told", (_PINNED,))
    if told.allocated is not None and told.total is not None:
        message = (
            f"the work needs more than the GPU has: {show_size(told.allocated)} of {show_size(told.total)} are in use, "
            f"and it {asked}"
        )
        return _failed(case, "real", message, evidence, CERTAIN, (_need_less(),), (_NO_FRAGMENTS,))
    # Without numbers it may also be the machine's own memory: Windows backs what a program takes of the GPU with it.
    return _failed(case, "unclear", "the GPU's memory did not suffice", evidence, LIKELY, (_need_less(), _look(case)))


_NO_FRAGMENTS = "expandable_segments: next to nothing is held that no tensor uses"


def _is_fragmented(told: Numbers) -> bool:
    """Whether what torch held idle would have sufficed, and is more than the rest that every run leaves over."""
    if told.tried is None or told.idle is None or (told.free or 0) >= told.tried:
        return False
    whole = told.total or (told.allocated or 0) + told.idle
    return told.idle + (told.free or 0) >= told.tried and told.idle >= _MUCH * whole


def _others_hold_it(told: Numbers) -> bool:
    """Whether what others hold is much, and would have sufficed."""
    if told.others is None or told.total is None or not max(_FEW * told.total, _DESKTOP) <= told.others <= told.total:
        return False
    free = told.free or 0
    if told.tried is not None and free >= max(told.tried, _LEFT_OVER * told.total):
        return False
    return told.tried is None or told.others + free >= told.tried


def _is_limited(told: Numbers) -> bool:
    if told.allowed is None or told.total is None or told.allowed >= told.total:
        return False
    return told.tried is None or (told.free or 0) >= told.tried


def _by_table(case: Case) -> Outcome:
    evidence = ["allocator.ooms"]
    reserved, allocated = case.value("allocator.reserved"), case.value("allocator.allocated")
    pieces = case.value("allocator.not_releasable")
    evidence += [
        f"allocator.{name}"
        for name in ("reserved", "allocated", "not_releasable")
        if case.fact(f"allocator.{name}").is_known
    ]
    if reserved and allocated is not None and pieces is not None and pieces > reserved // 4:
        message = (
            f"GPU memory is fragmented: {show_size(pieces)} of {show_size(reserved)} lie in pieces between tensors"
        )
        return _failed(case, "fragmentation", message, evidence, LIKELY, (_defragment(case), _need_less()))
    times = case.value("allocator.ooms")
    message = f"the GPU's memory did not suffice ({times} time{'s' if times != 1 else ''}, by torch's table)"
    return _failed(case, "unclear", message, evidence, CERTAIN, (_need_less(),))


def _failed(
    case: Case,
    kind: str,
    message: str,
    evidence: list[str],
    certainty: str,
    fixes: tuple[Remedy, ...],
    not_helping: tuple[str, ...] = (),
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"kind": kind},
        fixes=fixes,
        not_helping=(*not_helping, "another driver or torch build: neither makes memory"),
    )


# -- cures

_EFFECT = {_REPORTED: None, "oom.tried": None, "allocator.ooms": 0}


def _need_less() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Need less GPU memory",
            "text": "In the order of what it costs: inference under torch.inference_mode(); a smaller batch with "
            "gradient accumulation; bfloat16; gradient checkpointing; shorter sequences or smaller pictures; an "
            "8-bit optimizer; LoRA, or quantised weights; a smaller model; several GPUs.",
            "kind": "setting",
            "id": "need-less-memory",
            "effect": _EFFECT,
        },
    )


def _defragment(case: Case) -> Remedy:
    value = "max_split_size_mb:128" if case.value("system.os") == "windows" else "expandable_segments:True"
    return Remedy(
        "change-variable",
        {
            "name": _VARIABLE,
            "value": value,
            "effect": _EFFECT,
            "why": "let torch lay its memory out so that free pieces stay together (where it does not know "
            "expandable_segments: max_split_size_mb:128)",
        },
    )


def _end_others(case: Case) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Free the GPU of other processes",
            "text": "nvidia-smi lists who holds its memory: end what is left over of former runs (a notebook's "
            "kernel, a worker that hangs), or take another GPU with CUDA_VISIBLE_DEVICES.",
            "kind": "setting",
            "id": "free-the-gpu",
            "effect": _EFFECT,
        },
    )


def _lift() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Lift the limit that the program sets",
            "text": "torch.cuda.set_per_process_memory_fraction is called somewhere: take it out, or raise the "
            "fraction.",
            "kind": "setting",
            "id": "lift-memory-fraction",
            "effect": _EFFECT,
        },
    )


def _look_further() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Look for what else limits the process",
            "text": "On Windows the page file: the driver backs GPU memory with it, so let Windows manage its size. On "
            "Linux ulimit -v, an instance of MIG, or a limit of MPS (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT).",
            "kind": "setting",
            "id": "other-limits",
            "effect": _EFFECT,
        },
    )


def _look(case: Case) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "See who holds the memory",
            "text": "nvidia-smi shows each process; torch.cuda.memory_summary() what torch holds and what of it lies "
            "idle.",
            "kind": "manual",
            "id": "see-who-holds-memory",
        },
    )
