"""Several unlike GPUs in one machine: one build for all, which serves which, and what cannot be together."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from needs import NEWEST, NEWEST_ON_WINDOWS, WINDOWS, answer, gpu, machine, planned, whole, windows

from cudadoctor.resolve import Installed, Need
from cudadoctor.resolve.need import PRESENT, WORKS

R580: dict[str, Any] = {"driver": "580.95.05"}


class Row(NamedTuple):
    title: str
    need: Need
    torch: str
    split: dict[str, str]  # cards to the build that serves them in an environment of their own
    says: tuple[str, ...] = ()


ROWS = [
    Row("one build is the best for both", machine("RTX 5090", "RTX 3090", **R580), NEWEST, {}),
    Row("two of a kind", machine("GTX 1080", "GTX 1080 Ti", **R580), "2.14.1+cu126", {}),
    Row(
        "Pascal and Blackwell: no build has code for both",
        machine("GTX 1080", "RTX 5090", **R580),
        "",
        {"GTX 1080": "2.14.1+cu126", "RTX 5090": NEWEST},
        (
            "no single build of torch serves GTX 1080 and RTX 5090 together",
            "torch 2.15.0+cu132 has no code for GTX 1080 (sm_61)",
            "not a newer driver: R580 is the last branch for GTX 1080, and no torch build for linux-x86_64 has",
        ),
    ),
    Row(
        "three kinds, of which two share a build",
        machine("GTX 1080", "RTX 3090", "RTX 5090", **R580),
        "",
        {"GTX 1080": "2.14.1+cu126", "RTX 3090 RTX 5090": NEWEST},
        ("no single build of torch serves GTX 1080, RTX 3090 and RTX 5090 together",),
    ),
    Row(
        "three kinds on a driver without CUDA 13",
        machine("GTX 1080", "RTX 4090", "RTX 5090", driver="570.124.06"),
        "",
        {"GTX 1080 RTX 4090": "2.14.1+cu126", "RTX 5090": "2.13.0+cu129"},
    ),
    Row(
        "Volta and Blackwell: an older build has code for both, and each could have a newer one",
        machine("V100", "RTX 5090", **R580),
        "2.10.0+cu129",
        {"V100": "2.14.1+cu126", "RTX 5090": NEWEST},
        (
            "sm_70 code runs on V100",
            "sm_120 code runs on RTX 5090",
            "not torch 2.15.0: its cu132 build has no code for V100",
        ),
    ),
    Row(
        "what runs on both is left alone",
        machine("V100", "RTX 5090", **R580, installed=Installed("2.9.1", "cu128")),
        "2.9.1+cu128",
        {},
    ),
    Row(
        "old PTX is no choice for a new card where each can have a build of its own",
        windows("RTX 5090", "GTX 1080 Ti", driver="581.57"),
        "",
        {"RTX 5090": NEWEST_ON_WINDOWS, "GTX 1080 Ti": "2.14.1+cu126"},
    ),
    Row(
        "planned for Linux: the two need different kernel modules",
        planned("GTX 1080", "RTX 5090"),
        "",
        {"GTX 1080": "2.14.1+cu126", "RTX 5090": NEWEST},
        (
            "one Linux system cannot drive RTX 5090 and GTX 1080 together: RTX 5090 needs NVIDIA's open kernel modules",
            "drivers R570 R580 R580 clash",
        ),
    ),
    Row(
        "planned for Linux: a build that has code for both, which need different kernel modules",
        planned("V100", "RTX 5090", **R580),
        "2.10.0+cu129",
        {"V100": "2.14.1+cu126", "RTX 5090": NEWEST},
        ("one Linux system cannot drive RTX 5090 and V100 together",),
    ),
    Row(
        "planned for Linux: different kernel modules, and a driver that is too old for one of them",
        planned("GTX 1080", "RTX 5090", driver="535.104"),
        "",
        {"GTX 1080": "2.14.1+cu126", "RTX 5090": NEWEST},
        ("one Linux system cannot drive", "driver 535.104 is R535, and RTX 5090 needs R570 or newer"),
    ),
    Row(
        "planned for Windows, which has one kind of driver: each card has its build",
        planned("V100", "RTX 5090", driver="581.57", **WINDOWS),
        "",
        {"V100": "2.14.1+cu126", "RTX 5090": NEWEST_ON_WINDOWS},
    ),
    Row(
        "no driver drives both",
        planned("K80", "RTX 5090"),
        "",
        {},
        (
            "no driver drives K80 and RTX 5090 together: R470 is the last branch for K80, R570 the first for RTX 5090",
            "K80 alone: torch 2.7.1+cu118, on R470",
            f"RTX 5090 alone: torch {NEWEST}, on R580",
            "drivers R570 R470 - clash",
        ),
    ),
    Row(
        "no driver drives both, and the one at work drives one of them",
        machine(gpus=(gpu("RTX 5090"), gpu("K80", None)), gpu_state=PRESENT, driver_state=WORKS, **R580),
        NEWEST,
        {},
        ("K80: left idle; no driver drives K80 and RTX 5090 together",),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_unlike_gpus(row: Row) -> None:
    found = answer(row.need)
    text = whole(found)
    assert (found.choice.version if found.choice else "") == row.torch, text
    assert {" ".join(card.label for card in part.gpus): part.choice.version for part in found.split} == row.split
    for phrase in row.says:
        assert phrase in text


def test_cards_keep_their_numbers() -> None:
    """What CUDA_VISIBLE_DEVICES is set to."""
    cards = (gpu("GTX 1080", 0), gpu("RTX 5090", 1), gpu("RTX 3090", 2))
    found = answer(machine(gpus=cards, gpu_state=PRESENT, driver_state=WORKS, **R580))
    assert [[card.number for card in part.gpus] for part in found.split] == [[0], [1, 2]]


def test_nothing_is_said_of_kernel_modules_where_a_driver_lists_both() -> None:
    assert "kernel module" not in whole(answer(machine("GTX 1080", "RTX 5090", **R580)))


def test_windows_has_one_kind_of_driver() -> None:
    assert "kernel module" not in whole(answer(planned("GTX 1080", "RTX 5090", **WINDOWS)))
