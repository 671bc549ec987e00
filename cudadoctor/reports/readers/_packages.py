"""Rows of package lists -> claims, whichever program printed them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.cuda_packages import TORCH, matters
from cudadoctor.parse.markers import normalise_name
from cudadoctor.parse.versions import split_local
from cudadoctor.reports.blocks import Claim
from cudadoctor.reports.readers._said import cuda_number, missing_claims, package_claims, torch_claims


class Row(NamedTuple):
    """A package of a list; `location`, `installer` and `editable` (its source folder) where the list tells them."""

    name: str
    version: str
    line: int
    location: str = ""
    installer: str = ""
    editable: str = ""


def list_claims(rows: Sequence[Row], matrix: Matrix, whole: bool = False) -> Iterator[Claim]:
    """`whole`: the list is evidently that of a whole environment, so that what is not in it is not there."""
    for row in rows:
        yield from package_claims(row.name, row.version, row.line)
        package = normalise_name(row.name)
        if not matters(package):
            continue
        if row.location:
            yield Claim(f"package.{package}.location", row.location, row.line)
        if row.installer:
            yield Claim(f"package.{package}.installer", row.installer, row.line)
        if package == TORCH and row.editable:
            yield Claim("torch.origin", "source", row.line)
    yield from _torch_from_pypi({normalise_name(row.name): row for row in rows}, matrix)
    if whole and rows:
        yield from missing_claims({normalise_name(row.name) for row in rows}, rows[0].line)


def _torch_from_pypi(rows: dict[str, Row], matrix: Matrix) -> Iterator[Claim]:
    """A list shows torch 2.9.1 where torch itself says 2.9.1+cu128, and a CPU build of Windows or of conda looks the
    same. Only where NVIDIA's CUDA runtime stands beside it, in the very version that PyPI's wheel of this release for
    Linux is built with, is it known to be that wheel."""
    torch = rows.get(TORCH)
    if torch is None or split_local(torch.version).local or torch.editable:
        return
    release = matrix.torch_release(torch.version)
    variant: Optional[str] = release.default.get("linux-x86_64") if release is not None else None
    if variant is None or not variant.startswith("cu"):
        return
    major = variant[2:4]
    runtime = rows.get(f"nvidia-cuda-runtime-cu{major}") or rows.get("nvidia-cuda-runtime")
    number = cuda_number(runtime.version) if runtime is not None else None
    if number is not None and "cu" + number.replace(".", "") == variant:
        yield Claim("torch.cuda", number, torch.line)
        yield from torch_claims(f"{torch.version}+{variant}", torch.line)
