"""Laying what was observed upstream over the data that is there. Pure: nothing is fetched here and nothing written.

Only what is newer is taken: new releases, new builds and Pythons of known ones, wheels that were announced and now are
there, new drivers, branches and toolkits. Nothing is taken away: rows that would get lost are a fault of ours
(:func:`lost_rows`).

What cannot be seen upstream is carried over from the release before and marked: the GPU list of a build that no source
gives is ``archs_guessed``, which decides nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from cudadoctor.model.record import NamedTuple

from .merge_drivers import DriverMerge
from .merge_torch import TorchMerge
from .merging import Change, Log
from .observed import Observed

Section = Callable[[str], dict[str, Any]]

__all__ = ["Change", "Merged", "lost_rows", "merge"]


class Merged(NamedTuple):
    """`sections`: those that changed, whole. `notes`: what was seen and not taken, and why."""

    sections: Mapping[str, dict[str, Any]]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]


def merge(present: Section, observed: Observed) -> Merged:
    """The present data with what was observed over it; `present` itself is left as it is."""
    data = {name: copy.deepcopy(present(name)) for name in ("torch", "driver_branches", "cuda_toolkits")}
    log = Log(observed)
    drivers = DriverMerge(data["driver_branches"], data["cuda_toolkits"], log)
    if observed.branches is not None:
        drivers.drivers(observed.branches)
    drivers.toolkits()
    if observed.pages is not None:
        toolkits = {row["cuda"] for row in data["cuda_toolkits"]["toolkit"]}
        known = {item for row in present("architectures")["architecture"] for item in row["capability"]}
        TorchMerge(data["torch"], toolkits, known, log).merge(observed.pages)
    changed = {name: section for name, section in data.items() if section != present(name)}
    return Merged(changed, tuple(log.changes), tuple(log.notes))


def lost_rows(before: Section, after: Section) -> list[str]:
    """What `before` has and `after` has not: releases, builds and their Pythons, branches, toolkits. As sentences."""
    found = []
    for name, keys in (("torch", _torch_keys), ("driver_branches", _branch_keys), ("cuda_toolkits", _toolkit_keys)):
        found += [f"{key} would be lost" for key in sorted(set(keys(before(name))) - set(keys(after(name))))]
    return found


def _torch_keys(torch: Mapping[str, Any]) -> Iterator[str]:
    for data in torch.values():
        for row in data["release"]:
            yield f"torch {row['version']}"
            for item in row["builds"]:
                build = f"torch {row['version']} {item['variant']} {item['platform']}"
                yield build
                if item.get("seen", True) and not item.get("guessed", False):
                    yield from (f"{build} for Python {python}" for python in item["pythons"].split(" "))


def _branch_keys(data: Mapping[str, Any]) -> Iterator[str]:
    return (f"branch {row['name']}" for row in data["branch"])


def _toolkit_keys(data: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"toolkit {row['release']}" for row in data["toolkit"])
    yield from (f"floor of CUDA {row['cuda']}" for row in data["floor"])
