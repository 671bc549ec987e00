"""What the tests of fan-outs share."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ssh_nodes import Nodes

from cudadoctor.recipes import recipes


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Three nodes, n1 to n3, that one reaches over ssh."""
    with Nodes(3) as started:
        yield started


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[[str], str]:
    """`recipe("ssh/clush")`: a recipe as a file that can be run; its path."""

    def written(name: str) -> str:
        found = recipes()[name]
        file = tmp_path / found.file.replace("/", "-")
        file.write_text(found.text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return written
