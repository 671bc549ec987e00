r"""Windows libraries and programs, read as data: machine, what they import, what GPU code they embed.

    MZ ... PE\0\0             the file header: machine 0x8664 (x86-64), number of sections
    optional header           magic 0x20b (64-bit) or 0x10b (32-bit), data directories
    section headers           .text, .rdata, .nv_fatb (nvcc's device code; PE names end after eight letters)
    import directory          c10.dll, torch_cpu.dll, KERNEL32.dll, VCRUNTIME140.dll

`.nv_fatb` holds fatbins in the same form as `.nv_fatbin` of ELF: seen in the DLLs of bitsandbytes 0.50.2, which were
built with CUDA 11.8 to 13.2.
"""

from __future__ import annotations

import struct

from cudadoctor.model.record import NamedTuple

from .errors import unlike
from .fatbin import FatbinArchs, Reader, read_fatbins

_MACHINES = {0x8664: "x86_64", 0x14C: "x86", 0xAA64: "aarch64"}
_MOST_IMPORTS = 512


class PeSection(NamedTuple):
    """A section: its place in memory (relative) and in the file, bytes."""

    name: str
    address: int
    memory_size: int
    offset: int
    size: int


class Pe(NamedTuple):
    """A PE file: `bits` 32 or 64, `machine` "x86_64", "x86", "aarch64" or "machine-N", sections, directories."""

    bits: int
    machine: str
    sections: tuple[PeSection, ...]
    directories: tuple[tuple[int, int], ...]  # (relative address, size): 1 is the imports, 13 the delayed ones


def read_pe(reader: Reader) -> Pe:
    """Headers of a PE file. ParseError when it is none."""
    head = reader.read_at(0, 64)
    if len(head) < 64 or head[:2] != b"MZ":
        raise unlike("a Windows library or program", head[:8])
    start = struct.unpack_from("<I", head, 60)[0]
    data = reader.read_at(start, 24 + 240 + 40 * 96)
    if len(data) < 26 or data[:4] != b"PE\x00\x00":
        raise unlike("a Windows library or program", data[:8])
    machine, count = struct.unpack_from("<HH", data, 4)
    optional_size = struct.unpack_from("<H", data, 20)[0]
    magic = struct.unpack_from("<H", data, 24)[0]
    if magic not in (0x10B, 0x20B) or count > 96:
        raise unlike("a Windows library or program", f"magic {magic:#x}")
    bits = 64 if magic == 0x20B else 32
    at = 24 + (108 if bits == 64 else 92)
    table = 24 + optional_size
    if len(data) < table + 40 * count or len(data) < at + 4:
        raise unlike("a Windows library or program", "cut off")
    directories: list[tuple[int, int]] = []
    for number in range(min(struct.unpack_from("<I", data, at)[0], 16)):
        if at + 12 + 8 * number > table:
            break
        directories.append(struct.unpack_from("<II", data, at + 4 + 8 * number))
    sections: list[PeSection] = []
    for number in range(count):
        name, memory, address, size, offset = struct.unpack_from("<8sIIII", data, table + 40 * number)
        sections.append(PeSection(name.rstrip(b"\x00").decode("ascii", "replace"), address, memory, offset, size))
    return Pe(bits, _MACHINES.get(machine, f"machine-{machine:#x}"), tuple(sections), tuple(directories))


def _file_offset(pe: Pe, address: int) -> int:
    for one in pe.sections:
        if one.address <= address < one.address + max(one.size, one.memory_size) and address - one.address < one.size:
            return address - one.address + one.offset
    raise unlike("a Windows library or program", "an address outside its sections")


def read_imports(reader: Reader, pe: Pe | None = None) -> tuple[str, ...]:
    """Names of the DLLs that the file needs at load time, as written, in order. ParseError for damage."""
    pe = pe or read_pe(reader)
    return _names(reader, pe, 1, 20, 12)


def read_delayed_imports(reader: Reader, pe: Pe | None = None) -> tuple[str, ...]:
    """Names of the DLLs that are loaded at their first use. ParseError for damage."""
    pe = pe or read_pe(reader)
    return _names(reader, pe, 13, 32, 4)


def _names(reader: Reader, pe: Pe, directory: int, size: int, name_at: int) -> tuple[str, ...]:
    if directory >= len(pe.directories) or not pe.directories[directory][0]:
        return ()
    data = reader.read_at(_file_offset(pe, pe.directories[directory][0]), size * _MOST_IMPORTS)
    names: list[str] = []
    for at in range(0, len(data) - size + 1, size):
        address = struct.unpack_from("<I", data, at + name_at)[0]
        if not address:
            break
        text = reader.read_at(_file_offset(pe, address), 260).split(b"\x00", 1)[0]
        names.append(text.decode("ascii", "replace"))
    return tuple(names)


def pe_archs(reader: Reader, first: int = 20) -> FatbinArchs | None:
    """The GPU architectures embedded in a DLL; None when it has no GPU code. ParseError for damage.

    See the head of this file.
    """
    for one in read_pe(reader).sections:
        if one.name == ".nv_fatb" and one.size:
            return read_fatbins(reader, one.offset, min(one.size, one.memory_size or one.size), first)
    return None
