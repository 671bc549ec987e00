"""Tiny wheels: the names, versions, tags and metadata of real packages, and next to nothing inside.

What a doctor or an installer reads of torch without importing it is there: METADATA, WHEEL, `torch/version.py`
and, in a CUDA build for Linux, libraries whose `.nv_fatbin` section and architecture string name the GPUs that
the build has code for. Importing the tiny torch fails unless TINY_TORCH_MAY_BE_IMPORTED is set, so a doctor
that imports its patient is found out.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .parts import patient_version

LINUX = "manylinux_2_28_x86_64"
WINDOWS = "win_amd64"

_LINUX_ONLY = '; platform_system == "Linux"'

# What real CUDA builds for Linux require, shortened to a handful; enough for an installer to have to find them,
# and for a doctor to compare with what is installed. From the METADATA of torch 2.9.1 (cu12*) and 2.14.1 (cu13*).
_NVIDIA: dict[str, tuple[str, ...]] = {
    "cu118": ("nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cudnn-cu11==9.1.0.70", "nvidia-nccl-cu11==2.21.5"),
    "cu121": ("nvidia-cuda-runtime-cu12==12.1.105", "nvidia-cudnn-cu12==9.1.0.70", "nvidia-nccl-cu12==2.20.5"),
    "cu124": ("nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cudnn-cu12==9.1.0.70", "nvidia-nccl-cu12==2.21.5"),
    "cu126": ("nvidia-cuda-runtime-cu12==12.6.77", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5"),
    "cu128": ("nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5"),
    "cu129": ("nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5"),
    "cu130": ("cuda-toolkit[cublas,cudart]==13.0.3", "nvidia-cudnn-cu13==9.24.0.43", "nvidia-nccl-cu13==2.30.7"),
    "cu132": ("cuda-toolkit[cublas,cudart]==13.2.1", "nvidia-cudnn-cu13==9.24.0.43", "nvidia-nccl-cu13==2.30.7"),
}
# GPU lists of the same builds (torch.cuda.get_arch_list()).
_ARCHS: dict[str, tuple[str, ...]] = {
    "cu118": ("50", "60", "70", "75", "80", "86", "37", "90"),
    "cu121": ("50", "60", "70", "75", "80", "86", "90"),
    "cu124": ("50", "60", "70", "75", "80", "86", "90"),
    "cu126": ("50", "60", "70", "75", "80", "86", "90"),
    "cu128": ("70", "75", "80", "86", "90", "100", "120"),
    "cu129": ("70", "75", "80", "86", "90", "100", "120"),
    "cu130": ("75", "80", "86", "90", "100", "120"),
    "cu132": ("75", "80", "86", "90", "100", "120"),
}


@dataclass(frozen=True)
class Wheel:
    """A wheel: its file name and bytes."""

    filename: str
    data: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """The normalised project name, as in the address of an index page."""
        return re.sub(r"[-_.]+", "-", self.filename.split("-")[0]).lower()

    @property
    def version(self) -> str:
        return self.filename.split("-")[1]


def tiny_wheel(
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
    files: Mapping[str, str | bytes] | None = None,
    requires_python: str | None = None,
    metadata_version: str | None = None,
    extras: Sequence[str] = (),
) -> Wheel:
    """A wheel that pip and uv install.

    `version` is the file name's; `metadata_version` the one in METADATA where they differ. Without `files` the
    wheel holds one empty module named after the project.
    """
    module = re.sub(r"[-.]+", "_", name)
    stated = metadata_version or version
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {stated}"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    pure = "true" if tag.endswith("-none-any") else "false"
    info = f"{module}-{stated}.dist-info"
    content: dict[str, str | bytes] = dict(files if files is not None else {f"{module}.py": ""})
    content[f"{info}/METADATA"] = "\n".join(lines) + "\n\nA test wheel without content.\n"
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: cudadoctor-tests\nRoot-Is-Purelib: {pure}\n" + "".join(
        f"Tag: {one}\n" for one in _expanded(tag)
    )
    record = []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in content.items():
            data = text.encode() if isinstance(text, str) else text
            archive.writestr(zipfile.ZipInfo(path), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return Wheel(f"{module}-{version}-{tag}.whl", buffer.getvalue())


def _expanded(tag: str) -> list[str]:
    pythons, abis, platforms = tag.split("-")
    return [f"{p}-{a}-{q}" for p in pythons.split(".") for a in abis.split(".") for q in platforms.split(".")]


def python_tag(python: str) -> str:
    """ "3.12" -> "cp312-cp312"; "3.14t" -> "cp314-cp314t"."""
    digits = python.replace(".", "").rstrip("t")
    return f"cp{digits}-cp{digits}{'t' if python.endswith('t') else ''}"


def cuda_of(variant: str) -> str | None:
    """ "cu126" -> "12.6"; "cpu" -> None."""
    return f"{variant[2:-1]}.{variant[-1]}" if re.fullmatch(r"cu\d{3}", variant) else None


def torch_version_py(version: str, cuda: str | None) -> str:
    """`torch/version.py` as torch's own build writes it."""
    return (
        "from typing import Optional\n\n"
        "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']\n"
        f"__version__ = {version!r}\n"
        "debug = False\n"
        f"cuda: Optional[str] = {cuda!r}\n"
        "git_version = '0123456789abcdef0123456789abcdef01234567'\n"
        "hip: Optional[str] = None\n"
        "rocm: Optional[str] = None\n"
        "xpu: Optional[str] = None\n"
    )


