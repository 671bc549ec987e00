"""nvcc --version.

nvcc: NVIDIA (R) Cuda compiler driver
Cuda compilation tools, release 12.4, V12.4.131
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("cuda compilation tools, release",)

_RELEASE = re.compile(r"Cuda compilation tools, release (\d{1,2}\.\d{1,2})(?:, V(\d{1,2}(?:\.\d{1,4}){1,2}))?", re.I)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        match = _RELEASE.search(text[hit])
        if match:
            claims = (Claim("toolkit.nvcc_on_path_version", match.group(2) or match.group(1), hit),)
            yield Block("nvcc --version", hit, hit, claims, TABLE)
