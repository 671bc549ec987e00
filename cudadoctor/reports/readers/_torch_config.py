"""`torch.__config__.show()`, which environment reports of OpenMMLab and detectron2 hold.

PyTorch built with:
  - GCC 9.3
  - CUDA Runtime 11.3
  - NVCC architecture flags: -gencode;arch=compute_37,code=sm_37;...;-gencode;arch=compute_37,code=compute_37
  - CuDNN 8.2
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadoctor.reports.blocks import Claim

_RUNTIME = re.compile(r"\s*- CUDA Runtime (\d{1,2}\.\d{1,2})\b")
_FLAGS = re.compile(r"\s*- NVCC architecture flags: (-gencode\S{10,4000})")
_TARGET = re.compile(r"code=((?:sm|compute)_\d{2,3}[af]?)(?=;|$)")


def config_claims(line: str, index: int) -> Iterator[Claim]:
    """What one line of it states: the CUDA that torch was built with, and the GPUs that it holds code for."""
    runtime, flags = _RUNTIME.match(line), _FLAGS.match(line)
    if runtime:
        yield Claim("torch.cuda", runtime.group(1), index)
    elif flags and not line.endswith(("compute", "_", ",", "-gencode")):  # a wrapped line shows a part of the list only
        targets = list(dict.fromkeys(_TARGET.findall(flags.group(1))))
        sass = [target for target in targets if target.startswith("sm_")]
        if sass:
            yield Claim("torch.sass", sass, index)
            yield Claim("torch.ptx", [target for target in targets if target.startswith("compute_")], index)
