"""dxdiag's report: display devices with their drivers, hardware scheduling, memory.

        Card name: NVIDIA GeForce RTX 4080
 Dedicated Memory: 16049 MB
   Driver Version: 32.0.15.6094
Hardware Scheduling: DriverSupportState:Stable Enabled:True
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.windows import nvidia_driver_version
from cudadoctor.reports.blocks import STRUCTURED, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("card name:", "available os memory:", "directx version:", "page file:")

_PAIR = re.compile(r"\s*([A-Z][\w /()-]{1,40}?):\s*(.*?)\s*\Z")
_PAGE_FILE = re.compile(r"\s*Page File: (\d{1,8})MB used, (\d{1,8})MB available")
_MEMORY = re.compile(r"\s*(?:Available OS )?Memory: (\d{3,8})MB RAM")
_BUILD = re.compile(r"Build (\d{5})\b")
_LINES = 60


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit]
        if "card name:" in line.lower():
            yield from _card(text, hit)
            continue
        page_file, memory = _PAGE_FILE.match(line), _MEMORY.match(line)
        claims: list[Claim] = []
        if page_file:
            claims.append(Claim("memory.commit_limit", (int(page_file.group(1)) + int(page_file.group(2))) << 20, hit))
        elif memory:
            claims.append(Claim("memory.total", int(memory.group(1)) << 20, hit))
        elif "directx version:" in line.lower():
            build = next((m for _, above in text.lines(hit - 12, hit - 1) for m in [_BUILD.search(above)] if m), None)
            if build:
                claims.append(Claim("system.windows_build", int(build.group(1)), hit))
        if claims:
            claims.append(Claim("system.os", "windows", hit, trust=TYPED))
            yield Block("dxdiag", hit, hit, tuple(claims), STRUCTURED)


def _card(text: Text, hit: int) -> Iterator[Block]:
    values: dict[str, tuple[int, str]] = {}
    for index, line in text.lines(hit, hit + _LINES):
        pair = _PAIR.match(line)
        if pair:
            key = pair.group(1).lower()
            if key == "card name" and index > hit:
                break
            values.setdefault(key, (index, pair.group(2)))
    name = values["card name"][1] if "card name" in values else ""
    vendor = values.get("vendor id", (hit, ""))[1].lower()
    if "nvidia" not in name.lower() and vendor != "0x10de":
        return
    driver: Optional[str] = None
    if "driver version" in values:
        try:
            driver = nvidia_driver_version(values["driver version"][1])
        except ParseError:
            driver = None
    device = re.fullmatch(r"0x([0-9a-f]{4})", values.get("device id", (hit, ""))[1].lower())
    entry = {
        "name": name,
        "driver_version": driver,
        "vendor_id": "10de",
        "device_id": device.group(1) if device else None,
    }
    claims = [Claim("windows.gpus", [entry], hit), Claim("system.os", "windows", hit, trust=TYPED)]
    if driver:
        claims.append(Claim("driver.windows_version", driver, values["driver version"][0]))
    scheduling = values.get("hardware scheduling")
    enabled = re.search(r"Enabled:(True|False)", scheduling[1]) if scheduling else None
    if scheduling and enabled:
        claims.append(
            Claim("windows.hardware_scheduling", "on" if enabled.group(1) == "True" else "off", scheduling[0])
        )
    yield Block("dxdiag", hit, max(index for index, _ in values.values()), tuple(claims), STRUCTURED)
