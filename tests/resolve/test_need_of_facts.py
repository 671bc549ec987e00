"""From the facts of a machine to what its torch has to be: the GPUs, the driver that counts, what holds torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from needs import MATRIX

from cudadoctor.derive.case import Case
from cudadoctor.resolve import Installed, Need, Pin, need, resolution
from cudadoctor.resolve.need import BROKEN, NONE, PRESENT, UNKNOWN, WORKS
from cudadoctor.testing import GONE, Machine, jetson, linux, windows, wsl


def of(machine: Machine) -> Need:
    return Case(machine.facts, MATRIX).derived(need)


class Row(NamedTuple):
    title: str
    machine: Machine
    expected: dict[str, Any]


ROWS = [
    Row(
        "a healthy workstation",
        linux(),
        {
            "gpu_state": PRESENT,
            "driver": "580.95.05",
            "driver_state": WORKS,
            "numbering": "linux",
            "platform": "linux-x86_64",
            "python": "3.12",
            "glibc": "2.39",
            "installed": Installed("2.14.1", "cu130", (("torchvision", "0.29.1"),)),
            "pins": (),
            "welcome": (),
        },
    ),
    Row("no torch: torchvision comes with it", linux().no_torch(), {"installed": None, "welcome": ("torchvision",)}),
    Row("no GPU", linux().no_gpu(), {"gpu_state": NONE, "gpus": (), "driver_state": NONE}),
    Row("no driver", linux().no_driver(), {"gpu_state": PRESENT, "driver": None, "driver_state": NONE}),
    Row(
        "a driver whose module is not loaded: its library will count",
        linux().not_loaded(),
        {"driver": "580.95.05", "driver_state": BROKEN},
    ),
    Row("a driver that hangs", linux().hangs(), {"driver_state": BROKEN}),
    Row(
        "WSL counts in Windows' numbers and takes Linux' wheels",
        wsl(),
        {"numbering": "windows", "platform": "linux-x86_64", "wsl": True, "driver_state": WORKS},
    ),
    Row("Windows has no glibc", windows(), {"numbering": "windows", "platform": "windows-x86_64", "glibc": None}),
    Row("a Jetson", jetson(), {"jetson": True, "platform": "linux-aarch64", "gpu_state": PRESENT}),
    Row("musl", linux().set({"system.libc": "musl", "system.glibc": GONE}), {"libc": "musl", "glibc": None}),
    Row("an unreadable Python", linux().unknown("python.version"), {"python": None, "python_tag": None}),
    Row(
        "free-threaded",
        linux().set({"python.version": "3.14.0", "python.free_threaded": True}),
        {"python": "3.14", "python_tag": "3.14t"},
    ),
    Row(
        "a torch that lacks libraries",
        linux().set({"torch.missing_libraries": ["libcudart.so.13"]}),
        {"installed": Installed("2.14.1", "cu130", (("torchvision", "0.29.1"),), True)},
    ),
    Row("an unreadable torch", linux().unknown("torch.version"), {"installed": None}),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_need(row: Row) -> None:
    found = of(row.machine)
    assert {name: getattr(found, name) for name in row.expected} == row.expected


BITSANDBYTES = MATRIX.pins("bitsandbytes")[0]
TORCH_29 = linux().torch("2.9.1+cu128")

PINS = [
    (
        "a requirement, and the CUDA that the matrix knows of the release",
        linux().torch("2.14.0+cu130").package("vllm", "0.33.0", requires=["torch==2.14.0"]),
        [Pin("vllm", "0.33.0", "==2.14.0", ("13",))],
    ),
    (
        "compiled for one torch and one CUDA, and requires none by name",
        TORCH_29.package(
            "flash-attn",
            "2.8.3+cu12torch2.9cxx11abitrue",
            requires=["torch"],
            built_for_torch="2.9",
            built_for_cuda="12",
        ),
        [Pin("flash-attn", "2.8.3", "==2.9.*", ("12",), True)],
    ),
    (
        "compiled for one torch, and says that it takes newer ones",
        TORCH_29.package("stable", "1.0", requires=["torch>=2.9"], built_for_torch="2.9.0", built_for_cuda="12.8"),
        [Pin("stable", "1.0", ">=2.9", ("12",))],
    ),
    (
        "compiled for a newer torch than the least that it names: bound by what it was compiled for",
        TORCH_29.package("bound", "1.0", requires=["torch>=2.0"], built_for_torch="2.9.1"),
        [Pin("bound", "1.0", "==2.9.*", (), True)],
    ),
    (
        "the exact requirement goes before what it was compiled for",
        TORCH_29.package("exact", "1.0", requires=["torch==2.9.1"], built_for_torch="2.9.0"),
        [Pin("exact", "1.0", "==2.9.1")],
    ),
    (
        "nothing of it is known but what the matrix has",
        linux().torch("2.14.1+cu130").package("bitsandbytes", "0.50.2"),
        [Pin("bitsandbytes", "0.50.2", BITSANDBYTES.torch, BITSANDBYTES.cuda)],
    ),
    (
        "what the present torch does not satisfy has been overruled and binds no more",
        TORCH_29.package("torchtext", "0.18.0", requires=["torch==2.3.0"]),
        [],
    ),
    (
        "but not where people have torch for its sake",
        linux().torch("2.15.0+cpu").package("vllm", "0.33.0", requires=["torch==2.14.0"]),
        [Pin("vllm", "0.33.0", "==2.14.0", ("13",))],
    ),
    (
        "without a torch everything binds",
        linux().no_torch().package("torchtext", "0.18.0", requires=["torch==2.3.0"]),
        [Pin("torchtext", "0.18.0", "==2.3.0")],
    ),
    ("companions are no pins", linux(), []),
    ("nor is what wants no torch", TORCH_29.package("triton", "3.5.0", requires=[]), []),
]


@pytest.mark.parametrize(("title", "machine", "pins"), PINS, ids=[title for title, _, _ in PINS])
def test_pins(title: str, machine: Machine, pins: list[Pin]) -> None:
    assert list(of(machine).pins) == pins


def test_an_old_card_beside_is_not_what_torch_is_chosen_for() -> None:
    """A card for the screen, which the driver does not list and another driver holds."""
    machine = linux().display_card("1002", "nouveau")
    assert [gpu.capability for gpu in of(machine).gpus] == ["8.9"]


def test_a_healthy_machine_needs_nothing() -> None:
    found = Case(linux().facts, MATRIX).derived(resolution)
    assert found.nothing_to_do
    assert (found.blocked_by, found.moves, found.not_helping) == ((), (), ())


def test_what_is_not_known_of_the_gpu_is_said() -> None:
    machine = linux().no_gpu().unknown("pci.gpus", "driver.nvml_library", "driver.libcuda")
    found = Case(machine.facts, MATRIX).derived(resolution)
    assert of(machine).gpu_state == UNKNOWN
    assert found.choice is None and found.undecided == "which GPU the machine has is not known"
