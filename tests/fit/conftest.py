from __future__ import annotations

from pathlib import Path

import pytest

from cudadoctor.matrix import Matrix, load_matrix


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    """The matrix from the TOML of this checkout, whatever is compiled beside it."""
    return load_matrix(str(Path(__file__).resolve().parents[2] / "compat"))
