"""The GPU's memory did not suffice

What it checks
    Whether a program reported that the GPU's memory did not suffice, and what its numbers say of the reason: the work
    needs more than the card has; other processes hold the memory; torch holds memory in pieces that are too small
    (fragmentation: much reserved, little of it allocated); or a limit was set. Of a traceback also what the program was
    at: loading its weights, attention, the loss, the optimizer's step.

Why it matters
    The four need different cures. "Allocated" is what tensors hold; "reserved" is what torch took from the driver and
    keeps for later. When torch gives up it has handed back every block that is wholly free: what then is reserved and
    not allocated lies between tensors that live.

How to fix
    Real need: a smaller batch with gradient accumulation, checkpointing, lower precision or quantised weights, shorter
    sequences, a smaller model; cudadoctor fit MODEL shows what each saves. Other processes: end them. Fragmentation:
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (on Windows, where there are none, max_split_size_mb:128).

References
    https://pytorch.org/docs/stable/notes/cuda.html#memory-management
    https://pytorch.org/docs/stable/torch_cuda_memory.html
"""

from __future__ import annotations

from typing import Any, Optional

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
# Of the card: what torch holds idle below the second share is what every run leaves over; from the first on it is the
# cause; between them it is told, and no certainty is claimed. Rules of thumb.
_MUCH = 0.1
_SOME = 0.03
# Programs whose memory torch's allocator gives out.
_OF_TORCH = ("torch", "vllm", "sglang")
# No program means to ask for so many times the card at once: a shape went wrong.
_NONSENSE = 8


class Numbers(NamedTuple):
    """What the report says, in bytes; None where it does not. `idle` is reserved and not allocated; `others` what other
    processes hold, by name or by what is left over; `pools` lies in pools of CUDA graphs."""

    tried: Optional[int]
    total: Optional[int]
    free: Optional[int]
    allocated: Optional[int]
    reserved: Optional[int]
    idle: Optional[int]
    others: Optional[int]
    allowed: Optional[int]
    pools: Optional[int]


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
    return Numbers(
        case.value("oom.tried"),
        total,
        free,
        allocated,
        reserved,
        idle,
        others,
        case.value("oom.allowed"),
        case.value("oom.private_pools"),
    )


