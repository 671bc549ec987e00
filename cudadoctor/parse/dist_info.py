r"""Installed distributions, by the names and small files in site-packages.

torch-2.14.1+cu126.dist-info      name and version of a wheel; torch-2.14.1.egg-info of an old one
~orch-2.6.0.dist-info             left behind by an interrupted upgrade
direct_url.json                   {"url": "file:///home/me/torch", "dir_info": {"editable": true}}
METADATA                          Name: torch
                                  Version: 2.14.1
                                  Requires-Dist: triton==3.7.0; platform_system == "Linux"
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cudadoctor.model.record import NamedTuple

from .errors import unlike
from .markers import normalise_name

__all__ = [
    "DirectUrl",
    "Distribution",
    "Requirement",
    "normalise_name",
    "parse_direct_url",
    "parse_dist_info_name",
    "parse_metadata",
    "parse_requirement",
    "parse_wheel_name",
]


class Distribution(NamedTuple):
    """From a folder's name: the normalised name (PEP 503), the version as written, the folder itself.

    `is_leftover`: pip renamed the folder ("~orch-...") while replacing it and never came back.
    """

    name: str
    version: str
    folder: str
    is_leftover: bool


def parse_dist_info_name(folder: str) -> Distribution | None:
    """For example "torch-2.14.1+cu126.dist-info" -> Distribution; None for every other name. Never fails."""
    stem, dot, kind = folder.rpartition(".")
    if kind not in ("dist-info", "egg-info") or not dot:
        return None
    bare = stem.lstrip("~-")
    name, dash, version = bare.partition("-")
    if kind == "egg-info" and "-" in version:
        version = version.partition("-")[0]  # torch-1.0-py3.9.egg-info
    if not dash or not name or not version[:1].isdigit() or len(folder) > 400 or "-" in version:
        return None
    return Distribution(normalise_name(name), version, folder, bare != stem)


class Requirement(NamedTuple):
    """One Requires-Dist: normalised name, extras, specifier ("" for none), marker ("" for none), URL or None."""

    name: str
    extras: list[str]
    specifier: str
    marker: str
    url: str | None


def parse_requirement(text: str) -> Requirement:
    """ "nvidia-cudnn-cu12==9.1; platform_system == 'Linux'" -> Requirement. ParseError for anything else.

    Old metadata puts the specifier into brackets: "numpy (>=1.21)".
    """
    body, _, marker = text.strip()[:2000].partition(";")
    body = body.strip()
    name = _leading_name(body)
    rest = body[len(name) :].strip()
    extras = ""
    if rest.startswith("[") and "]" in rest:
        extras, _, rest = rest[1:].partition("]")
        rest = rest.strip()
    url: str | None = None
    if rest.startswith("@"):
        url, rest = rest[1:].strip(), ""
        if " ;" in text:  # a URL may hold a semicolon; the marker comes after a blank
            _, _, marker = text.partition(" ;")
    elif rest.startswith("(") and rest.endswith(")"):
        rest = rest[1:-1]
    specifier = "".join(rest.split())
    if not name or not all(_is_clause(clause) for clause in specifier.split(",") if clause):
        raise unlike("a requirement", text)
    names = [normalise_name(extra.strip()) for extra in extras.split(",") if extra.strip()]
    return Requirement(normalise_name(name), names, specifier, marker.strip(), url)


class Metadata(NamedTuple):
    """The headers of METADATA that were asked for; `requirements` hold those that can be read."""

    name: str
    version: str
    requires_python: str | None
    requirements: list[Requirement]


def _is_clause(text: str) -> bool:
    version = text.lstrip("=<>!~")
    operator = text[: len(text) - len(version)]
    letters = version.translate({ord(mark): None for mark in ".*+!-_"})
    return operator in ("===", "==", "~=", "!=", "<=", ">=", "<", ">") and letters.isalnum() and letters.isascii()


def _leading_name(text: str) -> str:
    for number, letter in enumerate(text):
        if not ((letter.isascii() and letter.isalnum()) or (letter in "-_." and number)):
            return text[:number]
    return text


def parse_metadata(text: str, only: Iterable[str] | None = None) -> Metadata:
    """METADATA or PKG-INFO up to its description. ParseError without Name and Version.

    With `only` (normalised names, or starts of them ending in "*": "nvidia-*") just those requirements are read.
    """
    exact, starts = set(), []
    for wanted in only or ():
        if wanted.endswith("*"):
            starts.append(wanted[:-1])
        else:
            exact.add(wanted)
    headers: dict[str, str] = {}
    requirements: list[Requirement] = []
    for line in text.splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if not colon or key[:1].isspace():
            continue
        key = key.lower()
        if key in ("name", "version", "requires-python"):
            headers.setdefault(key, value.strip())
        elif key == "requires-dist":
            name = normalise_name(_leading_name(value.strip()))
            if only is not None and name not in exact and not name.startswith(tuple(starts)):
                continue
            try:
                requirements.append(parse_requirement(value))
            except ValueError:
                continue
    if not headers.get("name") or not headers.get("version"):
        raise unlike("a distribution's METADATA", text.strip())
    return Metadata(headers["name"], headers["version"], headers.get("requires-python"), requirements)


class DirectUrl(NamedTuple):
    """Where a distribution came from when not from an index. `kind`: "archive", "vcs", "directory"."""

    url: str
    kind: str
    editable: bool


def parse_direct_url(text: str) -> DirectUrl:
    """direct_url.json (PEP 610). ParseError when it is none."""
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise unlike("a direct_url.json", text.strip()) from None
    url = document.get("url") if isinstance(document, dict) else None
    if not isinstance(url, str):
        raise unlike("a direct_url.json", text.strip())
    folder = document.get("dir_info")
    kind = "vcs" if "vcs_info" in document else "directory" if isinstance(folder, dict) else "archive"
    return DirectUrl(url, kind, isinstance(folder, dict) and folder.get("editable") is True)


class WheelName(NamedTuple):
    """A wheel's file name in its parts; each tag may hold several, joined by dots
    ("manylinux_2_17_x86_64.manylinux2014_x86_64").
    """

    name: str
    version: str
    python: str
    abi: str
    platform: str


def parse_wheel_name(text: str) -> WheelName:
    """A wheel's file name -> WheelName. ParseError for anything else."""
    found = re.fullmatch(
        r"([^-]{1,200})-([^-]{1,100})(?:-[0-9][^-]{0,60})?-([^-]{1,100})-([^-]{1,100})-([^-]{1,200})\.whl", text.strip()
    )
    if found is None:
        raise unlike("a wheel's file name", text)
    name, version, python, abi, platform = found.groups()
    return WheelName(normalise_name(name), version.replace("%2B", "+").replace("%2b", "+"), python, abi, platform)
