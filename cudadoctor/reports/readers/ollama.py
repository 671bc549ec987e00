"""ollama's log: which GPUs it found, and the newest CUDA that the driver serves (its "driver", no driver number).

... msg="inference compute" id=GPU-... library=cuda compute=8.9 driver=12.4 name="NVIDIA GeForce RTX 4090" ...
... msg="inference compute" id=GPU-... library=CUDA compute=12.0 name=CUDA0 description="NVIDIA GeForce RTX 5070"
    libdirs=ollama,cuda_v13 driver=13.0 ...                 (one line)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.text import Text

TRIGGERS = ('msg="inference compute"',)

_PAIR = re.compile(r'(\w{1,20})=("[^"]{0,200}"|\S{1,200})')
_MOST = 64


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    """The last start of the program counts."""
    run: list[int] = []
    for hit in hits:
        if run and hit > run[-1] + 1:
            block = _block(text, run[:_MOST])
            if block is not None:
                yield block
            run = []
        run.append(hit)
    block = _block(text, run[:_MOST])
    if block is not None:
        yield block


def _block(text: Text, run: Sequence[int]) -> Optional[Block]:
    gpus: list[dict[str, Any]] = []
    claims: list[Claim] = []
    for hit in run:
        values = {key: value.strip('"') for key, value in _PAIR.findall(text[hit])}
        if values.get("library", "").lower() not in ("cuda", "cuda_v11", "cuda_v12", "cuda_v13"):
            continue
        name = values.get("description") or values.get("name") or None
        compute = values.get("compute", "")
        capability = compute if re.fullmatch(r"\d{1,2}\.\d", compute) else None
        gpus.append(cuda_gpu(len(gpus), name, capability))
        serves = values.get("driver", "")
        if re.fullmatch(r"[1-9]\d?\.\d{1,2}", serves):
            claims.append(Claim("driver.smi_cuda", serves, hit))
    if not gpus:
        return None
    return Block("ollama log", run[0], run[-1], (Claim("smi.gpus", gpus, run[0]), *claims), LOG)
