"""What a person can change so that a model needs less, each change alone, as it is shown.

A change makes one setting into another: what it saves is what the estimator says of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cudadoctor.fit.answer import Change
from cudadoctor.fit.architecture import (
    DECODER,
    DIFFUSION,
    EMBEDDING,
    ENCODER_DECODER,
    EXPERT,
    HEAD,
)
from cudadoctor.fit.change_kinds import CHANGES, DIFFUSERS, LIKE_TRANSFORMERS, OLLAMA, SHARDED, serves
from cudadoctor.fit.need import CACHED, CONTEXT, KV_CACHE, LOGITS, WEIGHTS
from cudadoctor.fit.quantisation import tensor_bytes
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.fit.workload import FULL
from cudadoctor.matrix.changes import COSTS, ChangeRow
from cudadoctor.model.record import NamedTuple

_GIB = 1 << 30
# PEFT asks what a model is for; who does not say gets adapters all the same.
_TASKS = {DECODER: ', task_type="CAUSAL_LM"', ENCODER_DECODER: ', task_type="SEQ_2_SEQ_LM"'}


def framework_of(sums: Sums, setting: Setting) -> str:
    """In whose words changes are written: the engine's, the training framework's, else those of transformers."""
    workload = setting.workload
    if not workload.trains:
        if setting.model.architecture.kind == DIFFUSION:
            return DIFFUSERS
        return OLLAMA if OLLAMA in workload.framework.lower() else workload.engine
    name = workload.framework.lower()
    known = sums.matrix.frameworks_of_changes()
    return next((framework for framework in known if name.startswith(framework)), LIKE_TRANSFORMERS)


def variants_of(sums: Sums, setting: Setting, change: str) -> Sequence[Setting]:
    """What the change makes of a setting, the mildest first; empty where it does not apply to this framework, GPU,
    system or model, or saves nothing."""
    key = (sums.key(setting), change)
    if key not in sums.variants:
        sums.variants[key] = _variants_of(sums, setting, change)
    return sums.variants[key]


def _variants_of(sums: Sums, setting: Setting, change: str) -> Sequence[Setting]:
    framework = framework_of(sums, setting)
    if sums.matrix.change_lines(change, framework) is None or not serves(sums, setting, change):
        return ()
    if not serves(sums, setting, f"{change}-{framework}"):
        return ()
    return [
        variant
        for variant in CHANGES[change](sums, setting)
        if needs_less(sums, variant, setting) and _has_ram(sums, setting, variant)
    ]


def _has_ram(sums: Sums, before: Setting, after: Setting) -> bool:
    """Whether the machine has the memory into which a change moves things, as far as that is known."""
    there = sums.target.machine.memory_available
    was, is_now = sums.need(before), sums.need(after)
    if there is None or was is None or is_now is None or is_now.host.expected <= was.host.expected:
        return True
    return is_now.host.expected <= there


def needs_less(sums: Sums, after: Setting, before: Setting) -> bool:
    now, was = sums.need(after), sums.need(before)
    return now is not None and was is not None and now.device.expected < was.device.expected


class Alone(NamedTuple):
    change: str
    setting: Setting
    saves: int


def each_alone(sums: Sums, setting: Setting) -> tuple[Change, ...]:
    """Every change that lowers the need by itself, cheapest first: by what it costs in quality, then in speed, then by
    how much it saves; what costs much of either comes last."""
    return tuple(shown(sums, setting, found) for found in ordered(sums, setting))


def ordered(sums: Sums, setting: Setting) -> list[Alone]:
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
                found.append(Alone(change, chosen, before.device.expected - after.device.expected))
    rows = sums.matrix.changes()
    return sorted(found, key=lambda one: (*cost(rows[one.change]), -one.saves))


def cost(row: ChangeRow) -> tuple[bool, int, int]:
    """What orders changes: last resorts last, then quality, then speed."""
    quality, speed = COSTS.index(row.quality), COSTS.index(row.speed)
    return max(quality, speed) == len(COSTS) - 1, quality, speed


def shown(sums: Sums, before: Setting, found: Alone) -> Change:
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
        "storage": ", bnb_4bit_quant_storage=torch.bfloat16" if workload.sharding.kind in SHARDED else "",
        "task": _TASKS.get(after.model.architecture.kind, ""),
        "unchecked": ", use_gradient_checkpointing=False" if workload.checkpointing == "none" else "",
        "method": "full" if workload.method == FULL else "lora",
        "compute": "torch.bfloat16" if serves(sums, after, "bf16") else "torch.float16",
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
