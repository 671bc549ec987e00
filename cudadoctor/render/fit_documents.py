"""The document `cudadoctor.fit/1` as types. The shipped schema is generated from these; keys are only ever added.

All amounts are bytes, whole numbers; nothing here is in GB or GiB.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict

from cudadoctor.render.documents import MatrixEntry, ToolEntry
from cudadoctor.render.fit_measured import MeasuredDocument

Verdict = Literal["fits", "tight", "does-not-fit", "unknown"]
Level = Literal["allocated", "reserved", "device", "file"]
Method = Literal["infer", "weights", "full", "lora", "qlora"]


class IntervalEntry(TypedDict):
    """Bytes. Nine of ten measurements lie between `low` and `high`; `expected` is the single best number."""

    low: int
    expected: int
    high: int


class LevelsEntry(TypedDict):
    """Three numbers for one run, of one GPU: what torch's allocator hands out, what it holds, and what nvidia-smi
    shows for the process (`device`); `all_gpus` is what is handed out on all GPUs together."""

    allocated: IntervalEntry
    reserved: IntervalEntry
    device: IntervalEntry
    all_gpus: IntervalEntry


class TermEntry(TypedDict):
    """One summand, in bytes of one GPU. `formula` is in symbols, `numbers` the same with the numbers put in."""

    part: str
    name: str
    bytes: int
    low: int
    high: int
    formula: str
    numbers: str
    source: str


class ChangeEntry(TypedDict):
    """One thing that a person can change. `saves` are bytes of one GPU, against the run before it; `quality` and
    `speed` are what it costs: none, a little, some, much. `lines` are what is to be written."""

    id: str
    title: str
    lines: list[str]
    saves: int
    quality: str
    speed: str
    why: str
    source: str


class CureEntry(TypedDict):
    """The cheapest changes that together make it fit, and what is needed and available then."""

    verdict: Verdict
    need_bytes: IntervalEntry
    available_bytes: Optional[int]
    changes: list[ChangeEntry]


class CardEntry(TypedDict):
    """A GPU. `bandwidth` is of its memory, bytes a second; `tensor_rate` dense 16-bit operations a second; null where
    it is not known. `free` is what is free now, or on a card that is only named; `shared`: it has no memory of its own,
    but the machine's."""

    name: str
    total: Optional[int]
    free: Optional[int]
    bandwidth: Optional[float]
    tensor_rate: Optional[float]
    compute_capability: str
    used_by_others: Optional[int]
    source: str
    shared: bool


class AroundEntry(TypedDict):
    """The machine around the GPUs, in bytes; null where it is not known. `disk` is nvme, ssd, hdd, ... or empty."""

    memory_total: Optional[int]
    memory_available: Optional[int]
    swap: Optional[int]
    shared_memory: Optional[int]
    lockable: Optional[int]
    disk: str


class TargetEntry(TypedDict):
    """Where it is to run: a machine that was looked at, GPUs by name, only an amount of memory, or nothing. `system` is
    linux, windows, wsl, jetson, or empty."""

    kind: Literal["machine", "gpu", "memory", "none"]
    cards: list[CardEntry]
    machine: AroundEntry
    system: str
    notes: list[str]


class AlternativeEntry(TypedDict):
    """Another model or another GPU with which it fits, and what it then takes of each of `gpus` GPUs; `changes` are to
    be made there, too."""

    kind: Literal["model", "gpu", "rented"]
    name: str
    gpus: int
    need_bytes: IntervalEntry
    card: Optional[CardEntry]
    changes: list[ChangeEntry]


class SpeedEntry(TypedDict):
    """Upper bounds; null where they cannot be told. `decode_tokens_per_second` is for one sequence."""

    decode_tokens_per_second: Optional[float]
    formula: str
    load_seconds_low: Optional[float]
    load_seconds_high: Optional[float]
    load_formula: str
    source: str


class StoredEntry(TypedDict):
    """What the files hold, in bytes, told by their headers; `by_type` maps the types' names in the file."""

    total: int
    by_type: dict[str, int]
    elements: int
    scheme: str
    files: int


class ModelEntry(TypedDict):
    """`weights` names the type of the weights; `guessed` where only a size was given; `stored` is null where no file
    was read; `max_context` in tokens, null where the model sets no limit."""

    name: str
    kind: str
    family: str
    parameters: int
    active_parameters: int
    layers: int
    hidden: int
    vocabulary: int
    max_context: Optional[int]
    weights: str
    stored: Optional[StoredEntry]
    guessed: bool
    source: str
    notes: list[str]


class LoraEntry(TypedDict):
    rank: int
    targets: list[str]
    dropout: float
    width: int


class WorkloadEntry(TypedDict):
    """What is done, defaults filled in; `stated` names what was said. `context` is in tokens of a sequence, `prompt`
    how many of them pass at once (null: all); `lora` is null without adapters."""

    method: Method
    batch: int
    context: int
    prompt: Optional[int]
    engine: str
    framework: str
    attention: str
    kv: str
    prefill_chunk: int
    precision: str
    optimizer: str
    master_bytes: Optional[int]
    fused_optimizer: bool
    fused_kernels: bool
    cuda_context: Optional[int]
    optimizer_in_backward: bool
    checkpointing: str
    loss: str
    lora: Optional[LoraEntry]
    accumulation: bool
    sharding: str
    gpus: int
    offload: str
    gpu_layers: Optional[int]
    variable_length: bool
    expandable_segments: bool
    stated: list[str]


class FitDocument(TypedDict):
    """`cudadoctor fit --format json`. `need_bytes` is of the `level` that was asked for (of all GPUs together where
    `per_gpu` is false), `levels` has them all; the verdict compares `levels.device` with `available_bytes`, which is
    null where it is not known. `headroom_bytes` is what is left of it, negative where it is missing. `largest_batch`
    and `longest_context` are the most that fit with all else as it is; null: not even one does, or it is not known.
    `cheapest_changes` are all that lower the need, cheapest first, each alone; `cure` the first of their combinations
    that fits. `host_bytes` is the machine's own memory; `measured` what `--measure` found, null without it."""

    schema: Literal["cudadoctor.fit/1"]
    tool: ToolEntry
    matrix: MatrixEntry
    exit: int
    id: str
    verdict: Verdict
    message: str
    level: Level
    per_gpu: bool
    need_bytes: IntervalEntry
    levels: LevelsEntry
    available_bytes: Optional[int]
    headroom_bytes: Optional[int]
    breakdown: list[TermEntry]
    largest_batch: Optional[int]
    longest_context: Optional[int]
    kv_bytes_per_token: int
    peak: str
    speed: SpeedEntry
    host_bytes: IntervalEntry
    cheapest_changes: list[ChangeEntry]
    cure: Optional[CureEntry]
    alternatives: list[AlternativeEntry]
    assumed: list[str]
    warnings: list[str]
    notes: list[str]
    measured: Optional[MeasuredDocument]
    model: ModelEntry
    workload: WorkloadEntry
    target: TargetEntry
