#!/usr/bin/env python3
"""Lets other pickers and cudadoctor choose a torch for the same machines, and counts whose choice runs there.

    .venv/bin/python scripts/compare_pickers.py [--format markdown|json] [--show PICKER [--limit 20]]

The machines: every GPU architecture that was sold x every driver branch that drives it x the systems in which such
cards sit x Python; each combination counts once. The rules of the other pickers are data (scripts/pickers.toml, with
sources). What an index holds is what compat/ has seen there. Who is right is judged by the oracle of the tests
(tests/resolve/oracle.py), not by our resolver:

    right       the newest torch that runs there; or nothing, where no build does
    older       it runs, but a newer torch would, too
    CPU build   it runs, and leaves the GPU idle
    cannot run  a CUDA build without code for the GPU, or one that the driver does not serve
    refuses     nothing, although a build runs there
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "resolve")]

import oracle  # noqa: E402
from oracle import Build, Machine, Numbers, numbers  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERDICTS = ("right", "older", "CPU build", "cannot run", "refuses")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

# Platform, numbering of the driver, glibc, and which classes of compat/gpus.toml sit in such machines.
# 2.28 is the glibc of the oldest systems that are still common on servers, 2.35 that of Ubuntu 22.04.
_DESK = ("geforce", "geforce-laptop", "workstation", "workstation-laptop")
SYSTEMS: tuple[tuple[str, str, Optional[str], tuple[str, ...]], ...] = (
    ("linux-x86_64", "linux", "2.35", (*_DESK, "datacenter")),
    ("linux-x86_64", "linux", "2.28", ("datacenter", "workstation")),
    ("linux-aarch64", "linux", "2.35", ("datacenter", "soc")),
    ("windows-x86_64", "windows", None, _DESK),
    ("linux-x86_64", "windows", "2.35", _DESK),  # WSL
)

Picker = Callable[[Machine], Optional[Build]]


# ---------------------------------------------------------------------------------------------- the machines


def machines() -> Iterator[Machine]:
    """The population. Jetson is left out (its torch does not come from PyTorch's index), and so are guessed branches
    and drivers that no CUDA build of any torch is made for."""
    sold: dict[str, set[str]] = {}
    for group in oracle.rows("gpus")["group"]:
        sold.setdefault(group["compute_capability"], set()).update(row["class"] for row in group["gpus"])
    for platform, numbering, glibc, classes in SYSTEMS:
        drivers = list(_drivers(numbering))
        for capability in sorted(sold, key=numbers):
            if not sold[capability].intersection(classes):
                continue
            if platform == "linux-aarch64" and _is_before_arm_servers(capability):
                continue
            for driver in drivers:
                for python in PYTHONS:
                    machine = Machine((capability,), driver, numbering, platform, python, glibc)
                    if oracle.drives(machine):
                        yield machine


def _drivers(numbering: str) -> Iterator[str]:
    """The newest known driver of every branch that serves some CUDA build."""
    for known in oracle.known_drivers(numbering).values():
        driver = known[-1]
        if not oracle.is_guess(driver, numbering) and any(
            build.cuda and oracle.serves(driver, numbering, build.cuda) for build in oracle.builds()
        ):
            yield driver


def _is_before_arm_servers(capability: str) -> bool:
    """Cards of the time before NVIDIA supported them in ARM servers: those that an open kernel module never drove."""
    return oracle.architecture(capability).get("modules") == "proprietary"


# ----------------------------------------------------------------------------------------------- the pickers


def pickers() -> dict[str, tuple[str, Picker]]:
    """Title and choice of every picker by name, ours first."""
    found: dict[str, tuple[str, Picker]] = {"cudadoctor": ("`cudadoctor fix --print`", ours)}
    for row in rules()["picker"]:
        found[row["name"]] = (row["title"], functools.partial(_pick, row))
    return found


@functools.cache
def rules() -> dict[str, Any]:
    """scripts/pickers.toml."""
    with (ROOT / "scripts" / "pickers.toml").open("rb") as file:
        return tomllib.load(file)


@functools.cache
def _our_matrix() -> Any:
    from cudadoctor.matrix import load_matrix

    return load_matrix()


def ours(machine: Machine) -> Optional[Build]:
    """What our resolver chooses for that machine, its driver at work."""
    from cudadoctor.resolve import Gpu, Need, resolve
    from cudadoctor.resolve.need import PRESENT, WORKS

    need = Need(
        gpus=tuple(Gpu(f"compute capability {one}", one, number) for number, one in enumerate(machine.gpus)),
        gpu_state=PRESENT,
        driver=machine.driver,
        driver_state=WORKS,
        numbering=machine.numbering,
        platform=machine.platform,
        python=machine.python.rstrip("t"),
        free_threaded=machine.python.endswith("t"),
        glibc=machine.glibc,
        wsl=machine.numbering == "windows" and machine.platform.startswith("linux"),
        torch=machine.request,
    )
    choice = resolve(need, _our_matrix()).choice
    if choice is None:
        return None
    return next(
        build
        for build in oracle.builds()
        if (build.torch, build.variant, build.platform) == (choice.torch, choice.variant, machine.platform)
    )


def _pick(rule: dict[str, Any], machine: Machine) -> Optional[Build]:
    wheels = installable(machine.platform, machine.python, machine.glibc)
    if rule.get("reads") == "nothing":
        return _newest([build for build in wheels if build.default])
    if rule.get("reads") == "smi-cuda":
        shown = _smi_cuda(machine)
        page = max((cuda for cuda in _pages() if cuda and cuda <= shown), default=())
        return _newest([build for build in wheels if build.cuda == page])
    # Neither program knows WSL: Linux has the Linux column there, too.
    column = rule["windows" if machine.platform.startswith("windows") else "linux"]
    assert machine.driver is not None
    reached = sorted((numbers(cuda) for cuda, first in column.items() if numbers(machine.driver) >= numbers(first)))
    pages = [*reversed(reached), ()]
    if rule["order"] == "first-index":
        found = ([build for build in wheels if build.cuda == page] for page in pages)
        return _newest(next(filter(None, found), []))
    assert rule["order"] == "newest-cuda-then-text", rule["order"]
    offered = [build for build in wheels if build.cuda in pages]
    return max(offered, key=lambda build: (build.cuda, build.torch), default=None)


@functools.cache
def installable(platform: str, python: str, glibc: Optional[str]) -> tuple[Build, ...]:
    """Wheels on the index that an installer there accepts."""
    return tuple(
        build
        for build in oracle.builds()
        if build.seen
        and not build.guessed
        and build.platform == platform
        and python in build.pythons
        and (glibc is None or numbers(glibc) >= build.glibc)
    )


def _newest(wheels: Sequence[Build]) -> Optional[Build]:
    return max(wheels, key=lambda build: build.release, default=None)


@functools.cache
def _pages() -> frozenset[Numbers]:
    """The pages of the index, by their CUDA; () is the CPU page."""
    return frozenset(build.cuda for build in oracle.builds() if build.seen)


def _smi_cuda(machine: Machine) -> Numbers:
    assert machine.driver is not None
    branch = oracle.branch_of(machine.driver, machine.numbering)
    return next(numbers(row["cuda"]) for row in oracle.rows("driver_branches")["branch"] if row["linux"] == branch)


# ----------------------------------------------------------------------------------------------- the verdict


def verdict(picked: Optional[Build], machine: Machine) -> str:
    """One of VERDICTS, by the oracle's rules."""
    best = oracle.answer(machine).choice
    if picked is None:
        return "right" if best is None else "refuses"
    if picked.variant == "cpu":
        return "CPU build"
    if oracle.faults(picked, machine):
        return "cannot run"
    return "right" if best is None or picked.release >= best.release else "older"


class Comparison(NamedTuple):
    """`machines`: how many there are; `hopeless`: on how many of them no CUDA build runs; `verdicts`: for each picker
    how often which."""

    machines: int
    hopeless: int
    verdicts: dict[str, Counter[str]]


def compare() -> Comparison:
    """Every picker on every machine."""
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in pickers()}
    everywhere = list(machines())
    for machine in everywhere:
        for name, (_title, pick) in pickers().items():
            verdicts[name][verdict(pick(machine), machine)] += 1
    hopeless = sum(oracle.answer(machine).choice is None for machine in everywhere)
    return Comparison(len(everywhere), hopeless, verdicts)


