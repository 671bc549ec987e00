"""`python -m torch.utils.collect_env`, and vLLM's: torch, Python, system, GPUs, driver, packages and variables.

Whether a thing is missing is said only where the report itself says so: "Could not collect" is the failure of a
command. A driver that is not collected although GPUs are listed is one of R610 or newer, whose table the report's own
expression does not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.collect_env import LABELS, CollectEnv, parse_collect_env
from cudadoctor.parse.conda_meta import cuda_of_build
from cudadoctor.parse.markers import normalise_name
from cudadoctor.parse.nvidia_smi import gpu_entry
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.readers._conda import conda_claims
from cudadoctor.reports.readers._said import (
    available_claims,
    built_with_cuda_claims,
    package_claims,
    platform_claims,
    python_claims,
    torch_claims,
)
from cudadoctor.reports.readers._variables import variable_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("collecting environment information", "pytorch version:", "pytorch version  ", "pytorch version :")

# A report is some hundred lines long; vLLM's with its topology and a long list of variables is longer.
_LONGEST = 500
# A log that names torch's version a thousand times holds no thousand reports.
_MOST_IN_VAIN = 300
# So many lines without anything of a report's end it.
_MOST_BETWEEN = 40
# vLLM's begins with the system: so many lines stand before torch's version.
_MOST_BEFORE = 14

_BEGIN = re.compile(r"Collecting environment information|PyTorch version\s{0,60}:\s")
_LABEL = re.compile(r"\s*([A-Za-z][\w?() /.-]{1,40}?)\s{0,60}:(?:\s|$)")
_TITLE = re.compile(
    r"\s*={10,}\s*$|\s*(?:System Info|PyTorch Info|Python Environment|CUDA / GPU Info|CPU Info|vLLM Info)$"
)
_LISTED = re.compile(r"\s*\[(?:pip3?|conda)\]")
_BETWEEN = re.compile(r"\s*(?:GPU \d+:|MIG \d|/usr/\S*libcudnn|[CD]:\\\S.*cudnn)")
_IN_CPU = re.compile(r"[:=]|^-----")
_VARIABLE = re.compile(r"\s*([A-Z][A-Z0-9_]{2,60})=(.*)$")
_TAIL = re.compile(
    r"\s*(?:GPU\d|NIC\d|mlx\d|Legend|NIC Legend|CUDA Archs|Could not collect|Environment Variables$"
    r"|[A-Z#]{1,4}#? +=|[A-Z][A-Z0-9_]{2,60}=)"
)

_DISTRIBUTION = re.compile(
    r"(Ubuntu|Debian|Fedora|CentOS|Rocky|AlmaLinux|Arch|Red Hat|openSUSE|Amazon Linux|Linux Mint|Pop!_OS|Manjaro|Kali)"
    r"\D{0,60}(\d+(?:\.\d+)?)?"
)
_IDS = {
    "Rocky": "rocky",
    "Red Hat": "rhel",
    "openSUSE": "opensuse-leap",
    "Amazon Linux": "amzn",
    "Linux Mint": "linuxmint",
    "Pop!_OS": "pop",
}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    in_vain = 0
    for hit in hits:
        if in_vain > _MOST_IN_VAIN:
            break
        if hit <= end or not _BEGIN.search(text[hit]):
            continue
        first = _start(text, hit, end)
        last = _end(text, hit)
        found = parse_collect_env("\n".join(line for _, line in text.lines(first, last)))
        if found is not None and len(found.values) > 2:
            end = last
            made = _Claims(text, first, last, found)
            kind = "vLLM collect_env" if found.values.get("vLLM Version") else "torch collect_env"
            yield Block(kind, first, last, tuple(made.made()), REPORT, made.driver)
        else:
            in_vain += 1


def _start(text: Text, hit: int, before: int) -> int:
    """The first line of a report whose first words were left out."""
    first = hit
    for index in range(hit - 1, max(before, hit - 1 - _MOST_BEFORE, -1), -1):
        line = text[index]
        label = _LABEL.match(line)
        if (label and label.group(1) in LABELS) or _TITLE.match(line):
            first = index
        elif line.strip():
            break
    return first


def _end(text: Text, first: int) -> int:
    """The last line that belongs to the report."""
    last = first
    in_cpu = listed = seen = False
    for index, line in text.lines(first, first + _LONGEST):
        if index - last > _MOST_BETWEEN or (index > first and "collecting environment information" in line.lower()):
            break
        label = _LABEL.match(line)
        name = label.group(1) if label else ""
        if name == "PyTorch version":
            # The next report, of which the first words were left out.
            if seen:
                break
            seen = True
        if _LISTED.match(line):
            listed, in_cpu, last = True, False, index
        elif name in LABELS or _TITLE.match(line) or _BETWEEN.match(line) or len(line) > 1000:
            in_cpu, last = name == "CPU" or "CPU Info" in line or (in_cpu and "====" in line), index
        elif (in_cpu and _IN_CPU.search(line)) or (listed and _TAIL.match(line)):
            last = index
        elif listed and line.strip() and not line.strip().startswith(("```", "~~~")):
            break
    return last


class _Claims:
    """The claims of one report, each with the line that it stands in."""

    def __init__(self, text: Text, first: int, last: int, found: CollectEnv) -> None:
        self._lines = dict(text.lines(first, last))
        self._first = first
        self._found = found
        words = (found.value("Nvidia driver version") or "").split()
        self.driver: Optional[str] = words[0] if words and is_driver_version(words[0]) else None

    def made(self) -> Iterator[Claim]:
        yield from self._packages()  # whose list may leave the local part of torch's version out
        yield from self._torch()
        yield from self._system()
        yield from self._gpus()
        yield from self._variables()

    def _line(self, words: str) -> int:
        return next((index for index, line in self._lines.items() if words in line), self._first)

    def _claim(self, fact: str, value: Any, words: str) -> Claim:
        return Claim(fact, value, self._line(words))

    def _value(self, label: str) -> str:
        return self._found.values.get(label, "").strip()

    def _torch(self) -> Iterator[Claim]:
        version = (self._found.value("PyTorch version") or "").partition(" ")[0]
        stated = list(torch_claims(version, self._line("PyTorch version")))
        if not stated:
            return
        yield from stated
        label = "CUDA used to build PyTorch"
        if label in self._found.values:
            # "Could not collect" is a CPU build on a machine with a GPU or a toolkit, as "None" is one without.
            built = self._value(label).partition(" ")[0]
            words = "None" if built in ("None", "Could", "N/A", "No") else built
            yield from built_with_cuda_claims(words, self._line(label))
        rocm = self._value("ROCM used to build PyTorch").partition(" ")[0]
        if re.fullmatch(r"\d[\w.-]*", rocm):
            yield self._claim("torch.hip", rocm, "ROCM used to build PyTorch")
        available = self._value("Is CUDA available").partition(" ")[0]
        yield from available_claims(available, self._line("Is CUDA available"))

    def _system(self) -> Iterator[Claim]:
        system = self._found.value("OS") or ""
        platform = (self._found.value("Python platform") or "").partition(" ")[0]
        yield from platform_claims(platform, self._line("Python platform"))
        if "windows" in system.lower():
            yield self._claim("system.os", "windows", "OS")
            build = re.search(r"\(10\.0\.(\d{4,6}) ", system)
            if build:
                yield self._claim("system.windows_build", int(build.group(1)), "OS")
        elif re.search(r"mac ?os", system, re.IGNORECASE):
            yield self._claim("system.os", "darwin", "OS")
        elif re.search(r"linux|ubuntu|debian|centos|rocky|fedora|suse|pop!_os|red hat|manjaro|arch", system, re.I):
            yield self._claim("system.os", "linux", "OS")
        if system:
            plain = re.sub(r"\s*\((?:x86_64|aarch64|10\.0\.\d+ \S+|arm64)\)\s*$", "", system)
            yield self._claim("system.distribution_name", plain, "OS")
            yield from self._distribution(plain)
        arch = re.search(r"\((x86_64|AMD64|aarch64|arm64)\)", f"{system} {self._value('Python version')}")
        if arch:
            machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(arch.group(1), arch.group(1))
            yield self._claim("system.arch", machine, arch.group(1))
        glibc = re.match(r"glibc-(\d+\.\d+)(?:\s|$)", self._value("Libc version"))
        if glibc:
            yield self._claim("system.libc", "glibc", "Libc version")
            yield self._claim("system.glibc", glibc.group(1), "Libc version")
        yield from python_claims(self._value("Python version"), self._line("Python version"))
        nvcc = self._value("CUDA runtime version").partition(" ")[0]
        if re.fullmatch(r"\d{1,2}\.\d{1,2}(\.\d{1,4})?", nvcc):
            yield self._claim("toolkit.nvcc_on_path_version", nvcc, "CUDA runtime version")

    def _distribution(self, name: str) -> Iterator[Claim]:
        match = _DISTRIBUTION.match(name)
        if match:
            yield self._claim("system.distribution", _IDS.get(match.group(1), match.group(1).lower()), "OS")
            if match.group(2):
                yield self._claim("system.distribution_version", match.group(2), "OS")

    def _gpus(self) -> Iterator[Claim]:
        if self.driver:
            yield self._claim("driver.smi_version", self.driver, "Nvidia driver version")
        gpus = []
        for number, name in self._found.gpus:
            gpu = gpu_entry(number, name)
            gpu["mig"] = True if number in self._found.divided else None
            gpus.append(gpu)
        if gpus:
            yield self._claim("smi.gpus", gpus, f"GPU {self._found.gpus[0][0]}:")

    def _packages(self) -> Iterator[Claim]:
        by_pip = {normalise_name(name) for name, _ in self._found.pip}
        for name, version in self._found.pip:
            line = self._line(f"{name}==")
            yield from package_claims(name, version, line)
        conda = [(entry.name, entry.version, entry.build, entry.channel) for entry in self._found.conda]
        yield from conda_claims([(*entry, self._line(f"[conda] {entry[0]}")) for entry in conda])
        of_conda = any(name in ("pytorch", "libtorch") and cuda_of_build(build) for name, _, build, _ in conda)
        if "torch" in by_pip and not of_conda:
            line = self._line("torch==")
            yield Claim("package.torch.installer", "pip", line)
        elif by_pip and self._value("PyTorch version") == "N/A" and self._ends_with_conda() and not conda:
            # pip's list of the Python that ran it, whole, and no torch in it.
            line = self._line("PyTorch version")
            yield Claim("package.torch.version", None, line, "absent")
            yield Claim("torch.version", None, line, "absent")

    def _ends_with_conda(self) -> bool:
        return any(line.lstrip().startswith("[conda]") for line in self._lines.values())

    def _variables(self) -> Iterator[Claim]:
        config = re.search(r"'PYTORCH_CUDA_ALLOC_CONF': '([^']{1,200})'", self._value("Caching allocator config"))
        if config:
            yield self._claim("env.PYTORCH_CUDA_ALLOC_CONF", config.group(1), "Caching allocator config")
        if not self._found.values.get("vLLM Version"):
            return
        vllm = self._value("vLLM Version").partition(" ")[0]
        yield from package_claims("vllm", vllm, self._line("vLLM Version"))
        after = self._line("vLLM Version")
        for index, line in self._lines.items():
            match = _VARIABLE.match(line) if index > after else None
            if match:
                yield from variable_claims(match.group(1), match.group(2).strip(), index)
