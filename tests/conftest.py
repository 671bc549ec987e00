"""Loads the test bench (tests/bench): its fixtures, the marker real_part and the strict mode."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Before the plugins are imported, and in every import mode.
sys.path.insert(0, str(Path(__file__).resolve().parent))

# What the developer's own `cudadoctor matrix update` brought is no part of any test.
os.environ["CUDADOCTOR_DATA"] = "shipped"

# How long an example takes is a matter of the machine and of what else runs on it.
settings.register_profile("search", deadline=None)
# CI judges a change by the same examples each time; whoever works on the code lets them be searched anew.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")

pytest_plugins = ["bench.strict", "bench.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rows",
        type=int,
        metavar="N",
        help="of each test that is asked of a long table, N rows at most, spread over it: for a further Python, "
        "where the same code runs on the same data",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    most = config.getoption("--rows")
    if most is None:
        return
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(row) for rows in tables.values() for row in spread(rows, most)}
    kept |= {id(item) for item in items if item.get_closest_marker("every_row")}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def spread(rows: list[pytest.Item], most: int) -> list[pytest.Item]:
    """Of a table the first row, the last, and what lies evenly between."""
    if len(rows) <= most or most < 2:
        return rows[:most]
    return [rows[number * (len(rows) - 1) // (most - 1)] for number in range(most)]