_TORCH_INIT = """\
import os

if "TINY_TORCH_MAY_BE_IMPORTED" not in os.environ:
    raise RuntimeError("somebody imported the patient's torch")
from .version import __version__
"""


def torch_wheel(
    version: str,
    variant: str = "cpu",
    *,
    python: str | None = None,
    platform: str = LINUX,
    local: bool = True,
    archs: Sequence[str] | None = None,
    requires: Sequence[str] | None = None,
) -> Wheel:
    """A tiny torch: `torch_wheel("2.9.1", "cu126", python="3.12")`.

    variant: "cpu" or "cuXXX". python: the one that the wheel is for, by default the one of `venv_with`.
    local=False leaves "+cuXXX" out of the file name and METADATA, as the default index does (version.py still has
    it). archs: the GPUs of the build ("75", "90a", "ptx90"); requires: instead of what the real build requires.
    """
    cuda = cuda_of(variant)
    full = f"{version}+{variant}"
    if requires is None:
        requires = ["filelock", "typing-extensions>=4.10.0"]
        if cuda and "linux" in platform:
            requires += [r + _LINUX_ONLY for r in (*_NVIDIA.get(variant, ()), f"triton=={_triton(version)}")]
    files: dict[str, str | bytes] = {
        "torch/__init__.py": _TORCH_INIT,
        "torch/version.py": torch_version_py(full, cuda),
    }
    if "linux" in platform:
        files["torch/lib/libtorch_cpu.so"] = elf({})
        files["torch/lib/libtorch_python.so"] = elf({})
        if cuda:
            archs = _ARCHS.get(variant, ()) if archs is None else archs
            names = " ".join(_arch_name(arch) for arch in archs)
            files["torch/lib/libtorch_python.so"] = elf({".rodata": names.encode() + b"\0"})
            files["torch/lib/libtorch_cuda.so"] = elf({".nv_fatbin": fatbin(archs) * 3})
            files["torch/lib/libc10_cuda.so"] = elf({})
    elif cuda:
        files["torch/lib/torch_cuda.dll"] = b"MZ"
    # What the real version gives as its numbers' lower bound; only 3.9 and 3.10 matter here.
    major, minor = (int(part) for part in version.split(".")[:2])
    oldest = ">=3.10" if (major, minor) >= (2, 9) else ">=3.9.0"
    return tiny_wheel(
        "torch",
        full if local else version,
        requires=requires,
        tag=f"{python_tag(python or patient_version())}-{platform}",
        files=files,
        requires_python=oldest,
    )


def _triton(torch: str) -> str:
    """The triton that a torch of 2.x pins: 3.<torch's minor - 4>.x, near enough for a test."""
    return f"3.{max(0, int(torch.split('.')[1]) - 4)}.0"


def companion_wheel(
    name: str,
    version: str,
    variant: str,
    torch: str,
    *,
    python: str | None = None,
    platform: str = LINUX,
    local: bool = True,
    requires: str | None = None,
) -> Wheel:
    """torchvision or torchaudio of a torch version and variant, pinning it as most of the real ones do (requires: what
    it asks of torch instead)."""
    full = f"{version}+{variant}"
    files = {
        f"{name}/__init__.py": _TORCH_INIT.replace("patient's torch", f"patient's {name}"),
        f"{name}/version.py": f"__version__ = {full!r}\ngit_version = '0123456789abcdef'\n"
        + (f"cuda = {cuda_of(variant)!r}\n" if cuda_of(variant) else "cuda = None\n"),
    }
    return tiny_wheel(
        name,
        full if local else version,
        requires=[f"torch{f'=={torch}' if requires is None else requires}"],
        tag=f"{python_tag(python or patient_version())}-{platform}",
        files=files,
    )


def requirements_of(wheel: Wheel) -> list[str]:
    """The Requires-Dist lines of a wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel.data)) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    return re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)


# ------------------------------------------------------------------ the little that is read of ELF libraries


def _arch_name(arch: str) -> str:
    return f"compute_{arch[3:]}" if arch.startswith("ptx") else f"sm_{arch}"


def fatbin(archs: Sequence[str]) -> bytes:
    """One fat binary with an empty entry for each architecture: "75" machine code, "ptx90" PTX.

    Layout: a 16-byte header (magic, version, header size, size of what follows), then entries of a 64-byte
    header (kind 1 PTX or 2 machine code; header size at byte 4, payload size at 8, SM number at 28).
    """
    entries = b""
    for arch in archs:
        number = int(re.sub(r"\D", "", arch))
        payload = b"\0" * 16
        header = struct.pack("<HHIQ", 1 if arch.startswith("ptx") else 2, 0x101, 64, len(payload))
        header += b"\0" * 12 + struct.pack("<I", number)
        entries += header.ljust(64, b"\0") + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def elf(sections: Mapping[str, bytes]) -> bytes:
    """A 64-bit ELF shared object that holds these sections and nothing to run."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    body = b""
    headers = [b"\0" * 64]
    for name, data in (*sections.items(), (".shstrtab", names)):
        body += b"\0" * (-len(body) % 16)
        kind = 3 if name == ".shstrtab" else 1  # string table, else program data
        offset = 64 + len(body)
        headers.append(
            struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), kind, 2, 0, offset, len(data), 0, 0, 16, 0)
        )
        body += data
    body += b"\0" * (-len(body) % 16)
    count = len(headers)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, count, count - 1)
    return header + body + b"".join(headers)
