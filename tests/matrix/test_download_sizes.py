"""scripts/download_sizes.py: which builds are measured, how wheels are added up, and how the column is written."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cudadoctor.matrix import Matrix

ROW = '  { variant = "cu130", platform = "linux-x86_64", pythons = "3.12", sass = "75 80", listed = "pypi" },\n'
FILE = (
    'checked = "2026-11-30"\n\n[[release]]\nversion = "2.14.1"\nbuilds = [\n' + ROW + "]\n\n"
    '[[release]]\nversion = "2.14.0"\nbuilds = [\n' + ROW + ']\n\n[sources]\npypi = "PyPI"\n'
)


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("download_sizes", root / "scripts" / "download_sizes.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def test_every_platform_s_default_build_is_measured(script: ModuleType, matrix: Matrix) -> None:
    found = {(build.platform, build.variant) for build in script.default_builds(matrix, ["2.14.1"])}
    release = matrix.torch_release("2.14.1")
    assert release is not None
    assert found == set(release.default.items())


def test_a_build_that_pip_cannot_install_is_left_out(script: ModuleType, matrix: Matrix) -> None:
    """torch 1.7.0 for Windows: its wheels on PyPI are broken, PyTorch's index has sound ones."""
    assert "windows-x86_64" not in {build.platform for build in script.default_builds(matrix, ["1.7.0"])}


def test_the_second_newest_python_is_taken(script: ModuleType, matrix: Matrix) -> None:
    build = next(build for build in script.default_builds(matrix, ["2.13.0"]) if build.platform == "linux-x86_64")
    assert "3.15" in build.pythons_index_only
    assert script.python_for(build) == "3.13"


def test_the_largest_wheel_that_would_do_counts_else_the_source(script: ModuleType) -> None:
    lock = {
        "packages": [
            {"name": "torch", "wheels": [{"size": 500}, {"size": 510}]},
            {"name": "future", "sdist": {"size": 7}, "wheels": []},
            {"name": "sympy", "sdist": {"size": 9}, "wheels": [{"size": 6}]},
        ]
    }
    assert script.sizes(lock) == {"torch": 510, "future": 7, "sympy": 6}


def test_the_column_goes_into_the_row_of_that_build_alone(script: ModuleType, matrix: Matrix) -> None:
    build = next(build for build in script.default_builds(matrix, ["2.14.0"]) if build.platform == "linux-x86_64")
    once = script.with_source(script.with_column(FILE, build, 2800), "2026-12-01")
    head, tail = once.split('version = "2.14.0"')
    assert "download_mib" not in head
    assert 'listed = "pypi", download_mib = 2800, sizes = "sizes" },' in tail
    assert once.count("sizes = ") == 2
    again = script.with_source(script.with_column(once, build, 2900), "2026-12-02")
    assert again == once.replace("2800", "2900").replace("2026-12-01", "2026-12-02")


def test_a_build_without_a_row_is_told(script: ModuleType, matrix: Matrix) -> None:
    build = next(build for build in script.default_builds(matrix, ["2.14.0"]) if build.platform == "linux-aarch64")
    with pytest.raises(RuntimeError, match=r"no row of 2\.14\.0 cu130 linux-aarch64"):
        script.with_column(FILE, build, 2800)
