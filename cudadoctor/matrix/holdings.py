"""What the compatibility data holds: counts, the newest of what is asked for most, and how old it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.model.record import NamedTuple

from .compile import FOLDERS, SECTIONS
from .query import Matrix
from .sections import Origin
from .tables import Branch, Toolkit, TorchRelease


class Data(NamedTuple):
    """Which data an answer rests on. ``age_days`` counts from the day of its last check, ``stale``: so long ago that
    the newest releases are likely to be missing."""

    revision: str
    checked: str
    age_days: int
    stale: bool
    origin: Origin


class Table(NamedTuple):
    """What one section holds. ``first`` and ``last`` are versions or names, where its rows have an order; ``guessed``
    rows are marked so and decide nothing."""

    section: str
    rows: int
    guessed: int
    first: Optional[str]
    last: Optional[str]
    checked: str


class Holdings(NamedTuple):
    """What the data holds; ``builds`` of torch, ``seen`` of them on an index, ``verified`` read from the wheel."""

    tables: tuple[Table, ...]
    torch: TorchRelease
    toolkit: Toolkit
    branch: Branch
    builds: int
    seen: int
    verified: int


def data_of(matrix: Matrix, today: str) -> Data:
    """``today`` is "2026-12-31"; ValueError for no date."""
    return Data(matrix.revision, matrix.checked, matrix.age_days(today), matrix.is_stale(today), matrix.origin)


def holdings(matrix: Matrix) -> Holdings:
    """Counts of everything, and the newest of what is asked for most."""
    builds = [build for release in matrix.torch_releases() for variant in release.variants for build in variant.builds]
    return Holdings(
        matrix.once("its tables", lambda: tuple(_table(section, matrix) for section in SECTIONS if section != "meta")),
        matrix.torch_releases()[0],
        matrix.toolkits()[0],
        matrix.branches()[0],
        len(builds),
        sum(build.seen for build in builds),
        sum(build.verified for build in builds),
    )


def _table(section: str, matrix: Matrix) -> Table:
    data = matrix.raw(section)
    files = list(data.values()) if section in FOLDERS else [data]
    rows = [
        row
        for file in files
        for name, part in file.items()
        if name != "source" and isinstance(part, list)
        for row in part
    ]
    rows = [json.loads(row) if isinstance(row, str) else row for row in rows]  # GPU rows are stored as text
    inner = [item for row in rows for item in row.get("builds", ())]
    guessed = sum(_is_guess(row) for row in (*rows, *inner))
    first = last = None
    if section == "torch":
        first, last = matrix.torch_versions()[-1], matrix.torch_versions()[0]
    elif section == "cuda_toolkits":
        rows = data["toolkit"]
        first, last = matrix.toolkits()[-1].cuda, matrix.toolkits()[0].cuda
    elif section == "driver_branches":
        first, last = matrix.branches()[-1].name, matrix.branches()[0].name
    return Table(section, len(rows), guessed, first, last, max(file["checked"] for file in files))


def _is_guess(row: Mapping[str, Any]) -> bool:
    return row.get("confidence") == "guessed" or bool(row.get("guessed")) or bool(row.get("archs_guessed"))
