"""What nvidia-smi says instead of a table.

    Failed to initialize NVML: Driver/library version mismatch
    NVML library version: 535.261

The same words are symptoms, too (compat/messages.toml); here they are the facts of the live check: how it failed, and
which number it named. A shell that knows no nvidia-smi is only a symptom: it may lie outside PATH.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.parse import nvidia_smi as smi
from cudadoctor.reports.blocks import TABLE, Block, Claim
from cudadoctor.reports.readers._nvidia_smi import last_of_each
from cudadoctor.reports.text import Text

TRIGGERS = (
    "couldn't communicate with the nvidia driver",
    "couldn't find libnvidia-ml",
    "couldn't find nvml.dll",
    "no devices were found",
    "no devices found",
    "failed to initialize nvml",
    "unable to determine the device handle",
    "is not a valid field to query",
)

# Where in a line each begins: what stands before it (a prompt, a sentence) does not count.
_BEGINNINGS = (
    "NVIDIA-SMI has failed",
    "NVIDIA-SMI couldn't find",
    "Failed to initialize NVML",
    "Unable to determine the device handle",
    'Field "',
)
# A sentence that quotes the failure and tells that it is over.
_OVER = re.compile(
    r"\b(?:last (?:year|month|week)|works? (?:fine )?(?:now|again)|(?:all|everything) works)\b", re.IGNORECASE
)
_KEPT = 300
# NVML's other programs print their line, nvidia-smi its NVML version, right below; a wrapped line goes on there.
_LINES = 3


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    seen: set[str] = set()
    for hit in last_of_each(text, hits):
        line = _from_its_beginning(text, hit)
        if not line or line in seen or _OVER.search(text[hit]):
            continue
        seen.add(line)
        following = [line.strip() for _, line in text.lines(hit + 1, hit + _LINES) if line.strip()]
        failure = smi.find_failure("\n".join((line, *(one for one in following if one.startswith("NVML library")))))
        if failure is None or failure.kind == smi.BAD_OPTION:
            failure = smi.find_failure(" ".join((line, *following[:1])))
        if failure is None or failure.kind in (smi.COMMAND_NOT_FOUND, smi.BAD_OPTION):
            continue
        if failure.kind == smi.BAD_FIELD:
            note = "nvidia-smi of this driver does not know a field that it was asked for, and tells nothing then"
            yield Block("nvidia-smi failure", hit, hit, (), TABLE, None, (note,))
            continue
        yield Block("nvidia-smi failure", hit, hit, tuple(_claims(failure, hit)), TABLE)


def _from_its_beginning(text: Text, hit: int) -> str:
    line = text[hit]
    for words in _BEGINNINGS:
        place = line.find(words)
        if place >= 0:
            return line[place : place + _KEPT]
    lowered = line.lower()
    for words in ("no devices were found", "no devices found"):
        place = lowered.find(words)
        if place < 0:
            continue
        alone = not line[:place].strip(" \t`'\"*>$#-:|") and len(line[place + len(words) :].strip(" .`'\"*|")) == 0
        before = " ".join(one for _, one in text.lines(hit - 2, hit - 1)) + line[:place]
        if alone or "nvidia-smi" in before.lower():
            return ("No devices were found" if "were" in words else "No devices found.")[:_KEPT]
    return ""


def _claims(failure: smi.SmiFailure, line: int) -> Iterator[Claim]:
    yield Claim("driver.smi_failure", failure.kind, line)
    yield Claim("driver.smi_failure_text", failure.text[:_KEPT], line)
    if failure.library_version:
        yield Claim("driver.smi_library_version", failure.library_version, line)
    number = failure.gpu or ""
    if failure.kind == smi.GPU_LOST and number.isdigit() and int(number) < MOST_GPUS:
        entry: dict[str, Any] = {"index": int(number), "name": None, "truncated": False, "lost": True}
        yield Claim("smi.gpus", [entry], line)
        yield Claim(f"gpu.{int(number)}.lost", True, line)
