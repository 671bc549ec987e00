#!/usr/bin/env python3
"""Measures whole commands against each other, in one run, and prints the ratios that the project holds itself to.

    .venv/bin/python scripts/bench.py [--rounds 9] [--torch-python PATH] [--json FILE]

Run it with an interpreter into which cudadoctor and its test parts are installed. Every round runs every command once,
in turn, so that a machine whose speed drifts slows all of them alike; the median of each is taken. Wall-clock time and
processor time include the children of a command. What a ratio needs and is missing (a C compiler for the stand-in
NVML, an environment with torch) is said, and the ratio is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BARE_CLICK = """
import click
@click.command()
@click.version_option("1")
def main(): pass
main(["--version"])
"""

# (name of the ratio, command above, command below, budget)
RATIOS = (
    ("--version / bare click program", "version", "bare click", 1.3),
    ("check without a GPU / --version", "check, no GPU", "version", 2.0),
    ("check with two GPUs and torch / --version", "check, two GPUs, torch", "version", 3.0),
    ("check with two GPUs and torch / collect_env", "check, two GPUs, torch", "collect_env", 1 / 20),
)


def measure(argv: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall-clock and processor seconds of one run, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return wall, cpu


def commands(torch_python: str | None) -> tuple[dict[str, tuple[list[str], dict[str, str]]], list[str]]:
    """The commands by name with their environments, and sentences about what is missing."""
    sys.path.insert(0, str(ROOT / "tests"))
    from bench import native
    from bench.parts import CACHE, clean_environ

    plain = clean_environ()
    plain.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled modules are what an installed program runs from
    doctor = [sys.executable, "-m", "cudadoctor"]
    found = {
        "python -c pass": ([sys.executable, "-c", "pass"], plain),
        "bare click": ([sys.executable, "-c", BARE_CLICK], plain),
        "version": ([*doctor, "--version"], plain),
        "check, no GPU": ([*doctor, "check"], plain),
    }
    missing = []
    torch = torch_python or str(CACHE / "torch" / "bin" / "python")
    if not os.access(torch, os.X_OK):
        missing.append(f"torch: no {torch}; give --torch-python, or run scripts/install_test_parts.sh torch")
        return found, missing
    found["collect_env"] = ([torch, "-m", "torch.utils.collect_env"], plain)
    try:
        nvml = native.environment("two_gpus")
    except BaseException as error:  # the test bench skips by pytest's own exceptions
        missing.append(f"no stand-in NVML: {error}")
        return found, missing
    two = {**clean_environ(nvml), "VIRTUAL_ENV": str(Path(torch).parent.parent)}
    two.pop("PYTHONDONTWRITEBYTECODE", None)
    found["check, two GPUs, torch"] = ([*doctor, "check"], two)
    return found, missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--torch-python", help="an interpreter that can import torch")
    parser.add_argument("--json", help="write the figures there as well")
    options = parser.parse_args()
    runs, missing = commands(options.torch_python)
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for argv, environment in runs.values():
        measure(argv, environment)  # once unmeasured: caches of files and compiled modules
    for _ in range(options.rounds):
        for name, (argv, environment) in runs.items():
            samples[name].append(measure(argv, environment))
    medians = {
        name: tuple(statistics.median(run[part] for run in found) for part in (0, 1)) for name, found in samples.items()
    }
    print(f"{'median of ' + str(options.rounds):32}  wall ms   CPU ms")
    for name, (wall, cpu) in medians.items():
        print(f"{name:32} {wall * 1e3:8.1f} {cpu * 1e3:8.1f}")
    print(f"\n{'ratio (wall, CPU)':48}   wall    CPU  budget")
    ratios = {}
    for title, above, below, budget in RATIOS:
        if above not in medians or below not in medians:
            continue
        wall, cpu = (medians[above][part] / medians[below][part] for part in (0, 1))
        ratios[title] = {"wall": wall, "cpu": cpu, "budget": budget}
        verdict = "" if wall <= budget else "  over"
        print(f"{title:48} {wall:6.2f} {cpu:6.2f} {budget:7.2f}{verdict}")
    for sentence in missing:
        print(f"missing: {sentence}")
    if options.json:
        Path(options.json).write_text(json.dumps({"medians": medians, "ratios": ratios}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
