"""The libcuda.so.1 that the loader takes, and forward compatibility."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.derive.libcuda import first_libcuda, forward_compatibility
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import Machine, container, linux, wsl

MATRIX = load_matrix()
A100 = container().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2").driver("535.183.06", "12.2")


def before(machine: Machine, kind: str, version: Optional[str] = None) -> Machine:
    path = f"/opt/{kind}/libcuda.so.1"
    entry: dict[str, Any] = {"path": path, "real_path": path, "found_by": "LD_LIBRARY_PATH", "kind": kind}
    return machine.set({"driver.libcuda": [{**entry, "version": version}, *machine.facts.value("driver.libcuda")]})


@pytest.mark.parametrize("kind", ["compat", "stub", "empty", "driver"])
def test_the_first_is_taken(kind: str) -> None:
    found = Case(before(linux(), kind).facts, MATRIX).derived(first_libcuda)
    assert found is not None and found["kind"] == kind


def test_a_link_that_leads_nowhere_is_passed_over() -> None:
    found = Case(before(linux(), "dangling").facts, MATRIX).derived(first_libcuda)
    assert found is not None and found["kind"] == "driver"
    alone = linux().set({"driver.libcuda": before(linux(), "dangling").facts.value("driver.libcuda")[:1]})
    assert Case(alone.facts, MATRIX).derived(first_libcuda) is None


@pytest.mark.parametrize(
    ("machine", "version"),
    [
        pytest.param(before(A100, "compat", "580.95.05"), "580.95.05", id="newer, on a data-center card"),
        pytest.param(before(A100, "compat", "525.60.13"), None, id="older than the driver"),
        pytest.param(before(A100, "compat", "535.183.06"), None, id="the driver's own version"),
        pytest.param(before(A100, "compat"), None, id="of unknown version"),
        pytest.param(before(A100, "driver", "580.95.05"), None, id="not out of a compat folder"),
        pytest.param(before(container(), "compat", "590.44.01"), None, id="on a GeForce"),
        pytest.param(before(wsl(), "compat", "590.44.01"), None, id="in WSL"),
        pytest.param(A100, None, id="none there"),
    ],
)
def test_forward_compatibility(machine: Machine, version: Optional[str]) -> None:
    assert Case(machine.facts, MATRIX).derived(forward_compatibility) == version
