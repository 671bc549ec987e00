"""`conda list`, `mamba list` and `micromamba list`, and the lines of `conda env export`.

    # packages in environment at /opt/conda/envs/demo:
    #
    # Name                    Version                   Build  Channel
    pytorch                   2.1.2           py3.10_cuda12.1_cudnn8.9.2_0    pytorch
    transformers              4.40.2                   pypi_0    pypi

    List of packages in environment: "/opt/conda/envs/demo"

      Name              Version      Build                      Channel

    dependencies:
      - pytorch=2.1.2=py3.10_cuda12.1_cudnn8.9.2_0
      - pip:
          - torch==2.1.2

The build string tells which CUDA a package was built with, or that it is a CPU build; its version does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.cuda_packages import CONDA_TO_PYPI
from cudadoctor.parse.markers import normalise_name
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.readers._conda import Row, conda_claims
from cudadoctor.reports.readers._said import VERSION, missing_claims
from cudadoctor.reports.text import Text

TRIGGERS = (
    "packages in environment",
    "# name  ",
    "# name version",
    "pytorch  ",
    "pypi_0",
    "pytorch-cuda",
    "cudatoolkit",
    "cuda-version",
    "- pytorch=",
    "- torch==",
    "conda-forge",
    "dependencies:",
)

_MOST_ROWS = 3000
_PREFIX = re.compile(r'packages in environment(?: at|:)?:? "?([^"\s][^"]{0,300}?)"?:?$')
_HEAD = re.compile(r"\s*#? ?Name\s+Version\s+Build(?:\s+Channel)?\s*$")
_RULE = re.compile(r"\s*(?:#|\u2500{5,}|-{5,})?\s*$")
_BUILD = r"(?:[A-Za-z0-9][\w.]{0,80}_\d{1,8}|py\d{1,3}[\w.]*|pypi_\d|mkl|cuda|cpu|main|openblas|\d{1,4}_\w+|\d{1,8})"
_ROW = pattern(
    rf"\s*([a-z0-9_][\w.-]{{0,80}})\s+({VERSION})\s+({_BUILD})(?:\s+\[\w{{1,20}}\])?(?:\s+([\w./:-]{{1,80}}))?$"
)
_EXPORTED = re.compile(rf"\s*- (?:([\w./-]{{1,60}})::)?([a-z0-9_][\w.-]{{0,80}})=({VERSION})=({_BUILD})$")
_EXPORTED_BY_PIP = re.compile(rf"\s+- ([A-Za-z0-9][\w.-]{{0,80}})==({VERSION})$")
_CHANNELS = re.compile(r"(?:conda-forge|pytorch|nvidia|pypi|defaults|anaconda|main|pkgs/\w+|huggingface|xformers)$")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        if _PREFIX.search(line) or _HEAD.match(line):
            block = _list(text, hit)
        elif _EXPORTED.match(line) or line.strip() == "dependencies:":
            block = _export(text, hit, end)
        elif _sure_row(line):
            block = _rows_alone(text, hit, end)
        else:
            continue
        if block is not None:
            end = block.last
            yield block


def _sure_row(line: str) -> bool:
    """A row without its head: its channel or its build string must be one of conda's."""
    match = _ROW.match(line)
    return bool(match and (_CHANNELS.match(match.group(4) or "") or re.search(r"_\w*\d", match.group(3))))


def _row(match: re.Match[str], index: int) -> Row:
    return match.group(1), match.group(2), match.group(3), match.group(4), index


def _list(text: Text, hit: int) -> Optional[Block]:
    prefix = ""
    rows: list[Row] = []
    headed = False
    last = hit
    for index, line in text.lines(hit, hit + _MOST_ROWS):
        named, row = _PREFIX.search(line), _ROW.match(line)
        if named and not rows and not prefix:
            prefix = named.group(1)
        elif _HEAD.match(line) and not rows:
            headed = True
        elif row:
            rows.append(_row(row, index))
            last = index
        elif rows or not _RULE.match(line):
            break
    claims = list(conda_claims(rows, prefix))
    if prefix and rows:
        claims += [Claim("python.prefix", prefix, hit), Claim("python.environment", "conda", hit)]
        if prefix[1:3] == ":\\":
            claims.append(Claim("system.os", "windows", hit))
    if headed and prefix and _is_whole(rows):
        claims += missing_claims(_known_as(rows), hit)
    return Block("conda list", hit, last, tuple(claims), TABLE) if claims else None


def _known_as(rows: Sequence[Row]) -> set[str]:
    return {CONDA_TO_PYPI.get(row[0], normalise_name(row[0])) for row in rows}


def _is_whole(rows: Sequence[Row]) -> bool:
    """Every environment with a Python has some twenty packages, in order, down to xz, zlib or zstd."""
    names = [row[0].lower() for row in rows]
    return len(names) >= 20 and names == sorted(names) and "python" in names and names[-1] >= "x"


def _rows_alone(text: Text, hit: int, end: int) -> Optional[Block]:
    first = text.run_start(hit, end, _MOST_ROWS, _ROW.match)
    rows: list[Row] = []
    last = first
    for index, line in text.lines(first, first + _MOST_ROWS):
        row = _ROW.match(line)
        if not row:
            break
        rows.append(_row(row, index))
        last = index
    claims = tuple(conda_claims(rows))
    return Block("conda list", first, last, claims, TABLE) if claims else None


def _export(text: Text, hit: int, end: int) -> Optional[Block]:
    """`conda env export`: with build strings. A file that a person wrote has none, and says what is wanted."""
    first = text.run_start(hit, end, _MOST_ROWS, _EXPORTED.match)
    rows: list[Row] = []
    last = first
    for index, line in text.lines(first, first + _MOST_ROWS):
        row, by_pip = _EXPORTED.match(line), _EXPORTED_BY_PIP.match(line)
        if row:
            rows.append((row.group(2), row.group(3), row.group(4), row.group(1), index))
        elif by_pip and rows:
            rows.append((by_pip.group(1), by_pip.group(2), "pypi_0", "pypi", index))
        elif index > first and line.strip() != "- pip:":
            break
        last = index
    if len(rows) < 2:
        return None
    claims = tuple(conda_claims(rows))
    return Block("conda env export", first, last, claims, TABLE) if claims else None
