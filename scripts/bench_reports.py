#!/usr/bin/env python3
"""Measures how long pasted texts take to read, against the seconds that the project allows itself.

    .venv/bin/python scripts/bench_reports.py [--rounds 5] [--small]

Each kind of text is made as long as the row says, and read whole (readers, error wordings, merging; without starting
Python). Beside the seconds stands the ratio to the cheapest thing that could be done with the same text, one search for
a literal, so that figures of a slow machine can be told from those of slow code.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor.matrix import load_matrix  # noqa: E402
from cudadoctor.reports import read_report  # noqa: E402

MB = 1_000_000

# (bytes, seconds that it may take)
SIZES = ((MB, 0.3), (5 * MB, 1.5), (20 * MB, 6.0))

TRAINING = "2026-03-10 09:{:02d}:02,123 INFO trainer.py:120 epoch 3 step {} loss 2.31 lr 1e-4 mem 40960MiB 12.3 it/s\n"
KERNEL = "[{}.{:06d}] usb 1-1: new high-speed USB device number {} using xhci_hcd\n"
NVRM = "[{}.{:06d}] NVRM: Xid (PCI:0000:65:00): 31, pid={}, name=python, Ch 00000008, intr 00000000. MMU Fault\n"
PACKAGES = "some-package-{}{}==1.2.{}\n"
ERRORS = "[rank{}]: RuntimeError: CUDA error: out of memory at step {}\n"
PATHS = '  File "/home/alice/proj/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line {}, in _call{}\n'


def repeated(line: str) -> Callable[[int], str]:
    """A text of lines that differ in their numbers."""

    def made(size: int) -> str:
        length = len(line.format(10, 10, 10))
        return "".join(line.format(number % 60, number, number % 1000) for number in range(size // length))[:size]

    return made


def real(size: int) -> str:
    """The texts of tests/cases, over and over, each as people pasted it."""
    texts = [path.read_bytes().decode("utf-8", "replace") for path in sorted((ROOT / "tests" / "cases").glob("*.txt"))]
    whole = "\n".join(texts)
    return (whole * (size // max(len(whole), 1) + 1))[:size]


KINDS: dict[str, Callable[[int], str]] = {
    "a training log": repeated(TRAINING),
    "a kernel log": repeated(KERNEL),
    "a kernel log of Xids": repeated(NVRM),
    "a list of packages": repeated(PACKAGES),
    "an error in each line": repeated(ERRORS),
    "tracebacks": repeated(PATHS),
    "reports, one after another": real,
}


def seconds(action: Callable[[], object], rounds: int) -> float:
    """Processor seconds of the quickest of some rounds."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        action()
        least = min(least, time.process_time() - start)
    return least


def _search(text: str) -> int:
    return text.lower().find("cudadoctor")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="only the smallest size")
    options = parser.parse_args()
    matrix = load_matrix()
    read_report([("text", "nvidia")], matrix)  # compiles expressions and loads readers
    print(f"{'text':28} {'MB':>4} {'seconds':>8} {'allowed':>8} {'to one search':>14}")
    over = 0
    for name, make in KINDS.items():
        for size, allowed in SIZES[:1] if options.small else SIZES:
            text = make(size)
            took = seconds(partial(read_report, [("text", text)], matrix), options.rounds)
            search = seconds(partial(_search, text), options.rounds)
            over += took > allowed
            verdict = "  over" if took > allowed else ""
            print(f"{name:28} {size // MB:4} {took:8.2f} {allowed:8.2f} {took / max(search, 1e-6):14.0f}{verdict}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
