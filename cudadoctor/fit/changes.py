"""What a person can change so that a model fits, and the first combination, cheapest first, that does.

A change makes one setting into another: what it saves is what the estimator says of both. What it costs, how it is
written and what it needs stand in compat/changes.toml; here stands what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, Change, Combination
from cudadoctor.fit.architecture import (
    DECODER,
    DIFFUSION,
    EMBEDDING,
    ENCODER_DECODER,
    EXPERT,
    HEAD,
    LINEAR,
    Model,
)
from cudadoctor.fit.limits import has_context, most, with_batch, with_context
from cudadoctor.fit.need import CACHED, CONTEXT, KV_CACHE, LOGITS, WEIGHTS
from cudadoctor.fit.quantisation import tensor_bytes
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.fit.workload import FULL, INFER, LORA, QLORA, Sharding, Workload
from cudadoctor.matrix.changes import ChangeRow
from cudadoctor.model.record import NamedTuple

# A change makes settings, the mildest first; none where it does not apply.
Variants = Callable[[Sums, Setting], Sequence[Setting]]

_COSTS = {"none": 0, "a little": 1, "some": 2, "much": 3}
_GIB = 1 << 30
_ADAMW = ("adamw", "adamw_fp32", "adamw_bf16")
_SIXTEEN_BITS = ("bf16", "fp16")
_SHARDED = ("zero3", "fsdp", "tp", "pp")
_SMALL_RANK = 8
_ROUND = 256
_SHORTEST = 256
_ALL = 1 << 62
# Tokens that pass at once. vLLM wants as many as it has sequences; llama.cpp starts with 512.
_CHUNKS = {"transformers": (2048, 1024, 512, 256), "vllm": (4096, 2048, 1024, 512), "llama.cpp": (256, 128)}
# PEFT asks what a model is for; who does not say gets adapters all the same.
_TASKS = {DECODER: ', task_type="CAUSAL_LM"', ENCODER_DECODER: ', task_type="SEQ_2_SEQ_LM"'}
# Frameworks that are written as transformers is.
_LIKE_TRANSFORMERS = "transformers"
# Whose words image and video models want.
_DIFFUSERS = "diffusers"
_OLLAMA = "ollama"
# What bitsandbytes makes while it loads; it keeps all of it on the GPU.
_BY_BITSANDBYTES = ("int8", "nf4", "nf4-dq")


# -- what each change does ---------------------------------------------------------------------------------------------


def _workload(setting: Setting, **changes: Any) -> list[Setting]:
    return [setting._replace(workload=setting.workload._replace(**changes))]


def _weights(setting: Setting, scheme: str) -> list[Setting]:
    """The model in another type; what its file holds is then no longer it."""
    if setting.model.weights == scheme and setting.model.stored is None:
        return []
    return [setting._replace(model=setting.model._replace(weights=scheme, stored=None))]


def _expandable_segments(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return () if setting.workload.expandable_segments else _workload(setting, expandable_segments=True)


def _packing(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    wanted = workload.trains and workload.variable_length and setting.model.architecture.kind == DECODER
    return _workload(setting, variable_length=False) if wanted else ()


def _fused_loss(sums: Sums, setting: Setting) -> Sequence[Setting]:
    if not setting.workload.trains or setting.workload.loss in ("fused", "chunked") or not _speaks(setting.model):
        return ()
    return _workload(setting, loss="fused")


def _chunked_loss(sums: Sums, setting: Setting) -> Sequence[Setting]:
    if not setting.workload.trains or setting.workload.loss in ("fused", "chunked") or not _speaks(setting.model):
        return ()
    return _workload(setting, loss="chunked")


def _speaks(model: Model) -> bool:
    """Whether a model has logits of every token."""
    return model.architecture.kind in (DECODER, ENCODER_DECODER) and model.architecture.vocabulary > 0


def _sdpa(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _workload(setting, attention="sdpa") if setting.workload.attention == "eager" else ()


def _flash_attention(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if workload.attention == "flash" or (workload.trains and workload.precision == "fp32"):
        return ()
    return _workload(setting, attention="flash")


def _fused_optimizer(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if not workload.trains or workload.fused_optimizer or workload.optimizer not in _ADAMW:
        return ()
    return _workload(setting, fused_optimizer=True) if workload.offload == "none" else ()


def _optimizer_in_backward(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if workload.method != FULL or workload.optimizer_in_backward or workload.accumulation:
        return ()
    return _workload(setting, optimizer_in_backward=True)


def _smaller_batch(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if not workload.trains or workload.optimizer_in_backward:
        return ()
    return [
        with_batch(setting._replace(workload=workload._replace(accumulation=True)), batch)
        for batch in _halves(workload.batch)
    ]


def _fewer_sequences(sums: Sums, setting: Setting) -> Sequence[Setting]:
    if setting.workload.method != INFER:
        return ()
    return [with_batch(setting, batch) for batch in _halves(setting.workload.batch)]


def _halves(number: int) -> list[int]:
    found = []
    while number > 1:
        number //= 2
        found.append(number)
    return found


def _smaller_prefill(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if workload.method != INFER or setting.model.architecture.kind != DECODER:
        return ()
    now = workload.prefill_chunk or workload.prompt or workload.context
    chunks = [chunk for chunk in _CHUNKS.get(workload.engine, ()) if chunk < now]
    return [setting._replace(workload=workload._replace(prefill_chunk=chunk)) for chunk in chunks]


def _checkpointing(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    wanted = workload.trains and workload.checkpointing in ("none", "selective")
    return _workload(setting, checkpointing="full") if wanted else ()


def _offload_activations(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    wanted = workload.trains and workload.checkpointing == "full" and setting.model.architecture.kind == DECODER
    return _workload(setting, checkpointing="full_offload") if wanted else ()


def _optimizer_8bit(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _other_optimizer(setting, "adamw_8bit", _ADAMW)


def _optimizer_paged(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _other_optimizer(setting, "paged_adamw_8bit", (*_ADAMW, "adamw_8bit"))


def _other_optimizer(setting: Setting, name: str, instead_of: Sequence[str]) -> Sequence[Setting]:
    workload = setting.workload
    if not workload.trains or workload.optimizer not in instead_of or workload.offload != "none":
        return ()
    if workload.sharding.kind not in ("none", "ddp"):
        return ()  # bitsandbytes' states are no pieces that FSDP and DeepSpeed could share out
    return _workload(setting, optimizer=name, fused_optimizer=False)


def _adapters_16bit(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if workload.method not in (LORA, QLORA) or workload.lora.width <= 2:
        return ()
    return _workload(setting, lora=workload.lora._replace(width=2))


def _lora(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _workload(setting, method=LORA, **_frozen(sums, setting)) if setting.workload.method == FULL else ()


def _qlora(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if workload.method not in (FULL, LORA) or setting.model.weights not in (*_SIXTEEN_BITS, "fp32"):
        return ()
    if _has_experts(setting.model):
        return ()  # bitsandbytes leaves them as they are
    frozen = _frozen(sums, setting) if workload.method == FULL else {}
    if _checkpoints_unasked(workload):
        frozen["checkpointing"] = "full"
    return [
        quantised._replace(workload=workload._replace(method=QLORA, **frozen))
        for quantised in _weights(setting, "nf4-dq")
    ]


def _checkpoints_unasked(workload: Workload) -> bool:
    """PEFT's prepare_model_for_kbit_training turns checkpointing on unless told not to."""
    return workload.checkpointing == "none" and "ckpt" not in workload.stated and not workload.framework


