"""What a workload needs: terms that add up, and three numbers that people confuse."""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple

# Parts of the breakdown, in the order in which they are shown.
WEIGHTS, GRADIENTS, OPTIMIZER, ADAPTERS = "weights", "gradients", "optimizer", "adapters"
ACTIVATIONS, LOGITS, KV_CACHE, BUFFERS = "activations", "logits", "kv_cache", "buffers"
CACHED, CONTEXT, OTHERS = "cached", "context", "others"
PARTS = (
    *(WEIGHTS, ADAPTERS, GRADIENTS, OPTIMIZER, ACTIVATIONS, LOGITS, KV_CACHE, BUFFERS),
    *(CACHED, CONTEXT, OTHERS),
)


class Interval(NamedTuple):
    """Bytes. `low` and `high` hold nine of ten measurements between them; `expected` is the single best number."""

    low: int
    expected: int
    high: int


class Term(NamedTuple):
    """One summand, of one GPU. `part` is one of PARTS. `formula` in symbols, `numbers` the same with the numbers put in
    (both readable by a person, ASCII), `source` who says so."""

    part: str
    name: str
    bytes: int
    formula: str
    numbers: str
    source: str
    low: int
    high: int
    """Between which it lies, nine times of ten."""


class Need(NamedTuple):
    """Of the GPU that needs most. `terms` add up to device.expected; those up to BUFFERS to allocated.expected, with
    CACHED (what torch's allocator keeps beside) to reserved.expected, with CONTEXT (CUDA's own) to what nvidia-smi
    shows for the process."""

    terms: tuple[Term, ...]
    allocated: Interval
    reserved: Interval
    device: Interval
    all_gpus: Interval
    """The allocated bytes of all GPUs together: what tables that sum them print."""
    host: Interval
    """The machine's memory (RAM) that loading and offloading need."""
    gpus: int
    peak: str
    """When the peak comes: prefill, decoding, backward pass, optimizer step, loading."""
    assumed: tuple[str, ...]
    """Sentences: what was taken for granted because nobody said it."""
    kv_bytes_per_token: int = 0
    """Of one sequence on one GPU; 0 without a cache."""
