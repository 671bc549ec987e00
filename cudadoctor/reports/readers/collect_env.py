"""`python -m torch.utils.collect_env` in a text: torch, Python, system, GPUs, driver and packages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.parse.collect_env import CollectEnv, parse_collect_env
from cudadoctor.parse.markers import normalise_name
from cudadoctor.parse.nvidia_smi import gpu_entry
from cudadoctor.parse.versions import is_driver_version, split_local
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("collecting environment information", "pytorch version:")

# A report is some hundred lines long; vLLM's with its topology and a long list of variables is longer.
_LONGEST = 500
_KIND = "torch collect_env"


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        end = _end(text, hit)
        found = parse_collect_env("\n".join(line for _, line in text.lines(hit, end)))
        if found is not None and len(found.values) > 2:
            yield Block(
                _KIND,
                hit,
                end,
                tuple(_Claims(text, hit, end, found).made()),
                REPORT,
                found.value("Nvidia driver version"),
            )


def _end(text: Text, first: int) -> int:
    """The last line of the report: that of the package list, else the last with a known label."""
    last = first
    packages = False
    for index, line in text.lines(first, first + _LONGEST):
        if index > first and "collecting environment information" in line.lower():
            break
        listed = line.lstrip().startswith(("[pip", "[conda]"))
        if listed:
            packages = True
            last = index
        elif packages and line.strip():
            break
        elif not packages and ":" in line:
            last = index
    return last


class _Claims:
    """The claims of one report, each with the line that it stands in."""

    def __init__(self, text: Text, first: int, last: int, found: CollectEnv) -> None:
        self._lines = dict(text.lines(first, last))
        self._first = first
        self._found = found

    def made(self) -> Iterator[Claim]:
        yield from self._torch()
        yield from self._system()
        yield from self._gpus()
        yield from self._packages()

    def _line(self, words: str) -> int:
        return next((index for index, line in self._lines.items() if words in line), self._first)

    def _claim(self, fact: str, value: Any, words: str) -> Claim:
        return Claim(fact, value, self._line(words))

    def _torch(self) -> Iterator[Claim]:
        version = self._found.value("PyTorch version")
        if version is None or not re.fullmatch(r"\d+\.\d+[\w.+]*", version):
            return
        yield self._claim("torch.version", version, "PyTorch version")
        built = self._found.values.get("CUDA used to build PyTorch")
        label = "CUDA used to build PyTorch"
        if built is not None:
            if re.fullmatch(r"\d{1,2}(\.\d{1,2}){1,2}", built.strip()):
                yield self._claim("torch.cuda", ".".join(built.strip().split(".")[:2]), label)
            else:
                # "None" and "Could not collect" (a CPU build on a machine with a GPU) both say: built without CUDA.
                yield Claim("torch.cuda", None, self._line(label), "absent")
        rocm = self._found.values.get("ROCM used to build PyTorch", "").strip()
        if re.fullmatch(r"\d[\w.-]*", rocm):
            yield self._claim("torch.hip", rocm, "ROCM used to build PyTorch")

    def _system(self) -> Iterator[Claim]:
        platform = self._found.value("Python platform") or ""
        system = self._found.value("OS") or ""
        whole = f"{system} {platform}"
        if re.search(r"windows", whole, re.IGNORECASE):
            yield self._claim("system.os", "windows", "OS")
        elif re.search(r"macos|darwin", whole, re.IGNORECASE):
            yield self._claim("system.os", "darwin", "OS")
        elif platform.startswith("Linux") or re.search(r"linux|ubuntu|debian|centos|rocky|fedora|suse", whole, re.I):
            yield self._claim("system.os", "linux", "OS")
        if system and not system.startswith("Microsoft"):
            yield from self._distribution(system)
        arch = re.search(r"\b(x86_64|AMD64|aarch64|arm64)\b", whole)
        if arch:
            machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(arch.group(1), arch.group(1))
            yield self._claim("system.arch", machine, arch.group(1))
        kernel = re.match(r"Linux-(\S+?)-(?:x86_64|aarch64)(?:-|$)", platform)
        if kernel:
            yield self._claim("system.kernel_release", kernel.group(1), "Python platform")
            if "microsoft" in kernel.group(1).lower():
                yield self._claim("system.wsl", 2 if "WSL2" in kernel.group(1) else 1, "Python platform")
        glibc = re.match(r"glibc-(\d+\.\d+)$", self._found.value("Libc version") or "")
        if glibc:
            yield self._claim("system.libc", "glibc", "Libc version")
            yield self._claim("system.glibc", glibc.group(1), "Libc version")
        python = re.match(r"(\d+\.\d+(?:\.\d+)?)", self._found.value("Python version") or "")
        if python:
            yield self._claim("python.version", python.group(1), "Python version")
        bits = re.search(r"\((64|32)-bit runtime\)", self._found.value("Python version") or "")
        if bits:
            yield self._claim("python.bits", int(bits.group(1)), "Python version")
        nvcc = self._found.value("CUDA runtime version")
        if nvcc and re.fullmatch(r"\d{1,2}\.\d{1,2}(\.\d{1,4})?", nvcc):
            yield self._claim("toolkit.nvcc_on_path_version", nvcc, "CUDA runtime version")

    def _distribution(self, name: str) -> Iterator[Claim]:
        plain = re.sub(r"\s*\((x86_64|aarch64)\)\s*$", "", name)
        yield self._claim("system.distribution_name", plain, "OS")
        match = re.match(
            r"(Ubuntu|Debian|Fedora|CentOS|Rocky|AlmaLinux|Arch|Red Hat|openSUSE)\D*(\d+(?:\.\d+)?)?", plain
        )
        if match:
            ids = {"Rocky": "rocky", "Red Hat": "rhel", "openSUSE": "opensuse-leap"}
            yield self._claim("system.distribution", ids.get(match.group(1), match.group(1).lower()), "OS")
            if match.group(2):
                yield self._claim("system.distribution_version", match.group(2), "OS")

    def _gpus(self) -> Iterator[Claim]:
        driver = self._found.value("Nvidia driver version")
        if driver and is_driver_version(driver):
            yield self._claim("driver.smi_version", driver, "Nvidia driver version")
        gpus = [gpu_entry(number, name) for number, name in self._found.gpus]
        if gpus:
            yield self._claim("smi.gpus", gpus, f"GPU {self._found.gpus[0][0]}:")

    def _packages(self) -> Iterator[Claim]:
        torch = self._found.value("PyTorch version")
        for name, version in self._found.pip:
            package = normalise_name(name)
            if package == "torch" and torch and split_local(version).public == split_local(torch).public:
                version = torch  # pip's list leaves the local part of PyPI's wheels out, and says no more
            yield self._claim(f"package.{package}.version", version, f"{name}==")
            if package == "torch":
                yield self._claim("package.torch.installer", "pip", f"{name}==")
        for entry in self._found.conda:
            package = {"pytorch": "torch"}.get(entry.name, normalise_name(entry.name))
            if entry.build.startswith("pypi") or entry.channel == "pypi":
                yield self._claim(f"package.{package}.version", entry.version, f"[conda] {entry.name}")
                continue
            yield self._claim(f"package.{package}.version", entry.version, f"[conda] {entry.name}")
            yield self._claim(f"package.{package}.conda_build", entry.build, f"[conda] {entry.name}")
            if package == "torch":
                yield self._claim("package.torch.installer", "conda", f"[conda] {entry.name}")
                yield self._claim("torch.origin", "conda", f"[conda] {entry.name}")
            if entry.channel:
                yield self._claim(f"package.{package}.conda_channel", entry.channel, f"[conda] {entry.name}")
