"""What `cudadoctor fit` shows of an answer, and the words that its formats share."""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit import need as parts
from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, Answer
from cudadoctor.fit.architecture import DECODER, DIFFUSION, ENCODER_DECODER, Architecture, Model
from cudadoctor.fit.inference import PUBLISHED
from cudadoctor.fit.interval import widened
from cudadoctor.fit.measured import Measured
from cudadoctor.fit.need import Interval
from cudadoctor.fit.spec import FILE
from cudadoctor.fit.target import Card
from cudadoctor.fit.workload import ALLOCATED, DEVICE, FULL, INFER, LORA, QLORA, RESERVED, WEIGHTS, Workload
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.fit_sizes import both, span
from cudadoctor.render.style import Style
from cudadoctor.render.view import MatrixInfo

# What people call the parts of the breakdown.
PART_NAMES = {
    parts.WEIGHTS: "weights",
    parts.ADAPTERS: "LoRA adapters",
    parts.GRADIENTS: "gradients",
    parts.OPTIMIZER: "optimizer",
    parts.ACTIVATIONS: "activations",
    parts.LOGITS: "logits",
    parts.KV_CACHE: "KV cache",
    parts.BUFFERS: "buffers",
    parts.CACHED: "kept by torch",
    parts.CONTEXT: "CUDA context",
    parts.OTHERS: "others",
}

# What is not torch keeps it otherwise.
_KEPT = {"vllm": "kept by vLLM", "llama.cpp": "kept by ggml"}


def part_name(part: str, workload: Workload) -> str:
    """A part of the need, as the table and --explain call it."""
    if part == parts.CACHED and not workload.trains:
        return _KEPT.get(workload.engine, PART_NAMES[part])
    return PART_NAMES[part]


# What is done, as a sentence says it. Inference is what everybody means who says nothing.
_DOING = {
    INFER: "",
    WEIGHTS: ", only loaded,",
    FULL: ", trained in full,",
    LORA: ", trained with LoRA,",
    QLORA: ", trained with QLoRA,",
}

# The word of the first column for a verdict; any other is undecided.
_WORDS = {FITS: "ok", TIGHT: "warn", DOES_NOT_FIT: "FAIL"}


class FitView(NamedTuple):
    """`level` is which of the three numbers is asked for, `per_gpu` false where that of all GPUs together is; `exit` is
    the status with which the command ends; `again` holds the options that ask the same question."""

    answer: Answer
    level: str = DEVICE
    per_gpu: bool = True
    exit: int = 0
    style: Style = Style()
    explain: bool = False
    program: str = "cudadoctor"
    again: str = ""
    id: str = ""
    """What the question calls itself in a list of them."""
    measured: Optional[Measured] = None
    """What `--measure` found."""
    quantised: bool = False
    """The weights of the estimate are, those of a dry run never."""
    matrix: MatrixInfo = MatrixInfo()
    tool_version: str = ""
    matrix_age_days: Optional[int] = None


def asked_need(view: FitView) -> Interval:
    """Of the level that is asked for, of one GPU or of all."""
    need = view.answer.need
    if view.level == FILE:
        weights = [term for term in need.terms if term.part == parts.WEIGHTS]
        sums = [sum(amounts) * need.gpus for amounts in zip(*((one.low, one.bytes, one.high) for one in weights))]
        amount = Interval(*sums) if sums else Interval(0, 0, 0)
        return amount if view.answer.model.stored is not None else widened(amount, *PUBLISHED)
    if not view.per_gpu and need.gpus > 1:
        if view.level == ALLOCATED:
            return need.all_gpus
        own = need.reserved if view.level == RESERVED else need.device
        return Interval(own.low * need.gpus, own.expected * need.gpus, own.high * need.gpus)
    return {ALLOCATED: need.allocated, RESERVED: need.reserved}.get(view.level, need.device)


def headline(view: FitView) -> tuple[str, str]:
    """The word and the sentence of the verdict, with the interval, what it means, and what there is."""
    answer = view.answer
    device = answer.need.device
    subject = answer.model.architecture.name + _DOING[answer.workload.method]
    each = " on each GPU" if answer.need.gpus > 1 else ""
    needed = f"{span(device.low, device.high)}{each}"
    where = place_of(answer)
    if answer.verdict not in _WORDS or answer.available is None:
        if answer.target.kind == "none":
            why = "and there is no GPU to compare it with"
        else:
            why = f"and how much is free {where} is not known"
        return "????", f"{subject} needs {needed} as nvidia-smi counts, {why}".replace(",,", ",")
    free = both(answer.available)
    verb = {FITS: "fits", TIGHT: "fits only just", DOES_NOT_FIT: "does not fit"}[answer.verdict]
    if answer.target.kind == "memory":
        return _WORDS[answer.verdict], f"{subject} {verb} into {free}: it takes {needed} as nvidia-smi counts"
    taken = f"it takes {needed} as nvidia-smi counts, of {free} free"
    return _WORDS[answer.verdict], f"{subject} {verb} {where}: {taken}"


