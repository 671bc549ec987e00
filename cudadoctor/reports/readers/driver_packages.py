"""Driver packages of the distribution: dpkg -l, apt list, rpm -qa, pacman -Q, ubuntu-drivers devices.

ii  nvidia-driver-535     535.183.01-0ubuntu0.22.04.1    amd64    NVIDIA driver metapackage
nvidia-driver-535/jammy-updates,now 535.183.01-0ubuntu0.22.04.1 amd64 [installed,automatic]
akmod-nvidia-580.95.05-1.fc42.x86_64
nvidia-utils 610.43.02-3
modalias : pci:v000010DEd00002684sv00001043sd0000889Abc03sc00i00
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.pci import normalise_bus_id
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "nvidia-driver",
    "nvidia-utils",
    "nvidia-dkms",
    "nvidia-kernel",
    "nvidia-open",
    "nvidia-headless",
    "nvidia-compute",
    "nvidia-lts",
    "libnvidia-",
    "cuda-drivers",
    "linux-modules-nvidia",
    "linux-objects-nvidia",
    "akmod-nvidia",
    "kmod-nvidia",
    "xorg-x11-drv-nvidia",
    "pci:v000000ded",
)

# What holds a part of the driver. The toolkit, the container toolkit and settings do not.
_NAME = (
    r"(?:nvidia(?:-lts|-open(?:-lts|-dkms)?|-smi)?(?=[ /])|nvidia-(?:driver|headless|dkms|kernel|utils|open"
    r"|compute-utils|fabricmanager|legacy|tesla)[\w.+-]{0,60}|libnvidia-(?:compute|legacy|ml|tesla)[\w.+-]{0,60}|libcuda1"
    r"|cuda-drivers[\w-]{0,40}|linux-(?:modules|objects)-nvidia[\w.+-]{0,80}|k?a?kmod-nvidia[\w-]{0,60}"
    r"|xorg-x11-drv-nvidia[\w-]{0,60})"
)
_VERSION = r"(?:\d{1,2}:)?(\d{2,3}\.\d[\w.+~-]{0,60})"
_FORMS = (
    re.compile(rf"\s*(?:ii|hi|iU|iF)\s+({_NAME})(?::\w+)?\s+{_VERSION}\s"),
    re.compile(rf"\s*({_NAME})/[\w.,-]{{2,80}} {_VERSION} \w+ \[(?:[\w,]+,)?(?:installed|upgradable)[^\]]*\]"),
    re.compile(
        rf"\s*(a?kmod-nvidia(?:-open)?|nvidia-driver[a-z-]*?|xorg-x11-drv-nvidia[a-z-]*?)-{_VERSION}\.(?:x86_64|aarch64|noarch)\s*\Z"
    ),
    re.compile(rf"\s*((?:nvidia|linux)[a-z0-9-]{{0,40}}) {_VERSION}\s*\Z"),
)
_ALIAS = re.compile(r"pci:v000010DEd0000([0-9A-F]{4})sv", re.IGNORECASE)
_PLACE = re.compile(r"/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ==", re.IGNORECASE)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    found: dict[str, tuple[int, Optional[str]]] = {}
    for hit in hits:
        line = text[hit][:400]
        alias = _ALIAS.search(line)
        if alias:
            yield from _device(text, hit, alias.group(1).lower())
            continue
        for form in _FORMS:
            match = form.match(line)
            if match and re.match(_NAME, match.group(1) + " "):
                found[match.group(1)] = (hit, match.group(2))
                break
    if found:
        lines = [line for line, _ in found.values()]
        value: list[dict[str, Any]] = [{"name": name, "version": version} for name, (_, version) in found.items()]
        yield Block("driver packages", min(lines), max(lines), (Claim("driver.packages", value, min(lines)),), TABLE)


def _device(text: Text, hit: int, device_id: str) -> Iterator[Block]:
    """The card that `ubuntu-drivers devices` names above the drivers for it."""
    for _, line in text.lines(hit - 3, hit - 1):
        place = _PLACE.search(line)
        if place:
            try:
                address = normalise_bus_id(place.group(1))
            except ParseError:
                continue
            entry = {"address": address, "device_id": device_id, "class": "030000"}
            yield Block("ubuntu-drivers devices", hit, hit, (Claim("pci.gpus", [entry], hit),), TABLE)
