"""What NVIDIA publishes about its drivers for programs to read.

redistrib_620.70.06.json, one for each driver (the folder that holds them lists their names):

    {"release_date": "2026-11-04", "release_label": "620.70.06", "release_product": "nvidia-driver",
     "cuda_compat": {"name": "CUDA compat", "version": "620.70.06", "cuda_variant": ["13.5"],
                     "linux-x86_64": {"cuda13.5": {"relative_path": "...", "size": "..."}}},
     "nvidia_driver": {...}}

releases.json of the data-center drivers' pages, by branch:

    {"580": {"type": "lts branch", "driver_info": [
       {"release_version": "580.178.04", "release_date": "2026-10-06", "release_notes": "https://...",
        "architectures": ["x86_64", "arm64"]}]}}
"""

from __future__ import annotations

import json
import re
from typing import Any

from cudadoctor.model.record import NamedTuple

from .errors import ParseError, unlike
from .versions import is_driver_version

_LISTED = re.compile(r"redistrib_([0-9]{3}\.[0-9.]{2,12})\.json", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CUDA = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}", re.ASCII)


class DriverRedist(NamedTuple):
    """One Linux driver. `cuda`: the CUDA versions of its compatibility package, "13.5"; empty where it names none."""

    version: str
    date: str | None
    cuda: tuple[str, ...]


class DriverReleases(NamedTuple):
    """One branch of Linux drivers: its first number, what NVIDIA calls it ("lts branch"), its (version, date) pairs."""

    branch: int
    kind: str
    releases: tuple[tuple[str, str | None], ...]


def parse_driver_redist(text: str) -> DriverRedist:
    """redistrib_<driver>.json. ParseError where it is none."""
    document = _document(text, "a driver's redistrib JSON")
    compat = document.get("cuda_compat")
    driver = document.get("nvidia_driver")
    version = document.get("release_label")
    for part in (compat, driver):
        if isinstance(part, dict) and not is_driver_version(str(version)):
            version = part.get("version")
    if not isinstance(version, str) or not is_driver_version(version):
        raise ParseError("this is not a driver's redistrib JSON: it names no driver version")
    variants = compat.get("cuda_variant") if isinstance(compat, dict) else None
    cuda = [item for item in variants or () if isinstance(item, str)] if isinstance(variants, list) else []
    return DriverRedist(version, _date(document.get("release_date")), tuple(c for c in cuda if _CUDA.fullmatch(c)))


def parse_driver_listing(text: str) -> list[str]:
    """The driver versions for which the folder lists a redistrib JSON, each once. ParseError: none."""
    found = dict.fromkeys(match.group(1) for match in _LISTED.finditer(text))
    versions = [version for version in found if is_driver_version(version)]
    if not versions:
        raise ParseError("this is not NVIDIA's folder of drivers: it lists no redistrib JSON")
    return versions


def parse_driver_releases(text: str) -> list[DriverReleases]:
    """releases.json. ParseError where it is none; rows that cannot be read are left out."""
    document = _document(text, "NVIDIA's list of driver releases")
    branches = []
    for key, value in document.items():
        rows = value.get("driver_info") if isinstance(value, dict) else None
        if not (key.isascii() and key.isdigit() and len(key) == 3 and isinstance(rows, list)):
            continue
        pairs = []
        for row in rows:
            version = row.get("release_version") if isinstance(row, dict) else None
            # A Windows driver in the same list belongs to the branch under another number.
            if isinstance(version, str) and is_driver_version(version) and version.startswith(key + "."):
                pairs.append((version, _date(row.get("release_date"))))
        if pairs:
            branches.append(DriverReleases(int(key), str(value.get("type", ""))[:60].strip().lower(), tuple(pairs)))
    if not branches:
        raise ParseError("this is not NVIDIA's list of driver releases: it holds no branch")
    return branches


def _document(text: str, what: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise unlike(what, text.strip()[:60]) from None
    if not isinstance(document, dict):
        raise unlike(what, text.strip()[:60])
    return document


def _date(value: object) -> str | None:
    return value if isinstance(value, str) and _DATE.fullmatch(value) else None
