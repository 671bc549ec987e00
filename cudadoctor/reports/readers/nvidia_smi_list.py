"""nvidia-smi -L in a text.

    GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-0000-4000-8000-000000000000)
      MIG 3g.20gb     Device  0: (UUID: MIG-22222222-0000-5000-8000-000000000000)
    Unable to determine the product name for gpu 1: GPU is lost

Its names are whole. Several GPUs may have run together into one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.model.pattern import pattern
from cudadoctor.reports.blocks import LOG, STRUCTURED, Block, Claim
from cudadoctor.reports.readers._nvidia_smi import gpu_name
from cudadoctor.reports.text import Text

TRIGGERS = ("(uuid:", "unable to determine the product name")

_PIECE = pattern(
    r"GPU (?P<gpu>\d{1,3}): (?P<name>[^():]{1,80}(?:\([^():]{1,30}\)[^():]{0,40}?)?) \(UUID: (?P<uuid>[^()\s]{0,100})\)"
    r"|MIG (?P<profile>\d{1,2}[cg.][\w.+]{1,30})\s{1,40}Device\s{1,40}\d{1,4}:\s{0,40}\(UUID:"
    r"|Unable to determine the product name for gpu (?P<lost>\d{1,3}): ?(?P<why>[A-Za-z ]{1,40})",
)


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    rows: dict[int, tuple[dict[str, Any], int]] = {}
    instances: dict[int, int] = {}
    first = last = -1
    for hit in hits:
        for piece in _PIECE.finditer(text[hit]):
            if piece["gpu"] is not None:
                index, name = int(piece["gpu"]), gpu_name(piece["name"])
                if index >= MOST_GPUS or name is None:
                    continue
                if index in rows and (index == 0 or index <= max(rows)):
                    # A list begins anew: another one.
                    yield _block(rows, instances, first, last)
                    rows, instances, first = {}, {}, -1
                rows[index] = ({"index": index, "name": name, "truncated": False}, hit)
            elif piece["lost"] is not None:
                if int(piece["lost"]) < MOST_GPUS and "lost" in piece["why"].lower():
                    rows[int(piece["lost"])] = ({"index": int(piece["lost"]), "name": None, "lost": True}, hit)
            elif rows:
                index = max(rows)
                instances[index] = instances.get(index, 0) + 1
            first = hit if first < 0 else first
            last = hit
    if rows:
        yield _block(rows, instances, first, last)


def _block(rows: dict[int, tuple[dict[str, Any], int]], instances: dict[int, int], first: int, last: int) -> Block:
    claims: list[Claim] = []
    for index, (entry, line) in sorted(rows.items()):
        if entry["name"]:
            claims.append(Claim(f"gpu.{index}.name", entry["name"], line))
        if entry.get("lost"):
            claims.append(Claim(f"gpu.{index}.lost", True, line))
        if index in instances:
            entry["mig"] = True
            claims.append(Claim(f"gpu.{index}.mig_mode", True, line))
            claims.append(Claim(f"gpu.{index}.mig_devices", instances[index], line))
        if entry["name"] and entry["name"].endswith("(nvgpu)"):
            claims.append(Claim("system.arch", "aarch64", line, trust=LOG))
    if sorted(rows) == list(range(len(rows))):
        claims.append(Claim("gpu.count", len(rows), first))
    claims.append(Claim("smi.gpus", [entry for _, (entry, _) in sorted(rows.items())], first))
    return Block("nvidia-smi -L", first, last, tuple(claims), STRUCTURED)
