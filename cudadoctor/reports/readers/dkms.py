"""dkms status: for which kernels the nvidia module was built.

nvidia/535.183.01, 6.8.0-79-generic, x86_64: installed
nvidia, 450.102.04, 5.8.0-36-generic, x86_64: installed (WARNING! Diff between built and installed module!)
nvidia/580.95.05: added
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.module_files import parse_dkms_status
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (": installed", ": built", ": added", ": broken")

_ROW = re.compile(r"nvidia[\w-]{0,30}[/,]\s?\d", re.ASCII)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        match = _ROW.search(text[hit][:300])
        if not match:
            continue
        for entry in parse_dkms_status(text[hit][match.start() :]):
            if is_driver_version(entry.version):
                value = {
                    "version": entry.version,
                    "kernel": entry.kernel,
                    "arch": entry.machine,
                    "status": entry.state,
                }
                yield Block("dkms status", hit, hit, (Claim("kernel.dkms", [value], hit),), TABLE)
