"""What many programs say in the same words: Python's platform, torch's version, packages, yes and no."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from cudadoctor.model.pattern import pattern
from cudadoctor.parse.cuda_packages import CONDA_TO_PYPI, NAMES, TORCH, matters, matters_in_conda
from cudadoctor.parse.markers import normalise_name
from cudadoctor.parse.versions import cuda_from_tag, split_local
from cudadoctor.reports.blocks import Claim

# A package's version. No program prints a longer one.
VERSION = r"\d[\w.!+-]{0,60}"

_TORCH = pattern(r"\d{1,2}\.\d{1,3}[\w.+]{0,60}", re.ASCII)
_VERSION = pattern(VERSION, re.ASCII)
_CUDA = pattern(r"(\d{1,2})\.(\d{1,2})(?:\.\d{1,4})?", re.ASCII)
_PYTHON = pattern(r"(\d\.\d{1,2}(?:\.\d{1,2})?)(?![\d.])")
_LINUX = pattern(r"Linux-(\S{1,120}?)-(x86_64|aarch64|ppc64le|armv7l|i686)(?:-(?:32|64)bit)?(?:-with-?(\S*))?$")
_GLIBC = pattern(r"glibc(\d+\.\d+)$")

_ARCHITECTURES = {"AMD64": "x86_64", "arm64": "aarch64", "i686": "x86"}


def yes_or_no(text: str) -> Optional[bool]:
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.strip().lower())


def cuda_number(text: str) -> Optional[str]:
    """ "12.4.131" -> "12.4"; None for anything else."""
    match = _CUDA.fullmatch(text.strip())
    return f"{match.group(1)}.{match.group(2)}" if match else None


def torch_claims(text: str, line: int) -> Iterator[Claim]:
    """`torch.__version__` as a program printed it; one that is none ("N/A", "not installed") says nothing."""
    if _TORCH.fullmatch(text.strip()):
        yield Claim("torch.version", text.strip(), line)


def available_claims(text: str, line: int) -> Iterator[Claim]:
    """What `torch.cuda.is_available()` gave."""
    value = yes_or_no(text)
    if value is not None:
        yield Claim("torch.cuda_available", value, line)


def built_with_cuda_claims(text: str, line: int) -> Iterator[Claim]:
    """`torch.version.cuda`: a number, or None in a build without CUDA."""
    text = text.strip().strip("'\"")
    number = cuda_number(text)
    if number:
        yield Claim("torch.cuda", number, line)
    elif text == "None":
        yield Claim("torch.cuda", None, line, "absent")


def python_claims(text: str, line: int) -> Iterator[Claim]:
    """`sys.version`, or its number alone: "3.12.3 (main, ...) [MSC v.1943 64 bit (AMD64)]"."""
    match = _PYTHON.match(text.strip())
    if not match:
        return
    yield Claim("python.version", match.group(1), line)
    bits = re.search(r"\b(64|32)[ -]bit\b", text)
    if bits:
        yield Claim("python.bits", int(bits.group(1)), line)
    if "[MSC v." in text:
        yield Claim("system.os", "windows", line)
        arch = re.search(r"\((AMD64|ARM64)\)", text)
        if arch:
            yield Claim("system.arch", {"AMD64": "x86_64", "ARM64": "aarch64"}[arch.group(1)], line)
    if "free-threading build" in text:
        yield Claim("python.free_threaded", True, line)


def platform_claims(text: str, line: int) -> Iterator[Claim]:
    """`platform.platform()`: "Linux-6.5.0-41-generic-x86_64-with-glibc2.35", "Windows-11-10.0.26100-SP0"."""
    text = text.strip()
    if text.startswith("Windows"):
        yield Claim("system.os", "windows", line)
        build = re.search(r"-10\.0\.(\d{4,6})(?:-|$)", text)
        if build:
            yield Claim("system.windows_build", int(build.group(1)), line)
    elif text.startswith(("macOS", "Darwin")):
        yield Claim("system.os", "darwin", line)
        arch = re.search(r"-(arm64|x86_64)\b", text)
        if arch:
            yield Claim("system.arch", _ARCHITECTURES.get(arch.group(1), arch.group(1)), line)
    elif text.startswith("Linux"):
        yield Claim("system.os", "linux", line)
        match = _LINUX.match(text)
        if not match:
            return
        kernel, arch_name, libc = match.groups()
        yield Claim("system.kernel_release", kernel, line)
        yield Claim("system.arch", _ARCHITECTURES.get(arch_name, arch_name), line)
        if "microsoft" in kernel.lower():
            yield Claim("system.wsl", 2 if "WSL2" in kernel or "microsoft-standard" in kernel else 1, line)
        glibc = _GLIBC.match(libc or "")
        if glibc:
            yield Claim("system.libc", "glibc", line)
            yield Claim("system.glibc", glibc.group(1), line)


def capability(text: str) -> Optional[str]:
    """ "(8, 6)" or "8.6" -> "8.6"; None for anything else."""
    match = re.search(r"\b(\d{1,2})(?:\.|, ?)(\d)\b", text)
    return f"{match.group(1)}.{match.group(2)}" if match else None


def package_claims(name: str, version: str, line: int) -> Iterator[Claim]:
    """A package of PyPI's that some program lists. torch's version in a list may lack its local part."""
    package = normalise_name(name)
    if not matters(package) or not _VERSION.fullmatch(version):
        return
    yield Claim(f"package.{package}.version", version, line)
    if package == TORCH:
        yield Claim("torch.metadata_version", version, line)
        yield from torch_claims(version, line)
    if package.startswith("nvidia-cudnn"):
        yield Claim("torch.cudnn", version, line)
    if package in ("torchvision", "torchaudio"):
        yield from _built_for(package, version, line)
    named = re.search(r"\+\S*?torch-?(\d{1,2}\.\d{1,2})", version)
    if named:
        yield Claim(f"package.{package}.built_for_torch", named.group(1), line)


def _built_for(package: str, version: str, line: int) -> Iterator[Claim]:
    """The CUDA in a companion's local version. Without one nothing is said: PyPI's have none."""
    local = split_local(version).local
    number = cuda_from_tag(local) if local else None
    if number:
        yield Claim(f"package.{package}.built_for_cuda", number, line)
    elif local == "cpu":
        yield Claim(f"package.{package}.built_for_cuda", None, line, "absent")


def missing_claims(listed: set[str], line: int) -> Iterator[Claim]:
    """What a whole list of an environment's packages lacks, of those that matter (normalised names)."""
    for name in sorted(NAMES - listed):
        yield Claim(f"package.{name}.version", None, line, "absent")
        if name == TORCH:
            yield Claim("torch.version", None, line, "absent")


def conda_package(name: str) -> Optional[str]:
    """The name under which a conda package is known here; None for one that does not matter."""
    package = CONDA_TO_PYPI.get(name.lower(), normalise_name(name))
    return package if matters_in_conda(package) else None
