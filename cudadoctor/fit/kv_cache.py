"""The cache of keys and values, as each engine keeps it: the numbers of a token, and the bytes on one GPU."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.fit.architecture import LATENT, LINEAR, WINDOW, Architecture, Attention, Layers, Model
from cudadoctor.fit.quantisation import scheme
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.record import NamedTuple

_STATE_BYTES = 4  # of a state-space layer's numbers: engines keep them in fp32


class Run(NamedTuple):
    """Alike layers: `tokens` that each of them holds of one sequence, `numbers` of one token (state: of all), and the
    bytes of all sequences in all of these layers on one GPU."""

    layers: int
    tokens: int
    numbers: int
    state: bool
    bytes: int

    @property
    def of_one_layer(self) -> int:
        return self.bytes // max(self.layers, 1)


class Cache(NamedTuple):
    """`width`: bytes of one number, scales included."""

    runs: tuple[Run, ...]
    width: float

    @property
    def total(self) -> int:
        return sum(run.bytes for run in self.runs)

    @property
    def largest_layer(self) -> int:
        """What joining one layer's keys and values anew takes for a moment."""
        return max((run.of_one_layer for run in self.runs if not run.state), default=0)

    @property
    def per_token(self) -> int:
        """Bytes of a cache of one token, without the states, which do not grow."""
        return sum(run.bytes for run in self.runs if not run.state)


class Held(NamedTuple):
    """How an engine keeps it. `step`: tokens come in blocks of so many. `windows`: layers with a window hold no more
    than it and `beyond` further tokens. `latent`: latent attention keeps its latent vector only, not the keys and
    values that are made of it. `tensor`, `stages`: over how many GPUs heads and layers are spread."""

    step: int = 1
    windows: bool = True
    beyond: int = 0
    beyond_step: int = 1
    latent: bool = True
    tensor: int = 1
    stages: int = 1


PLAIN = Held()


def cache(
    matrix: Matrix,
    model: Model,
    workload: Workload,
    tokens: int,
    held: Held = PLAIN,
    across: int = 0,
) -> Cache:
    """Of `workload.batch` sequences of `tokens` each. `across`: tokens of the encoder that the decoder looks at.
    Raises ParseError for a type of cache that is not known."""
    width = bytes_of_a_number(matrix, model, workload)
    runs = []
    alike: dict[tuple[Attention, int, int], Run] = {}  # where layers alternate, there are many runs of two kinds

    def add(attention: Attention, number: int, seen: int) -> None:
        key = attention, number, seen
        if key not in alike:
            alike[key] = _run(attention, number, seen, workload.batch, width, held)
        runs.append(alike[key])

    for layers in _runs(model.architecture):
        number = -(-layers.number // held.stages)
        for attention, seen, is_cross in ((layers.attention, tokens, False), (layers.cross, across, True)):
            if attention is None or (is_cross and not across):
                continue
            add(attention, number, seen)
            if attention.kind != LINEAR and attention.state:  # a recurrence in the same layer
                add(attention._replace(kind=LINEAR), number, seen)
    return Cache(tuple(runs), width)


def bytes_of_a_number(matrix: Matrix, model: Model, workload: Workload) -> float:
    """8 bits are a byte; the types of llama.cpp bring their scales; a model in fp32 has a cache in fp32."""
    found = scheme(matrix, workload.kv)
    if found.kind == "plain":
        if found.bits == 16 and model.stored is None and workload.engine == "transformers":
            weights = scheme(matrix, model.weights)
            if weights.kind == "plain":
                return weights.bits / 8
        return found.bits / 8
    if found.kind == "mixture":
        return found.bits / 8
    return float(int(found.bits)) / 8


def numbers_of_a_token(attention: Attention, held: Held = PLAIN) -> int:
    """That one layer keeps of one token on one GPU. Heads that cannot be divided are kept more than once."""
    if attention.kind == LATENT and held.latent:
        return attention.kv_rank + attention.rope_dim + attention.index_dim
    heads = -(-attention.kv_heads // held.tensor)
    return heads * (attention.head_dim + (attention.value_dim or attention.head_dim)) + attention.index_dim


def _runs(architecture: Architecture) -> Iterator[Layers]:
    for layers in architecture.layers:
        if layers.side != "encoder":
            yield layers


def _run(attention: Attention, layers: int, tokens: int, batch: int, width: float, held: Held) -> Run:
    if attention.kind == LINEAR:
        state = -(-attention.state // held.tensor)
        return Run(layers, 1, state, True, layers * batch * state * _STATE_BYTES)
    seen = tokens
    if attention.kind == WINDOW and attention.window and held.windows:
        kept = _up(attention.window + held.beyond, held.beyond_step)
        seen = min(tokens, kept)
    seen = _up(seen, held.step)
    numbers = numbers_of_a_token(attention, held)
    return Run(layers, seen, numbers, False, int(layers * batch * seen * numbers * width))


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
