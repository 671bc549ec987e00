"""The bytes of a model's tensors, by how they are stored.

Quantisers touch the matrices of the layers and leave the rest in 16 bits; llama.cpp's mixtures choose a type for each
tensor, by its name and its layer. Widths and choices stand in compat/quantisations.toml.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    EMBEDDING,
    EXPERT,
    HEAD,
    LATENT,
    MATRIX,
    NORM,
    OTHER,
    POSITION,
    ROUTER,
    Architecture,
    Model,
    Tensor,
)
from cudadoctor.matrix.quantisations import MATRICES, MIXTURE, PLAIN, StorageScheme, TypeRule
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import ParseError

_WIDE = 2  # bytes of what a quantiser leaves alone
_MOST_NAME = 64
# Models and types of one question: its many variants ask for the same sums.
_MOST_KEPT = 64


class Scheme(NamedTuple):
    """A way to store numbers. `bits`: what one number of a quantised matrix takes, scales included. `kind`: plain,
    matrices (embeddings, norms and head stay in 16 bits) or mixture (of llama.cpp)."""

    name: str
    kind: str
    bits: float
    source: str

    def bytes_of(self, numbers: int) -> int:
        """Of a cache or buffer that is stored so throughout."""
        return int(numbers * self.bits / 8 + 0.5)


def schemes(matrix: Matrix) -> tuple[Scheme, ...]:
    """All that are known, in the order of the data."""
    return tuple(_scheme(row) for row in matrix.storage_schemes().values())


def scheme(matrix: Matrix, name: str) -> Scheme:
    """By its name or one of its other names: "Q4_K_M", "gguf:q4_k_m", "nf4", "int4". ParseError with the nearest names
    where there is none."""
    return _scheme(_row(matrix, name))


def weight_bytes(matrix: Matrix, model: Model) -> int:
    """Bytes of all weights: exactly those of the files where the model was read out of files."""
    if model.stored is not None:
        return model.stored.total
    return sum(size for _, size in tensor_bytes(matrix, model))


def tensor_bytes(matrix: Matrix, model: Model) -> tuple[tuple[Tensor, int], ...]:
    """Bytes of each of the architecture's tensors (of all copies of it together), in their order; a head of its own
    that some files have although the model has none comes last. Of a model out of files they add up to those."""
    stored = model.stored
    if stored is not None and stored.tensors:
        return tuple(zip(model.architecture.tensors, stored.tensors))
    sizes = _bytes_of_tensors(matrix, model.architecture, _row(matrix, model.weights))
    if stored is None:
        return sizes
    return _scaled_to(sizes, stored.total)


def head_of_its_own(matrix: Matrix, model: Model) -> bool:
    """Whether the weights hold the head once more beside the embedding that it is."""
    return model.architecture.tied and model.stored is None and _row(matrix, model.weights).own_head


@lru_cache(maxsize=_MOST_KEPT)
def _bytes_of_tensors(matrix: Matrix, architecture: Architecture, row: StorageScheme) -> tuple[tuple[Tensor, int], ...]:
    tensors = architecture.tensors
    if row.kind == PLAIN:
        return tuple((tensor, int(tensor.elements * row.bits) // 8) for tensor in tensors)
    if row.kind == MIXTURE:
        return _Mixture(matrix, architecture, row).sizes()
    experts_only = row.only_experts and any(tensor.role == EXPERT for tensor in tensors)
    quantised = (EXPERT,) if experts_only else (MATRIX, EXPERT)
    sizes = [
        (tensor, tensor.copies * _quantised(row, tensor.shape) if tensor.role in quantised and len(tensor.shape) > 1
         else tensor.elements * _WIDE)
        for tensor in tensors
    ]  # fmt: skip
    if architecture.tied and row.own_head:
        shape = (architecture.vocabulary, architecture.hidden)
        sizes.append((Tensor("output", HEAD, shape), shape[0] * shape[1] * _WIDE))
    return tuple(sizes)


def _quantised(row: StorageScheme, shape: Sequence[int]) -> int:
    """One matrix of (out, in), with all its scales."""
    out, into = shape[0], 1
    for size in shape[1:]:
        into *= size
    total = -(-out * into * int(row.bits) // 8)
    if row.flat:
        groups = Fraction(out * into, row.group)
    elif row.group:
        groups = Fraction(-(-into // row.group) * -(-out // row.group_rows))
    else:
        groups = Fraction(0)
    scales = groups * Fraction(row.group_bytes)
    return total + -(-scales.numerator // scales.denominator) + out * row.row_bytes + into * row.column_bytes + (
        row.tensor_bytes
    )  # fmt: skip


def _scaled_to(sizes: Sequence[tuple[Tensor, int]], total: int) -> tuple[tuple[Tensor, int], ...]:
    """The same shares of another total."""
    counted = sum(size for _, size in sizes)
    if not counted:
        return tuple(sizes)
    made = []
    before = given = 0
    for tensor, size in sizes:
        before += size
        until = before * total // counted
        made.append((tensor, until - given))
        given = until
    return tuple(made)


# -- names


def _scheme(row: StorageScheme) -> Scheme:
    bits = row.bits
    if row.kind == MATRICES and row.group:
        bits += 8 * row.group_bytes / (row.group * row.group_rows)
    return Scheme(row.name, row.kind, bits, row.source)


def _plain_name(name: str) -> str:
    lowered = name.strip().lower().replace("_", "-")
    for prefix in ("gguf:", "torch.", "gguf-"):
        if lowered.startswith(prefix) and len(lowered) > len(prefix):
            lowered = lowered[len(prefix) :]
    return lowered


def _row(matrix: Matrix, name: str) -> StorageScheme:
    rows = matrix.storage_schemes()
    found = rows.get(name)
    if found is not None:
        return found
    names = {}
    for row in rows.values():
        for text in (*row.also, row.name):
            names[_plain_name(text)] = row
    wanted = _plain_name(name)
    if wanted in names:
        return names[wanted]
    shown = name if len(name) <= _MOST_NAME else name[: _MOST_NAME - 3] + "..."
    close = difflib.get_close_matches(wanted[:_MOST_NAME], names, 3)
    alike = list(dict.fromkeys(names[text].name for text in close))
    hint = f"did you mean {' or '.join(alike)}?" if alike else "such as bf16, fp8, nf4, awq, Q4_K_M or Q8_0"
    raise ParseError(f"No quantisation is called {shown!a}: {hint}")


# -- llama.cpp's mixtures

# The category of a tensor, as llama.cpp's quantizer tells them apart by their names.
_CATEGORIES = {
    "token_embedding": "embedding",
    "output": "output",
    "q": "q",
    "k": "k",
    "v": "v",
    "qkv": "qkv",
    "kv_b": "kv_b",
    "o": "o",
    "gate": "gate",
    "up": "up",
    "gate_up": "up",
    "down": "down",
}
# What llama.cpp keeps in 32 bits: its converter writes them so, and its quantizer leaves them alone.
_KEPT = (NORM, BIAS, ROUTER, POSITION, CONVOLUTION)
_KEPT_TYPE, _LAST_RESORT = "F32", "F16"


class _Mixture:
    """One mixture over one architecture."""

    def __init__(self, matrix: Matrix, architecture: Architecture, row: StorageScheme) -> None:
        self.architecture = architecture
        self.row = row
        self.types = matrix.block_types()
        self.rules = [rule for rule in matrix.type_rules() if row.name in rule.mixtures or "*" in rule.mixtures]
        self.layers = architecture.layer_count
        self.positions = _positions(architecture)
        self.with_v = self._with("v")
        first = next((run.attention for run in architecture.layers if run.attention is not None), None)
        experts = max((run.feed_forward.experts for run in architecture.layers if run.feed_forward), default=0)
        self.facts = {
            "gqa4": bool(first and first.kv_heads and first.kind != LATENT and first.heads // first.kv_heads >= 4),
            "experts4": experts >= 4,
            "experts8": experts == 8,
            "layers80": self.layers == 80,
            "falcon": architecture.family == "falcon",
            "importance": row.importance,
            "no-importance": not row.importance,
        }

    def sizes(self) -> tuple[tuple[Tensor, int], ...]:
        return tuple((tensor, self._size(tensor)) for tensor in self.architecture.tensors)

    def _size(self, tensor: Tensor) -> int:
        if len(tensor.shape) < 2 or tensor.role in _KEPT:
            return tensor.elements * self.types[_KEPT_TYPE].size
        category = _category(tensor)
        if category == "embedding" and self.architecture.tied:
            category = "output"
        if tensor.layers is None:
            return tensor.copies * self._bytes(self._type(tensor, category, 0, 1), tensor.shape)
        places = self.positions[tensor.layers]
        total = 0
        each, more = divmod(tensor.copies, len(places))
        for number, place in enumerate(places):
            nth, of = self.with_v[place] if category == "v" else (place, self.layers)
            chosen = self._type(tensor, category, nth, of)
            total += (each + (number < more)) * self._bytes(chosen, tensor.shape)
        return total

    def _type(self, tensor: Tensor, category: str, nth: int, of: int) -> str:
        default = self.row.block_type or _LAST_RESORT
        for rule in self.rules:
            if category in rule.tensors and self._holds(rule, tensor, nth, of):
                return default if rule.type == "same" else rule.type
        return default

    def _holds(self, rule: TypeRule, tensor: Tensor, nth: int, of: int) -> bool:
        for word in rule.where:
            known = self.facts.get(word)
            if known is None:
                known = tensor.role != EXPERT if word == "no-expert" else _among(word, nth, of)
            if not known:
                return False
        return True

    def _bytes(self, name: str, shape: Sequence[int]) -> int:
        """One tensor of that type, or of the type that is taken where its rows are no whole number of blocks."""
        rows, columns = shape[0], 1
        for size in shape[1:]:
            columns *= size
        found = self.types[name]
        while columns % found.values:
            found = self.types[found.fallback or _LAST_RESORT]
        return rows * (columns // found.values) * found.size

    def _with(self, category: str) -> dict[int, tuple[int, int]]:
        """Of each layer that has such a tensor: the how-manieth it is, and of how many."""
        places = sorted(
            {
                place
                for tensor in self.architecture.tensors
                if tensor.layers is not None and _category(tensor) == category and len(tensor.shape) > 1
                for place in self.positions[tensor.layers]
            }
        )
        return {place: (number, len(places)) for number, place in enumerate(places)}


def _category(tensor: Tensor) -> str:
    name = tensor.name
    for prefix in ("shared_", "cross_"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    if tensor.role == EMBEDDING:
        return "embedding"
    if tensor.role == HEAD:
        return "output"
    return "other" if tensor.role == OTHER else _CATEGORIES.get(name, "other")


def _among(word: str, nth: int, of: int) -> bool:
    """Whether the `nth` of `of` layers is among those that the word names."""
    if word == "more-bits":
        return nth < of // 8 or nth >= 7 * of // 8 or (nth - of // 8) % 3 == 2
    if word == "middle":
        return of // 8 <= nth < 7 * of // 8
    kind, _, number = word.partition("-")
    if kind == "first" and number.endswith("th"):
        return nth < of // int(number[:-2])
    if kind == "first" and number.isdigit():
        return nth < int(number)
    raise KeyError(word)


def _positions(architecture: Architecture) -> list[list[int]]:
    """The layers of each run. Runs that gather layers by their kind say how many there are, not which: they are spread
    evenly, as alternating layers are."""
    offset: dict[str, int] = {}
    made: list[list[int]] = [[] for _ in architecture.layers]
    start = 0
    for side in dict.fromkeys(run.side for run in architecture.layers):
        own = [(number, run) for number, run in enumerate(architecture.layers) if run.side == side]
        count = sum(run.number for _, run in own)
        in_order = sorted(own, key=lambda item: item[1].first)
        expected = 0
        for _, run in in_order:
            if run.first != expected:
                break
            expected += run.number
        offset[side] = start
        if expected == count:
            for number, run in own:
                made[number] = list(range(start + run.first, start + run.first + run.number))
        else:
            for place, number in enumerate(_spread([run.number for _, run in own])):
                made[own[number][0]].append(start + place)
        start += count
    return made


def _spread(counts: Sequence[int]) -> list[int]:
    """Which of the kinds comes at each place, each as often as it is counted and as evenly as can be."""
    total = sum(counts)
    marks = [((2 * number + 1) * total, count, kind) for kind, count in enumerate(counts) for number in range(count)]
    return [kind for _, _, kind in sorted(marks, key=lambda mark: (Fraction(mark[0], 2 * mark[1]), mark[2]))]


__all__ = [
    "Scheme",
    "head_of_its_own",
    "scheme",
    "schemes",
    "tensor_bytes",
    "weight_bytes",
]
