"""What conda's lists say, wherever they stand: the build string tells which CUDA a package was built with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.parse.conda_meta import cuda_of_build
from cudadoctor.parse.cuda_packages import TORCH
from cudadoctor.reports.blocks import Claim
from cudadoctor.reports.readers._said import conda_package, cuda_number, package_claims, python_claims

# Name, version, build string, channel (None: conda's default), line.
Row = tuple[str, str, str, Optional[str], int]


def conda_claims(rows: Sequence[Row], prefix: str = "") -> Iterator[Claim]:
    """`prefix` is the environment's folder, where the list names it."""
    of_pip = {conda_package(row[0]): row for row in rows if _is_pip(row)}
    of_conda = {conda_package(row[0]): row for row in rows if not _is_pip(row)}
    for name, version, build, channel, line in rows:
        package = conda_package(name)
        if name == "python" and not build.startswith("pypi"):
            yield from python_claims(version, line)
        if package is None:
            continue
        if _is_pip((name, version, build, channel, line)):
            yield from package_claims(name, version, line)
            yield Claim(f"package.{package}.installer", "pip", line)
            continue
        yield Claim(f"package.{package}.conda_build", build, line)
        if channel:
            yield Claim(f"package.{package}.conda_channel", channel, line)
        if package not in of_pip:  # pip has written over what conda had installed
            yield Claim(f"package.{package}.version", version, line)
            yield Claim(f"package.{package}.installer", "conda", line)
    if TORCH in of_conda:
        yield Claim("python.environment", "conda", of_conda[TORCH][4])
    yield from _torch(of_pip, of_conda, prefix)


def _is_pip(row: Row) -> bool:
    return row[2].startswith("pypi") or row[3] == "pypi"


def _torch(of_pip: dict[Optional[str], Row], of_conda: dict[Optional[str], Row], prefix: str) -> Iterator[Claim]:
    row = of_conda.get(TORCH)
    if TORCH in of_pip:
        line = of_pip[TORCH][4]
        yield Claim("torch.origin", "pip", line)
        if row is not None:
            both = {"name": TORCH, "versions": [of_pip[TORCH][1], row[1]], "locations": [prefix, prefix]}
            yield Claim("packages.duplicates", [both], line)
        return
    if row is None:
        return
    _, version, build, _, line = row
    yield Claim("torch.version", version, line)
    yield Claim("torch.metadata_version", version, line)
    yield Claim("torch.origin", "conda", line)
    cuda = cuda_of_build(build)
    if cuda in (None, "cuda"):
        cuda = _cuda_beside(of_conda) or cuda
    if cuda == "cpu":
        yield Claim("torch.cuda", None, line, "absent")
    elif cuda and cuda_number(cuda):
        yield Claim("torch.cuda", cuda, line)


def _cuda_beside(of_conda: dict[Optional[str], Row]) -> Optional[str]:
    """Of a build string that names none: what the packages say that choose it."""
    mutex = of_conda.get("pytorch-mutex")
    if mutex is not None and cuda_of_build(mutex[2]) == "cpu":
        return "cpu"
    row = of_conda.get("pytorch-cuda") or of_conda.get("cudatoolkit")
    return cuda_number(row[1]) if row is not None else None
