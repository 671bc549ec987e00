"""`pip list` and `uv pip list`, with or without their heads; `uv pip tree`; pip's list as JSON and of pip 9.

    Package                  Version      Editable project location
    ------------------------ ------------ -------------------------
    numpy                    2.4.6
    torch                    2.9.1+cu128

A package that is not in a list is missing only where the list is evidently whole: it has its head, the lines below the
head are as long as the longest name and the longest version, the names are in order, and pip itself is among them (or
the list is long). A head over rows that somebody has picked has lines that are too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.markers import normalise_name
from cudadoctor.reports.blocks import LOG, TABLE, Block, Claim
from cudadoctor.reports.readers._packages import Row, list_claims
from cudadoctor.reports.readers._said import VERSION, python_claims
from cudadoctor.reports.text import Text

_NAMES = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "xformers",
    "flash-attn",
    "flash_attn",
    "bitsandbytes",
    "tensorflow",
    "jax",
    "jaxlib",
    "numpy",
    "vllm",
    "transformers",
)
TRIGGERS = (
    "package  ",
    "package version",
    "nvidia-cu",
    "onnxruntime",
    "torch (",
    '[{"name": "',
    "torch v0",
    "environment at: ",
    *(name + "  " for name in _NAMES),
)

_MOST_ROWS = 3000
_MOST_LISTS = 300
_HEAD = re.compile(r"\s*Package\s+Version(?:\s+(\S.*))?$")
_RULE = re.compile(r"\s*-{3,}(?: +-{3,}){1,4}\s*$")
_ROW = re.compile(rf"\s*([A-Za-z0-9][\w.-]{{0,80}})\s+({VERSION})(?:\s+(\S.*))?$")
_WIDE_ROW = re.compile(rf"\s*([A-Za-z][\w.-]{{0,80}})\s{{2,60}}({VERSION})(?:\s+((?:/|[A-Za-z]:\\)\S.*))?$")
_OLD_ROW = re.compile(rf"\s*([A-Za-z][\w.-]{{0,80}}) \(({VERSION})(?:, (\S[^)]{{0,300}}))?\)$")
_TREE_ROW = re.compile(
    rf"(?:[\s\u2502\u251c\u2514\u2500|`+-]*)([a-z0-9][a-z0-9-]{{0,80}}) v({VERSION})(?: \(.{{0,80}}\))?$"
)
_JSON = re.compile(r'\{"name": "([\w.-]{1,80})", "version": "([\w.!+-]{1,60})"(?:, [^{}]{0,400})?\}')
_UV = re.compile(r"Using Python (\d\.\d{1,2}\.\d{1,2}) environment at: (\S.{0,300})$")
_FEWER = re.compile(
    r"\blist\b.*\s(?:--(?:user|local|not-required|path|exclude|outdated|uptodate|editable)\b|-[olue]\b)"
)
_INSTALLERS = ("pip", "uv", "conda", "poetry", "pdm", "uv-bootstrap")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    found = 0
    for hit in hits:
        if hit <= end:
            continue
        if found >= _MOST_LISTS:
            break
        line = text[hit]
        if _HEAD.match(line):
            block = _table(text, hit, matrix)
        elif "[{" in line:
            rows = [Row(name, version, hit) for name, version in _JSON.findall(line)]
            block = _block(rows, hit, hit, matrix) if rows else None
        elif _UV.search(line):
            block = _environment(text, hit)
        else:
            block = _rows_alone(text, hit, end, matrix)
        if block is not None:
            end = block.last
            found += 1
            yield block


def _block(rows: Sequence[Row], first: int, last: int, matrix: Matrix, whole: bool = False) -> Optional[Block]:
    claims = tuple(list_claims(rows, matrix, whole))
    return Block("package list", first, last, claims, TABLE) if claims else None


def _environment(text: Text, hit: int) -> Optional[Block]:
    match = _UV.search(text[hit])
    assert match is not None
    claims = [*python_claims(match.group(1), hit), Claim("python.prefix", match.group(2).strip(), hit)]
    return Block("uv", hit, hit, tuple(claims), LOG)


def _table(text: Text, hit: int, matrix: Matrix) -> Optional[Block]:
    head = _HEAD.match(text[hit])
    columns = (head.group(1) or "") if head else ""
    rows: list[Row] = []
    rule = ""
    last = hit
    for index, line in text.lines(hit + 1, hit + _MOST_ROWS):
        if index == hit + 1 and _RULE.match(line):
            rule = line.strip()
            last = index
            continue
        match = _ROW.match(line)
        if not match:
            break
        rows.append(_row(match, index, columns))
        last = index
    if not rows:
        return None
    fewer = any(_FEWER.search(line) for _, line in text.lines(hit - 3, hit - 1)) or "Latest" in columns
    return _block(rows, hit, last, matrix, not fewer and _is_whole(rows, rule))


def _row(match: re.Match[str], index: int, columns: str) -> Row:
    rest = (match.group(3) or "").strip()
    location = installer = editable = ""
    if "Installer" in columns and rest.rpartition(" ")[2] in _INSTALLERS:
        rest, _, installer = rest.rpartition(" ")
        rest = rest.strip()
    if "Location" in columns:
        location = rest.rpartition("  ")[2].strip()
    elif "Editable" in columns:
        editable = rest
    return Row(match.group(1), match.group(2), index, location, installer, editable)


def _is_whole(rows: Sequence[Row], rule: str) -> bool:
    widths = [len(part) for part in rule.split()]
    names = [normalise_name(row.name) for row in rows]
    return (
        len(widths) >= 2
        and widths[0] == max(7, *(len(row.name) for row in rows))
        and widths[1] == max(7, *(len(row.version) for row in rows))
        and names == sorted(names)
        and ("pip" in names or len(names) >= 15)
    )


def _rows_alone(text: Text, hit: int, end: int, matrix: Matrix) -> Optional[Block]:
    """Rows whose head was cut off or filtered away (`pip list | grep torch`)."""
    shape = next((shape for shape in (_WIDE_ROW, _OLD_ROW, _TREE_ROW) if shape.match(text[hit])), None)
    if shape is None or (shape is _OLD_ROW and not _is_old_list(text, hit)):
        return None
    first = text.run_start(hit, end, _MOST_ROWS, shape.match)
    rows: list[Row] = []
    last = hit
    for index, line in text.lines(first, first + _MOST_ROWS):
        match = shape.match(line)
        if not match:
            break
        rows.append(Row(match.group(1), match.group(2), index))
        last = index
    return _block(rows, first, last, matrix)


def _is_old_list(text: Text, hit: int) -> bool:
    """One line "torch (1.0.0)" alone may be prose: another stands beside it."""
    near = (text[index] for index in (hit - 1, hit + 1) if 0 <= index < len(text))
    return any(_OLD_ROW.match(line) or "pip list" in line for line in near)
