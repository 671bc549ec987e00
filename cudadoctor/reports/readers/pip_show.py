"""`pip show` and `uv pip show`: a block of fields for each package, and what is said of one that is not there.

Name: torch                                WARNING: Package(s) not found: torch
Version: 2.9.1+cu128
Location: /opt/env/lib/python3.12/site-packages
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.cuda_packages import TORCH, matters
from cudadoctor.parse.markers import normalise_name
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.readers._packages import Row, list_claims
from cudadoctor.reports.readers._said import VERSION
from cudadoctor.reports.text import Text

TRIGGERS = ("name: ", "package(s) not found")

_NAME = re.compile(r"\s*Name: ([A-Za-z0-9][\w.-]{0,80})$")
_VERSION = re.compile(rf"\s*Version: ({VERSION})$")
_FIELD = re.compile(r"\s*([A-Z][A-Za-z-]{2,40}):(?: (.*))?$")
_MISSING = re.compile(r"Package\(s\) not found(?: for)?: (.{1,400})$")
_LONGEST = 40


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        missing = _MISSING.search(line)
        if missing:
            claims = tuple(_not_found(missing.group(1), hit))
            if claims:
                yield Block("pip show", hit, hit, claims, TABLE)
            continue
        name = _NAME.match(line)
        version = _VERSION.match(text[hit + 1]) if name and hit + 1 < len(text) else None
        if name and version:
            fields: dict[str, str] = {}
            end = hit + 1
            for index, below in text.lines(hit + 2, hit + _LONGEST):
                field = _FIELD.match(below)
                if not field or field.group(1) == "Name":
                    break
                fields.setdefault(field.group(1), (field.group(2) or "").strip())
                end = index
            row = Row(
                name.group(1),
                version.group(1),
                hit + 1,
                fields.get("Location", ""),
                fields.get("Installer", ""),
                fields.get("Editable", ""),
            )
            claims = tuple(list_claims([row._replace(editable=_editable(fields))], matrix))
            if claims:
                yield Block("pip show", hit, end, claims, TABLE)


def _editable(fields: dict[str, str]) -> str:
    return next((value for key, value in fields.items() if key.startswith("Editable")), "")


def _not_found(names: str, line: int) -> Iterator[Claim]:
    for name in re.split(r"[,\s]+", names):
        package = normalise_name(name)
        if matters(package) and re.fullmatch(r"[a-z0-9-]{1,80}", package):
            yield Claim(f"package.{package}.version", None, line, "absent")
            if package == TORCH:
                yield Claim("torch.version", None, line, "absent")
