"""The header of a safetensors file: which tensors it holds, of what type and shape, and where.

    u64                    length of the header, little-endian
    JSON                   {"model.embed_tokens.weight": {"dtype": "BF16", "shape": [128256, 4096],
                            "data_offsets": [0, 1050673152]}, ..., "__metadata__": {"format": "pt"}}
    data                   the tensors; offsets count from here. Never read.

Several files of one model have an index beside them:

    {"weight_map": {"lm_head.weight": "model-00004-of-00004.safetensors"}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import prod
from typing import Any

from cudadoctor.model.fact import no_number
from cudadoctor.model.record import NamedTuple

from .errors import ParseError
from .fatbin import Reader

__all__ = ["SafetensorsHeader", "SafetensorsTensor", "lfs_pointer", "read_index", "read_safetensors"]

# The library itself takes headers of up to 100 MB. The largest that are published have some megabytes; a tensor takes
# about 120 bytes of it.
_MOST_HEADER = 32 << 20
_MOST_TENSORS = 200_000
_MOST_VALUES = 3_000_000
_MOST_DIMENSIONS = 16
_MOST_SHOWN = 60
# Bits of the types that the format knows. Of one that is newer than this list, the bytes are known all the same.
_BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


class SafetensorsTensor(NamedTuple):
    """`shape` as torch has it, (out, in) for a matrix; `begin` and `end` bytes from the start of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.begin

    @property
    def elements(self) -> int:
        return prod(self.shape)


class SafetensorsHeader(NamedTuple):
    """`metadata`: the texts under __metadata__. `tensors` in the order of the data; `data` is where that begins."""

    metadata: dict[str, str]
    tensors: tuple[SafetensorsTensor, ...]
    data: int


def lfs_pointer(start: bytes) -> bool:
    """Whether a file that begins so is the pointer that Git leaves where its large files were not fetched."""
    return start.startswith(b"version https://git-lfs.github.com/spec/")


def read_safetensors(reader: Reader, size: int) -> SafetensorsHeader:
    """The header of a file of `size` bytes. ParseError, one sentence, where it is none, is cut short or contradicts
    itself; reads no more than the header."""
    start = reader.read_at(0, 64)
    if lfs_pointer(start):
        raise ParseError("it is a Git LFS pointer, not the file itself: `git lfs pull` fetches that")
    if len(start) < 10:
        raise ParseError(f"it is no safetensors file: it has {size} bytes")
    length = int.from_bytes(start[:8], "little")
    if start[8:9] != b"{":
        raise ParseError("it is no safetensors file: no header stands at its start")
    if length > _MOST_HEADER:
        raise ParseError(f"it is no safetensors file: its header would have {length} bytes")
    if 8 + length > size:
        raise ParseError(f"it is cut short: its header has {length} bytes, the file {size}")
    text = reader.read_at(8, length)
    if len(text) < length:
        raise ParseError(f"it is cut short: its header has {length} bytes, {len(text)} can be read")
    if text.count(b"{") > _MOST_TENSORS or text.count(b",") > _MOST_VALUES:
        raise ParseError(f"its header names more than {_MOST_TENSORS} tensors")
    entries = _json(text, "its header")
    metadata = _metadata(entries.pop("__metadata__", None))
    tensors = tuple(sorted((_tensor(name, entry) for name, entry in entries.items()), key=_place))
    _check_places(tensors, size - 8 - length)
    return SafetensorsHeader(metadata, tensors, 8 + length)


def read_index(text: bytes) -> tuple[str, ...]:
    """The names of the files that an index lists, each once, sorted. They lie beside it: a name with a path is a
    ParseError, as is what is no index."""
    if lfs_pointer(text):
        raise ParseError("it is a Git LFS pointer, not the file itself: `git lfs pull` fetches that")
    if len(text) > _MOST_HEADER or text.count(b"{") > _MOST_TENSORS or text.count(b",") > _MOST_VALUES:
        raise ParseError("it is no index of safetensors files: it is too large for one")
    found = _json(text, "it").get("weight_map")
    if not isinstance(found, dict) or not found:
        raise ParseError("it is no index of safetensors files: it has no weight_map")
    names = set(found.values()) if all(isinstance(name, str) for name in found.values()) else {""}
    for name in names:
        if not name or name in (".", "..") or any(letter in "/\\\0:" for letter in name):
            raise ParseError(f"its weight_map names {_shown(name)}, which is no file beside it")
    return tuple(sorted(names))


def _json(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=no_number)
    except ParseError:
        raise
    except (ValueError, RecursionError):
        raise ParseError(f"{what} is no JSON that can be read") from None
    if not isinstance(found, dict):
        raise ParseError(f"{what} is no JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that stands in it twice would hide a tensor."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ParseError(f"its header names {_shown(name)} twice")
            seen.add(name)
    return made


def _metadata(found: Any) -> dict[str, str]:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ParseError("its header's __metadata__ is not a table of texts")
    return found


def _tensor(name: str, entry: Any) -> SafetensorsTensor:
    if not isinstance(entry, dict):
        raise ParseError(f"its header says nothing of use about {_shown(name)}")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or len(dtype) > 20 or not (dtype.isascii() and dtype.isidentifier()):
        raise ParseError(f"its header gives {_shown(name)} no type")
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS or not _are_counts(shape):
        raise ParseError(f"its header gives {_shown(name)} no shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not _are_counts(offsets):
        raise ParseError(f"its header gives {_shown(name)} no place in the file")
    made = SafetensorsTensor(name, dtype, tuple(shape), offsets[0], offsets[1])
    bits = _BITS.get(dtype)
    if made.size < 0 or (bits is not None and -(-made.elements * bits // 8) != made.size):
        raise ParseError(
            f"its header contradicts itself: {_shown(name)} is {dtype} {_shown(shape)}, in {made.size} bytes"
        )
    return made


def _are_counts(values: list[Any]) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _place(tensor: SafetensorsTensor) -> tuple[int, int]:
    return tensor.begin, tensor.end


def _check_places(tensors: Iterable[SafetensorsTensor], data: int) -> None:
    """Tensors lie one behind the other, all within the file."""
    before, end = "", 0
    for tensor in tensors:
        if tensor.begin < end and tensor.size:
            raise ParseError(f"its header contradicts itself: {_shown(before)} and {_shown(tensor.name)} overlap")
        before, end = tensor.name, max(end, tensor.end)
    if end > data:
        raise ParseError(f"it is cut short: its tensors have {end} bytes, of which {max(data, 0)} are there")


def _shown(name: object) -> str:
    shown = ascii(name)
    return shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 3] + "..."
