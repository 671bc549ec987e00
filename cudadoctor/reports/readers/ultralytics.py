"""Ultralytics (YOLO): its first line, `yolo checks`, and the error about an invalid device.

    Ultralytics 8.4.122 🚀 Python-3.12.3 torch-2.9.1+cu128 CUDA:0 (NVIDIA GeForce RTX 4070, 12282MiB)
                                                           CUDA:1 (NVIDIA GeForce RTX 3060, 12288MiB)
    YOLOv5 🚀 v7.0-365-gabcdef01 Python-3.10.12 torch-2.1.0+cu118 CPU

    ValueError: Invalid CUDA 'device=0' requested. ...
    torch.cuda.is_available(): False
    torch.cuda.device_count(): 0
    os.environ['CUDA_VISIBLE_DEVICES']: None

A first line with CPU may be of a person who asked for the CPU: it says nothing of is_available().
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import (
    VERSION,
    available_claims,
    package_claims,
    platform_claims,
    python_claims,
    torch_claims,
)
from cudadoctor.reports.readers._variables import unset_claims, variable_claims
from cudadoctor.reports.text import Text

TRIGGERS = (" torch-", "invalid cuda 'device", "setup complete")

_FIRST = re.compile(
    rf"(Ultralytics (?:YOLO\S* )?({VERSION})|YOLOv\d\S*)?\W[^\n]{{0,60}}?"
    r"\bPython-(\d[\d.]{2,8}) torch-(\d[\w.+]{2,40})"
)
_GPU = re.compile(r"CUDA:(\d{1,2}) \(([^,()]{2,80}(?:\([^()]{1,20}\))?), (\d{3,7})(?:\.\d+)?MiB\)")
_CHECK = re.compile(r"([A-Z][A-Za-z ]{1,20}?) {2,24}(\S.*)$")
_SAID = re.compile(r"torch\.cuda\.is_available\(\): (True|False)")
_VISIBLE = re.compile(r"os\.environ\['CUDA_VISIBLE_DEVICES'\]: (.{0,100})")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        first = _FIRST.search(line)
        if first:
            block = _first_line(text, hit, first)
        elif "nvalid CUDA 'device" in line:
            block = _invalid_device(text, hit)
        elif line.startswith("Setup complete"):
            block = _checks(text, hit)
        else:
            continue
        if block.claims:
            end = block.last
            yield block


def _first_line(text: Text, hit: int, match: re.Match[str]) -> Block:
    claims = [*python_claims(match.group(3), hit), *torch_claims(match.group(4), hit)]
    if match.group(2):
        claims += package_claims("ultralytics", match.group(2), hit)
    gpus: list[dict[str, Any]] = []
    last = hit
    for index, line in text.lines(hit, hit + 16):
        gpu = _GPU.search(line)
        if not gpu:
            break
        gpus.append(cuda_gpu(int(gpu.group(1)), gpu.group(2).strip(), None, int(gpu.group(3))))
        last = index
    if gpus:
        claims += [Claim("smi.gpus", gpus, hit), Claim("torch.cuda_available", True, hit)]
    return Block("ultralytics", hit, last, tuple(claims), REPORT)


def _checks(text: Text, hit: int) -> Block:
    claims: list[Claim] = []
    last = hit
    for index, line in text.lines(hit + 1, hit + 20):
        match = _CHECK.match(line)
        if match:
            key, value = match.groups()
            last = index
            if key == "OS":
                claims += platform_claims(value, index)
            elif key == "Python":
                claims += python_claims(value, index)
            elif key == "RAM":
                ram = re.match(r"(\d{1,5}\.\d{1,2}) GB", value)
                claims += [Claim("memory.total", int(float(ram.group(1)) * (1 << 30)), index)] if ram else []
            elif key == "GPU":
                gpu = re.match(r"([^,]{2,80}), (\d{3,7})MiB", value)
                claims += [Claim("smi.gpus", [cuda_gpu(0, gpu[1], None, int(gpu[2]))], index)] if gpu else []
        elif index > last + 2:
            break
    return Block("ultralytics checks", hit, last, tuple(claims), REPORT)


def _invalid_device(text: Text, hit: int) -> Block:
    claims: list[Claim] = []
    last = hit
    for index, line in text.lines(hit, hit + 8):
        said, visible = _SAID.search(line), _VISIBLE.search(line)
        if said:
            claims += available_claims(said.group(1), index)
            last = index
        if visible:
            value = visible.group(1).strip()
            name = "CUDA_VISIBLE_DEVICES"
            claims += unset_claims(name, index) if value == "None" else variable_claims(name, value.strip("'\""), index)
            last = index
    return Block("ultralytics error", hit, last, tuple(claims), REPORT)
