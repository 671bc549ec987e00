"""`python -m xformers.info`, and the warning with which xformers says what it was built for.

WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.10.0+cu128 with CUDA 1208 (you have 2.13.0+cpu)
    Python  3.10.19 (you have 3.11.7)
xFormers 0.0.35
pytorch.version:                                   2.13.0+cpu
pytorch.cuda:                                      not available
gpu.compute_capability:                            8.6
gpu.name:                                          NVIDIA GeForce RTX 3060
build.cuda_version:                                1208
build.torch_version:                               2.10.0+cu128
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import VERSION, package_claims, python_claims, torch_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("xformers was built for", "is_triton_available:", "pytorch.version:", "memory_efficient_attention.")

_LONGEST = 60
_BUILT = re.compile(rf"\s*PyTorch\s+({VERSION}) with CUDA (\d{{3,4}}|None) \(you have ({VERSION})\)")
_PYTHON = re.compile(r"\s*Python\s+\d[\d.]* \(you have (\d[\d.]{2,10})\)")
_NAME = re.compile(rf"xFormers ({VERSION})$")
_LINE = re.compile(r"\s*([a-z][\w.@-]{3,60}):\s+(\S.*)$")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        warning = "was built for" in text[hit]
        block = _warning(text, hit) if warning else _info(text, hit, end)
        if block is not None:
            end = block.last
            yield block


def _warning(text: Text, first: int) -> Optional[Block]:
    claims: list[Claim] = []
    last = first
    for index, line in text.lines(first, first + 4):
        built, python = _BUILT.match(line) or _BUILT.search(line), _PYTHON.match(line)
        if built:
            claims += _built_for(built.group(1), built.group(2), index)
            claims += torch_claims(built.group(3), index)
            last = index
        elif python:
            claims += python_claims(python.group(1), index)
            last = index
    return Block("xformers warning", first, last, tuple(claims), REPORT) if claims else None


def _built_for(torch: str, cuda: str, line: int) -> Iterator[Claim]:
    yield Claim("package.xformers.built_for_torch", torch, line)
    if cuda.isdigit():
        yield Claim("package.xformers.built_for_cuda", f"{int(cuda) // 100}.{int(cuda) % 100}", line)
    else:
        yield Claim("package.xformers.built_for_cuda", None, line, "absent")


def _info(text: Text, hit: int, end: int) -> Optional[Block]:
    first = hit
    for index in range(hit - 1, max(end, hit - _LONGEST, -1), -1):
        if not _LINE.match(text[index]) and not _NAME.match(text[index]):
            break
        first = index
    values: dict[str, tuple[str, int]] = {}
    claims: list[Claim] = []
    last = first
    for index, line in text.lines(first, first + _LONGEST):
        name, match = _NAME.match(line), _LINE.match(line)
        if name:
            claims += package_claims("xformers", name.group(1), index)
        elif match:
            values.setdefault(match.group(1), (match.group(2), index))
        else:
            break
        last = index
    if "pytorch.version" in values:
        claims += torch_claims(*values["pytorch.version"])
    if "pytorch.cuda" in values:
        words, line_number = values["pytorch.cuda"]
        if words in ("available", "not available"):
            claims.append(Claim("torch.cuda_available", words == "available", line_number))
    if "gpu.name" in values:
        words, line_number = values["gpu.name"]
        capability = values.get("gpu.compute_capability", ("", 0))[0]
        stated = capability if re.fullmatch(r"\d{1,2}\.\d", capability) else None
        claims.append(Claim("smi.gpus", [cuda_gpu(0, words, stated)], line_number))
    if "build.torch_version" in values:
        torch, line_number = values["build.torch_version"]
        claims += _built_for(torch, values.get("build.cuda_version", ("None", 0))[0], line_number)
    return Block("xformers.info", first, last, tuple(claims), REPORT) if claims else None
