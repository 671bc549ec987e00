"""Shared libraries of Linux, read as data: sections, what they need, what GPU code they embed.

    7f 45 4c 46 02 01 ...     "ELF", 64-bit, little-endian
    section headers           .nv_fatbin, .rodata, .dynamic, ... with offset and size
    dynamic table             DT_NEEDED libc.so.6, DT_SONAME libcuda.so.1, DT_RUNPATH $ORIGIN/../lib
    version needs             libc.so.6: GLIBC_2.14, GLIBC_2.27

All reads go through a Reader (read_at(offset, length)), are few, and their sizes are bounded whatever the file claims.
"""

from __future__ import annotations

import re
import struct

from cudadoctor.model.record import NamedTuple

from .errors import unlike
from .fatbin import BytesReader, FatbinArchs, Reader, read_fatbins

__all__ = ["BytesReader", "Dynamic", "Elf", "Reader", "Section", "elf_archs", "read_dynamic", "read_elf", "section"]

_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le"}
_MOST_TABLE = 1 << 20
_MOST_STRING = 4096
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 14, 15, 29
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
_PT_LOAD, _PT_DYNAMIC = 1, 2


class Elf(NamedTuple):
    """The header: `bits` 32 or 64, `machine` ("x86_64", "aarch64", else "machine-N"), and where the tables are."""

    bits: int
    machine: str
    order: str  # struct's "<" or ">"
    program_headers: tuple[int, int, int]  # offset, entry size, count
    section_headers: tuple[int, int, int]
    names_index: int


class Section(NamedTuple):
    """A section: `offset` in the file and `size`, bytes."""

    name: str
    offset: int
    size: int


class Dynamic(NamedTuple):
    """What the loader is told: names as written; `glibc` the highest GLIBC version that is needed ("2.28"), None
    without one.
    """

    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    glibc: str | None


def read_elf(reader: Reader) -> Elf:
    """The header of an ELF file. ParseError when it is none."""
    head = reader.read_at(0, 64)
    if len(head) < 52 or head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise unlike("an ELF file", head[:8])
    order = "<" if head[5] == 1 else ">"
    if head[4] == 2 and len(head) < 64:
        raise unlike("an ELF file", "cut off")
    machine = struct.unpack_from(order + "H", head, 18)[0]
    if head[4] == 2:
        phoff, shoff = struct.unpack_from(order + "QQ", head, 32)
        phsize, phnum, shsize, shnum, names = struct.unpack_from(order + "HHHHH", head, 54)
        least = (56, 64)
    else:
        phoff, shoff = struct.unpack_from(order + "II", head, 28)
        phsize, phnum, shsize, shnum, names = struct.unpack_from(order + "HHHHH", head, 42)
        least = (32, 40)
    if (phnum and phsize < least[0]) or (shnum and shsize < least[1]):
        raise unlike("an ELF file", "entry sizes too small")
    bits = 64 if head[4] == 2 else 32
    name = _MACHINES.get(machine, f"machine-{machine}")
    return Elf(bits, name, order, (phoff, phsize, phnum), (shoff, shsize, shnum), names)


def read_sections(reader: Reader, elf: Elf | None = None) -> dict[str, Section]:
    """All sections by name; an empty dictionary for a file stripped of them. ParseError for damage."""
    elf = elf or read_elf(reader)
    offset, size, count = elf.section_headers
    if not offset or not count:
        return {}
    table = _read(reader, offset, size * count, _MOST_TABLE)
    rows = [_section_row(elf, table, size * number) for number in range(count)]
    if elf.names_index >= len(rows):
        raise unlike("an ELF file", "no section names")
    _, names_offset, names_size = rows[elf.names_index]
    names = _read(reader, names_offset, names_size, _MOST_TABLE)
    sections: dict[str, Section] = {}
    for name_offset, at, length in rows:
        name = _string(names, name_offset)
        if name:
            sections.setdefault(name, Section(name, at, length))
    return sections


def section(reader: Reader, name: str) -> Section | None:
    """One section by name, or None. ParseError for damage."""
    return read_sections(reader).get(name)


def _section_row(elf: Elf, table: bytes, at: int) -> tuple[int, int, int]:
    if elf.bits == 64:
        name, _, _, _, offset, size = struct.unpack_from(elf.order + "IIQQQQ", table, at)
    else:
        name, _, _, _, offset, size = struct.unpack_from(elf.order + "IIIIII", table, at)
    return name, offset, size


def _read(reader: Reader, offset: int, length: int, most: int) -> bytes:
    if length > most or offset >= 1 << 62:
        raise unlike("an ELF file", "a table of impossible size")
    data = reader.read_at(offset, length) if length else b""
    if len(data) < length:
        raise unlike("an ELF file", "cut off")
    return data


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\x00", offset, offset + 4096)
    return table[offset:end].decode("utf-8", "replace") if 0 <= offset < len(table) and end >= 0 else ""


