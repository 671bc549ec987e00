"""`ds_report` of DeepSpeed: dotted lines about torch, CUDA and shared memory.

torch install path ............... ['/opt/env/lib/python3.12/site-packages/torch']
torch version .................... 2.6.0+cu124
deepspeed info ................... 0.16.4, unknown, unknown
torch cuda version ............... 12.4
nvcc version ..................... 12.4
deepspeed wheel compiled w. ...... torch 2.4, cuda 12.1       "torch 0.0, cuda 0.0": built when it is run
shared memory (/dev/shm) size .... 64.00 MB
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.readers._said import (
    built_with_cuda_claims,
    cuda_number,
    package_claims,
    torch_claims,
)
from cudadoctor.reports.text import Text

TRIGGERS = ("deepspeed general environment info", "torch install path ..", "torch version ....", "nvcc version ....")

_LONGEST = 14
_DOTTED = re.compile(r"\s*([a-z][a-z0-9 ()./]{3,40}?) \.{4,40} *(.*)$")
_UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        claims: list[Claim] = []
        last = hit
        for index, line in text.lines(hit, hit + _LONGEST):
            match = _DOTTED.match(line)
            if match:
                claims += _claims(match.group(1), match.group(2).strip(), index)
                last = index
            elif index > last + 2:
                break
        end = last
        if claims:
            yield Block("ds_report", hit, last, tuple(claims), REPORT)


def _claims(key: str, value: str, line: int) -> Iterator[Claim]:
    if key == "torch version":
        yield from torch_claims(value, line)
    elif key == "torch install path":
        path = re.match(r"\['([^']{1,400})'\]$", value)
        if path:
            yield Claim("torch.path", path.group(1), line)
    elif key == "torch cuda version":
        yield from built_with_cuda_claims(value, line)
    elif key == "torch hip version" and re.fullmatch(r"\d[\w.-]{0,40}", value):
        yield Claim("torch.hip", value, line)
    elif key == "nvcc version" and cuda_number(value):
        yield Claim("toolkit.nvcc_on_path_version", value, line)
    elif key == "deepspeed info":
        yield from package_claims("deepspeed", value.partition(",")[0], line)
    elif key == "deepspeed wheel compiled w.":
        match = re.match(r"torch (\d{1,2}\.\d{1,2}), cuda (\d{1,2}\.\d{1,2})", value)
        if match and match.group(1) != "0.0":
            yield Claim("package.deepspeed.built_for_torch", match.group(1), line)
    elif key == "shared memory (/dev/shm) size":
        match = re.match(r"(\d{1,6}(?:\.\d{1,2})?) ([KMGT]B)$", value)
        if match:
            yield Claim("memory.shm_size", int(float(match.group(1)) * _UNITS[match.group(2)]), line)
