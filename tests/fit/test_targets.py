"""Where it is to run: cards by their names, sizes, and machines as their facts show them now."""

from __future__ import annotations

import plain_sums
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_sums import GIB, MIB

from cudadoctor.fit.target import Target
from cudadoctor.fit.targets import (
    GPU,
    MACHINE,
    MEMORY,
    NONE,
    available,
    target_of_facts,
    target_of_name,
    target_of_names,
    target_of_size,
    used_cards,
)
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError
from cudadoctor.testing import GONE, Machine, jetson, linux, node, windows, wsl

pytestmark = pytest.mark.once


def gib(target: Target) -> list[float]:
    return [round(card.free / GIB, 1) if card.free is not None else -1 for card in target.cards]


# -- names


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("RTX 4060", "GeForce RTX 4060", 1),
        ("4090", "GeForce RTX 4090", 1),
        ("H100x8", "H100 SXM5 80 GB", 8),
        ("8xH100", "H100 SXM5 80 GB", 8),
        ("8 x A100 80GB", "A100 SXM4 80 GB", 8),
        ("RTX 4090 x2", "GeForce RTX 4090", 2),
        ("RTX4090x2", "GeForce RTX 4090", 2),
        ("RTX 4090 * 2", "GeForce RTX 4090", 2),
        ("GTX 1080 Tix2", "GeForce GTX 1080 Ti", 2),
        ("L4x4", "L4", 4),
        ("T4x2", "Tesla T4", 2),
        # An x that is part of the name.
        ("GTX 970", "GeForce GTX 970", 1),
        ("TITAN X", "GeForce GTX TITAN X", 1),
        ("RTX 3060", "GeForce RTX 3060 12 GB", 1),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80 GB", 1),
        ("DGX Spark", "GB10", 1),
    ],
)
def test_a_card_is_found_by_what_people_call_it(matrix: Matrix, text: str, name: str, number: int) -> None:
    target = target_of_name(matrix, text)
    assert target.kind == GPU
    assert [card.name for card in target.cards] == [name] * number


def test_several_cards_may_differ(matrix: Matrix) -> None:
    target = target_of_name(matrix, "RTX 4060, RTX 3090x2")
    assert [card.name for card in target.cards] == ["GeForce RTX 4060", "GeForce RTX 3090", "GeForce RTX 3090"]
    assert target == target_of_names(matrix, ["RTX 4060", "2x RTX 3090"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("RTX 4095", "the nearest are"),
        ("foo", "no GPU called 'foo' is known"),
        ("sm_89", "says nothing about memory"),
        ("8.9", "says nothing about memory"),
        ("H100x0", "0 GPUs are no machine"),
        ("H100x5000", "5000 GPUs are no machine"),
        ("x8", "no GPU called 'x8'"),
        ("", "no GPU is named"),
        (" , ", "no GPU is named"),
        ("H100," * 200 + "H100x1000", "more than 1024 GPUs"),
        ("A" * 5000, "no GPU is called"),
        ("H100x8x8", "how many GPUs is said twice"),
        # A part of which only the card would be known; and one that the card is too small for.
        ("H100 MIG", "does not say which part"),
        ("H100 MIG 9z.9gb", "does not say which part"),
        ("A100 40GB 7g.80gb", "larger than the GPU"),
        ("T4-99Q", "larger than the GPU"),
        # The name of a whole line of products.
        ("RTX", "GPUs are called 'RTX': name one"),
        ("Jetson", "GPUs are called 'Jetson': name one"),
    ],
)
def test_what_is_no_card_is_said_in_a_sentence(matrix: Matrix, text: str, says: str) -> None:
    with pytest.raises(ParseError, match=says) as error:
        target_of_name(matrix, text)
    assert len(str(error.value)) < 300


@given(st.text(max_size=40))
def test_any_text_is_a_card_or_an_error(matrix: Matrix, text: str) -> None:
    try:
        target = target_of_name(matrix, text)
    except ParseError:
        return
    assert target.cards


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A100", "A100 is taken for the A100 SXM4 40 GB (40 GB; others have 80 GB)"),
        ("H100", "H100 is taken for the H100 SXM5 80 GB (80 GB; others have 64, 94, 96 GB)"),
        ("V100", "V100 is taken for the Tesla V100 PCIe 16 GB (16 GB; others have 32 GB)"),
        ("H100 MIG 1g.10gb", "H100 MIG 1g.10gb is a part of a GPU: how fast its memory is, is not known"),
        ("1g.10gb", "1g.10gb is a part of a GPU: how fast its memory is, is not known"),
        ("GB10", "GB10 has no memory of its own: the system and programs take from the same pool"),
    ],
)
def test_what_a_name_was_taken_for_is_told(matrix: Matrix, text: str, says: str) -> None:
    assert target_of_name(matrix, text).notes == (says,)


def test_an_unmistakable_name_needs_no_note(matrix: Matrix) -> None:
    assert target_of_name(matrix, "RTX 4090").notes == ()
    assert target_of_name(matrix, "A100 80GB").notes == ()