def read_dynamic(reader: Reader, elf: Elf | None = None, with_glibc: bool = True) -> Dynamic:
    """Needed libraries, soname, search paths and the glibc that a library asks for. ParseError for damage.

    Without `with_glibc` that is not looked for, which saves most of the reads. Found by the program headers, as the
    loader does, so a stripped file is read too. A static file needs nothing.
    """
    elf = elf or read_elf(reader)
    offset, size, count = elf.program_headers
    table = _read(reader, offset, size * count, _MOST_TABLE) if count else b""
    loads: list[tuple[int, int, int]] = []
    dynamic: tuple[int, int] | None = None
    for number in range(count):
        kind, at, address, length = _program_row(elf, table, size * number)
        if kind == _PT_LOAD:
            loads.append((address, at, length))
        elif kind == _PT_DYNAMIC:
            dynamic = (at, length)
    if dynamic is None:
        return Dynamic(None, (), None, None, None)
    data = _read(reader, dynamic[0], dynamic[1], _MOST_TABLE)
    pairs: list[tuple[int, int]] = []
    for tag, value in struct.iter_unpack(elf.order + ("qQ" if elf.bits == 64 else "iI"), _whole(data, elf.bits // 4)):
        if tag == 0:
            break
        pairs.append((tag & 0xFFFFFFFF, value))
    tags = dict(reversed(pairs))
    strings = _Strings(
        reader, _file_offset(loads, tags[_DT_STRTAB]) if _DT_STRTAB in tags else 0, tags.get(_DT_STRSZ, 0)
    )

    def one(tag: int) -> str | None:
        return strings.at(tags[tag]) or None if tag in tags else None

    needed = tuple(strings.at(value) for tag, value in pairs[:_MOST_STRING] if tag == _DT_NEEDED)
    glibc = None
    if with_glibc and _DT_VERNEED in tags:
        glibc = _highest_glibc(reader, elf, loads, tags[_DT_VERNEED], tags.get(_DT_VERNEEDNUM, 0), strings)
    return Dynamic(one(_DT_SONAME), tuple(n for n in needed if n), one(_DT_RPATH), one(_DT_RUNPATH), glibc)


def _whole(data: bytes, size: int) -> bytes:
    return data[: len(data) // size * size]


def _program_row(elf: Elf, table: bytes, at: int) -> tuple[int, int, int, int]:
    if elf.bits == 64:
        kind, _, offset, address, _, length = struct.unpack_from(elf.order + "IIQQQQ", table, at)
    else:
        kind, offset, address, _, length = struct.unpack_from(elf.order + "IIIII", table, at)
    return kind, offset, address, length


def _file_offset(loads: list[tuple[int, int, int]], address: int) -> int:
    for start, offset, length in loads:
        if start <= address < start + length:
            return address - start + offset
    raise unlike("an ELF file", "a table outside its segments")


class _Strings:
    """A table of strings. libtorch's is tens of megabytes long: a big one is read name by name."""

    def __init__(self, reader: Reader, offset: int, size: int) -> None:
        self._reader, self._offset, self._size = reader, offset, size
        self._whole = reader.read_at(offset, size) if size <= 1 << 16 else b""

    def at(self, position: int) -> str:
        if self._whole or position >= self._size:
            return _string(self._whole, position)
        for length in (64, _MOST_STRING):
            text, end, _ = self._reader.read_at(self._offset + position, length).partition(b"\x00")
            if end:
                return text.decode("utf-8", "replace")
        return ""


def _highest_glibc(
    reader: Reader, elf: Elf, loads: list[tuple[int, int, int]], address: int, count: int, strings: _Strings
) -> str | None:
    data = reader.read_at(_file_offset(loads, address), 8192)
    best: tuple[int, ...] = ()
    position = 0
    for _ in range(min(count, 256)):
        if position + 16 > len(data):
            break
        _, entries, _, aux, following = struct.unpack_from(elf.order + "HHIII", data, position)
        at = position + aux
        for _ in range(min(entries, 256)):
            if at + 16 > len(data):
                break
            _, _, _, name, step = struct.unpack_from(elf.order + "IHHII", data, at)
            found = re.fullmatch(r"GLIBC_([0-9]{1,3}(?:\.[0-9]{1,3}){1,2})", strings.at(name), re.ASCII)
            if found:
                best = max(best, tuple(int(part) for part in found.group(1).split(".")))
            if not step:
                break
            at += step
        if not following:
            break
        position += following
    return ".".join(str(part) for part in best) or None


def elf_archs(reader: Reader, first: int = 20) -> FatbinArchs | None:
    """The GPU architectures embedded in a library; None when it has no GPU code (a CPU build).

    ParseError for damage.
    """
    found = section(reader, ".nv_fatbin")
    if found is None or not found.size:
        return None
    return read_fatbins(reader, found.offset, found.size, first)
