"""Windows libraries, hand-made, and the real launchers that pip carries."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from cudadoctor.parse import pe
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import BytesReader

from . import binaries
from .binaries import CountingReader, fatbin


@pytest.mark.parametrize(
    ("bits", "machine", "name"),
    [(64, 0x8664, "x86_64"), (32, 0x14C, "x86"), (64, 0xAA64, "aarch64"), (64, 1, "machine-0x1")],
)
def test_machine(bits: int, machine: int, name: str) -> None:
    got = pe.read_pe(BytesReader(binaries.pe(bits=bits, machine=machine)))
    assert (got.bits, got.machine) == (bits, name)


def test_imports() -> None:
    names = ("c10.dll", "torch_cpu.dll", "KERNEL32.dll", "VCRUNTIME140.dll")
    reader = CountingReader(binaries.pe(imports=names, delayed=("cudnn64_9.dll",)))
    assert pe.read_imports(reader) == names
    assert pe.read_delayed_imports(reader) == ("cudnn64_9.dll",)
    assert pe.read_imports(BytesReader(binaries.pe())) == ()
    assert pe.read_delayed_imports(BytesReader(binaries.pe(imports=names))) == ()


def test_gpu_code() -> None:
    got = pe.pe_archs(BytesReader(binaries.pe(imports=("c10.dll",), gpu_code=fatbin("sm_80", "sm_120") * 3)))
    assert got is not None and (got.sass, got.fatbins) == (("sm_80", "sm_120"), 3)
    assert pe.pe_archs(BytesReader(binaries.pe())) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"MZ",
        b"\x7fELF" + bytes(100),
        b"MZ" + bytes(62),
        b"MZ".ljust(60, b"\x00") + b"\xff" * 4,
        binaries.pe()[:150],
    ],
    ids=["empty", "magic", "ELF", "no PE header", "far away", "cut off"],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(ParseError):
        pe.read_pe(BytesReader(data))


def launchers() -> dict[str, bytes]:
    import ensurepip

    folder = Path(ensurepip.__file__).parent / "_bundled"
    found = {}
    for wheel in folder.glob("pip-*.whl"):
        with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
            for name in archive.namelist():
                if name.endswith(".exe"):
                    found[name.rsplit("/", 1)[-1]] = archive.read(name)
    return found


@pytest.mark.parametrize(
    ("name", "bits", "machine"), [("t64.exe", 64, "x86_64"), ("t32.exe", 32, "x86"), ("t64-arm.exe", 64, "aarch64")]
)
def test_real_launchers(name: str, bits: int, machine: str) -> None:
    files = launchers()
    if name not in files:
        pytest.skip("this Python's pip carries no such launcher")
    reader = CountingReader(files[name])
    got = pe.read_pe(reader)
    assert (got.bits, got.machine) == (bits, machine)
    assert ".text" in [one.name for one in got.sections]
    assert "kernel32.dll" in [one.lower() for one in pe.read_imports(reader, got)]
    assert len(reader.reads) < 20
