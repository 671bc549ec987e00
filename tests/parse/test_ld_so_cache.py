"""The loader's cache, hand-made and this machine's own."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.ld_so_cache import CachedLibrary, parse_ld_so_cache

from .binaries import ld_so_cache

LIBRARIES = [
    ("libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", 0x0303),
    ("libcuda.so.1", "/usr/lib/i386-linux-gnu/libcuda.so.1", 0x0003),
    ("libcuda.so", "/usr/lib/x86_64-linux-gnu/libcuda.so", 0x0303),
    ("libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.535.1", 0x0303),
    ("libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", 0x0A03),
    ("libodd.so", "/lib/libodd.so", 0x7703),
]


@pytest.mark.parametrize("old_format_before", [False, True])
@pytest.mark.parametrize("names", [None, ["libcuda.so.1", "libnvidia-ml.so.1", "libmissing.so"]])
def test_cache(old_format_before: bool, names: list[str] | None) -> None:
    got = parse_ld_so_cache(ld_so_cache(LIBRARIES, old_format_before), names)
    assert got["libcuda.so.1"] == [
        CachedLibrary("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "x86_64"),
        CachedLibrary("/usr/lib/i386-linux-gnu/libcuda.so.1", "x86"),
    ]
    assert got["libnvidia-ml.so.1"][0].path == "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.535.1"
    if names is None:
        assert sorted(got) == sorted({name for name, _, _ in LIBRARIES})
        assert (got["libc.so.6"][0].machine, got["libodd.so"][0].machine) == ("aarch64", None)
    else:
        assert sorted(got) == ["libcuda.so.1", "libnvidia-ml.so.1"]


def test_old_format_alone() -> None:
    strings = b"libc.so.6\x00/lib/libc.so.6\x00"
    data = b"ld.so-1.7.0\x00" + struct.pack("<I", 1) + struct.pack("<iII", 3, 0, 10) + strings
    assert parse_ld_so_cache(data) == {"libc.so.6": [CachedLibrary("/lib/libc.so.6", "x86")]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ld.so",
        b"glibc-ld.so.cache1.1",
        b"ld.so-1.7.0\x00\xff\xff\xff\xff",
        ld_so_cache(LIBRARIES)[:100],
        b"glibc-ld.so.cache1.1" + b"\xff" * 28,
    ],
    ids=["empty", "other", "magic", "old, cut off", "cut off", "all ones"],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_ld_so_cache(data)


@pytest.mark.skipif(not Path("/etc/ld.so.cache").exists(), reason="no /etc/ld.so.cache here")
def test_real_cache() -> None:
    data = Path("/etc/ld.so.cache").read_bytes()
    whole = parse_ld_so_cache(data)
    assert all(
        Path(one.path).name.startswith("lib") or "/" in one.path for entries in whole.values() for one in entries
    )
    for name in list(whole)[:50]:
        assert parse_ld_so_cache(data, [name]) == {name: whole[name]}
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig:
        text = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, timeout=60, check=True).stdout
        printed = re.findall(r"^\t(\S+) \(.*\) => (\S+)$", text, re.MULTILINE)
        assert printed == [(name, path) for name, path in printed if path in [one.path for one in whole[name]]]
        assert len(printed) == sum(map(len, whole.values()))
