"""What conda is about to install, or has installed: the plan that it shows before it asks.

    package                    |            build
    ---------------------------|-----------------
    pytorch-2.1.2              |     py3.10_cpu_0       133.8 MB  pytorch
    pytorch-mutex-1.0          |              cpu           3 KB  pytorch

    The following NEW packages will be INSTALLED:

      pytorch            pytorch/win-64::pytorch-2.1.2-py3.10_cpu_0

Who shows such a plan in a report has mostly followed it; a list of what is installed counts for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.readers._conda import Row, conda_claims
from cudadoctor.reports.readers._said import VERSION
from cudadoctor.reports.text import Text

TRIGGERS = ("::pytorch-", "    pytorch-", "new packages will be installed")

_MOST_ROWS = 500
_NAME = r"([a-z0-9_][\w.-]{0,60}?)"
_BUILD = r"(\w[\w.]{0,80})"
_TO_LOAD = pattern(rf"\s*{_NAME}-({VERSION})\s+\|\s+{_BUILD}\s+[\d.]{{1,10}} [kKMG]?B\s{{0,8}}(\S{{0,80}})$")
_TO_LINK = pattern(
    rf"\s*{_NAME}\s+(?:[\w./-]{{1,60}}/)?([\w-]{{1,40}})/(win-64|linux-64|linux-aarch64|osx-\w{{2,6}}|noarch)::"
    rf"\1-({VERSION}?)-{_BUILD}(?:\s.*)?$"
)
_SYSTEMS = {"win-64": ("windows", "x86_64"), "linux-64": ("linux", "x86_64"), "linux-aarch64": ("linux", "aarch64")}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits[:50]:
        if hit <= end:
            continue
        rows: list[Row] = []
        systems: set[str] = set()
        last = hit
        for index, line in text.lines(hit, hit + _MOST_ROWS):
            loaded, linked = _TO_LOAD.match(line), _TO_LINK.match(line)
            if loaded:
                rows.append((loaded.group(1), loaded.group(2), loaded.group(3), loaded.group(4) or None, index))
            elif linked:
                name, channel, system, version, build = linked.groups()
                rows.append((name, version, build, channel, index))
                systems.add(system)
            elif index > last + 8:
                break
            if loaded or linked:
                last = index
        end = last
        claims = list(conda_claims(rows))
        known = [_SYSTEMS[system] for system in systems if system in _SYSTEMS]
        if claims and len(known) == 1:
            claims += [Claim("system.os", known[0][0], hit), Claim("system.arch", known[0][1], hit)]
        if claims:
            yield Block("conda's plan", hit, last, tuple(claims), TYPED)
