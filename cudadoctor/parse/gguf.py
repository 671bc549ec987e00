"""The header of a GGUF file, llama.cpp's format: metadata, and which tensors it holds.

    "GGUF", u32            version: 2 or 3 (1 counts in 32 bits)
    u64, u64               number of tensors, number of metadata entries
    metadata               string key, u32 type, value; "llama.block_count" u32 32
    tensors                string name, u32 dimensions, u64 each (the innermost first), u32 type, u64 offset
    padding, data          offsets count from here, aligned to general.alignment, else 32. Never read.

A string is a u64 length and its bytes; an array a u32 type, a u64 length and its values. The words of a tokenizer are
stepped over: of a long array only its length is kept. Files from big-endian machines are read, too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from typing import Any, Optional, Union

from cudadoctor.model.record import NamedTuple

from .errors import ParseError
from .fatbin import Reader
from .safetensors import lfs_pointer

__all__ = ["GgufArray", "GgufHeader", "GgufTensor", "GgufValue", "read_gguf"]

# The largest that are published: some hundred entries, some ten thousand tensors, a tokenizer of 600,000 words and
# merges in 20 MB.
_MOST_ENTRIES = 65_536
_MOST_TENSORS = 200_000
_MOST_WORDS = 1_500_000
_MOST_HEADER = 96 << 20
_MOST_KEY = 65_535
_MOST_DEPTH = 4
_KEPT_TEXT = 4_096
_KEPT_VALUES = 4_096
_CHUNK = 1 << 20
_MOST_SHOWN = 60

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class GgufArray(NamedTuple):
    """`values`: those of a short array of numbers or texts; None: only its length was kept."""

    length: int
    values: Optional[tuple[Any, ...]]


GgufValue = Union[int, float, bool, str, GgufArray]


class GgufTensor(NamedTuple):
    """`shape` as torch has it, the innermost dimension last; `type` is the number of ggml's type; `size` in bytes."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int
    size: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


class GgufHeader(NamedTuple):
    """`metadata` by key; `data` is where the tensors begin. A text of more than 4,096 bytes is cut."""

    version: int
    metadata: dict[str, GgufValue]
    tensors: tuple[GgufTensor, ...]
    data: int


