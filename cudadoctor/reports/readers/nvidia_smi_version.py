"""nvidia-smi --version in a text (R550 and newer).

    NVIDIA-SMI version  : 555.58.02
    NVML version        : 555.58
    DRIVER version      : 555.58.02
    CUDA Version        : 12.5

From R610 on the last two say "Deprecated, see ..." and `KMD version` and `CUDA UMD version` follow. NVML's number lacks
its last group, so that it says nothing about whether it fits the driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.nvidia_smi import ABSENT, KNOWN, NOT_PRINTED, Cell
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import STRUCTURED, Block
from cudadoctor.reports.readers._nvidia_smi import last_of_each, version_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("nvidia-smi version",)

_LABELS = "NVIDIA-SMI|NVML|DRIVER|KMD|CUDA UMD|CUDA"
_VALUE = pattern(
    rf"\b({_LABELS}) version\s{{0,30}}: ?(\d+(?:\.\d+){{1,3}}|N/A|[^:]{{1,80}}?)(?=\s*(?:$|(?:{_LABELS}) v))",
    re.IGNORECASE,
)
_LINES = 5


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in last_of_each(text, hits):
        found: dict[str, Cell] = {}
        last = hit
        for index, line in text.lines(hit, hit + _LINES):
            for match in _VALUE.finditer(line[:500]):
                label = match.group(1).upper()
                if label in found or (label == "NVIDIA-SMI" and index > hit):
                    continue
                value = match.group(2).strip()
                found[label] = Cell(ABSENT if value.upper() == "N/A" else KNOWN, value)
                last = index
        tool = found.get("NVIDIA-SMI", NOT_PRINTED)
        if not is_driver_version(tool.text):
            continue
        driver = _number(found.get("KMD"), found.get("DRIVER"))
        cuda = _number(found.get("CUDA UMD"), found.get("CUDA"))
        claims = tuple(version_claims(tool, driver, cuda, hit))
        shown = driver.value if driver.value and is_driver_version(driver.value) else None
        yield Block("nvidia-smi --version", hit, last, claims, STRUCTURED, shown)


def _number(*cells: Cell | None) -> Cell:
    """The first that is a number or "N/A"."""
    for cell in cells:
        if cell is not None and (cell.state == ABSENT or cell.text[:1].isdigit()):
            return cell
    return NOT_PRINTED
