"""The whole answer: whether it fits, how much more would, what would help, and what else to mind."""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit.alternatives import alternatives
from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, UNKNOWN, Answer, Combination, Speed
from cudadoctor.fit.architecture import DECODER, Model
from cudadoctor.fit.changes import each_alone, variants_of
from cudadoctor.fit.cure import cure
from cudadoctor.fit.estimate import estimate as estimate_need
from cudadoctor.fit.limits import MOST_SEQUENCES, largest_batch, longest_context, with_context
from cudadoctor.fit.need import Need
from cudadoctor.fit.sums import Estimate, Setting, Sums
from cudadoctor.fit.sums import decide as decide
from cudadoctor.fit.target import Card, Target
from cudadoctor.fit.workload import INFER, WEIGHTS, Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.sizes import show_size

_GIB = 1 << 30


def answer(
    matrix: Matrix, model: Model, workload: Workload, target: Target, estimate: Estimate = estimate_need
) -> Answer:
    """Raises ParseError, one sentence, where the need cannot be summed up; what is not known of the target makes the
    verdict unknown, and never an error."""
    setting = Setting(model, workload)
    sums = Sums(matrix, target, estimate)
    need = sums.need_or_error(setting)
    room = sums.room(setting)
    verdict = decide(need.device, room)
    cards = sums.cards(setting)
    batch = largest_batch(sums, setting)
    way = cure(sums, setting)
    return Answer(
        model=model,
        workload=workload,
        target=target,
        need=need,
        verdict=verdict,
        available=room,
        headroom=None if room is None else room - need.device.expected,
        largest_batch=batch,
        longest_context=longest_context(sums, setting),
        speed=_speed(matrix, setting, cards[-1] if cards else None, target),
        changes=each_alone(sums, setting),
        cure=way,
        alternatives=() if verdict == FITS else alternatives(sums, setting, way is not None),
        warnings=warnings(sums, setting),
        notes=(*_notes(sums, setting, verdict, batch), *_other_engine(sums, setting, verdict, way)),
    )


def _speed(matrix: Matrix, setting: Setting, card: Optional[Card], target: Target) -> Speed:
    from cudadoctor.fit.speed import speed

    shown = card if card is not None else Card("", None, None)
    return speed(matrix, setting.model, setting.workload, shown, target.machine)


def _notes(sums: Sums, setting: Setting, verdict: str, batch: Optional[int]) -> tuple[str, ...]:
    notes = list(sums.target.notes)
    if verdict == UNKNOWN and not sums.target.cards and not notes:
        notes.append("there is nothing to compare with: no GPU is named, and none is seen here")
    if batch == MOST_SEQUENCES:
        notes.append(f"larger batches than {batch} are not looked at")
    degree, there = setting.gpus, len(sums.target.cards)
    if 0 < there < degree:
        notes.append(f"{degree} GPUs are asked for, and there {'is' if there == 1 else 'are'} {there}: "
                     "the others are taken to be alike")  # fmt: skip
    names = {card.name for card in sums.cards(setting)}
    if len(names) > 1:
        notes.append("the GPUs differ: the one with least free memory decides")
    return tuple(notes)


def _other_engine(sums: Sums, setting: Setting, verdict: str, way: Optional[Combination]) -> tuple[str, ...]:
    """Where transformers would have to move layers out of the GPU: llama.cpp keeps them there in fewer bits."""
    workload = setting.workload
    slow = way is None or any(change.speed == "much" for change in way.changes)
    if verdict == FITS or not slow or workload.method != INFER or workload.engine != "transformers":
        return ()
    if setting.model.architecture.kind != DECODER or sums.room(setting) is None:
        return ()
    quantised = setting.model._replace(weights=_FILE, stored=None)
    other = Setting(quantised, workload._replace(engine="llama.cpp", attention="flash"))
    how = f"--engine llama.cpp --quant {_FILE}"
    need = sums.need(other)
    if need is not None and sums.fits(other):
        taken = show_size(need.device.expected)
        return (f"llama.cpp runs a {_FILE.upper()} file of it here, and takes about {taken}: {how}",)
    partly = next((one for one in variants_of(sums, other, "offload-layers") if sums.fits(one)), None)
    layers = setting.model.architecture.layer_count
    if partly is None or _FEW_LAYERS * (partly.workload.gpu_layers or 0) < layers:
        return ()
    kept = f"{partly.workload.gpu_layers} of its {layers} layers on the GPU"
    return (f"llama.cpp runs a {_FILE.upper()} file of it with {kept} and the rest on the processor: {how}",)


# The file that most people take.
_FILE = "q4_k_m"
# Of so many layers less than one on the GPU is the processor's work.
_FEW_LAYERS = 8


# -- what does not decide, and hurts ---------------------------------------------------------------------------------


def warnings(sums: Sums, setting: Setting) -> tuple[str, ...]:
    """About the machine around the GPUs. They warn, and refuse nothing."""
    need = sums.need(setting)
    if need is None or setting.workload.method == WEIGHTS:
        return ()
    found = [
        _held_by_others(sums, setting, need),
        _ram(sums, need),
        _ram_below_vram(sums, setting),
        _shared_memory(sums, setting),
        _disk(sums),
        _lockable(sums, setting, need),
        *_compute(sums, setting),
        _engine_share(sums, setting, need),
        _engine_length(sums, setting),
    ]
    return tuple(sentence for sentence in found if sentence)


