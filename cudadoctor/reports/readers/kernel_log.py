"""The kernel's log: dmesg, journalctl, or single lines of either, in any mixture.

[ 9000.123456] NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
Mar 10 09:15:02 host kernel: NVRM: API mismatch: the client has the version 535.183.01, but
modprobe: ERROR: could not insert 'nvidia': Key was rejected by service
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.parse.kernel_log import MODULE_LOADED, KernelEvent, parse_kernel_log
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "nvrm:",
    "nvidia 0000",
    "nvidia: ",
    "nvidia_drm: ",
    "nouveau 0000",
    "is rejected",
    "rejected by service",
    "required key not available",
    "kernel_lockdown",
    "out of memory: killed",
    "pcie bus error",
    "dmesg: ",
    "could not insert",
    "not found in directory",
)

# One message spans at most five lines.
_MESSAGE = 6
# A card that falls off the bus again and again writes thousands of lines: the first and the newest tell enough.
_MOST_LINES = 4000
_MOST_EVENTS = 200
_SHORT_ISO = re.compile(r"^[\w.-]{1,100} kernel: ")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    if len(hits) > _MOST_LINES:
        hits = [*hits[: _MOST_LINES // 4], *hits[-_MOST_LINES * 3 // 4 :]]
    found = 0
    for first, last in reversed(list(_runs(hits, len(text)))):
        lines = [(index, _SHORT_ISO.sub("", line.strip())) for index, line in text.lines(first, last)]
        events = parse_kernel_log("\n".join(line for _, line in lines))
        if not events:
            continue
        if found >= _MOST_EVENTS:
            return
        found += len(events)
        yield Block("kernel log", first, last, tuple(_claims(events, lines, first)), LOG)


def _runs(hits: Sequence[int], end: int) -> Iterator[tuple[int, int]]:
    """Stretches of the log: hits that are near each other, with the lines that may belong to the last."""
    first = last = -_MESSAGE - 1
    for hit in hits:
        if hit - last > _MESSAGE:
            if first >= 0:
                yield first, min(last + _MESSAGE, end - 1)
            first = hit
        last = hit
    if first >= 0:
        yield first, min(last + _MESSAGE, end - 1)


def _claims(events: list[KernelEvent], lines: list[tuple[int, str]], first: int) -> Iterator[Claim]:
    numbers = {line: index for index, line in reversed(lines)}
    for event in events[-_MOST_EVENTS:]:
        at = next((index for line, index in numbers.items() if event.text in line), first)
        yield Claim("kernel.log_events", [_entry(event)], at)
        if event.kind == MODULE_LOADED:
            # The log keeps what was; the module may have been replaced since.
            yield Claim("driver.module_version", event.values["version"], at)
            yield Claim("driver.module_flavour", event.values["flavour"], at)


def _entry(event: KernelEvent) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "text": event.text[:300],
        "bus_id": event.bus_id,
        "seconds": event.seconds,
        "values": dict(event.values),
    }