# -- what of a card can be used


@pytest.mark.parametrize(
    ("text", "usable"),
    [
        ("RTX 4090", 23.5),
        ("RTX 4060", 7.6),
        ("T4", 14.6),  # 16 GB, with error correction in the same memory
        ("L4", 22.0),
        ("L40S", 44.3),
        ("A100 80GB", 79.1),
        ("H200", 139.7),
        ("A10", 21.9),  # not seen: as the rule has it
        ("RTX 4080", 15.5),
        ("P40", 21.9),
        ("H100 MIG 1g.10gb", 9.5),
        ("A100 1g.5gb", 4.6),
        ("A100-SXM4-80GB-1g.10gb+me", 9.5),
        ("NVIDIA A100 80GB PCIe MIG 3g.40gb", 39.3),
        ("1g.10gb", 9.5),
        ("MIG 3g.40gb", 39.3),
        ("GRID T4-4Q", 3.6),
    ],
)
def test_a_program_gets_less_than_the_box_says(matrix: Matrix, text: str, usable: float) -> None:
    card = target_of_name(matrix, text).cards[0]
    assert card.free is not None and card.total is not None
    assert round(card.free / GIB, 1) == usable
    assert card.free < card.total


def test_the_rule_for_other_cards_lies_at_what_was_seen(matrix: Matrix) -> None:
    shares = []
    for row in matrix.raw("cards")["usable"]:
        product = next(found for found in matrix.gpus() if found.name == row["name"])
        if product.klass == "soc":  # the figure is of the system's memory
            continue
        inline = any(
            product.klass == ecc["class"] and product.memory_type in ecc["memory"] for ecc in matrix.raw("cards")["ecc"]
        )
        box = product.memory_gib * (1 - 1 / 16 if inline else 1)
        shares.append(matrix.less_held(box).bytes / GIB / row["gib"])
    assert len(shares) > 15
    assert min(shares) >= 0.99
    assert max(shares) <= 1.003


def test_every_card_that_is_offered_is_known_with_its_figures(matrix: Matrix) -> None:
    names = [row["name"] for row in matrix.raw("cards")["offer"]]
    assert [offer.gpu.name for offer in matrix.offers()] == names
    for offer in matrix.offers():
        assert offer.gpu.bandwidth_gbs and offer.gpu.tflops, offer.gpu.name
    assert {row["name"] for row in matrix.raw("cards")["usable"]} <= {product.name for product in matrix.gpus()}


def test_the_figures_beside_a_card_are_in_bytes_and_operations_a_second(matrix: Matrix) -> None:
    card = target_of_name(matrix, "A100 80GB").cards[0]
    assert card.bandwidth == pytest.approx(2.039e12, rel=0.01)
    assert card.tensor_rate == pytest.approx(312e12)
    assert card.compute_capability == "8.0"
    assert target_of_name(matrix, "H100 MIG 1g.10gb").cards[0].bandwidth is None


# -- sizes


def test_a_size_is_what_a_program_can_use_of_it() -> None:
    target = target_of_size(24)
    assert target.kind == MEMORY
    assert gib(target) == [24]
    assert len(target_of_size(11.5, 4).cards) == 4


@pytest.mark.parametrize(("size", "number"), [(0, 1), (-1, 1), (5000, 1), (float("nan"), 1), (24, 0), (24, 5000)])
def test_no_gpu_has_such_a_size(size: float, number: int) -> None:
    with pytest.raises(ParseError):
        target_of_size(size, number)


# -- this machine


def test_what_is_free_now_counts(matrix: Matrix) -> None:
    machine = linux().set({"gpu.0.memory_free": 20 * GIB, "gpu.0.memory_used": 4 * GIB})
    target = target_of_facts(matrix, machine.facts)
    card = target.cards[0]
    assert target.kind == MACHINE and target.system == "linux"
    assert (card.name, card.total, card.free) == ("NVIDIA GeForce RTX 4090", 24 * GIB, 20 * GIB)
    assert card.bandwidth == pytest.approx(1.01e12)
    assert card.compute_capability == "8.9"
    assert target.machine.memory_total == 64 * GIB
    assert target.machine.disk == "nvme"


def test_an_idle_card_is_held_by_nobody(matrix: Matrix) -> None:
    target = target_of_facts(matrix, linux().facts)
    assert target.cards[0].used_by_others is not None and target.cards[0].used_by_others < 100 * MIB
    assert target.notes == ()


def test_who_holds_memory_is_named(matrix: Matrix) -> None:
    processes = [{"pid": 4711, "memory": 9 * GIB}, {"pid": 12, "memory": None}]
    machine = linux().set({"gpu.0.memory_free": 14 * GIB, "gpu.0.memory_used": 10 * GIB, "gpu.0.processes": processes})
    target = target_of_facts(matrix, machine.facts)
    held = target.cards[0].used_by_others
    assert held is not None and 9 * GIB <= held <= 10 * GIB
    assert "held by others now (process 4711, process 12)" in target.notes[0]


