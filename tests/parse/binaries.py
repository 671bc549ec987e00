"""Small ELF and PE files, loader caches and fatbins, built byte by byte: the formats in the other direction."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from cudadoctor.parse.arch import parse_arch


class CountingReader:
    """A Reader over bytes that remembers what was read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def read_at(self, offset: int, length: int) -> bytes:
        assert offset >= 0 and length >= 0
        self.reads.append((offset, length))
        return self.data[offset : offset + length]


def fatbin(*names: str, payload: int = 1000, entry_header: int = 64) -> bytes:
    """One fatbin with an entry for each name: "sm_86" is machine code, "compute_86" is PTX."""
    entries = b""
    for name in names:
        arch = parse_arch(name)
        kind = 1 if arch.kind == "compute" else 2
        flags = 0x11 | {"": 0, "a": 1 << 20, "f": 1 << 21}[arch.suffix]
        number = arch.major * 10 + arch.minor
        head = struct.pack(
            "<HHIQIIIIIIQQQ", kind, 0x101, entry_header, payload, 0, 0, 0x10008, number, 0, 0, flags, 0, 0
        )
        entries += head.ljust(entry_header, b"\x00") + b"\xab" * payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def elf(sections: Mapping[str, bytes], bits: int = 64, machine: int = 62, order: str = "<") -> bytes:
    """A file with these sections and nothing to load."""
    head = {64: 64, 32: 52}[bits]
    names = b"\x00"
    body = b""
    rows = [(0, 0, 0)]
    for name, data in [*sections.items(), (".shstrtab", b"")]:
        at = len(names)
        names += name.encode() + b"\x00"
        if name == ".shstrtab":
            data = names
        body = body.ljust(-(-len(body) // 16) * 16, b"\x00")
        rows.append((at, head + len(body), len(data)))
        body += data
    start = head + len(body)
    if bits == 64:
        table = b"".join(
            struct.pack(order + "IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in rows
        )
        rest = struct.pack(
            order + "HHIQQQIHHHHHH", 3, machine, 1, 0, 0, start, 0, 64, 56, 0, 64, len(rows), len(rows) - 1
        )
    else:
        table = b"".join(
            struct.pack(order + "IIIIIIIIII", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in rows
        )
        rest = struct.pack(
            order + "HHIIIIIHHHHHH", 3, machine, 1, 0, 0, start, 0, 52, 32, 0, 40, len(rows), len(rows) - 1
        )
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    return ident + rest + body + table


def pe(
    imports: Sequence[str] = (),
    delayed: Sequence[str] = (),
    gpu_code: bytes = b"",
    bits: int = 64,
    machine: int = 0x8664,
) -> bytes:
    """A DLL with one data section, and `.nv_fatb` where there is GPU code."""
    address = 0x1000
    tables = {1: (20, 12, imports), 13: (32, 4, delayed)}
    data = bytearray()
    directories = {}
    for number, (size, name_at, names) in tables.items():
        if names:
            start = len(data)
            data += bytes(size * (len(names) + 1))
            directories[number] = (address + start, size * (len(names) + 1))
            for index, name in enumerate(names):
                struct.pack_into("<I", data, start + size * index + name_at, address + len(data))
                data += name.encode() + b"\x00"
    sections = [(b".rdata", address, bytes(data) or b"\x00")]
    if gpu_code:
        sections.append((b".nv_fatb", 0x100000, gpu_code))
    optional = struct.pack("<H", 0x20B if bits == 64 else 0x10B).ljust(108 if bits == 64 else 92, b"\x00")
    optional += struct.pack("<I", 16) + b"".join(
        struct.pack("<II", *directories.get(number, (0, 0))) for number in range(16)
    )
    coff = struct.pack("<HHIIIHH", machine, len(sections), 0, 0, 0, len(optional), 0x2022)
    offset = 128 + 4 + len(coff) + len(optional) + 40 * len(sections)
    table = body = b""
    for section, at, content in sections:
        table += struct.pack("<8sIIIIIIHHI", section, len(content), at, len(content), offset + len(body), 0, 0, 0, 0, 0)
        body += content
    head = b"MZ".ljust(60, b"\x00") + struct.pack("<I", 128)
    return head.ljust(128, b"\x00") + b"PE\x00\x00" + coff + optional + table + body


def ld_so_cache(libraries: Sequence[tuple[str, str, int]], old_format_before: bool = False) -> bytes:
    """A loader cache: (name, path, flags). As ldconfig does, a name that ends a path is stored inside that path."""
    start = 48 + 24 * len(libraries)
    strings = b""
    rows = b""
    for name, path, flags in libraries:
        value = start + len(strings)
        strings += path.encode() + b"\x00"
        if path.endswith("/" + name):
            key = value + len(path) - len(name)
        else:
            key = start + len(strings)
            strings += name.encode() + b"\x00"
        rows += struct.pack("<iIIIQ", flags, key, value, 0, 0)
    head = b"glibc-ld.so.cache1.1" + struct.pack("<IIBxxxIIII", len(libraries), len(strings), 2, 0, 0, 0, 0)
    new = head + rows + strings
    if not old_format_before:
        return new
    old = b"ld.so-1.7.0\x00" + struct.pack("<I", 1) + struct.pack("<iII", 3, 0, 0)
    return old.ljust(-(-len(old) // 8) * 8, b"\x00") + new