def _reported(case: Case, told: Numbers) -> Outcome:
    evidence = [_REPORTED] if case.fact(_REPORTED).is_known else []
    names = (
        "tried",
        "total",
        "free",
        "allocated",
        "reserved",
        "process",
        "others",
        "allowed",
        "private_pools",
        "phase",
    )
    evidence += [f"oom.{name}" for name in (*names, "phase") if case.fact(f"oom.{name}").is_known]
    who = "torch" if case.value("oom.program", "torch") in _OF_TORCH else "the program"
    asked = f"asked for {show_size(told.tried)}" if told.tried is not None else "asked for more"
    if told.tried is not None and told.total is not None and told.tried > told.total:
        message = f"the program {asked} at once, and the whole GPU has {show_size(told.total)}"
        fixes = (_one_tensor(told.tried > _NONSENSE * told.total), *_matching(case), _need_less())
        return _failed(case, "real", message, evidence, CERTAIN, fixes, (_NO_FRAGMENTS,), told)
    if _is_fragmented(told):
        message = (
            f"GPU memory is fragmented: {who} {asked} while it holds {show_size(told.idle or 0)} "
            f"that no tensor uses{_held(told)}, in pieces that are too small"
        )
        fixes = (_defragment(case), *_graphs(told), *_matching(case), _need_less())
        return _failed(case, "fragmentation", message, evidence, LIKELY, fixes, (), told)
    if _is_limited(told):
        message = (
            f"{who} was told to keep within {show_size(told.allowed or 0)} of the GPU's {show_size(told.total or 0)}"
        )
        return _failed(case, "limit", message, evidence, CERTAIN, (_lift(), _need_less()), (), told)
    if _others_hold_it(told):
        message = f"other processes hold {show_size(told.others or 0)} of the GPU's {show_size(told.total or 0)}"
        fixes = (_end_others(case), *_matching(case), _need_less())
        return _failed(case, "others", message, evidence, LIKELY, fixes, (), told)
    if told.tried is not None and told.free is not None and told.free >= told.tried + (told.idle or 0):
        message = f"{who} {asked} while {show_size(told.free)} of the GPU's memory are free: the driver gave none of it"
        if case.value("system.os") == "windows":
            # Windows sets memory and page file aside for what a program takes of the GPU.
            message += "; on Windows mostly because the page file is full"
            fixes = (Remedy("enlarge-page-file", {"effect": _EFFECT}),)
            return _failed(case, "refused", message, evidence, LIKELY, fixes, (), told)
        return _failed(case, "refused", message, evidence, POSSIBLE, (_look_further(), _need_less()), (), told)
    if told.total is None and told.tried is None and case.fact(_PINNED).is_known:
        return case.undecided("memory was refused; that of the GPU, or of the machine, is not told", (_PINNED,))
    whole = told.total if told.total is not None else told.allowed
    if told.allocated is not None and whole is not None:
        has = "the GPU has" if told.total is not None else "the program may take of the GPU"
        message = (
            f"the work needs more than {has}: {show_size(told.allocated)} of {show_size(whole)} are in "
            f"use{_held(told)}, and it {asked}"
        )
        if _is_partly_idle(told):
            message += f"; {show_size(told.idle or 0)} lie idle in pieces, which may have sufficed"
            fixes = (_defragment(case), *_graphs(told), *_matching(case), _need_less())
            return _failed(case, "real", message, evidence, LIKELY, fixes, (), told)
        fixes = (*_graphs(told), *_matching(case), _need_less())
        vain = (*_in_vain(case), _NO_FRAGMENTS) if told.idle is not None else _in_vain(case)
        return _failed(case, "real", message, evidence, CERTAIN, fixes, vain, told)
    # Without numbers it may also be the machine's own memory: Windows backs what a program takes of the GPU with it.
    message = "the GPU's memory did not suffice"
    if told.tried is not None:
        message += f": the program {asked}"
        if told.allocated is not None:
            message += f", and had taken {show_size(told.allocated)}"
    fixes = (*_matching(case), _need_less(), _look(case))
    return _failed(case, "unclear", message, evidence, LIKELY, fixes, _in_vain(case), told)


def _held(told: Numbers) -> str:
    """What torch has reserved, beside what its tensors hold."""
    return f" ({show_size(told.reserved)} reserved)" if told.reserved is not None else ""


def _is_partly_idle(told: Numbers) -> bool:
    """Whether what lies idle would have sufficed, and is more than every run leaves over."""
    if told.tried is None or told.idle is None or told.total is None:
        return False
    return told.idle + (told.free or 0) >= told.tried and told.idle >= _SOME * told.total


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
    told: Optional[Numbers] = None,
) -> Outcome:
    data: dict[str, Any] = {"kind": kind}
    if told is not None:
        numbers = {"requested": told.tried, "allocated": told.allocated, "reserved": told.reserved, "total": told.total}
        data.update({name: value for name, value in numbers.items() if value is not None})
    if case.fact("oom.phase").is_known:
        data["phase"] = case.value("oom.phase")
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data=data,
        fixes=fixes,
        not_helping=(*not_helping, "another driver or torch build: neither makes memory"),
    )


# -- cures

_EFFECT = {_REPORTED: None, "oom.tried": None, "allocator.ooms": 0}