def markdown(found: Comparison) -> str:
    """What the README shows."""
    titles = {name: title for name, (title, _pick) in pickers().items()}
    lines = [f"| of {found.machines} machines | {' | '.join(VERDICTS)} |", "|---" * (len(VERDICTS) + 1) + "|"]
    for name, counts in found.verdicts.items():
        lines.append(f"| {titles[name]} | {' | '.join(str(counts[one]) for one in VERDICTS)} |")
    note = f"""
On {found.hopeless} of these machines no CUDA build of torch runs (an old driver, a new Python). There it is right to
say so; a CPU build that is installed without a word counts as one."""
    return "\n".join([*lines, note])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    parser.add_argument("--show", choices=tuple(pickers()), help="list machines for which this picker is not right")
    parser.add_argument("--limit", type=int, default=20, help="how many of them [20]")
    options = parser.parse_args()
    if options.show:
        shown = 0
        for machine in machines():
            picked = pickers()[options.show][1](machine)
            answer = verdict(picked, machine)
            if answer != "right" and shown < options.limit:
                shown += 1
                why = "; ".join(oracle.faults(picked, machine)) if picked else ""
                print(f"{answer:11}{words(machine)}: {picked or 'nothing'}{' (' + why + ')' if why else ''}")
        return 0
    found = compare()
    print(json.dumps(found._asdict(), indent=2) if options.format == "json" else markdown(found))
    return 1 if found.verdicts["cudadoctor"]["cannot run"] else 0


def words(machine: Machine) -> str:
    """The machine in words."""
    wsl = " (WSL)" if machine.numbering == "windows" and machine.platform.startswith("linux") else ""
    gpus = " + ".join(machine.gpus)
    return f"{gpus}, driver {machine.driver}, {machine.platform}{wsl}, Python {machine.python}"


if __name__ == "__main__":
    sys.exit(main())