def _held_by_others(sums: Sums, setting: Setting, need: Need) -> str:
    """Whether it would fit on the very same GPUs, were they empty."""
    cards = sums.cards(setting)
    free, others = (cards[-1].free, cards[-1].used_by_others) if cards else (None, None)
    if free is None or not others:
        return ""
    if decide(need.device, free) == FITS or decide(need.device, free + others) != FITS:
        return ""
    return f"other programs hold {show_size(others)} of the GPU: it fits once they have ended (nvidia-smi names them)"


def _ram(sums: Sums, need: Need) -> str:
    machine = sums.target.machine
    wanted = need.host.expected
    if machine.memory_available is None or wanted <= machine.memory_available:
        return ""
    said = f"about {show_size(wanted)} of RAM are needed, and {show_size(machine.memory_available)} are free"
    spare = machine.swap
    if spare is None:
        return said
    if wanted <= machine.memory_available + spare:
        return f"{said}: the rest goes to swap or the page file, which is slow"
    both = "and no swap or page file" if not spare else f"and {show_size(spare)} of swap or page file do not make up"
    return f"{said}, {both}: the system may end the program"


def _ram_below_vram(sums: Sums, setting: Setting) -> str:
    total = sums.target.machine.memory_total
    largest = max((card.total or 0 for card in sums.cards(setting) if not card.shared), default=0)
    # What is written on the box is never all there.
    if total is None or total >= 0.9 * largest:
        return ""
    least = f"less RAM ({show_size(total)}) than the GPU has memory ({show_size(largest)})"
    return f"the machine has {least}: loading large files may swap"


# A container's default: Docker gives 64 MiB.
_LITTLE_SHM = _GIB


def _shared_memory(sums: Sums, setting: Setting) -> str:
    free = sums.target.machine.shared_memory
    workload = setting.workload
    if free is None or free >= _LITTLE_SHM or not (workload.trains or setting.gpus > 1):
        return ""
    what = "DataLoader workers hand over batches" if workload.trains else "the processes of several GPUs talk"
    return (
        f"/dev/shm has {show_size(free)} free, and {what} through it: docker run --shm-size=8g, "
        f"{'or num_workers=0' if workload.trains else 'or --ipc=host'}"
    )


def _disk(sums: Sums) -> str:
    kind = sums.target.machine.disk
    what = {"hdd": "a turning disk", "network": "a network drive"}.get(kind)
    return f"the working folder is on {what}: loading from it is slow, and hurts nothing else" if what else ""


def _lockable(sums: Sums, setting: Setting, need: Need) -> str:
    limit = sums.target.machine.lockable
    if limit is None or setting.workload.offload not in ("optimizer", "all") or limit >= need.host.expected:
        return ""
    return f"offloading pins memory, and a process here may lock {show_size(limit)} (ulimit -l): raise it"


def _compute(sums: Sums, setting: Setting) -> list[str]:
    workload = setting.workload
    capability = sums.capability(setting)
    if not capability:
        return []
    family = setting.model.architecture.family
    found = []
    if workload.trains and workload.precision == "bf16" and not sums.matrix.serves("bf16", capability, "", family):
        found.append(
            f"the GPU (compute capability {capability}) has no bfloat16 in its tensor cores: it works, and is slow"
        )
    speaks = setting.model.architecture.kind == DECODER and workload.engine == "transformers"
    plain = not workload.trains and speaks and setting.model.weights == "bf16"
    if plain and not sums.matrix.serves("bf16", capability, "", family):
        found.append(
            f"the GPU (compute capability {capability}) has no bfloat16 of its own: load the model with "
            "dtype=torch.float16, which takes as much and is faster"
        )
    flash = workload.attention == "flash" and (workload.trains or workload.engine == "transformers")
    if flash and not sums.matrix.serves("flash-attention", capability, "", family):
        found.append(f"FlashAttention 2 does not run on this GPU (compute capability {capability}): use sdpa")
    if not workload.trains and not sums.matrix.serves(workload.engine, capability, sums.target.system, family):
        found.append(f"{workload.engine} does not run on this GPU or system")
    return found


def _engine_share(sums: Sums, setting: Setting, need: Need) -> str:
    """An engine that takes a share of the GPU has to be told, where its own is too small or not free."""
    engine = sums.matrix.engine_share(setting.workload.engine)
    cards = sums.cards(setting)
    if engine is None or setting.workload.trains or not cards:
        return ""
    total, free = cards[-1].total, cards[-1].free
    if total is None or free is None or need.device.expected > free:
        return ""
    if need.device.expected <= engine.share * total <= free:
        return ""
    share = int(100 * free / total) / 100
    return (
        f"{setting.workload.engine} takes {engine.share:g} of the GPU unless told otherwise: "
        f"start it with {engine.flag} {share:g}"
    )


def _engine_length(sums: Sums, setting: Setting) -> str:
    """vLLM makes room for a sequence as long as the model can be, and does not start where there is none."""
    workload, longest = setting.workload, setting.model.architecture.max_context
    if workload.trains or workload.engine != "vllm" or not longest or workload.context >= longest:
        return ""
    if sums.verdict(setting) == DOES_NOT_FIT or sums.verdict(with_context(setting, longest)) != DOES_NOT_FIT:
        return ""
    return (
        f"vLLM does not start where a sequence of the model's {longest:,} tokens finds no room: "
        f"start it with --max-model-len {workload.context}"
    )
