"""GPU architectures that are embedded in a library."""

from __future__ import annotations

import mmap
import subprocess
from pathlib import Path

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import BytesReader, FatbinArchs, find_arch_string, read_fatbins

from .binaries import CountingReader, fatbin

TORCH = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


def read(*fatbins: bytes, first: int = 20) -> FatbinArchs:
    data = b"".join(fatbins)
    return read_fatbins(BytesReader(data), 0, len(data), first)


def test_the_set_that_the_fatbins_share() -> None:
    got = read(*[fatbin(*TORCH)] * 5)
    assert got == FatbinArchs(TORCH, (), 5, 5, True)


def test_ptx_is_kept_apart_from_machine_code() -> None:
    got = read(fatbin("sm_80", "sm_90", "compute_90"))
    assert (got.sass, got.ptx) == (("sm_80", "sm_90"), ("compute_90",))


def test_suffixes() -> None:
    got = read(fatbin("sm_90", "sm_90a", "sm_100f", "compute_120a"))
    assert (got.sass, got.ptx) == (("sm_90", "sm_90a", "sm_100f"), ("compute_120a",))


@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_source_built_for_fewer_or_more_does_not_count(at: int) -> None:
    fatbins = [fatbin(*TORCH)] * 4
    for odd in (fatbin("sm_90a"), fatbin(*TORCH, "sm_103")):
        mixed = [*fatbins[:at], odd, *fatbins[at:]]
        got = read(*mixed)
        assert (got.sass, got.fatbins, got.agreeing) == (TORCH, 5, 4)


def test_of_sets_equally_common_the_larger() -> None:
    assert read(fatbin("sm_90a"), fatbin(*TORCH)).sass == TORCH


def test_only_the_first_ones_are_read() -> None:
    data = fatbin(*TORCH) * 30
    reader = CountingReader(data)
    got = read_fatbins(reader, 0, len(data), first=10)
    assert (got.fatbins, got.complete) == (10, False)
    assert len(reader.reads) <= 10 * len(TORCH)
    assert sum(length for _, length in reader.reads) < 10 * len(TORCH) * 100
    assert [at for at, _ in reader.reads] == sorted(at for at, _ in reader.reads)


def test_padding_between_fatbins_and_long_entry_headers() -> None:
    one = fatbin("sm_75", "sm_120", payload=999, entry_header=112)
    padded = one + b"\x00" * (-len(one) % 8 + 24)
    data = b"junk" * 4 + padded * 3
    got = read_fatbins(BytesReader(data), 16, len(data) - 16)
    assert (got.sass, got.fatbins) == (("sm_75", "sm_120"), 1)  # 999 bytes leave the next header unaligned
    one = fatbin("sm_75", "sm_120", payload=1000, entry_header=112)
    assert read((one + b"\x00" * 16) * 3).fatbins == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 64,
        b"\x50\xed\x55\xba",
        fatbin(*TORCH)[:200],
        fatbin(*TORCH)[:15],
        b"\x50\xed\x55\xba\x01\x00\x10\x00" + b"\xff" * 8 + bytes(200),
        b"\x50\xed\x55\xba\x01\x00\x00\x00" + b"\x00" * 8 + bytes(200),
        fatbin(*TORCH)[:16] + bytes(len(fatbin(*TORCH))),
    ],
    ids=["empty", "zeros", "magic", "cut off", "header cut off", "huge", "header of size 0", "entries of size 0"],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(ParseError):
        read(data)


def test_damage_after_some_good_ones_keeps_them() -> None:
    got = read(fatbin(*TORCH), fatbin(*TORCH), b"\x50\xed\x55\xba\x01\x00\x10\x00" + b"\xff" * 8)
    assert (got.sass, got.fatbins, got.complete) == (TORCH, 2, False)


def test_real_nvcc(tmp_path: Path, real_nvcc: str) -> None:
    """What nvcc itself writes: this is where the flags of the suffixes come from."""
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(float *a) { a[threadIdx.x] = 1; }\n")
    targets = {"sm_90": "compute_90", "sm_90a": "compute_90a", "sm_120": "compute_120", "compute_120": "compute_120"}
    options = [word for code, arch in targets.items() for word in ("-gencode", f"arch={arch},code={code}")]
    output = tmp_path / "k.fatbin"
    done = subprocess.run(
        [real_nvcc, "-fatbin", *options, "-o", str(output), str(source)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    data = output.read_bytes()
    got = read_fatbins(BytesReader(data), 0, len(data))
    assert (got.sass, got.ptx) == (("sm_90", "sm_90a", "sm_120"), ("compute_120",))


@pytest.mark.parametrize(
    ("data", "archs"),
    [
        (b"\x00sm_75 sm_80 sm_86 sm_90 sm_100 sm_120\x00", TORCH),
        (b"text\x00sm_75;sm_80;compute_90\x00more", ("sm_75", "sm_80", "compute_90")),
        (b"\x00sm_80 sm_90a \x00", ("sm_80", "sm_90a")),
        (b"\x00sm_80 sm_90\x00 \x00sm_75 sm_80 sm_90\x00", ("sm_75", "sm_80", "sm_90")),
        (b"\x00sm_80\x00", None),
        (b"xsm_75 sm_80\x00", None),
        # torch 2.8.0 and 2.9.1 for x86_64: the compiler kept the string before it without its end.
        (b"Device device, std::string ipc_hsm_75 sm_80 sm_90\x00\x00/pytorch/", ("sm_75", "sm_80", "sm_90")),
        (b"for sm_75 sm_80 sm_86 sm_90\x00\x00sm_80 sm_90\x00", ("sm_80", "sm_90")),
        (b"\x00sm_75 sm_80", None),
        (b"\x00sm_75 and sm_80\x00", None),
        (b"", None),
    ],
)
def test_arch_string(data: bytes, archs: tuple[str, ...] | None) -> None:
    assert find_arch_string(data) == archs


def test_arch_string_in_a_memory_map(tmp_path: Path) -> None:
    path = tmp_path / "libtorch_python.so"
    path.write_bytes(b"\x00" * 100000 + b"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120" + b"\x00" * 100000)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert find_arch_string(data) == TORCH
