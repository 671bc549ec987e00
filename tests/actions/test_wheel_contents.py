"""What is read out of a wheel of torch: laid out like the real ones, with next to nothing inside."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import pytest
import requests
from bench.range_server import RangeServer
from bench.wheels import elf, fatbin, tiny_wheel, torch_version_py, torch_wheel

from cudadoctor.actions.remote_wheel import RemoteError, RemoteWheel
from cudadoctor.actions.wheel_contents import read_contents, read_gpu_code
from cudadoctor.parse.release_archs import BuildKey

ARCH_STRING = b"\0sm_75 sm_80 sm_120 compute_120\0"
NEW_STRINGS = b"\0_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE\0"
OLD_STRINGS = b"\0_ZN3c105ErrorC2ENS_14SourceLocationESs\0"
# torch 2.13 and later, shortened.
TABLE = """\
# TORCH_CUDA_ARCH_LIST for PyTorch releases, keyed by host arch.
PYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {
    "12.6": {
        "x86_64": {50, 60, 70, 75, 80, 86, 90},
        "aarch64": {80, 90},
    },
    "13.0": {
        "x86_64": {75, 80, 86, 90, 100, 120},
        "aarch64": {80, 90, 100, 110, 120},
    },
}

def _check_capability():
    pass
"""


def files(**more: bytes) -> dict[str, str | bytes]:
    found: dict[str, str | bytes] = {
        "torch/version.py": torch_version_py("2.14.1+cu130", "13.0"),
        "torch/cuda/__init__.py": TABLE,
        "torch/lib/libtorch_python.so": elf({".rodata": ARCH_STRING}),
        "torch/lib/libc10.so": elf({".dynstr": NEW_STRINGS}),
    }
    found.update({f"torch/lib/{name}.so": data for name, data in more.items()})
    return found


@pytest.fixture
def server() -> Iterator[RangeServer]:
    server = RangeServer("torch-2.14.1-cp312-cp312-manylinux_2_28_x86_64.whl", b"")
    yield server
    server.close()


def opened(server: RangeServer, content: Mapping[str, str | bytes]) -> RemoteWheel:
    server.data = tiny_wheel(
        "torch", "2.14.1", requires=["filelock", "triton~=3.8.0; platform_system == 'Linux'"],
        requires_python=">=3.10", tag="cp312-cp312-manylinux_2_28_x86_64", files=content,
    ).data  # fmt: skip
    session = requests.Session()
    session.trust_env = False
    return RemoteWheel(session, server.url())


def test_a_cuda_build(server: RangeServer) -> None:
    found = read_contents(opened(server, files()))
    assert (found.version, found.cuda, found.requires_python) == ("2.14.1+cu130", "13.0", ">=3.10")
    assert found.sass == ("75", "80", "120")
    assert found.ptx == ("120",)
    assert found.cxx11_abi is True
    assert [(one.name, one.specifier) for one in found.requirements] == [("filelock", ""), ("triton", "~=3.8.0")]
    assert found.announced[BuildKey("12.6", "aarch64")].sass == ("80", "90")
    assert found.size == len(server.data)


def test_the_old_strings_of_libstdcxx(server: RangeServer) -> None:
    content = {**files(), "torch/lib/libc10.so": elf({".dynstr": OLD_STRINGS})}
    assert read_contents(opened(server, content)).cxx11_abi is False


@pytest.mark.parametrize(("flags", "asks"), [(6, ()), (7, ("libtorch_cpu.so",))], ids=["rw", "rwx"])
def test_a_library_that_asks_for_an_executable_stack(server: RangeServer, flags: int, asks: tuple[str, ...]) -> None:
    """torch 1.10 to 1.12 for x86_64: glibc from 2.41 on does not load their libtorch_cpu.so."""
    header = bytearray(elf({}))
    struct.pack_into("<QQ", header, 32, 64, 0)  # program headers right behind the header, no sections
    struct.pack_into("<HHHHH", header, 54, 56, 2, 64, 0, 0)
    headers = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0, 0, 0) + struct.pack("<IIQQQQQQ", 0x6474E551, flags, *[0] * 6)
    library = bytes(header[:64]) + headers
    assert read_contents(opened(server, files(libtorch_cpu=library))).executable_stack == asks


def test_a_cpu_build_names_no_gpu(server: RangeServer) -> None:
    server.data = torch_wheel("2.14.1", "cpu", python="3.12", platform="win_amd64").data
    session = requests.Session()
    session.trust_env = False
    wheel = RemoteWheel(session, server.url())
    found = read_contents(wheel)
    assert (found.cuda, found.archs, found.glibc, found.cxx11_abi, found.announced) == (None, (), None, None, {})
    assert read_gpu_code(wheel) is None


@pytest.mark.parametrize("library", ["libtorch_cuda", "libtorch_cuda_cu"])
def test_the_code_itself(server: RangeServer, library: str) -> None:
    code = elf({".text": b"\x90" * 3_000_000, ".nv_fatbin": fatbin(["75", "80", "ptx80"]) * 3})
    found = read_gpu_code(opened(server, files(**{library: code})))
    assert found is not None
    assert (found.sass, found.ptx, found.agreeing) == (("sm_75", "sm_80"), ("compute_80",), 3)


def test_kernels_of_a_linked_in_library_are_not_the_build_s(server: RangeServer) -> None:
    """torch 2.15 for aarch64 carries 29 kernels for sm_100 and 29 for sm_90 as plain data, before its own code."""
    data = fatbin(["100"]) * 29 + fatbin(["90"]) * 29
    code = elf({".rodata": data + b"\xff" * 4096, ".nv_fatbin": fatbin(["80", "90", "100"]) * 25})
    found = read_gpu_code(opened(server, files(libtorch_cuda=code)))
    assert found is not None
    assert found.sass == ("sm_80", "sm_90", "sm_100")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"torch/version.py": "nothing of the kind"}, "this is not torch/version.py"),
        ({"torch/cuda/__init__.py": TABLE.replace("{80, 90}", "make()")}, "laid out in a way not known here"),
        ({"torch/lib/libtorch_python.so": b"MZ"}, "this is not an ELF file"),
        ({"torch-2.14.0.dist-info/METADATA": "Name: torch"}, "has 2 files like *.dist-info/METADATA, not one"),
    ],
)
def test_a_wheel_that_is_not_torch_s(server: RangeServer, change: Mapping[str, str | bytes], said: str) -> None:
    with pytest.raises(RemoteError) as raised:
        read_contents(opened(server, {**files(), **change}))
    assert said in str(raised.value)
