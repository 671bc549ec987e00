"""/proc/driver/nvidia/version and /sys/module/nvidia/version: the module that is loaded.

NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
cat: /proc/driver/nvidia/version: No such file or directory
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.kernel import parse_nvrm_version
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import STRUCTURED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("nvrm version:", "/proc/driver/nvidia/version", "/sys/module/nvidia/version")

_MISSING = re.compile(
    r"(/proc/driver|/sys/module)/nvidia/version['\"’]?:? (No such file|Datei oder Verzeichnis|没有那个文件)"
)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:600]
        missing = _MISSING.search(line)
        if missing:
            claims = [Claim("driver.procfs_version", None, hit, "absent")]
            if missing.group(1) == "/sys/module":
                claims = [
                    Claim("driver.module_version", None, hit, "absent"),
                    Claim("driver.module_loaded", False, hit),
                ]
            yield Block("loaded driver", hit, hit, tuple(claims), STRUCTURED)
        elif "NVRM version:" in line:
            try:
                found = parse_nvrm_version(line)
            except ParseError:
                continue
            claims = [
                Claim("driver.procfs_version", found.version, hit),
                Claim("driver.module_flavour", found.flavour, hit),
                Claim("driver.module_loaded", True, hit),
                Claim("system.os", "linux", hit),
            ]
            yield Block("loaded driver", hit, hit, tuple(claims), STRUCTURED)
        elif "/sys/module/nvidia/version" in line and hit + 1 < len(text):
            version = text[hit + 1].strip()
            if is_driver_version(version):
                claims = [
                    Claim("driver.module_version", version, hit + 1),
                    Claim("driver.module_loaded", True, hit + 1),
                ]
                yield Block("loaded driver", hit, hit + 1, tuple(claims), STRUCTURED)