def place_of(answer: Answer) -> str:
    """on RTX 4090, on 8x H100 SXM5, into 24.0 GiB (25.8 GB): where it is to run."""
    cards = answer.target.cards
    if not cards:
        return "on this machine" if answer.target.kind == "machine" else "anywhere"
    if answer.target.kind == "memory" and cards[0].free is not None:
        return f"into {both(cards[0].free)}"
    if answer.need.gpus == 1 and len(cards) > 1:
        # The one that was compared with.
        used = next((card for card in cards if card.free == answer.available), cards[0])
        return f"on {used.name} (one of {len(cards)} GPUs)"
    names = [card.name for card in cards[: max(answer.need.gpus, 1)]]
    counted = {name: names.count(name) for name in names}
    return "on " + " + ".join(f"{count}x {name}" if count > 1 else name for name, count in counted.items())


def model_text(model: Model) -> str:
    """8.03 billion parameters, weights in bf16."""
    shape = model.architecture
    text = f"{_count(shape.parameters)} parameters"
    if shape.active_parameters != shape.parameters:
        text += f", {_count(shape.active_parameters)} of them for each token"
    text += f", weights in {model.weights}"
    if model.stored is not None:
        files = f" in {model.stored.files} files" if model.stored.files > 1 else ""
        text += f", {both(model.stored.total)} as stored{files}"
    return text


def _count(number: int) -> str:
    for unit, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= unit:
            return f"{number / unit:.3g} {name}" if number < 1000 * unit else f"{number / unit:,.0f} {name}"
    return f"{number:,}"


def doing(workload: Workload, shape: Architecture) -> str:
    """One line of all that was asked for and taken for granted: what is done, with which types and sizes."""
    size = f"batch {workload.batch:,}"
    if not shape.tokens_per_item or shape.kind == ENCODER_DECODER:
        size += f", {workload.context:,} tokens"
    if workload.prompt is not None and workload.method == INFER:
        size += f" ({workload.prompt:,} of them the prompt)"
    if workload.method == WEIGHTS:
        return "loading the weights"
    if workload.method == INFER:
        engine = "diffusers" if shape.kind == DIFFUSION else workload.engine
        if "ollama" in workload.framework.lower():
            engine = "Ollama"
        texts = [f"inference with {engine}", size]
        if shape.kind in (DECODER, ENCODER_DECODER):
            texts.append(f"KV cache in {workload.kv}")
        if workload.engine == "transformers":
            texts.append(_attention(workload))
        return ", ".join((*texts, *_spread(workload)))
    kind = {FULL: "full training", LORA: "LoRA", QLORA: "QLoRA"}[workload.method]
    texts = [kind, size, f"precision {workload.precision}", f"optimizer {workload.optimizer}", _attention(workload)]
    if workload.method in (LORA, QLORA):
        texts.insert(1, f"rank {workload.lora.rank} on {' '.join(workload.lora.targets)}")
    texts.append("no checkpointing" if workload.checkpointing == "none" else f"checkpointing {workload.checkpointing}")
    texts.append(f"{workload.loss} loss")
    if workload.fused_kernels:
        texts.append("fused kernels")
    if workload.fused_optimizer:
        texts.append("fused optimizer")
    if workload.expandable_segments:
        texts.append("expandable segments")
    if workload.variable_length:
        texts.append("sequences of different lengths")
    if workload.accumulation:
        texts.append("gradients accumulated")
    return ", ".join((*texts, *_spread(workload)))


def _attention(workload: Workload) -> str:
    return f"{workload.attention} attention"


def _spread(workload: Workload) -> list[str]:
    found = []
    if workload.sharding.degree > 1:
        found.append(f"{workload.sharding.kind} over {workload.sharding.degree} GPUs")
    if workload.offload != "none":
        found.append(f"{workload.offload} offloaded to the machine's memory")
    return found


def card_text(card: Card) -> str:
    """Memory, bandwidth and tensor rate of a card, as far as they are known."""
    from cudadoctor.render.fit_sizes import operations, rate

    total = both(card.total) if card.total is not None else ""
    return ", ".join(text for text in (total, rate(card.bandwidth), operations(card.tensor_rate)) if text)
