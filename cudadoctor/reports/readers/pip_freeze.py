"""`pip freeze`, `pip list --format=freeze` and `uv pip freeze`.

    torch==2.9.1+cu128
    numpy @ file:///home/conda/feedstock_root/.../numpy-2.4.6-cp312-cp312-linux_x86_64.whl
    -e git+https://github.com/example/demo.git@0000#egg=demo

A requirements file looks the same and says nothing of what is installed. So the command must stand above the lines, or
something must be among them that no person writes: packages that torch brings (filelock, sympy, NVIDIA's), or where a
package was built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.markers import normalise_name
from cudadoctor.reports.blocks import LOG, TABLE, Block
from cudadoctor.reports.readers._packages import Row, list_claims
from cudadoctor.reports.readers._said import VERSION
from cudadoctor.reports.text import Text

TRIGGERS = (
    "torch==",
    "torch @",
    "torchvision==",
    "numpy==",
    "numpy @",
    "xformers==",
    "flash-attn==",
    "flash-attn @",
    "flash_attn==",
    "flash_attn @",
    "tensorflow==",
    "jax==",
    "jaxlib==",
    "onnxruntime",
    "vllm==",
    "transformers==",
    "nvidia-cu",
)

_MOST_ROWS = 3000
_PINNED = re.compile(rf"\s*([A-Za-z0-9][\w.-]{{0,80}})==({VERSION})\s*$")
_DIRECT = re.compile(r"\s*([A-Za-z0-9][\w.-]{0,80}) @ ((?:file|https?|git\+\w+):\S{1,600})\s*$")
_EDITABLE = re.compile(r"\s*(?:-e (?:\S{1,600}|git\+\S{1,600})|# Editable install .{0,200})\s*$")
_FROZEN = re.compile(r" @ file://|^\s*-e git\+\S+@[0-9a-f]{40}#egg=")
_COMMAND = re.compile(r"\b(?:freeze\b|list\s.*--format[= ]freeze)", re.IGNORECASE)
_BROUGHT = frozenset(("filelock", "sympy", "networkx", "markupsafe", "mpmath", "fsspec", "idna", "urllib3", "certifi"))


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not _is_row(text[hit]):
            continue
        first = text.run_start(hit, end, _MOST_ROWS, _is_row)
        rows: list[Row] = []
        last = first
        for index, line in text.lines(first, first + _MOST_ROWS):
            if not _is_row(line):
                break
            row = _row(line, index)
            rows += [row] if row is not None else []
            last = index
        end = last
        commanded = any(_COMMAND.search(line) for _, line in text.lines(first - 3, first - 1))
        names = {normalise_name(row.name) for row in rows}
        brought = len(names & _BROUGHT) + sum(name.startswith("nvidia-") for name in names)
        # Nobody writes down where conda's builders had the wheel, nor the commit of an editable install.
        brought += 2 * any(_FROZEN.search(line) for _, line in text.lines(first, last))
        claims = tuple(list_claims(rows, matrix)) if commanded or brought > 1 else ()
        if claims:
            yield Block("package list", first, last, claims, TABLE if commanded else LOG)


def _is_row(line: str) -> bool:
    return bool(_PINNED.match(line) or _DIRECT.match(line) or _EDITABLE.match(line))


def _row(line: str, index: int) -> Optional[Row]:
    pinned = _PINNED.match(line)
    if pinned:
        return Row(pinned.group(1), pinned.group(2), index)
    direct = _DIRECT.match(line)
    if direct is None:
        return None
    # The version stands in the name of the wheel, if anywhere.
    wheel = direct.group(2).partition("#")[0].rpartition("/")[2].replace("%2B", "+")
    parts = wheel.split("-")
    if wheel.endswith(".whl") and len(parts) >= 5 and normalise_name(parts[0]) == normalise_name(direct.group(1)):
        return Row(direct.group(1), parts[1], index)
    return None
