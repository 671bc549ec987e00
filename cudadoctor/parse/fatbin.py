"""The GPU architectures for which code is embedded in a library.

nvcc puts its device code into one section (`.nv_fatbin` in ELF, `.nv_fatb` in PE), as a row of fatbins:

    fatbin header, 16 bytes      u32 magic 0xBA55ED50, u16 version, u16 header size, u64 size of all entries
      entry header, 64 bytes     u16 kind (1 PTX, 2 machine code), u16 version, u32 header size, u64 payload size,
      or more                    ..., at byte 28: u32 architecture (86, 120), at byte 40: u64 flags
      payload                    compressed or not; never read here
    next fatbin, aligned to 8

Flag bits 20 and 21 mark the suffixes: sm_90a, sm_100f (seen in the output of nvcc 13.0).

A big library has hundreds of fatbins, one for each source file, and some sources are built for fewer or more
architectures than the rest. What the build as a whole serves is the set that most of the first fatbins share; for
torch that is what torch.cuda.get_arch_list() says. Reading twenty of them takes well under a millisecond.

torch also carries that list as a string, between NULs, in libtorch_python:  sm_75 sm_80 sm_86 sm_90 sm_100 sm_120
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Protocol

from cudadoctor.model.record import NamedTuple

from .arch import Arch
from .errors import unlike

if TYPE_CHECKING:
    import mmap

_MAGIC = 0xBA55ED50
_PTX, _SASS = 1, 2
_FLAG_A, _FLAG_F = 1 << 20, 1 << 21
_HEADER, _ENTRY = 16, 64

# No toolkit makes a fatbin of more entries; without a bound a damaged file could keep us walking.
_MOST_ENTRIES = 64
_MOST_GAPS = 64


class Reader(Protocol):
    """Random access to a file.

    Fewer bytes than asked for come back at its end only; the implementation raises OSError.
    """

    def read_at(self, offset: int, length: int) -> bytes: ...


class BytesReader:
    """A Reader over bytes, for what is in memory already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


class FatbinArchs(NamedTuple):
    """What the first fatbins hold.

    `sass` are the names of the set that most of them share ("sm_75", ..., ordered), `ptx` those of the PTX beside it
    ("compute_90"). `agreeing` of `fatbins` have exactly this set; `complete` means that the section ended within
    them.
    """

    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    fatbins: int
    agreeing: int
    complete: bool


def read_fatbins(reader: Reader, offset: int, size: int, first: int = 20) -> FatbinArchs:
    """The architectures of the first fatbins of a section. ParseError when it holds none, or is damaged before the
    first ends.

    Reads one short piece for each entry, in the order of the file.
    """
    sets: list[tuple[frozenset[Arch], frozenset[Arch]]] = []
    position, end, gaps = offset, offset + size, 0
    while position + _HEADER <= end and len(sets) < first:
        piece = reader.read_at(position, _HEADER + _ENTRY)
        if len(piece) < _HEADER:
            break
        magic, _, header_size, entries_size = struct.unpack_from("<IHHQ", piece)
        if magic != _MAGIC:
            # Padding between the fatbins of two object files.
            gaps += 1
            if gaps > _MOST_GAPS or not sets:
                break
            position += 8
            continue
        stop = position + header_size + entries_size
        if header_size < _HEADER or stop > end:
            break
        found = _entries(reader, position + header_size, stop, piece[header_size:])
        if found is None:
            break
        sets.append(found)
        position = stop
    if not sets:
        raise unlike("a section of embedded GPU code")
    counts: dict[tuple[frozenset[Arch], frozenset[Arch]], int] = {}
    for one in sets:
        counts[one] = counts.get(one, 0) + 1
    # Of sets equally common the larger is the build's; a smaller one is a source built for fewer.
    best = max(counts, key=lambda one: (counts[one], len(one[0]), len(one[1])))
    return FatbinArchs(_names(best[0]), _names(best[1]), len(sets), counts[best], position + _HEADER > end)


def _names(archs: frozenset[Arch]) -> tuple[str, ...]:
    return tuple(arch.name for arch in sorted(archs))


def _entries(reader: Reader, position: int, stop: int, piece: bytes) -> tuple[frozenset[Arch], frozenset[Arch]] | None:
    sass: set[Arch] = set()
    ptx: set[Arch] = set()
    for _ in range(_MOST_ENTRIES):
        if position >= stop:
            return frozenset(sass), frozenset(ptx)
        if len(piece) < _ENTRY:
            piece = reader.read_at(position, _ENTRY)
        if len(piece) < _ENTRY:
            return None
        kind, _, header_size, payload_size = struct.unpack_from("<HHIQ", piece)
        number = struct.unpack_from("<I", piece, 28)[0]
        flags = struct.unpack_from("<Q", piece, 40)[0]
        if header_size < _ENTRY:
            return None
        if kind in (_PTX, _SASS) and 10 <= number <= 9999:
            suffix = "a" if flags & _FLAG_A else "f" if flags & _FLAG_F else ""
            arch = Arch("compute" if kind == _PTX else "sm", number // 10, number % 10, suffix)
            (ptx if kind == _PTX else sass).add(arch)
        position += header_size + payload_size
        piece = b""
    return None


def find_arch_string(data: bytes | bytearray | memoryview | mmap.mmap) -> tuple[str, ...] | None:
    """The list of architectures that torch carries as a string; the longest where there are several; None without one.

    Takes bytes or a memory map. A list of one is not recognised: a lone "sm_80" stands in libraries for other reasons.
    """
    # The compiler may keep a neighbour without its end ("..., std::string ipc_hsm_70 sm_75 sm_80": torch 2.8 and 2.9):
    # then a list needs three names to be told from a word of some message.
    for start, least in ((rb"\x00", 1), (rb"", 2)):
        names = rb"((?:(?:sm|compute)_[0-9]{2,4}[af]?[ ;]){%d,40}(?:sm|compute)_[0-9]{2,4}[af]?)" % least
        best: tuple[str, ...] = ()
        for found in re.finditer(start + names + rb"[ ;]?\x00", data):
            listed = tuple(re.split(r"[ ;]", found.group(1).decode("ascii")))
            if len(listed) > len(best):
                best = listed
        if best:
            return best
    return None
