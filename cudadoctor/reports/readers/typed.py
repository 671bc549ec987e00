"""The machine as a person describes it in an issue's form, believed least of all.

    - OS: Ubuntu 22.04                GPU: 2x RTX 3090
    - Python version: 3.10            Driver version: 535.54.03
    **PyTorch version**: 2.5.1+cu121

"CUDA: 12.4" is no fact: it may be the toolkit, the driver's or the wheel's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.readers._said import package_claims, torch_claims
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
    "tensorflow version",
    "os platform",
    "# python",
    "# os",
    "# gpu",
)

_MOST = 400
# An issue's form has a dozen; to look a GPU up by its name takes a while.
_MOST_FIELDS = 20
_FIELD = re.compile(
    r"\s*(?:[-*+\u2022]\s+|\d[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?[*_`]{0,3}(?P<key>"
    r"(?:py)?torch(?: version)?|(?:nvidia )?(?:gpu )?driver(?: version)?|graphics card|"
    r"gpus?(?: models?(?: and configuration)?| name| type)?|"
    r"os(?: version| platform(?: and distribution)?)?|operating system(?: version)?|python(?: version)?|"
    r"tensorflow version(?: \([^()\n]{1,40}\))?"
    r")[*_`]{0,3}\s{0,20}(?P<mark>[:=|]|\s)[*_`\s]{0,6}(?P<value>\S[^\n]{0,120})$",
    re.IGNORECASE,
)
# A form of an issue has the question as a heading, and the answer in a paragraph below it.
_HEADING = re.compile(
    r"\s*#{1,6}\s+[*_]{0,3}(?P<key>(?:py)?torch version|tensorflow version|python(?: version)?|operating system|"
    r"os(?: version| platform and distribution)?|gpu(?: model| name| type)?(?: and memory)?|(?:nvidia )?driver version)"
    r"[*_:]{0,4}$",
    re.IGNORECASE,
)
_TORCH = re.compile(r"v?(\d\.\d{1,2}\.\d{1,2}(?:\+(?:cu\d{2,3}|cpu|rocm[\d.]+))?)(?=[\s,;)*`]|$)")
_PYTHON = re.compile(r"v?(3\.\d{1,2}(?:\.\d{1,2})?)(?=[\s,;)*`]|$)")
_TENSORFLOW = re.compile(r"(?:\S*\s)?(?:tf ?|v)?(\d\.\d{1,2}(?:\.\d{1,2})?)$", re.IGNORECASE)
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
    seen: set[tuple[str, str, str]] = set()
    for hit in hits[:_MOST]:
        found = _field(text, hit)
        if found is None or found[:3] in seen or len(seen) >= _MOST_FIELDS:
            continue
        seen.add(found[:3])
        key, mark, value, line = found
        claims = tuple(_claims(key, mark, value.strip(" |*_`"), line, matrix))
        if claims:
            yield Block("description", hit, line, claims, TYPED)


def _field(text: Text, hit: int) -> Optional[tuple[str, str, str, int]]:
    """The field's name, what stands between it and its value, the value, and the value's line."""
    heading = _HEADING.match(text[hit])
    if heading is not None:
        for index, line in text.lines(hit + 1, hit + 3):
            if line.strip():
                return None if line.startswith("#") else (heading.group("key").lower(), ":", line[:120], index)
        return None
    match = _FIELD.match(text[hit])
    return (match.group("key").lower(), match.group("mark"), match.group("value"), hit) if match is not None else None


def _claims(key: str, mark: str, value: str, line: int, matrix: Matrix) -> Iterator[Claim]:
    if value.startswith(("[e.g.", "(e.g.", "e.g.")):
        return  # the form's own example, left as it was
    if "torch" in key:
        torch = _TORCH.match(value)
        # Without a colon it may be a sentence ("torch 2.1.0 fails, too"): then it must be all there is.
        if torch and (mark in ":=|" or torch.end() == len(value)):
            yield from torch_claims(torch.group(1), line)
    elif mark not in ":=|":
        return
    elif "tensorflow" in key:
        tensorflow = _TENSORFLOW.match(value)
        if tensorflow:
            yield from package_claims("tensorflow", tensorflow.group(1), line)
    elif "driver" in key:
        driver = _DRIVER.match(value)
        if driver and is_driver_version(driver.group(1)):
            yield Claim("driver.told_version", driver.group(1), line)
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
        yield Claim("gpu.told", [name] * number, line)
