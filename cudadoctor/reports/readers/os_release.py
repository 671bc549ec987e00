"""Which Linux: /etc/os-release, lsb_release -a, /etc/lsb-release; which Jetson: /etc/nv_tegra_release.

PRETTY_NAME="Ubuntu 24.04.3 LTS"
Distributor ID: Ubuntu
# R36 (release), REVISION: 4.3, GCID: 00000000, BOARD: generic, EABI: aarch64, DATE: ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.os_release import parse_os_release, parse_tegra_release
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("pretty_name=", "version_id=", "distrib_id=", "distributor id:", "id_like=", "(release), revision:")

_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]{1,40}=\S?", re.ASCII)
_LSB = re.compile(r"(Distributor ID|Description|Release|Codename):\s+(\S.*)")
_IDS = {"redhatenterprise": "rhel", "rockylinux": "rocky", "almalinux": "almalinux", "opensuse": "opensuse-leap"}
_LONGEST = 25


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit].strip()
        if "(release)" in line:
            try:
                release = parse_tegra_release(line)
            except ParseError:
                continue
            claims = (Claim("system.jetson", f"R{release.l4t}", hit), Claim("system.os", "linux", hit))
            yield Block("Jetson release", hit, hit, claims, TABLE)
            continue
        form = _LSB if _LSB.match(line) else _ASSIGNMENT
        if not form.match(line):
            continue
        first = hit
        while first > end + 1 and hit - first < _LONGEST and form.match(text[first - 1].strip()):
            first -= 1
        end = hit
        for index, row in text.lines(hit, first + _LONGEST):
            if not form.match(row.strip()):
                break
            end = index
        rows = [row.strip() for _, row in text.lines(first, end)]
        values = {match.group(1): match.group(2) for match in map(_LSB.match, rows) if match}
        if not values:
            values = parse_os_release("\n".join(rows))
        yield Block("os-release", first, end, tuple(_claims(values, first)), TABLE)


def _claims(values: dict[str, str], line: int) -> Iterator[Claim]:
    yield Claim("system.os", "linux", line)
    identity = values.get("ID") or values.get("DISTRIB_ID") or values.get("Distributor ID")
    if identity:
        yield Claim("system.distribution", _IDS.get(identity.lower(), identity.lower()), line)
    version = values.get("VERSION_ID") or values.get("DISTRIB_RELEASE") or values.get("Release")
    if version and re.fullmatch(r"\d[\w.]{0,20}", version):
        yield Claim("system.distribution_version", version, line)
    name = values.get("PRETTY_NAME") or values.get("DISTRIB_DESCRIPTION") or values.get("Description")
    if name:
        yield Claim("system.distribution_name", name[:100], line)
    if values.get("ID_LIKE"):
        yield Claim("system.distribution_like", values["ID_LIKE"].split(), line)
