#!/usr/bin/env python3
"""Measures `cudadoctor fleet` on ten thousand snapshots: how long it takes and how much memory, with children.

    .venv/bin/python scripts/bench_fleet.py [--nodes 10000] [--kind report|facts|both] [--gpus 8]

The snapshots are made of recorded machines (tests/machines) as the real ones are: a report or facts of a node with so
many GPUs, no two nodes alike in temperatures, free memory and uptime, one in a hundred of them a broken machine. The
budget is 60 s and 500 MB; how it ends is the exit status (0: kept, 1: not).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

HEALTHY = "healthy-a100-minor-version"
BROKEN = ("driver-library-mismatch", "nouveau", "cluster-node-job-without-gres", "module-not-built-after-kernel-update")
SECONDS = 60
MEGABYTES = 500

# Facts of a GPU that are another number on every node: the least and the most.
MOVING = {"temperature": (28, 78), "power": (55, 390), "memory_free": (70 << 30, 79 << 30), "clock_sm": (210, 1410)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--kind", choices=["report", "facts", "both"], default="both")
    parser.add_argument("--format", default="text", help="what is printed")
    chosen = parser.parse_args()
    kept = True
    for kind in ("report", "facts") if chosen.kind == "both" else (chosen.kind,):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "nodes.ndjson")
            with open(file, "w", encoding="utf-8") as out:
                out.writelines(snapshots(kind, chosen.nodes, chosen.gpus))
            size = os.path.getsize(file)
            seconds, cpu, megabytes, verdict = measured(file, chosen.nodes, chosen.format)
        fits = seconds < SECONDS and megabytes < MEGABYTES
        kept = kept and fits
        print(
            f"{kind:6} {chosen.nodes} nodes, {size / 1e6:.0f} MB: {seconds:.1f} s of {SECONDS} "
            f"({cpu:.1f} s of the processor), {megabytes:.0f} MB of {MEGABYTES}: {'kept' if fits else 'NOT KEPT'}"
        )
        print(f"       {verdict}")
    return 0 if kept else 1


def snapshots(kind: str, nodes: int, gpus: int) -> Iterator[str]:
    """A line a node."""
    documents = {name: document_of(name, kind, gpus) for name in (HEALTHY, *BROKEN)}
    chance = random.Random(10_000)
    for number in range(nodes):
        name = chance.choice(BROKEN) if number % 100 == 50 else HEALTHY
        document = {**documents[name], "facts": dict(documents[name]["facts"])}
        facts = document["facts"]
        facts["scheduler.node"] = known(f"node{number:05d}")
        facts["system.uptime"] = known(chance.uniform(1e4, 1e7))
        facts["memory.available"] = known(chance.randint(400 << 30, 500 << 30))
        for index in range(gpus):
            for part, (least, most) in MOVING.items():
                if facts.get(f"gpu.{index}.{part}", {}).get("state") == "known":
                    facts[f"gpu.{index}.{part}"] = known(chance.randint(least, most))
        yield json.dumps(document, separators=(",", ":")) + "\n"


def document_of(name: str, kind: str, gpus: int) -> dict[str, Any]:
    """A recorded machine as a node of so many GPUs."""
    from cudadoctor.cli import _diagnosis
    from cudadoctor.cli._input import Machine
    from cudadoctor.render.json_report import document

    view = _diagnosis.view_of(Machine(replay=str(ROOT / "tests" / "machines" / name)))
    report = json.loads(json.dumps(document(view)))
    facts = report["facts"]
    if name == HEALTHY:
        first = {key[len("gpu.0.") :]: value for key, value in facts.items() if key.startswith("gpu.0.")}
        for index in range(gpus):
            facts.update({f"gpu.{index}.{part}": value for part, value in first.items()})
            facts[f"gpu.{index}.pci_address"] = known(f"0000:{index + 1:02x}:00.0")
        facts["gpu.count"] = known(gpus)
        for listed in ("pci.gpus", "procfs.gpus", "smi.gpus"):
            card = facts[listed]["value"][0]
            cards = [{**card, "address": f"0000:{index + 1:02x}:00.0"} for index in range(gpus)]
            facts[listed] = {**facts[listed], "value": cards}
    return report if kind == "report" else {"schema": "cudadoctor.facts/1", "facts": facts}


def known(value: Any) -> dict[str, Any]:
    return {"state": "known", "value": value, "source": "scripts/bench_fleet.py"}


def measured(file: str, nodes: int, form: str) -> tuple[float, float, float, str]:
    """Seconds, those of the processor, megabytes of the most memory, and the first line of what was printed."""
    command = [sys.executable, "-m", "cudadoctor", "fleet", file, "--format", form]
    command += ["--expect", ",".join(f"node{number:05d}" for number in range(min(nodes, 10_000)))]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20 * SECONDS, check=False)
    seconds = time.monotonic() - begun
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"bench_fleet: cudadoctor ended with {done.returncode}: {done.stderr.strip()}")
    # Kilobytes, but bytes on macOS. The processes that made the snapshots are this one's own, and no children.
    unit = 1 if sys.platform == "darwin" else 1024
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, after.ru_maxrss * unit / 1e6, done.stdout.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
