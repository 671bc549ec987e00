"""Lightning's collect_env_details.py, in its plain form and in the HTML one of earlier releases:

* CUDA:
    - GPU:
        - NVIDIA GeForce RTX 3090
    - available:         True
    - version:           11.8             what torch was built with
* Lightning:
    - torch:             2.6.0+cu118
* Packages:
    - torchmetrics:      1.7.0
* System:
    - OS:                Linux
    - processor:         x86_64
    - python:            3.10.16
    - release:           5.15.0-119-generic
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import (
    available_claims,
    built_with_cuda_claims,
    package_claims,
    python_claims,
)
from cudadoctor.reports.text import Text

TRIGGERS = ("* cuda:", "- cuda:", "cuda:</summary>")

_LONGEST = 1200  # every package of the environment has a line
_MOST_GPUS = 64
_SECTION = re.compile(r"\s*(?:[*-] +)?(CUDA|Lightning|Packages|System):\s*$")
_ITEM = re.compile(r"\s*(?:[*-] +)?([A-Za-z][\w. -]{0,60}?):[ \t]*(.*)$")
_GPU = re.compile(r"\s*(?:[*-] +)?((?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID|A\d{2,3}|H\d{2,3})\b[\w .()/-]{1,80})$")
_SYSTEMS = {"Linux": "linux", "Windows": "windows", "Darwin": "darwin"}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not _SECTION.match(text[hit]):
            continue
        claims: list[Claim] = []
        names: list[str] = []
        sections: set[str] = set()
        section, last, in_list = "", hit, False
        for index, line in text.lines(hit, hit + _LONGEST):
            heading, item, gpu = _SECTION.match(line), _ITEM.match(line), _GPU.match(line)
            if heading:
                section, in_list, last = heading.group(1), False, index
                if section in sections:
                    break
                sections.add(section)
            elif in_list and gpu and len(names) < _MOST_GPUS:
                names.append(gpu.group(1).strip())
                last = index
            elif item:
                key, value = item.group(1), item.group(2).strip()
                in_list = section == "CUDA" and key == "GPU"
                claims += _claims(section, key, value, index)
                last = index
            elif index > last + (4 if line.strip() else 8):
                break
        end = last
        if "CUDA" not in sections or not sections.intersection(("Lightning", "Packages", "System")):
            continue
        if names:
            claims.append(Claim("smi.gpus", [cuda_gpu(n, name) for n, name in enumerate(names)], hit))
        if claims:
            yield Block("Lightning's environment", hit, last, tuple(claims), REPORT)


def _claims(section: str, key: str, value: str, line: int) -> Iterator[Claim]:
    if section == "CUDA" and key == "available":
        yield from available_claims(value, line)
    elif section == "CUDA" and key == "version":
        yield from built_with_cuda_claims(value, line)
    elif section in ("Lightning", "Packages"):
        yield from package_claims(key, value, line)
    elif section == "System" and key == "OS" and value in _SYSTEMS:
        yield Claim("system.os", _SYSTEMS[value], line)
    elif section == "System" and key == "processor" and value in ("x86_64", "aarch64"):
        yield Claim("system.arch", value, line)
    elif section == "System" and key == "python":
        yield from python_claims(value, line)
    elif section == "System" and key == "release" and "microsoft" in value.lower():
        yield Claim("system.wsl", 2 if "WSL2" in value else 1, line)
