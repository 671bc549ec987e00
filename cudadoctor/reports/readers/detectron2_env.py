"""`python -m detectron2.utils.collect_env`: a table of two columns.

-------------------------------  ------------------------------------------------------------
sys.platform                     linux
Python                           3.8.10 (default, ...) [GCC 9.4.0]
detectron2                       0.6 @/home/me/detectron2/detectron2
detectron2 arch flags            8.6
PyTorch                          1.10.0+cu113 @/usr/lib/python3/dist-packages/torch
GPU available                    Yes
GPU 0,1                          NVIDIA GeForce RTX 3090 (arch=8.6)
Driver version                   470.57.02
CUDA_HOME                        /usr/local/cuda
torchvision                      0.11.1+cu113 @/usr/lib/python3/dist-packages/torchvision
-------------------------------  ------------------------------------------------------------
PyTorch built with:
  - CUDA Runtime 11.3
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import available_claims, package_claims, python_claims, torch_claims
from cudadoctor.reports.readers._torch_config import config_claims
from cudadoctor.reports.readers._variables import variable_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("pytorch debug build",)

_BEFORE, _AFTER = 14, 60
_ROW = re.compile(r"\s*([A-Za-z][\w.,]*(?: [\w.,]+){0,4}) {2,90}(\S.*)$")
_GPU = re.compile(r"(.{2,80}?)(?: \(arch=(\d{1,2}\.\d)\))?\s*$")
_SYSTEMS = {"linux": "linux", "win32": "windows", "darwin": "darwin"}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not _ROW.match(text[hit]):
            continue
        first = text.run_start(hit, end, _BEFORE, _ROW.match)
        claims: list[Claim] = []
        gpus: dict[int, tuple[str, Optional[str]]] = {}
        last, keys = hit, set()
        for index, line in text.lines(first, hit + _AFTER):
            row = _ROW.match(line)
            stated = list(config_claims(line, index))
            if row:
                key, value = row.group(1), row.group(2).strip()
                if key in keys:
                    break
                keys.add(key)
                named = _GPU.match(value) if re.fullmatch(r"GPU \d{1,2}(?:,\d{1,2}){0,63}", key) else None
                if named:
                    gpus.update((int(number), (named[1].strip(), named[2])) for number in key[4:].split(","))
                stated += _claims(key, value, index)
            elif index > last + 12:
                break
            if stated or row:
                claims += stated
                last = index
        end = last
        if gpus:
            claims.append(Claim("smi.gpus", [cuda_gpu(n, *gpu) for n, gpu in sorted(gpus.items())], hit))
        if {"PyTorch", "sys.platform"} <= keys:
            yield Block("detectron2's environment", first, last, tuple(claims), REPORT)


def _claims(key: str, value: str, line: int) -> Iterator[Claim]:
    word = value.partition(" ")[0]
    if key == "sys.platform" and word in _SYSTEMS:
        yield Claim("system.os", _SYSTEMS[word], line)
    elif key == "Python":
        yield from python_claims(value, line)
    elif key == "PyTorch":
        yield from torch_claims(word, line)
    elif key in ("GPU available", "CUDA available"):
        yield from available_claims(word, line)
    elif key == "Driver version" and is_driver_version(word):
        yield Claim("driver.smi_version", word, line)
    elif key == "CUDA_HOME" and not value.endswith("invalid!") and value not in ("None", "None - invalid!"):
        yield from variable_claims(key, value, line)
    elif key in ("torchvision", "numpy", "detectron2"):
        yield from package_claims(key, word, line)
