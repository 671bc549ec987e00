"""TensorFlow's log when it opens a GPU:

... Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9600 MB memory:  -> device: 0, name: NVIDIA
    GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6                            (one line)
... StreamExecutor device (0): NVIDIA GeForce RTX 3080, Compute Capability 8.6
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.text import Text

TRIGGERS = (", pci bus id: ", "streamexecutor device (")

_MOST = 400
_DEVICE = re.compile(
    r"device: (\d{1,2}), name: ([^,]{2,80}), pci bus id: [\w:.]{4,20}, compute capability: (\d{1,2}\.\d)"
    r"|StreamExecutor device \((\d{1,2})\): ([^,]{2,80}), Compute Capability (\d{1,2}\.\d)"
)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    gpus = {}
    first = last = -1
    for hit in hits[:_MOST]:
        match = _DEVICE.search(text[hit])
        if match:
            index, name, capability = [part for part in match.groups() if part is not None]
            gpus[int(index)] = cuda_gpu(int(index), name.strip(), capability)
            first, last = (hit if first < 0 else first), hit
    if gpus:
        claim = Claim("smi.gpus", [gpus[index] for index in sorted(gpus)], first)
        yield Block("TensorFlow's devices", first, last, (claim,), LOG)