def _frozen(sums: Sums, setting: Setting) -> dict[str, Any]:
    """Whoever trains adapters loads the rest in 16 bits, and steps with an optimizer for the adapters alone."""
    changes: dict[str, Any] = {"optimizer_in_backward": False, "master_bytes": None}
    if setting.workload.precision in ("mixed", "fp32") and _serves(sums, setting, "bf16"):
        changes["precision"] = "bf16"
    return changes


def _lora_rank(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    if workload.method not in (LORA, QLORA) or workload.lora.rank <= _SMALL_RANK:
        return ()
    return _workload(setting, lora=workload.lora._replace(rank=_SMALL_RANK))


def _pure_bf16(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    wanted = workload.method == FULL and workload.precision in ("mixed", "fp32", "fp16")
    if not wanted or not _serves(sums, setting, "bf16"):
        return ()
    return _workload(setting, precision="bf16", master_bytes=None, stated=workload.stated | {"precision"})


def _shorter(sums: Sums, setting: Setting) -> list[Setting]:
    """The longest context that fits, if it is worth having; else nothing, or in vain half of it."""
    now = setting.workload.context
    if not has_context(setting) or now <= _SHORTEST:
        return []
    found = None
    if not sums.fits(setting):
        found = most(lambda context: sums.fits(with_context(setting, context)), now // 2, now - 1)
    if found is None:
        return [with_context(setting, max(_SHORTEST, now // 2))]
    rounded = found // _ROUND * _ROUND
    return [with_context(setting, rounded)] if rounded >= _SHORTEST else []


def _shorter_context(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _shorter(sums, setting) if setting.workload.method == INFER else ()


def _shorter_sequences(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _shorter(sums, setting) if setting.workload.trains else ()


def _shard(sums: Sums, setting: Setting) -> Sequence[Setting]:
    """All weights, gradients and states over the GPUs that are there (training)."""
    workload = setting.workload
    number = max(len(sums.target.cards), workload.sharding.degree)
    if not workload.trains or workload.sharding.kind in _SHARDED or number < 2:
        return ()
    return _workload(setting, sharding=Sharding("fsdp", number))


def _all_gpus(sums: Sums, setting: Setting) -> Sequence[Setting]:
    """Inference over the GPUs that are there, as few of them as do."""
    workload = setting.workload
    if workload.method != INFER or workload.sharding.degree > 1:
        return ()
    return [
        setting._replace(workload=workload._replace(sharding=sharding))
        for sharding in spreads(setting, len(sums.target.cards))
    ]


def spreads(setting: Setting, at_most: int) -> list[Sharding]:
    """Ways of spreading inference over 2 to `at_most` GPUs, the fewest first: vLLM cuts each matrix (by a number that
    its heads can be divided by), transformers and llama.cpp share out the layers."""
    if setting.workload.engine != "vllm":
        layers = setting.model.architecture.layer_count
        return [Sharding("pp", number) for number in range(2, min(at_most, layers) + 1)]
    heads = {run.attention.heads for run in setting.model.architecture.layers if run.attention is not None}
    numbers = [number for number in (2, 4, 8, 16) if number <= at_most]
    return [Sharding("tp", number) for number in numbers if all(count % number == 0 for count in heads if count)]


def _offload_optimizer(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    wanted = workload.method == FULL and workload.offload == "none" and workload.sharding.kind != "fsdp"
    return _workload(setting, offload="optimizer") if wanted else ()


def _offload_all(sums: Sums, setting: Setting) -> Sequence[Setting]:
    workload = setting.workload
    wanted = workload.trains and workload.method != QLORA and workload.offload in ("none", "optimizer")
    return _workload(setting, offload="all") if wanted else ()


def _offload_layers(sums: Sums, setting: Setting) -> Sequence[Setting]:
    """As few layers as do go to the machine's memory: reading them there is what costs time."""
    workload = setting.workload
    if workload.method != INFER or workload.offload != "none" or sums.fits(setting):
        return ()
    if workload.engine == "transformers" and setting.model.weights in _BY_BITSANDBYTES:
        return ()
    layers = setting.model.architecture.layer_count
    kept = most(lambda number: sums.fits(_with_layers(setting, number)), layers // 2, layers - 1)
    return [_with_layers(setting, kept or 0)]


def _with_layers(setting: Setting, number: int) -> Setting:
    return setting._replace(workload=setting.workload._replace(offload="layers", gpu_layers=number))


def _kv_8bit(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _other_kv(setting, "fp8" if setting.workload.engine == "vllm" else "q8_0", _SIXTEEN_BITS)


def _kv_4bit(sums: Sums, setting: Setting) -> Sequence[Setting]:
    return _other_kv(setting, "q4_0", (*_SIXTEEN_BITS, "q8_0"))


def _other_kv(setting: Setting, name: str, instead_of: Sequence[str]) -> Sequence[Setting]:
    workload = setting.workload
    if workload.method != INFER or workload.kv.lower() not in instead_of or not _caches(setting.model):
        return ()
    if workload.engine == "llama.cpp":  # a quantised V cache needs it
        return _workload(setting, kv=name, attention="flash")
    return _workload(setting, kv=name)


def _caches(model: Model) -> bool:
    runs = model.architecture.layers
    return any(run.attention is not None and run.attention.kind != LINEAR for run in runs)


def _quantised(scheme: str, only_16bit: bool = False) -> Variants:
    """Weights in fewer bits, of inference. A file that is quantised already can be made anew from the 16-bit weights;
    what quantises while it loads needs these."""

    def variants(sums: Sums, setting: Setting) -> Sequence[Setting]:
        model = setting.model
        if setting.workload.method != INFER:
            return ()
        plain = model.weights in (*_SIXTEEN_BITS, "fp32") and (model.stored is None or model.stored.scheme in _PLAIN)
        return _weights(setting, scheme) if plain or not only_16bit else ()

    return variants


_PLAIN = ("bf16", "fp16", "fp32", "BF16", "F16", "F32")


def _weights_16bit(sums: Sums, setting: Setting) -> Sequence[Setting]:
    """Half of what is kept in 32 bits. Inference loses nothing that shows."""
    model = setting.model
    wide = model.weights == "fp32" and (model.stored is None or model.stored.scheme in _PLAIN)
    return _weights(setting, "fp16") if wide and setting.workload.method == INFER else ()


def _weights_4bit(sums: Sums, setting: Setting) -> Sequence[Setting]:
    if setting.workload.engine == "vllm":
        return _quantised("awq", only_16bit=True)(sums, setting)
    return _by_bitsandbytes("nf4-dq")(sums, setting)


def _by_bitsandbytes(scheme: str) -> Variants:
    """Weights that bitsandbytes quantises while they load: matrices of layers, but not the experts, which transformers
    keeps as one tensor."""

    def variants(sums: Sums, setting: Setting) -> Sequence[Setting]:
        return () if _has_experts(setting.model) else _quantised(scheme, only_16bit=True)(sums, setting)

    return variants


def _has_experts(model: Model) -> bool:
    runs = model.architecture.layers
    return any(run.feed_forward is not None and run.feed_forward.experts for run in runs)


CHANGES: dict[str, Variants] = {
    "expandable-segments": _expandable_segments,
    "packing": _packing,
    "fused-loss": _fused_loss,
    "chunked-loss": _chunked_loss,
    "sdpa": _sdpa,
    "flash-attention": _flash_attention,
    "fused-optimizer": _fused_optimizer,
    "optimizer-in-backward": _optimizer_in_backward,
    "all-gpus": _all_gpus,
    "smaller-prefill": _smaller_prefill,
    "smaller-batch": _smaller_batch,
    "shard": _shard,
    "fewer-sequences": _fewer_sequences,
    "checkpointing": _checkpointing,
    "offload-activations": _offload_activations,
    "weights-16bit": _weights_16bit,
    "weights-q8": _quantised("q8_0"),
    "kv-8bit": _kv_8bit,
    "weights-fp8": _quantised("fp8", only_16bit=True),
    "weights-int8": _by_bitsandbytes("int8"),
    "weights-q6": _quantised("q6_k"),
    "weights-q5": _quantised("q5_k_m"),
    "optimizer-8bit": _optimizer_8bit,
    "optimizer-paged": _optimizer_paged,
    "adapters-16bit": _adapters_16bit,
    "weights-4bit": _weights_4bit,
    "weights-q4": _quantised("q4_k_m"),
    "kv-4bit": _kv_4bit,
    "lora": _lora,
    "lora-rank": _lora_rank,
    "pure-bf16": _pure_bf16,
    "shorter-context": _shorter_context,
    "shorter-sequences": _shorter_sequences,
    "qlora": _qlora,
    "weights-q3": _quantised("q3_k_m"),
    "weights-q2": _quantised("q2_k"),
    "offload-optimizer": _offload_optimizer,
    "offload-all": _offload_all,
    "offload-layers": _offload_layers,
}

# Of a group one is enough: the mildest first. What fits with a strong one is tried with the milder ones, too.
_GROUPS = (
    ("weights-q8", "weights-q6", "weights-q5", "weights-q4", "weights-q3", "weights-q2"),
    ("weights-16bit", "weights-fp8", "weights-int8", "weights-4bit"),
    ("kv-8bit", "kv-4bit"),
    ("optimizer-8bit", "optimizer-paged", "offload-optimizer", "offload-all"),
    ("sdpa", "flash-attention"),
    ("lora", "qlora"),
)
# What takes from the work itself is left until everything else was tried without it.
_RELUCTANT = ("shorter-context", "shorter-sequences")


# -- which of them apply -----------------------------------------------------------------------------------------------


def framework_of(sums: Sums, setting: Setting) -> str:
    """In whose words changes are written: the engine's, the training framework's, else those of transformers."""
    workload = setting.workload
    if not workload.trains:
        if setting.model.architecture.kind == DIFFUSION:
            return _DIFFUSERS
        return _OLLAMA if _OLLAMA in workload.framework.lower() else workload.engine
    name = workload.framework.lower()
    known = sums.matrix.frameworks_of_changes()
    return next((framework for framework in known if name.startswith(framework)), _LIKE_TRANSFORMERS)


def _serves(sums: Sums, setting: Setting, feature: str) -> bool:
    family = setting.model.architecture.family
    return sums.matrix.serves(feature, sums.capability(setting), sums.target.system, family)


def variants_of(sums: Sums, setting: Setting, change: str) -> Sequence[Setting]:
    """What the change makes of a setting, the mildest first; empty where it does not apply to this framework, GPU,
    system or model, or saves nothing."""
    key = (sums.key(setting), change)
    if key not in sums.variants:
        sums.variants[key] = _variants_of(sums, setting, change)
    return sums.variants[key]


def _variants_of(sums: Sums, setting: Setting, change: str) -> Sequence[Setting]:
    framework = framework_of(sums, setting)
    if sums.matrix.change_lines(change, framework) is None or not _serves(sums, setting, change):
        return ()
    if not _serves(sums, setting, f"{change}-{framework}"):
        return ()
    return [
        variant
        for variant in CHANGES[change](sums, setting)
        if _needs_less(sums, variant, setting) and _has_ram(sums, setting, variant)
    ]


def _has_ram(sums: Sums, before: Setting, after: Setting) -> bool:
    """Whether the machine has the memory into which a change moves things, as far as that is known."""
    there = sums.target.machine.memory_available
    was, is_now = sums.need(before), sums.need(after)
    if there is None or was is None or is_now is None or is_now.host.expected <= was.host.expected:
        return True
    return is_now.host.expected <= there


# -- each alone --------------------------------------------------------------------------------------------------------


class _Alone(NamedTuple):
    change: str
    setting: Setting
    saves: int


def each_alone(sums: Sums, setting: Setting) -> tuple[Change, ...]:
    """Every change that lowers the need by itself, cheapest first: by what it costs in quality, then in speed, then by
    how much it saves; what costs much of either comes last."""
    return tuple(_change(sums, setting, found) for found in _ordered(sums, setting))


def _ordered(sums: Sums, setting: Setting) -> list[_Alone]:
    found = []
    before = sums.need(setting)
    if before is None:
        return []
    for change in CHANGES:
        variants = variants_of(sums, setting, change)
        if variants:
            chosen = next((variant for variant in variants if sums.fits(variant)), variants[-1])
            after = sums.need(chosen)
            if after is not None:
                found.append(_Alone(change, chosen, before.device.expected - after.device.expected))
    rows = sums.matrix.changes()
    return sorted(found, key=lambda one: (*cost(rows[one.change]), -one.saves))


def cost(row: ChangeRow) -> tuple[bool, int, int]:
    """What orders changes: last resorts last, then quality, then speed."""
    quality, speed = _COSTS[row.quality], _COSTS[row.speed]
    return max(quality, speed) == _COSTS["much"], quality, speed


def _change(sums: Sums, before: Setting, found: _Alone) -> Change:
    """The change as it is shown."""
    row = sums.matrix.changes()[found.change]
    kind = before.workload.sharding.kind
    written = sums.matrix.change_lines(found.change, framework_of(sums, before), kind)
    assert written is not None  # variants_of() asked
    numbers = _numbers(sums, before, found.setting)
    return Change(
        id=found.change,
        title=row.title.format(**numbers),
        lines=tuple(line.format(**numbers) for line in written.lines),
        saves=found.saves,
        quality=row.quality,
        speed=row.speed,
        why=row.why,
        source=f"{written.source} ({written.checked})",
    )


def _numbers(sums: Sums, before: Setting, after: Setting) -> dict[str, Any]:
    """What stands for the words in braces."""
    workload = after.workload
    room = sums.room(after) or 0
    need, was = sums.need(after), sums.need(before)
    kept = sum(term.bytes for term in need.terms if term.part == WEIGHTS) if need is not None else 0
    moved = (was.device.expected - need.device.expected) if was is not None and need is not None else 0
    beside = sum(term.bytes for term in need.terms if term.part in (CACHED, CONTEXT)) if need is not None else 0
    ram = sums.target.machine.memory_available
    return {
        "batch": workload.batch,
        "steps": -(-before.workload.batch // workload.batch),
        "context": workload.context,
        "all": workload.context * workload.batch,
        "rank": workload.lora.rank,
        "gpus": workload.sharding.degree,
        "chunk": workload.prefill_chunk,
        "layers": _layers_kept(after),
        "experts": _experts_away(sums, before, after),
        "gib": max(1, (min(room, kept) if kept else room - beside) // _GIB),
        "host": max(1, (ram if ram is not None else max(0, moved) * 5 // 4) // _GIB),
        "moved": -(-max(0, moved) // _GIB),
        "storage": ", bnb_4bit_quant_storage=torch.bfloat16" if workload.sharding.kind in _SHARDED else "",
        "task": _TASKS.get(after.model.architecture.kind, ""),
        "unchecked": ", use_gradient_checkpointing=False" if workload.checkpointing == "none" else "",
        "method": "full" if workload.method == FULL else "lora",
        "compute": "torch.bfloat16" if _serves(sums, after, "bf16") else "torch.float16",
    }


def _experts_away(sums: Sums, before: Setting, after: Setting) -> str:
    """llama.cpp can leave experts to the processor, and keep on the GPU what every token needs of every layer. How that
    is written where no more memory is to be taken than by whole layers; else nothing."""
    shape, need = after.model.architecture, sums.need(before)
    layers, kept = shape.layer_count, after.workload.gpu_layers
    mixed = sum(run.number for run in shape.layers if run.feed_forward is not None and run.feed_forward.experts)
    if not mixed or kept is None or need is None or after.workload.engine != "llama.cpp":
        return ""
    sizes = tensor_bytes(sums.matrix, after.model)
    experts = sum(size for one, size in sizes if one.role == EXPERT)
    others = sum(size for one, size in sizes if one.role != EXPERT and one.layers is not None)
    cached = sum(term.bytes for term in need.terms if term.part == KV_CACHE)
    ends = sum(size for one, size in sizes if one.role == (EMBEDDING if shape.tied else HEAD))
    logits = sum(term.bytes for term in need.terms if term.part == LOGITS)
    room = experts * kept // layers - (others + cached) * (layers - kept) // layers - ends - logits
    here = max(-1, room * mixed // max(experts, 1))
    return f", or faster: -ngl 999 --n-cpu-moe {layers - here}" if here >= 0 else ""


def _layers_kept(after: Setting) -> int:
    """How many layers stay on the GPU."""
    layers = after.model.architecture.layer_count
    named = after.workload.gpu_layers
    return layers if named is None else named


# -- together ----------------------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """A change, and which of its variants (counted from the mildest; None: the mildest that fits, else the last)."""

    change: str
    variant: Optional[int] = None


def cure(sums: Sums, setting: Setting) -> Optional[Combination]:
    """The first combination, cheapest first, with which it fits; where none surely does, one that fits tightly. None:
    it fits already, nothing is known of the room, or nothing helps."""
    room = sums.room(setting)
    if room is None or sums.need(setting) is None or sums.fits(setting):
        return None
    steps: list[_Step] = []
    for order in _orders(sums, setting):
        tried = _greedy(sums, setting, order)
        steps = tried or steps
        if _reaches(sums, setting, tried):
            break
    end = _played(sums, setting, steps)
    if sums.verdict(end) in (FITS, TIGHT):
        wanted = sums.verdict(end)
        steps = _milder(sums, setting, _pruned(sums, setting, steps, wanted), wanted)
        return _combination(sums, setting, steps)
    return None


def curable(sums: Sums, setting: Setting) -> bool:
    """Whether any changes make it fit: `cure` without the search for the cheapest."""
    if sums.fits(setting):
        return True
    rows = sums.matrix.changes()
    order = sorted(CHANGES, key=lambda change: cost(rows[change]))
    steps = _greedy(sums, setting, [*(change for change in order if change not in _RELUCTANT), *_RELUCTANT])
    return _reaches(sums, setting, steps)


def _orders(sums: Sums, setting: Setting) -> list[list[str]]:
    """In which order changes are tried: without last resorts, and without a shorter context; then with either, then
    with both."""
    rows = sums.matrix.changes()
    everything = [change for change in _order(sums, setting) if change not in _RELUCTANT]
    mild = [change for change in everything if not cost(rows[change])[0]]
    return [mild, [*mild, *_RELUCTANT], everything, [*everything, *_RELUCTANT]]


def _order(sums: Sums, setting: Setting) -> list[str]:
    """All changes, cheapest first. One that applies only after another (a smaller rank after LoRA) has nothing to save
    yet, and follows those of its price."""
    alone = {found.change: found.saves for found in _ordered(sums, setting)}
    rows = sums.matrix.changes()
    return sorted(CHANGES, key=lambda change: (*cost(rows[change]), -alone.get(change, 0)))


def _greedy(sums: Sums, start: Setting, order: Sequence[str]) -> list[_Step]:
    """Change after change until it fits. A stronger one of a group takes the place of a milder one."""
    steps: list[_Step] = []
    setting = start
    for change in order:
        if sums.fits(setting):
            break
        rest = [step for step in steps if step.change not in _instead_of(sums, start, change)]
        before = setting if len(rest) == len(steps) else _played(sums, start, rest)
        variants = [variant for variant in variants_of(sums, before, change) if _needs_less(sums, variant, setting)]
        if not variants:
            continue
        chosen = next((variant for variant in variants if sums.fits(variant)), None)
        if chosen is None and change in _RELUCTANT:
            continue
        setting = chosen if chosen is not None else variants[-1]
        steps = [*rest, _Step(change)]
    return steps


def _instead_of(sums: Sums, setting: Setting, change: str) -> tuple[str, ...]:
    """What it takes the place of: its group, and layers that move that of what bitsandbytes keeps on the GPU."""
    moves = change == "offload-layers" and framework_of(sums, setting) in (_LIKE_TRANSFORMERS, _DIFFUSERS)
    return ("weights-int8", "weights-4bit") if moves else _group(change)


def _group(change: str) -> tuple[str, ...]:
    return next((group for group in _GROUPS if change in group), ())


def _needs_less(sums: Sums, after: Setting, before: Setting) -> bool:
    now, was = sums.need(after), sums.need(before)
    return now is not None and was is not None and now.device.expected < was.device.expected


def _played(sums: Sums, setting: Setting, steps: Sequence[_Step]) -> Setting:
    """The setting after all steps; one that no longer applies or saves nothing is passed over."""
    for step in steps:
        variants = variants_of(sums, setting, step.change)
        if variants:
            setting = _variant(sums, variants, step)
    return setting


def _variant(sums: Sums, variants: Sequence[Setting], step: _Step) -> Setting:
    if step.variant is not None:
        return variants[min(step.variant, len(variants) - 1)]
    return next((variant for variant in variants if sums.fits(variant)), variants[-1])


def _reaches(sums: Sums, setting: Setting, steps: Sequence[_Step], wanted: str = FITS) -> bool:
    found = sums.verdict(_played(sums, setting, steps))
    return found == FITS or found == wanted != DOES_NOT_FIT


def _pruned(sums: Sums, setting: Setting, steps: list[_Step], wanted: str) -> list[_Step]:
    """Without those that are not needed for it, the dearest first."""
    for step in reversed(list(steps)):
        rest = [other for other in steps if other is not step]
        if _does_as_well(sums, setting, rest, steps, wanted):
            steps = rest
    return steps


def _does_as_well(sums: Sums, setting: Setting, tried: Sequence[_Step], steps: Sequence[_Step], wanted: str) -> bool:
    """Whether other steps reach as much. What spares a harder step of the rest is worth its place."""
    end = _played(sums, setting, tried)
    return _reaches(sums, setting, tried, wanted) and not _harder(end, _played(sums, setting, steps))


def _harder(one: Setting, other: Setting) -> bool:
    """Whether the first takes more away than the second: sequences, tokens, layers on the GPU."""
    return any(
        (value if value is not None else _ALL) < (than if than is not None else _ALL)
        for value, than in (
            (one.workload.batch, other.workload.batch),
            (one.workload.context, other.workload.context),
            (one.workload.gpu_layers, other.workload.gpu_layers),
        )
    )


def _milder(sums: Sums, setting: Setting, steps: list[_Step], wanted: str) -> list[_Step]:
    """With the mildest of each group and the mildest variant of each that still do."""
    for place, step in enumerate(steps):
        group = _group(step.change) or (step.change,)
        for change in group[: group.index(step.change)]:
            tried = [*steps[:place], _Step(change), *steps[place + 1 :]]
            if _does_as_well(sums, setting, tried, steps, wanted):
                steps = tried
                break
    for place, step in enumerate(steps):
        before = _played(sums, setting, steps[:place])
        for number in range(len(variants_of(sums, before, step.change))):
            tried = [*steps[:place], step._replace(variant=number), *steps[place + 1 :]]
            if _does_as_well(sums, setting, tried, steps, wanted):
                steps = tried
                break
    return steps


def _combination(sums: Sums, setting: Setting, steps: Sequence[_Step]) -> Optional[Combination]:
    changes = []
    for step in steps:
        variants = variants_of(sums, setting, step.change)
        if not variants:
            continue
        after = _variant(sums, variants, step)
        before_need, after_need = sums.need(setting), sums.need(after)
        assert before_need is not None and after_need is not None  # variants_of() summed both up
        saves = before_need.device.expected - after_need.device.expected
        changes.append(_change(sums, setting, _Alone(step.change, after, saves)))
        setting = after
    need = sums.need(setting)
    if need is None or not changes:
        return None
    return Combination(tuple(changes), need.device, sums.room(setting), sums.verdict(setting))
