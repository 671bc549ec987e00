r"""/etc/ld.so.cache: which file the loader takes for a library name.

New format (glibc 2.2 on; since 2.32 alone in the file, before that behind an old one and aligned to 8):

    header     "glibc-ld.so.cache1.1", u32 entries, u32 size of strings, u8 flags, 3 bytes, u32 extension, 12 bytes
    entry      i32 flags, u32 name, u32 path, u32 OS version, u64 hwcap; offsets count from the header
    strings    libcuda.so.1\0/usr/lib/x86_64-linux-gnu/libcuda.so.1\0...

Old format:

    header     "ld.so-1.7.0", padded to 12, u32 entries
    entry      i32 flags, u32 name, u32 path; offsets count from the strings
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from cudadoctor.model.record import NamedTuple

from .errors import unlike

_NEW = b"glibc-ld.so.cache1.1"
_OLD = b"ld.so-1.7.0"

# Flags, second byte: the machine and its ABI (glibc's FLAG_* constants); 0x03 in the first byte: a glibc 2 library.
_MACHINES = {
    0x0000: "x86",
    0x0300: "x86_64",
    0x0500: "ppc64le",
    0x0800: "x32",
    0x0900: "arm",
    0x0A00: "aarch64",
    0x0B00: "arm",
}


class CachedLibrary(NamedTuple):
    """One entry: the path, and the machine it is for ("x86_64", "x86", "aarch64", ...; None for one that we do not
    know).
    """

    path: str
    machine: str | None


def parse_ld_so_cache(data: bytes, names: Iterable[str] | None = None) -> dict[str, list[CachedLibrary]]:
    """Entries by library name, in the loader's order of preference. ParseError when it is no such cache.

    With `names` only those are looked up, which is faster.
    """
    rows, base = _rows(data)
    wanted = None if names is None else {name.encode("utf-8", "surrogateescape") for name in names}
    if wanted is not None:
        # The few offsets at which a wanted name stands, so that no string need be cut out for the other entries.
        offsets = {at - base for name in wanted for at in _occurrences(data, name + b"\x00", base)}
        rows = [row for row in rows if row[1] in offsets]
    libraries: dict[str, list[CachedLibrary]] = {}
    for flags, key, value in rows:
        name, path = _string(data, base + key), _string(data, base + value)
        if name and path and (wanted is None or name in wanted):
            entry = CachedLibrary(path.decode("utf-8", "replace"), _MACHINES.get(flags & 0xFF00))
            libraries.setdefault(name.decode("utf-8", "replace"), []).append(entry)
    return libraries


def _occurrences(data: bytes, needle: bytes, start: int) -> Iterable[int]:
    # ldconfig stores a name that is the tail of another string (its own path, mostly) inside that string.
    at = data.find(needle, start)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def _rows(data: bytes) -> tuple[list[tuple[int, int, int]], int]:
    start = 0
    if data.startswith(_OLD):
        if len(data) < 16:
            raise unlike("ld.so.cache", "cut off")
        count = struct.unpack_from("<I", data, 12)[0]
        strings = 16 + 12 * count
        if strings > len(data):
            raise unlike("ld.so.cache", "cut off")
        start = (strings + 7) & ~7
        if not data.startswith(_NEW, start):
            return list(struct.iter_unpack("<iII", data[16:strings])), strings
    if not data.startswith(_NEW, start) or len(data) < start + 48:
        raise unlike("ld.so.cache", data[:24])
    count = struct.unpack_from("<I", data, start + 20)[0]
    end = start + 48 + 24 * count
    if end > len(data):
        raise unlike("ld.so.cache", "cut off")
    return [(row[0], row[1], row[2]) for row in struct.iter_unpack("<iIIIQ", data[start + 48 : end])], start


def _string(data: bytes, offset: int) -> bytes:
    end = data.find(b"\x00", offset, offset + 4096)
    return data[offset:end] if end >= 0 else b""
