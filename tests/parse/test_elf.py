"""Shared libraries of Linux, hand-made and real."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cudadoctor.parse import elf
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import BytesReader

from . import binaries
from .binaries import CountingReader, fatbin


@pytest.mark.parametrize(
    ("bits", "machine", "order", "name"),
    [
        (64, 62, "<", "x86_64"),
        (64, 183, "<", "aarch64"),
        (32, 3, "<", "x86"),
        (32, 40, ">", "arm"),
        (64, 9999, "<", "machine-9999"),
    ],
)
def test_header_and_sections(bits: int, machine: int, order: str, name: str) -> None:
    reader = BytesReader(binaries.elf({".rodata": b"hello", ".nv_fatbin": b"12345678"}, bits, machine, order))
    head = elf.read_elf(reader)
    assert (head.bits, head.machine) == (bits, name)
    sections = elf.read_sections(reader)
    assert list(sections) == [".rodata", ".nv_fatbin", ".shstrtab"]
    found = elf.section(reader, ".nv_fatbin")
    assert found is not None
    assert reader.read_at(found.offset, found.size) == b"12345678"
    assert elf.section(reader, ".text") is None


def test_gpu_code() -> None:
    data = binaries.elf({".text": bytes(5000), ".nv_fatbin": fatbin("sm_80", "sm_90", payload=50000) * 4})
    reader = CountingReader(data)
    got = elf.elf_archs(reader, first=2)
    assert got is not None and (got.sass, got.fatbins) == (("sm_80", "sm_90"), 2)
    assert len(reader.reads) <= 7 and sum(length for _, length in reader.reads) < 2000


def test_no_gpu_code() -> None:
    assert elf.elf_archs(BytesReader(binaries.elf({".text": b"x"}))) is None
    assert elf.elf_archs(BytesReader(binaries.elf({".nv_fatbin": b""}))) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"MZ",
        b"\x7fELF",
        b"\x7fELF\x02\x01\x01" + bytes(20),
        b"\x7fELF\x03\x01\x01" + bytes(60),
        b"\x7fELF\x02\x01\x01" + b"\xff" * 60,
        binaries.elf({".rodata": b"hello"})[:-10],
    ],
    ids=["empty", "PE", "magic", "short", "class 3", "all ones", "cut off"],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(ParseError):
        elf.read_sections(BytesReader(data))


def build(tmp_path: Path, *options: str) -> CountingReader:
    source = tmp_path / "a.c"
    source.write_text('#include <stdlib.h>\n#include <math.h>\ndouble f(double x) { return atof("1") + pow(x, x); }\n')
    library = tmp_path / "liba.so"
    command = ["cc", "-shared", "-fPIC", "-O0", "-o", str(library), str(source), *options]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    except FileNotFoundError:
        pytest.skip("no C compiler here")
    return CountingReader(library.read_bytes())


@pytest.mark.real_part("C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="the compiler does not write ELF here")
def test_real_library(tmp_path: Path) -> None:
    reader = build(
        tmp_path,
        "-Wl,-soname,liba.so.7",
        "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib:/opt/x",
        "-Wl,--no-as-needed",
        "-lm",
    )
    got = elf.read_dynamic(reader)
    assert got.soname == "liba.so.7"
    assert got.needed[0] == "libm.so.6" and got.needed[-1] == "libc.so.6"
    assert (got.runpath, got.rpath) == ("$ORIGIN/../lib:/opt/x", None)
    assert got.glibc is not None and re.fullmatch(r"2\.[0-9]+(\.[0-9]+)?", got.glibc)
    assert elf.elf_archs(reader) is None
    assert elf.read_dynamic(reader, with_glibc=False) == got._replace(glibc=None)


@pytest.mark.real_part("C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="the compiler does not write ELF here")
def test_real_library_with_the_old_path_tag(tmp_path: Path) -> None:
    got = elf.read_dynamic(build(tmp_path, "-Wl,--disable-new-dtags,-rpath,/opt/old"))
    assert (got.runpath, got.rpath, got.soname) == (None, "/opt/old", None)


@pytest.mark.real_part("binutils")
@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf here")
@pytest.mark.parametrize("name", ["libstdc++.so.6", "libc.so.6", "python"])
def test_readelf_agrees(name: str) -> None:
    path = Path(sys.executable).resolve() if name == "python" else Path("/lib/x86_64-linux-gnu") / name
    if not path.exists():
        pytest.skip(f"no {path} here")
    text = subprocess.run(["readelf", "-dVW", str(path)], capture_output=True, text=True, timeout=60, check=True).stdout
    reader = CountingReader(path.read_bytes())
    got = elf.read_dynamic(reader)
    assert list(got.needed) == re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert [got.soname] == (re.findall(r"\(SONAME\).*\[(.*)\]", text) or [None])
    needs = text.partition("Version needs section")[2]
    wanted = [tuple(map(int, number.split("."))) for number in re.findall(r"Name: GLIBC_([0-9.]+)", needs)]
    assert got.glibc == ".".join(map(str, max(wanted)))
    assert len(reader.reads) < 100
    sections = subprocess.run(
        ["readelf", "-SW", str(path)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert sorted(elf.read_sections(reader)) == sorted(set(re.findall(r"\[ *[0-9]+\] ([._a-zA-Z]\S*)", sections)))


def test_a_static_file_needs_nothing() -> None:
    assert elf.read_dynamic(BytesReader(binaries.elf({".text": b"x"}))) == (None, (), None, None, None)
