"""What a wheel of torch says of itself: the last word about what it needs and which GPUs it has code for.

    torch-2.14.1.dist-info/METADATA     Requires-Python, Requires-Dist (triton, nvidia-*)
    torch/version.py                    cuda = '13.0'
    torch/lib/libtorch_python.so        sm_75 sm_80 ... (torch.cuda.get_arch_list()), GLIBC_2.28
    torch/lib/libc10.so                 symbols with or without __cxx11
    torch/lib/*.so                      whether they ask for an executable stack (1.10 to 1.12 for x86_64 do)
    torch/cuda/__init__.py              since 2.13 the GPU lists of all CUDA builds of the release

A few MB of the wheel are read. :func:`read_gpu_code` reads some tens more, to see the code itself.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.dist_info import Requirement, parse_metadata
from cudadoctor.parse.elf import BytesReader, read_dynamic, read_elf
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import FatbinArchs, find_arch_string, read_fatbins
from cudadoctor.parse.release_archs import BuildArchs, BuildKey, parse_release_archs
from cudadoctor.parse.torch_version import parse_torch_version

from .remote_wheel import RemoteError, RemoteWheel

_PYTHON_LIBRARY = "torch/lib/libtorch_python.so"
# The first that is there: for some releases the GPU code was split off.
_GPU_LIBRARIES = ("torch/lib/libtorch_cuda_cu.so", "torch/lib/libtorch_cuda.so")
_BASE_LIBRARY = "torch/lib/libc10.so"
_CUDA_MODULE = "torch/cuda/__init__.py"
# Small, and linked with the same C library as the big ones.
_LIBRARIES = (_PYTHON_LIBRARY, _BASE_LIBRARY, "torch/lib/libc10_cuda.so", "torch/lib/libshm.so")
_SHARED = re.compile(r"torch/lib/[^/]+\.so[^/]*\Z")
_PT_GNU_STACK = 0x6474E551
_FATBIN = b"\x50\xed\x55\xba\x01\x00\x10\x00"  # magic, version and header size of the first fatbin
_MOST_BEFORE_CODE = 1 << 30


class UnlikeWheel(RemoteError):
    """The file was read, and installers would refuse it: torch 1.7.0 for Windows on PyPI has its METADATA in a folder
    ".dist.info"."""


class WheelContents(NamedTuple):
    """One wheel of torch, from its own files."""

    file: str
    size: int
    """Bytes of the wheel."""
    version: str
    """With the local part that the build has: "2.14.1+cu130", whatever the file is called."""
    cuda: Optional[str]
    """ "13.0"; None: a CPU build."""
    requires_python: Optional[str]
    requirements: tuple[Requirement, ...]
    """All of them, whatever their markers."""
    archs: tuple[str, ...]
    """What torch.cuda.get_arch_list() gives: "sm_75", "compute_120". Empty where there is no such string."""
    glibc: Optional[str]
    """The highest GLIBC_ symbol that its small libraries ask for; None outside Linux."""
    cxx11_abi: Optional[bool]
    """Of libc10's own symbols; None outside Linux."""
    executable_stack: tuple[str, ...]
    """Libraries that ask for an executable stack ("libtorch_cpu.so"): glibc from 2.41 on does not load them."""
    announced: Mapping[BuildKey, BuildArchs]
    """The GPU lists of all Linux builds of the release, from the table that torch carries of them; empty before it had
    one. That a build stands there does not prove that it was published."""

    @property
    def sass(self) -> tuple[str, ...]:
        """Targets of machine code: "75"."""
        return tuple(name[3:] for name in self.archs if name.startswith("sm_"))

    @property
    def ptx(self) -> tuple[str, ...]:
        return tuple(name[8:] for name in self.archs if name.startswith("compute_"))