# What the program was at -> what helps just there: title, text.
_MATCHING = {
    "loading": (
        "Make the weights smaller, or spread them",
        "The weights alone do not fit: load them in 8 or 4 bits (BitsAndBytesConfig(load_in_4bit=True), an AWQ or GPTQ "
        'checkpoint), in bfloat16 instead of float32 (dtype="bfloat16"), or over several GPUs (device_map="auto", '
        "tensor parallelism).",
    ),
    "attention": (
        "Compute attention without the square of the length",
        'It ran out in the attention: attn_implementation="sdpa" or "flash_attention_2" keep no matrix of all pairs of '
        "tokens. Then shorter sequences, a smaller batch.",
    ),
    "loss": (
        "Compute the loss in pieces",
        "It ran out in the loss, where the logits (tokens x vocabulary) lie several times: a fused or chunked loss "
        "(use_liger_kernel=True in the Trainer, torchtune's chunked output), a smaller batch with gradient "
        "accumulation.",
    ),
    "optimizer": (
        "Take an optimizer that needs less",
        'It ran out in the optimizer\'s step, where its states first appear: optim="adamw_8bit" or '
        '"paged_adamw_8bit"; torch.optim.AdamW(fused=True) makes no copies; LoRA trains few parameters.',
    ),
    "backward": (
        "Keep fewer activations",
        "It ran out in the backward pass: gradient checkpointing (model.gradient_checkpointing_enable()), a smaller "
        "batch with gradient accumulation.",
    ),
    "cache": (
        "Keep a smaller KV cache",
        'It ran out in the KV cache: fewer sequences at once, a shorter context, cache_implementation="quantized", or '
        "a cache that slides.",
    ),
}
_LLAMA_CPP = (
    "Have llama.cpp take less of the GPU",
    "Fewer layers on the GPU (-ngl), a shorter context (-c), a quantised cache (-fa on -ctk q8_0 -ctv q8_0), a smaller "
    "batch (-ub 256), or a smaller quantisation of the model. In ollama: num_gpu, num_ctx, OLLAMA_KV_CACHE_TYPE=q8_0.",
)
_ENGINE = (
    "Have the engine need less",
    "vLLM: a smaller --max-model-len, --max-num-seqs and --max-num-batched-tokens, --enforce-eager (no CUDA graphs), a "
    "lower --gpu-memory-utilization where others are on the card, --kv-cache-dtype fp8, quantised weights, "
    "--tensor-parallel-size. SGLang: --mem-fraction-static lower, --chunked-prefill-size, --cuda-graph-max-bs.",
)
_PREALLOCATED = (
    "Let the framework take more of the GPU, or less at a time",
    "JAX takes three quarters of the card at its start: XLA_PYTHON_CLIENT_MEM_FRACTION=.95 lets it take more. "
    "TensorFlow: tf.config.experimental.set_memory_growth. Neither makes memory that the card does not have: a smaller "
    "batch does, or jax.checkpoint.",
)


def _matching(case: Case) -> tuple[Remedy, ...]:
    """What helps just where the program ran out, or this program."""
    program, phase = case.value("oom.program"), case.value("oom.phase")
    if program in ("vllm", "sglang") and phase != "loading":
        return (_by_hand(*_ENGINE, "need-less-engine"),)
    if phase in _MATCHING:
        return (_by_hand(*_MATCHING[phase], f"need-less-{phase}"),)
    if program == "llama.cpp":
        return (_by_hand(*_LLAMA_CPP, "need-less-llama-cpp"),)
    if program in ("jax", "tensorflow"):
        return (_by_hand(*_PREALLOCATED, "framework-memory-fraction"),)
    return ()


def _in_vain(case: Case) -> tuple[str, ...]:
    if case.value("oom.phase") == "loading":
        return ("a smaller batch or gradient checkpointing: the weights alone do not fit",)
    return ()


def _graphs(told: Numbers) -> tuple[Remedy, ...]:
    """Where what pools of CUDA graphs hold would have sufficed."""
    if told.pools is None or told.tried is None or told.pools < told.tried:
        return ()
    text = (
        f"{show_size(told.pools)} lie in pools of CUDA graphs, which keep them: vLLM's --enforce-eager or fewer "
        'cudagraph_capture_sizes; torch.compile without mode="reduce-overhead".'
    )
    return (_by_hand("Capture fewer CUDA graphs", text, "fewer-cuda-graphs"),)


def _one_tensor(nonsense: bool) -> Remedy:
    text = "One tensor is larger than the card. "
    if nonsense:
        text += "No program means to ask for so much: an axis, a shape or a length is wrong where the traceback ends."
    else:
        text += (
            "Mostly attention over all pairs of tokens (use SDPA or flash attention), the logits of a long batch, or a "
            "picture too large: the traceback's last lines show it."
        )
    return _by_hand("Look at the tensor that is asked for", text, "one-tensor-too-large")


def _by_hand(title: str, text: str, id: str) -> Remedy:
    return Remedy("manual", {"title": title, "text": text, "kind": "setting", "id": id, "effect": _EFFECT})


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
