"""llama.cpp (and what is built on it) when it starts: its CUDA devices.

ggml_cuda_init: found 2 CUDA devices:
  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
  Device 1: Tesla P40, compute capability 6.1, VMM: yes

ggml_init_cublas: found 1 CUDA devices:                   builds of 2023
  Device 0: NVIDIA GeForce RTX 3090

ggml_cuda_init: found 1 CUDA devices (Total VRAM: 24564 MiB):
  Device 0: NVIDIA RTX A5000, compute capability 8.6, VMM: yes, VRAM: 24564 MiB
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.text import Text

TRIGGERS = (" cuda devices", ", compute capability ")

_DEVICE = re.compile(
    r"Device (\d{1,2}): (.{2,90}?), compute capability (\d{1,2}\.\d)(?:, VMM: \w+)?(?:, VRAM: (\d{3,7}) MiB)?"
)

_OLD = re.compile(r"\s*Device (\d{1,2}): ((?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID) [\w .()/-]{1,80})$")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        gpus, last = [], hit
        for index, line in text.lines(hit, hit + 34):
            match = _DEVICE.search(line)
            if match:
                memory = int(match.group(4)) if match.group(4) else None
                gpus.append(cuda_gpu(int(match.group(1)), match.group(2), match.group(3), memory))
                last = index
                continue
            old = _OLD.match(line) if "found" in text[hit] else None
            if old:
                gpus.append(cuda_gpu(int(old.group(1)), old.group(2).strip()))
                last = index
            elif index > last + 1:
                break
        end = last
        if gpus:
            yield Block("llama.cpp devices", hit, last, (Claim("smi.gpus", gpus, hit),), LOG)