def read_gguf(reader: Reader, size: int, blocks: Mapping[int, tuple[int, int]]) -> GgufHeader:
    """The header of a file of `size` bytes. `blocks`: ggml's types, by number, as (numbers in a block, bytes of it);
    a tensor of a type that is newer takes what lies between it and the next one.

    ParseError, one sentence, where it is none, is cut short or contradicts itself; reads no more than the header."""
    start = reader.read_at(0, 64)
    if lfs_pointer(start):
        raise ParseError("it is a Git LFS pointer, not the file itself: `git lfs pull` fetches that")
    if start[:4] != b"GGUF":
        raise ParseError("it is no GGUF file: it does not begin with GGUF")
    walk = _Walk(reader, size)
    walk.skip(4)
    version = walk.number("I")
    if version & 0xFFFF == 0:
        walk.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (1, 2, 3):
        raise ParseError(f"its GGUF version is {version}, and versions 1 to 3 are known")
    if version == 1:
        walk.wide = "I"
    tensors, entries = walk.number(walk.wide), walk.number(walk.wide)
    if entries > _MOST_ENTRIES:
        raise ParseError(f"its header claims {entries} metadata entries, more than any model has")
    if tensors > _MOST_TENSORS:
        raise ParseError(f"its header claims {tensors} tensors, more than any model has")
    metadata: dict[str, GgufValue] = {}
    for _ in range(entries):
        key = walk.text(_MOST_KEY, whole=True)
        if key in metadata:
            raise ParseError(f"its metadata has {_shown(key)} twice")
        metadata[key] = walk.value(walk.number("I"), 0)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20 or alignment & (alignment - 1):
        raise ParseError(f"its general.alignment is {_shown(alignment)}, which is no power of two")
    found: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(tensors):
        name = walk.text(_MOST_KEY, whole=True)
        if name in found:
            raise ParseError(f"its header names the tensor {_shown(name)} twice")
        found[name] = _tensor(walk, name, alignment)
    data = -(-walk.at // alignment) * alignment
    return GgufHeader(version, metadata, _placed(found, max(size - data, 0), blocks), data)


def _tensor(walk: _Walk, name: str, alignment: int) -> tuple[tuple[int, ...], int, int]:
    dimensions = walk.number("I")
    if dimensions > 8:
        raise ParseError(f"the tensor {_shown(name)} has {dimensions} dimensions")
    shape = [walk.number(walk.wide) for _ in range(dimensions)]
    elements = 1
    for length in shape:
        elements *= length
    if elements >= 1 << 63:
        raise ParseError(f"the tensor {_shown(name)} has the shape {shape}, larger than any")
    kind, offset = walk.number("I"), walk.number("Q")
    if offset % alignment:
        raise ParseError(f"the tensor {_shown(name)} lies at {offset}, which is no multiple of {alignment}")
    return tuple(reversed(shape)), kind, offset


def _placed(
    found: Mapping[str, tuple[tuple[int, ...], int, int]], data: int, blocks: Mapping[int, tuple[int, int]]
) -> tuple[GgufTensor, ...]:
    """The tensors with their bytes: one behind the other, all within the file."""
    order = sorted(found.items(), key=lambda item: item[1][2])
    placed = []
    for number, (name, (shape, kind, offset)) in enumerate(order):
        after = order[number + 1][1][2] if number + 1 < len(order) else None
        block = blocks.get(kind)
        if block is None:
            size = max((data if after is None else after) - offset, 0)
        else:
            size = _bytes(name, shape, block)
            if after is not None and offset + size > after:
                raise ParseError(
                    f"its header contradicts itself: {_shown(name)} and {_shown(order[number + 1][0])} overlap"
                )
        if offset + size > data:
            raise ParseError(f"it is cut short: its tensors have {offset + size} bytes, of which {data} are there")
        placed.append(GgufTensor(name, shape, kind, offset, size))
    return tuple(placed)


def _bytes(name: str, shape: tuple[int, ...], block: tuple[int, int]) -> int:
    values, size = block
    if shape and shape[-1] % values:
        raise ParseError(f"the tensor {_shown(name)} has rows of {shape[-1]} numbers, its type has blocks of {values}")
    elements = 1
    for length in shape:
        elements *= length
    return -(-elements // values) * size


class _Walk:
    """Steps through the header, a piece of the file at a time, never beyond its end."""

    def __init__(self, reader: Reader, size: int) -> None:
        self.reader = reader
        self.size = min(size, _MOST_HEADER)
        self.whole = size
        self.at = 0
        self.order = "<"
        self.wide = "Q"
        self.words = 0
        self._piece = b""
        self._from = 0

    def skip(self, length: int) -> None:
        """ParseError where the file ends before that."""
        if length > self.size - self.at:
            raise self._ended()
        self.at += length

    def take(self, length: int) -> bytes:
        begin = self.at
        self.skip(length)
        if begin < self._from or self.at > self._from + len(self._piece):
            self._from = begin
            self._piece = self.reader.read_at(begin, max(length, min(_CHUNK, self.size - begin)))
            if len(self._piece) < length:
                raise self._ended()
        return self._piece[begin - self._from : self.at - self._from]

    def number(self, form: str) -> Any:
        return struct.unpack(self.order + form, self.take(struct.calcsize(self.order + form)))[0]

    def text(self, most: int, whole: bool = False) -> str:
        """A string, or as much of it as is kept."""
        length = self.number(self.wide)
        if whole and length > most:
            raise ParseError(f"its header has a name of {length} bytes, longer than any")
        kept = self.take(min(length, most))
        self.skip(length - len(kept))
        return kept.decode("utf-8", "replace")

    def value(self, kind: int, depth: int) -> GgufValue:
        if kind in _NUMBERS:
            found: GgufValue = self.number(_NUMBERS[kind])
            return found
        if kind == _STRING:
            return self.text(_KEPT_TEXT)
        if kind != _ARRAY:
            raise ParseError(f"its metadata has a value of type {kind}, which is not known")
        if depth >= _MOST_DEPTH:
            raise ParseError("its metadata has arrays nested deeper than any that is known")
        return self._array(depth)

    def _array(self, depth: int) -> GgufArray:
        kind, length = self.number("I"), self.number(self.wide)
        form = _NUMBERS.get(kind)
        if form is not None:
            width = struct.calcsize(self.order + form)
            if length > _KEPT_VALUES:
                self.skip(length * width)
                return GgufArray(length, None)
            return GgufArray(length, struct.unpack(f"{self.order}{length}{form}", self.take(length * width)))
        is_stepped_over = kind == _STRING and length > _KEPT_VALUES
        self.words += length if is_stepped_over else 8 * length  # so much dearer are they
        if self.words > _MOST_WORDS:
            raise ParseError("its metadata has arrays of more texts than any tokenizer has")
        if is_stepped_over:
            self._skip_texts(length)
            return GgufArray(length, None)
        values = [self.value(kind, depth + 1) for _ in range(length)]
        return GgufArray(length, tuple(values) if length <= _KEPT_VALUES else None)

    def _skip_texts(self, count: int) -> None:
        """A tokenizer has hundreds of thousands: within a piece of the file, nothing is called for one of them."""
        order: Any = "little" if self.order == "<" else "big"
        width = struct.calcsize(self.order + self.wide)
        whole = int.from_bytes
        while count:
            self.take(width)  # reads on, where that lies beyond the piece
            piece, at = self._piece, self.at - width - self._from
            last = len(piece) - width
            while count and at <= last:
                at += width + whole(piece[at : at + width], order)
                count -= 1
            self.at = self._from + at
            if self.at > self.size:
                raise self._ended()

    def _ended(self) -> ParseError:
        if self.whole > self.size:
            return ParseError(f"its header is longer than {_MOST_HEADER >> 20} MiB, which no model's is")
        return ParseError(f"it is cut short: it ends in its header, after {self.whole} bytes")


def _shown(name: object) -> str:
    shown = ascii(name)
    return shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 3] + "..."
