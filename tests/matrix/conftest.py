from __future__ import annotations

from pathlib import Path

import pytest

from cudadoctor.matrix import Matrix, load_matrix

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def compat(root: Path) -> str:
    """The data as people edit it."""
    return str(root / "compat")


@pytest.fixture(scope="session")
def matrix(compat: str) -> Matrix:
    """The matrix from the TOML of this checkout, whatever is compiled beside it."""
    return load_matrix(compat)