def two_cards(visible: object = GONE, order: object = GONE) -> Machine:
    machine = linux().gpu("NVIDIA GeForce RTX 3060", "8.6", 12, device_id="2503", index=1)
    return machine.set({"env.CUDA_VISIBLE_DEVICES": visible, "env.CUDA_DEVICE_ORDER": order})


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (two_cards(), ["RTX 4090", "RTX 3060"]),
        (two_cards("1", "PCI_BUS_ID"), ["RTX 3060"]),
        (two_cards("0", "PCI_BUS_ID"), ["RTX 4090"]),
        # CUDA counts the fastest first, NVML by address: which of unlike cards 0 is, a number does not say.
        (two_cards("0"), ["RTX 3060"]),
        (two_cards("-1"), []),
        (two_cards(""), []),
    ],
)
def test_what_is_hidden_is_not_counted(matrix: Matrix, machine: Machine, names: list[str]) -> None:
    target = target_of_facts(matrix, machine.facts)
    assert [card.name.removeprefix("NVIDIA GeForce ") for card in target.cards] == names
    if not names:
        assert target.kind == NONE
        assert any("hides every GPU" in note for note in target.notes)


def test_a_gpu_that_mig_splits_is_not_known(matrix: Matrix) -> None:
    target = target_of_facts(matrix, node(1).set({"gpu.0.mig_mode": True}).facts)
    assert target.cards[0].free is None
    assert available(target, 1) is None
    assert any("split by MIG" in note for note in target.notes)


def test_without_an_answer_of_the_driver_the_card_is_taken_as_its_name_has_it(matrix: Matrix) -> None:
    target = target_of_facts(matrix, linux().no_driver().facts)
    assert gib(target) == [23.5]
    assert any("does not tell what is free" in note for note in target.notes)


def test_without_a_gpu_there_is_nothing_to_compare_with(matrix: Matrix) -> None:
    target = target_of_facts(matrix, linux().no_gpu().no_driver().facts)
    assert target.kind == NONE and target.cards == ()
    assert any("nothing to compare with" in note for note in target.notes)
    assert target.machine.memory_total == 64 * GIB


def test_free_memory_that_nobody_tells_is_none(matrix: Matrix) -> None:
    machine = linux().unknown("gpu.0.memory_free", "gpu.0.memory_used", "smi.gpus", reason="not permitted")
    target = target_of_facts(matrix, machine.facts)
    assert target.cards[0].free is None
    assert any("not permitted" in note for note in target.notes)


def test_a_jetson_has_what_its_system_has(matrix: Matrix) -> None:
    machine = jetson()
    target = target_of_facts(matrix, machine.facts)
    assert target.system == "jetson"
    assert target.cards[0].shared
    assert target.cards[0].free == machine.facts.value("memory.available")


@pytest.mark.parametrize(("machine", "system"), [(windows(), "windows"), (wsl(), "wsl"), (linux(), "linux")])
def test_the_system_is_told(matrix: Matrix, machine: Machine, system: str) -> None:
    target = target_of_facts(matrix, machine.facts)
    assert target.system == system
    assert any("desktop" in note for note in target.notes) == (system != "linux")


def test_a_containers_limit_is_all_its_memory(matrix: Matrix) -> None:
    target = target_of_facts(matrix, linux().set({"memory.cgroup_limit": 16 * GIB}).facts)
    assert target.machine.memory_total == 16 * GIB
    assert target.machine.memory_available == 16 * GIB


# -- what a job gets of it


def test_one_process_gets_the_emptiest_card() -> None:
    target = plain_sums.target(8, 20, 12)
    assert available(target, 1) == 20 * GIB
    assert used_cards(target, 1)[0].name == "card of 20 GiB"


def test_of_several_the_fullest_decides() -> None:
    target = plain_sums.target(8, 20, 12)
    assert available(target, 2) == 12 * GIB
    assert available(target, 3) == 8 * GIB


def test_more_gpus_than_there_are_count_as_more_of_the_same() -> None:
    assert available(plain_sums.target(24), 8) == 24 * GIB


def test_a_card_that_tells_nothing_is_not_full() -> None:
    target = plain_sums.target(8, 20)
    silent = target._replace(cards=(target.cards[0]._replace(free=None), target.cards[1]))
    assert available(silent, 1) == 20 * GIB
    assert available(silent, 2) is None
    assert available(Target(NONE), 1) is None


@pytest.mark.parametrize("name", ["M3 Max", "Apple M1", "RX 7900 XTX", "MI300X", "Arc A770", "Radeon VII", "gfx1100"])
def test_a_gpu_of_another_maker_is_called_one(matrix: Matrix, name: str) -> None:
    with pytest.raises(ParseError, match="no NVIDIA GPU: give the memory that it may use"):
        target_of_name(matrix, name)
