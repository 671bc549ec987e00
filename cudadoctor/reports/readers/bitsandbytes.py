"""`python -m bitsandbytes` of all eras, and what it prints when it is imported.

    =================== bitsandbytes v0.50.2 ===================     0.46 and newer
    Platform: Linux-6.17.0-14-generic-x86_64-with-glibc2.39
    Python: 3.12.3
    PyTorch: 2.13.0+cu130
      CUDA: 13.0
    Related packages:
      accelerate: 1.15.0
    ...
    PyTorch settings found: CUDA_VERSION=130, Highest Compute Capability: (12, 0).          0.41 and newer

    CUDA SETUP: Highest compute capability among GPUs detected: 7.5                         0.3x

"CUDA SETUP: Detected CUDA version 117" was of the runtime that it found on the system, later of torch: not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import cuda_from_tag
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import (
    built_with_cuda_claims,
    capability,
    package_claims,
    platform_claims,
    python_claims,
    torch_claims,
)
from cudadoctor.reports.text import Text

TRIGGERS = (
    "= bitsandbytes v",
    "pytorch settings found: cuda_version=",
    "highest compute capability among gpus detected:",
)

_LONGEST = 30
_HEAD = re.compile(r"=+ bitsandbytes v(\d[\w.+]{0,30}) =+")
_LINE = re.compile(r"\s*([\w .-]{1,40}): (.*)$")
_SETTINGS = re.compile(
    r"PyTorch settings found: CUDA_VERSION=(\d{2,4}|None), Highest Compute Capability: ([^\n]{1,20})"
)
_OLD = re.compile(r"Highest compute capability among GPUs detected: (\d{1,2}\.\d)")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit]
        head = _HEAD.search(line)
        if head:
            yield _report(text, hit, head.group(1))
            continue
        claims: list[Claim] = []
        settings, old = _SETTINGS.search(line), _OLD.search(line)
        if settings:
            number = cuda_from_tag("cu" + settings.group(1))
            if number:
                claims.append(Claim("torch.cuda", number, hit))
            claims += _highest(settings.group(2), hit)
        elif old:
            claims += _highest(old.group(1), hit)
        if claims:
            yield Block("bitsandbytes diagnostics", hit, hit, tuple(claims), REPORT)


def _highest(words: str, line: int) -> Iterator[Claim]:
    """Of all GPUs: which of them it is is not said."""
    highest = capability(words)
    if highest:
        yield Claim("smi.gpus", [cuda_gpu(0, None, highest)], line)


def _report(text: Text, first: int, version: str) -> Block:
    claims = list(package_claims("bitsandbytes", version, first))
    last = first
    for index, line in text.lines(first + 1, first + _LONGEST):
        if line.startswith("====="):
            last = index
            break
        match = _LINE.match(line)
        if not match:
            if index > last + 2:
                break
            continue
        key, value = match.group(1), match.group(2).strip()
        last = index
        if key == "Platform":
            claims += platform_claims(value, index)
        elif key == "Python":
            claims += python_claims(value, index)
        elif key == "PyTorch":
            claims += torch_claims(value, index)
        elif key == "CUDA":
            claims += built_with_cuda_claims("None" if value == "N/A" else value, index)
        elif key == "HIP" and re.match(r"\d", value):
            claims.append(Claim("torch.hip", value, index))
        elif re.fullmatch(r"[\w-]+", key) and line.startswith(" "):
            claims += package_claims(key, value, index)
    return Block("bitsandbytes diagnostics", first, last, tuple(claims), REPORT)
