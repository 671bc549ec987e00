"""Which of the visible GPUs the installed torch has code for."""

from __future__ import annotations

from typing import NamedTuple, Optional

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.derive.coverage import BETWEEN, NEWER, OLDER, coverage, visible_gpus
from cudadoctor.matrix import load_matrix
from cudadoctor.testing import Machine, linux

MATRIX = load_matrix()


def card(capability: str) -> Machine:
    return linux().gpu(f"GPU of {capability}", capability, device_id="ffff")


class Row(NamedTuple):
    title: str
    machine: Machine
    answer: str
    gap: Optional[str] = None
    ptx_needs_driver: bool = False


def built(capability: str, sass: str, ptx: str = "", driver: tuple[str, str] = ("580.95.05", "13.0")) -> Machine:
    return card(capability).driver(*driver).torch("2.9.1+cu128", sass=sass.split(), ptx=ptx.split())


ROWS = [
    Row("the very one", built("8.6", "sm_80 sm_86"), "yes"),
    Row("an older minor of the same major", built("8.9", "sm_75 sm_86"), "yes"),
    Row("a newer minor does not run on an older one", built("8.0", "sm_75 sm_86"), "no", BETWEEN),
    Row("older than all", built("6.1", "sm_75 sm_86"), "no", OLDER),
    Row("newer than all", built("12.0", "sm_75 sm_90"), "no", NEWER),
    Row("newer than all, in the order of letters", built("12.0", "sm_100 sm_50 sm_90"), "no", NEWER),
    Row("between two majors", built("7.0", "sm_61 sm_80"), "no", BETWEEN),
    Row("code with a suffix runs on its own GPU alone", built("9.0", "sm_90a"), "yes"),
    Row("and on no other of the major", built("10.3", "sm_100a"), "no", NEWER),
    Row("PTX that the driver compiles", built("12.0", "sm_90", "compute_90"), "likely"),
    Row(
        "PTX that is newer than the driver",
        built("9.0", "sm_80", "compute_80", ("535.183.01", "12.2")),
        "no",
        NEWER,
        True,
    ),
    Row(
        "PTX for another GPU is no matter of the driver",
        built("7.0", "sm_80", "compute_80", ("535.183.01", "12.2")),
        "no",
        OLDER,
    ),
    Row(
        "a driver newer than the matrix compiles it", built("12.0", "sm_90", "compute_90", ("990.11", "19.0")), "likely"
    ),
    Row("a list that was not read", card("8.9").torch("2.16.0+cu132"), "unknown"),
    Row("machine code alone was read, and it runs", built("8.6", "sm_86").unknown("torch.ptx"), "yes"),
    Row("machine code alone was read, and it does not", built("12.0", "sm_86").unknown("torch.ptx"), "unknown"),
    Row("an unknown GPU", built("8.9", "sm_86").unknown("gpu.0.compute_capability"), "unknown"),
]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.title) for row in ROWS])
def test_one_gpu_against_the_list(row: Row) -> None:
    (found,) = Case(row.machine.facts, MATRIX).derived(coverage)
    assert (found.answer, found.gap, found.ptx_needs_driver) == (row.answer, row.gap, row.ptx_needs_driver)
    assert found.reason


UNLIKE = linux().gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", 11, device_id="1b06", index=1)
IN_PCI_ORDER = UNLIKE.set({"env.CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


@pytest.mark.parametrize(
    ("machine", "value", "indexes"),
    [
        pytest.param(UNLIKE, None, [0, 1], id="not set"),
        pytest.param(IN_PCI_ORDER, "1", [1], id="in PCI order a number names a card"),
        pytest.param(IN_PCI_ORDER, "1,-1", [1], id="what follows an invalid entry is hidden"),
        pytest.param(
            UNLIKE, "1", [0, 1], id="CUDA's own order puts the fastest first, which NVML's numbers do not tell"
        ),
        pytest.param(IN_PCI_ORDER, "GPU-3f1c", [0, 1], id="UUIDs are not followed"),
        pytest.param(IN_PCI_ORDER, "", [0, 1], id="hidden cards are CD706's affair"),
        pytest.param(linux(), "0", [0], id="one card"),
    ],
)
def test_visible_gpus(machine: Machine, value: Optional[str], indexes: list[int]) -> None:
    if value is not None:
        machine = machine.set({"env.CUDA_VISIBLE_DEVICES": value})
    assert [gpu.index for gpu in Case(machine.facts, MATRIX).derived(visible_gpus)] == indexes


def test_without_cuda_there_is_nothing_to_cover() -> None:
    assert Case(linux().torch("2.9.1+cpu").facts, MATRIX).derived(coverage) == ()
