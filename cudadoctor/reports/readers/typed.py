"""The machine as a person describes it in an issue's form, believed least of all.

    - OS: Ubuntu 22.04                GPU: 2x RTX 3090
    - Python version: 3.10            Driver version: 535.54.03
    **PyTorch version**: 2.5.1+cu121

"CUDA: 12.4" is no fact: it may be the toolkit, the driver's or the wheel's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import torch_claims
from cudadoctor.reports.text import Text

TRIGGERS = (
    "pytorch:",
    "pytorch**",
    "pytorch version",
    "pytorch 0",
    "torch:",
    "torch version",
    "torch 0",
    "driver:",
    "driver version",
    "driver 0",
    "gpu:",
    "gpu**",
    "gpus:",
    "gpu model",
    "gpu name",
    "gpu type",
    "graphics card",
    "os:",
    "os**",
    "operating system",
    "python:",
    "python**",
    "python version",
)

_MOST = 400
# An issue's form has a dozen; to look a GPU up by its name takes a while.
_MOST_FIELDS = 20
_FIELD = re.compile(
    r"\s*(?:[-*+\u2022]\s+|\d[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?[*_`]{0,3}(?P<key>"
    r"(?:py)?torch(?: version)?|(?:nvidia )?(?:gpu )?driver(?: version)?|gpus?(?: model| name| type)?|graphics card|"
    r"os(?: version| platform)?|operating system|python(?: version)?"
    r")[*_`]{0,3}\s{0,20}(?P<mark>[:=|]|\s)[*_`\s]{0,6}(?P<value>\S[^\n]{0,120})$",
    re.IGNORECASE,
)
_TORCH = re.compile(r"v?(\d\.\d{1,2}\.\d{1,2}(?:\+(?:cu\d{2,3}|cpu|rocm[\d.]+))?)(?=[\s,;)*`]|$)")
_PYTHON = re.compile(r"v?(3\.\d{1,2}(?:\.\d{1,2})?)(?=[\s,;)*`]|$)")
_DRIVER = re.compile(r"v?(\d{3}\.\d{2,3}(?:\.\d{1,3})?)(?=[\s,;)*`]|$)")
_COUNT = re.compile(r"(\d{1,2})\s?[x\u00d7*]\s?|(.{3,60}?)\s?[x\u00d7*]\s?(\d{1,2})$", re.IGNORECASE)
# To look a name up that is none takes a tenth of a second.
_GPU_NAME = re.compile(
    r"\b(?:RTX|GTX|GT|GeForce|Tesla|Quadro|MX|[ABHLPTVK])[ -]?\d{1,4}|\b(?:Tesla|Quadro) [A-Z]"
    r"|\bG[BH]\d{2,3}\b|\b(?:TITAN|Orin|Xavier)\b",
    re.IGNORECASE,
)
_SYSTEMS = (
    (re.compile(r"\bWSL ?2?\b", re.IGNORECASE), "wsl"),
    (re.compile(r"\bWindows\b|\bWin(?:10|11)\b", re.IGNORECASE), "windows"),
    (re.compile(r"\b(?:Ubuntu|Debian|Linux|CentOS|Fedora|Rocky|Arch|Manjaro|RHEL|openSUSE)\b", re.IGNORECASE), "linux"),
    (re.compile(r"\bmac ?OS\b", re.IGNORECASE), "darwin"),
)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    seen: set[str] = set()
    for hit in hits[:_MOST]:
        match = _FIELD.match(text[hit])
        if match is None or match.group(0) in seen or len(seen) >= _MOST_FIELDS:
            continue
        seen.add(match.group(0))
        key = match.group("key").lower()
        claims = tuple(_claims(key, match.group("mark"), match.group("value").strip(" |*_`"), hit, matrix))
        if claims:
            yield Block("description", hit, hit, claims, TYPED)


def _claims(key: str, mark: str, value: str, line: int, matrix: Matrix) -> Iterator[Claim]:
    if "torch" in key:
        torch = _TORCH.match(value)
        # Without a colon it may be a sentence ("torch 2.1.0 fails, too"): then it must be all there is.
        if torch and (mark in ":=|" or torch.end() == len(value)):
            yield from torch_claims(torch.group(1), line)
    elif mark not in ":=|":
        return
    elif "driver" in key:
        driver = _DRIVER.match(value)
        if driver and is_driver_version(driver.group(1)):
            yield Claim("driver.smi_version", driver.group(1), line)
    elif key.startswith("python"):
        python = _PYTHON.match(value)
        if python:
            yield Claim("python.version", python.group(1), line)
    elif key.startswith(("os", "operating")):
        yield from _system(value, line)
    else:
        yield from _gpus(value, line, matrix)


def _system(value: str, line: int) -> Iterator[Claim]:
    found = [name for pattern, name in _SYSTEMS if pattern.search(value)]
    if "wsl" in found:
        yield Claim("system.os", "linux", line)
    elif len(found) == 1:  # "Windows and Linux" is neither
        yield Claim("system.os", found[0], line)
        ubuntu = re.match(r"(Ubuntu|Debian) (\d{1,2}(?:\.\d{2})?)\b", value, re.IGNORECASE)
        if ubuntu:
            yield Claim("system.distribution", ubuntu.group(1).lower(), line)
            yield Claim("system.distribution_version", ubuntu.group(2), line)


def _gpus(value: str, line: int, matrix: Matrix) -> Iterator[Claim]:
    """Only of names that are known: "GPU: yes" is none."""
    value = value.strip("*_` .")
    counted = _COUNT.match(value)
    number, name = 1, value
    if counted and counted.group(1):
        number, name = int(counted.group(1)), value[counted.end() :]
    elif counted and counted.group(3):
        number, name = int(counted.group(3)), counted.group(2)
    name = re.split(r"[,(;|]| with | - ", name, maxsplit=1)[0].strip()
    if not 0 < number <= 16 or not _GPU_NAME.search(name):
        return
    known = matrix.gpu(name)
    if known.capability is not None:
        name = f"NVIDIA {known.exact.name}" if known.exact is not None else name
        yield Claim("smi.gpus", [cuda_gpu(index, name) for index in range(number)], line)
