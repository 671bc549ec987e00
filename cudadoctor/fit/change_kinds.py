"""What each change does: settings that it makes of a setting, the mildest first.

How a change is called, what it costs, how it is written and what it needs stand in compat/changes.toml.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from cudadoctor.fit.architecture import (
    DECODER,
    ENCODER_DECODER,
    LINEAR,
    Model,
)
from cudadoctor.fit.limits import has_context, most, with_batch, with_context
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.fit.workload import FULL, INFER, LORA, QLORA, Sharding, Workload

# A change makes settings, the mildest first; none where it does not apply.
Variants = Callable[[Sums, Setting], Sequence[Setting]]
_ADAMW = ("adamw", "adamw_fp32", "adamw_bf16")
_SIXTEEN_BITS = ("bf16", "fp16")
SHARDED = ("zero3", "fsdp", "tp", "pp")
_SMALL_RANK = 8
_ROUND = 256
_SHORTEST = 256
# Tokens that pass at once. vLLM wants as many as it has sequences; llama.cpp starts with 512.
_CHUNKS = {"transformers": (2048, 1024, 512, 256), "vllm": (4096, 2048, 1024, 512), "llama.cpp": (256, 128)}
# Frameworks that are written as transformers is.
LIKE_TRANSFORMERS = "transformers"
# Whose words image and video models want.
DIFFUSERS = "diffusers"
OLLAMA = "ollama"
# What bitsandbytes makes while it loads; it keeps all of it on the GPU.
_BY_BITSANDBYTES = ("int8", "nf4", "nf4-dq")


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
    if setting.workload.precision in ("mixed", "fp32") and serves(sums, setting, "bf16"):
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
    if not wanted or not serves(sums, setting, "bf16"):
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
    if not workload.trains or workload.sharding.kind in SHARDED or number < 2:
        return ()
    return [setting._replace(workload=over_fsdp(workload, number))]


def over_fsdp(workload: Workload, number: int) -> Workload:
    """The same over so many GPUs. accelerate's FSDP keeps what is trained in fp32 where nobody says otherwise."""
    own = workload.framework in ("", "transformers") and "precision" not in workload.stated
    if own and workload.method == FULL and workload.precision == "bf16":
        workload = workload._replace(precision="mixed")
    return workload._replace(sharding=Sharding("fsdp", number))


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


def serves(sums: Sums, setting: Setting, feature: str) -> bool:
    family = setting.model.architecture.family
    return sums.matrix.serves(feature, sums.capability(setting), sums.target.system, family)