def read_contents(wheel: RemoteWheel) -> WheelContents:
    """Read one wheel of torch. RemoteError where a part that every torch has is missing or is not what it should be;
    UnlikeWheel where it cannot even be installed."""
    names = set(wheel.names())
    metadata = _one(wheel, names, r"[^/]+\.dist-info/METADATA")
    try:
        own = parse_torch_version(_text(wheel, "torch/version.py"))
        meta = parse_metadata(_text(wheel, metadata))
        archs: tuple[str, ...] = ()
        glibc: list[str] = []
        abi = None
        for name in _LIBRARIES:
            if name not in names:
                continue
            data = wheel.read(name)
            needs = read_dynamic(BytesReader(data)).glibc
            if needs:
                glibc.append(needs)
            if name == _PYTHON_LIBRARY:
                archs = find_arch_string(data) or ()
            elif name == _BASE_LIBRARY:
                abi = _cxx11_abi(data)
        stack = tuple(
            name.rpartition("/")[2]
            for name in wheel.names()
            if _SHARED.match(name) and _asks_for_executable_stack(wheel.read_part(name, 4096))
        )
        announced = parse_release_archs(_text(wheel, _CUDA_MODULE)) if _CUDA_MODULE in names else {}
    except ParseError as error:
        raise RemoteError(f"{wheel.name}: {error}") from None
    return WheelContents(
        wheel.name,
        wheel.size,
        own.version,
        own.cuda,
        meta.requires_python,
        tuple(meta.requirements),
        archs,
        max(glibc, key=_numbers) if glibc else None,
        abi,
        stack,
        announced,
    )


def read_gpu_code(wheel: RemoteWheel) -> Optional[FatbinArchs]:
    """The targets of the first fatbins in the GPU library: what code there is, whatever the wheel says of itself.

    None: the wheel has no such library, or no code in it. Some tens of MB are read: the code lies behind the host's.
    Which section a fatbin lies in stands at the very end of the library, so the first row of fatbins is taken that hold
    several targets each: rows for one target alone are kernels of linked-in libraries, kept as plain data.
    """
    name = next((name for name in _GPU_LIBRARIES if name in wheel.names()), None)
    if name is None:
        return None
    library, size = _Forward(wheel.pieces(name)), wheel.member_size(name)
    position, step = 0, 1 << 20
    while position < _MOST_BEFORE_CODE:
        piece = library.read_at(position, step)
        found = piece.find(_FATBIN)
        if found < 0:
            if len(piece) < step:
                break
            position += step - len(_FATBIN)
            continue
        position += found
        try:
            archs = read_fatbins(library, position, size - position)
        except ParseError:
            archs = None  # bytes that only look like one
        if archs is not None and len(archs.sass) > 1:
            return archs
        position = max(position + len(_FATBIN), library.start)
    return None


class _Forward:
    """A Reader over a member that is unpacked once, from its start: reads must go forward. What lies before `start` is
    gone."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.start = 0
        self._held = b""

    def read_at(self, offset: int, length: int) -> bytes:
        while self.start + len(self._held) < offset + length:
            passed = min(max(0, offset - self.start), len(self._held))
            self.start += passed
            self._held = self._held[passed:]
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._held += piece
        at = offset - self.start
        return self._held[at : at + length] if at >= 0 else b""


def _cxx11_abi(library: bytes) -> Optional[bool]:
    """Whether functions of c10 take std::__cxx11::basic_string, or the string of before ("Ss" in a symbol)."""
    symbols = re.findall(rb"\0_ZN3c105ErrorC[12]E(\w{1,200})\0", library)
    if not symbols:
        return None
    return any(b"__cxx11" in symbol for symbol in symbols)


def _asks_for_executable_stack(head: bytes) -> bool:
    """Whether the program headers, which stand at the start of a library, hold a PT_GNU_STACK with the right to run."""
    if not head.startswith(b"\x7fELF"):
        return False
    elf = read_elf(BytesReader(head))
    offset, size, count = elf.program_headers
    # p_flags stands second in a 64-bit entry; 32-bit wheels of torch are none.
    for at in range(offset, min(offset + size * count, len(head) - 8), size or 1):
        kind, flags = struct.unpack_from(elf.order + "II", head, at)
        if kind == _PT_GNU_STACK and elf.bits == 64:
            return bool(flags & 1)
    return False


def _one(wheel: RemoteWheel, names: set[str], pattern: str) -> str:
    found = [name for name in sorted(names) if re.fullmatch(pattern, name)]
    if len(found) != 1:
        raise UnlikeWheel(f"{wheel.name}: has {len(found)} files like *.dist-info/METADATA, not one")
    return found[0]


def _text(wheel: RemoteWheel, name: str) -> str:
    return wheel.read(name, 8 << 20).decode("utf-8", "replace")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
