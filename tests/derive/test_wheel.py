"""What the installed torch is, out of its version, its files and the matrix."""

from __future__ import annotations

from typing import NamedTuple, Optional

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.derive.wheel import required_packages, torch_build
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import GONE, Machine, jetson, linux, windows

MATRIX = load_matrix()
ARM = linux().set({"system.arch": "aarch64"})


class Row(NamedTuple):
    """`sass` is the first and the last target of the list, or why there is none."""

    title: str
    machine: Machine
    kind: str
    variant: Optional[str]
    has_row: bool
    sass: str


ROWS = [
    Row(
        "the index's, read",
        linux().torch("2.9.1+cu128", sass=["sm_75", "sm_120"]),
        "cuda",
        "cu128",
        True,
        "sm_75 sm_120",
    ),
    Row("the index's, unread", linux().torch("2.9.1+cu128"), "cuda", "cu128", True, "sm_70 sm_120"),
    Row(
        "PyPI's on Linux: its files name the CUDA",
        linux().torch("2.9.1", "12.8"),
        "cuda",
        "cu128",
        True,
        "sm_70 sm_120",
    ),
    Row("PyPI's on Windows", windows().torch("2.9.1").set({"torch.cuda": GONE}), "cpu", "cpu", True, ""),
    Row(
        "its file unread, its version says it",
        linux().torch("2.9.1+cu128").unknown("torch.cuda"),
        "cuda",
        "cu128",
        True,
        "sm_70 sm_120",
    ),
    Row("nothing says it", linux().torch("2.9.1").unknown("torch.cuda"), "unclear", None, False, ""),
    Row(
        "an index of the time of 2.0",
        linux().torch("2.0.1+cu117.with.pypi.cudnn", "11.7"),
        "cuda",
        "cu117",
        True,
        "sm_37 sm_86",
    ),
    Row("a nightly", linux().torch("2.16.0.dev20261101+cu132"), "cuda", "cu132", False, "the library was not read"),
    Row(
        "a release after the matrix", linux().torch("2.16.0+cu132"), "cuda", "cu132", False, "the library was not read"
    ),
    Row(
        "NVIDIA's container",
        linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0"),
        "cuda",
        "cu130",
        False,
        "the library was not read",
    ),
    Row(
        "a source build",
        linux().torch("2.9.1", "12.8").set({"torch.origin": "source"}),
        "cuda",
        "cu128",
        False,
        "the library was not read",
    ),
    Row(
        "a distribution's",
        linux().torch("2.9.1", "12.8").set({"torch.origin": "system"}),
        "cuda",
        "cu128",
        False,
        "the library was not read",
    ),
    Row(
        "conda's has a list of its own",
        linux().torch("2.5.1", "12.4").set({"torch.origin": "conda"}),
        "cuda",
        "cu124",
        True,
        "the library was not read",
    ),
    Row("an ARM server's", ARM.torch("2.9.1+cu128"), "cuda", "cu128", True, "sm_80 sm_120"),
    Row(
        "a Jetson's of the same name is another build",
        jetson().torch("2.9.1+cu128"),
        "cuda",
        "cu128",
        False,
        "the library was not read",
    ),
    Row("for AMD", linux().torch("2.9.1+rocm6.4"), "rocm", None, False, ""),
    Row("none", linux().no_torch(), "missing", None, False, ""),
    Row("unreadable", linux().unknown("torch.version"), "unclear", None, False, "torch was not found"),
]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.title) for row in ROWS])
def test_what_torch_is(row: Row) -> None:
    build = Case(row.machine.facts, MATRIX).derived(torch_build)
    assert (build.kind, build.variant, build.row is not None) == (row.kind, row.variant, row.has_row)
    targets = build.sass.value
    shown = " ".join((targets[0], targets[-1])) if targets else build.sass.reason
    assert not row.sass or shown == row.sass


def test_a_list_of_the_matrix_names_what_its_sources_disagree_on() -> None:
    build = Case(windows().torch("2.9.1+cu128").facts, MATRIX).derived(torch_build)
    assert build.disputed == ("70",)
    read = Case(windows().torch("2.9.1+cu128", sass=["sm_75", "sm_120"]).facts, MATRIX).derived(torch_build)
    assert read.disputed == ()


def test_what_is_not_known_of_ptx_stays_unknown() -> None:
    machine = linux().torch("2.9.1+cu128", sass=["sm_75"])
    assert Case(machine.unknown("torch.ptx").facts, MATRIX).derived(torch_build).ptx.is_unknown
    assert Case(machine.set({"torch.ptx": GONE}).facts, MATRIX).derived(torch_build).ptx.value == ()


def test_requirements_are_told_by_package_and_range() -> None:
    machine = linux().set(
        {
            "package.torch.requires": [
                "cuda-toolkit[cublas,cudart]==13.0.3",
                "triton~=3.8.0",
                "cuda-bindings<14,>=13.0.3",
            ]
        }
    )
    machine = machine.package("cuda-toolkit", "13.0.3.0", requires=["nvidia-cublas==13.1.1.3.*"])
    assert Case(machine.facts, MATRIX).derived(required_packages) == {
        "cuda-toolkit": "==13.0.3",
        "triton": "~=3.8.0",
        "cuda-bindings": "<14,>=13.0.3",
        "nvidia-cublas": "==13.1.1.3.*",
    }


def test_unread_requirements_are_none() -> None:
    assert Case(linux().unknown("package.torch.requires").facts, MATRIX).derived(required_packages) == {}
