"""A cluster for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

import pytest
from bench import slurm


@pytest.fixture(scope="session")
def _cluster() -> Iterator[slurm.Cluster]:
    with slurm.cluster(nodes=6) as running:
        yield running


@pytest.fixture
def cluster(_cluster: slurm.Cluster) -> Iterator[slurm.Cluster]:
    """A running cluster of six nodes (n1 to n6), all well, with nothing hung in."""
    _cluster.fresh()
    yield _cluster


@pytest.fixture
def program(cluster: slurm.Cluster) -> Callable[[str, str], str]:
    """`program("name", "shell script")` writes a program that every user may run and returns its path."""

    def write(name: str, script: str) -> str:
        file = cluster.root / "jobs" / f"program-{name}"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return str(file)

    return write
