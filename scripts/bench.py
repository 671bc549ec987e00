#!/usr/bin/env python3
"""Measures whole commands against each other, in one run, and prints the ratios that the project holds itself to.

    python scripts/bench.py [--rounds 9] [--torch-python PATH] [--json FILE]

Run it with an interpreter into which cudadoctor and its test parts are installed (`pip install .`: a checkout and an
editable install read each module by itself). Every round runs every command once, in turn, so that a machine whose
speed drifts slows all of them alike; the median of each is taken, and the least, which other work on the machine
touches least. Wall-clock time and processor time include the children of a command. What a ratio needs and is missing
(a C compiler for the stand-in NVML, an environment with torch) is said, and the ratio is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# In the checkout, `-m cudadoctor` would be the checkout and not what is installed.
ELSEWHERE = tempfile.gettempdir()

WHICH = """
import os, sys, cudadoctor
read_at_once = any(type(finder).__name__ == "Bundle" for finder in sys.meta_path)
print(os.path.dirname(cudadoctor.__file__), "" if read_at_once else "(each module by itself: not an installed package)")
"""

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
        argv,
        env=environment,
        cwd=ELSEWHERE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
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
        "fit, it fits": ([*doctor, "fit", "llama-3.1-8b", "--vram", "24"], plain),
        "fit, changes are looked for": ([*doctor, "fit", "llama-3.1-8b", "--train", "full", "--vram", "24"], plain),
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
    which = [sys.executable, "-c", WHICH]
    found = subprocess.run(which, cwd=ELSEWHERE, capture_output=True, text=True)
    if found.returncode:
        print(f"cudadoctor is not installed for {sys.executable}: {sys.executable} -m pip install .", file=sys.stderr)
        return 1
    print("measured:", found.stdout.strip())
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for argv, environment in runs.values():
        measure(argv, environment)  # once unmeasured: caches of files and compiled modules
    for _ in range(options.rounds):
        for name, (argv, environment) in runs.items():
            samples[name].append(measure(argv, environment))
    figures = {
        name: {
            how: tuple(take(run[part] for run in runs_of_it) for part in (0, 1))
            for how, take in (("median", statistics.median), ("least", min))
        }
        for name, runs_of_it in samples.items()
    }
    print(f"{'milliseconds, of ' + str(options.rounds):28}  wall: median  least   processor: median  least")
    for name, of in figures.items():
        (wall, cpu), (wall_least, cpu_least) = of["median"], of["least"]
        print(f"{name:28} {wall * 1e3:14.1f} {wall_least * 1e3:6.1f} {cpu * 1e3:19.1f} {cpu_least * 1e3:6.1f}")
    print(f"\n{'ratio':44}  wall: median  least   processor: median  least  budget")
    ratios = {}
    for title, above, below, budget in RATIOS:
        if above not in figures or below not in figures:
            continue
        over = {
            how: [figures[above][how][part] / figures[below][how][part] for part in (0, 1)]
            for how in ("median", "least")
        }
        (wall, cpu), (wall_least, cpu_least) = over["median"], over["least"]
        ratios[title] = {"wall": wall, "cpu": cpu, "wall_least": wall_least, "cpu_least": cpu_least, "budget": budget}
        verdict = "" if wall <= budget else "  over"
        print(f"{title:44} {wall:14.2f} {wall_least:6.2f} {cpu:19.2f} {cpu_least:6.2f} {budget:7.2f}{verdict}")
    for sentence in missing:
        print(f"missing: {sentence}")
    if options.json:
        Path(options.json).write_text(json.dumps({"seconds": figures, "ratios": ratios}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
