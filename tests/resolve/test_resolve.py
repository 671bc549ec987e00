"""Which torch suits which machine: the resolver on tables of machines. The matrix is the shipped one."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import ARM, MATRIX, NEWEST, NEWEST_ON_WINDOWS, WHEELS, WSL, answer, chosen, gpu, machine, windows

from cudadoctor.matrix import numbers
from cudadoctor.resolve import Gpu, Installed, Need, Pin, fitting_branch, resolve
from cudadoctor.resolve.need import BROKEN, NONE, PRESENT, UNKNOWN, WORKS


class Row(NamedTuple):
    title: str
    need: Need
    torch: str
    opens: str = ""  # what the first blocker would open


# What other installers get wrong. "right" is what runs.
FRESH = [
    Row("a K80 on R418, CUDA 10.1's own driver", machine("K80", driver="418.87"), "1.8.1+cu101", "2.7.1+cu118"),
    Row("GTX 1080 Ti on R470", machine("GTX 1080 Ti", driver="470.223.02", python="3.11"), "2.7.1+cu118"),
    Row("an RTX 4090 on R535: any 12.x build", machine("RTX 4090", driver="535.183.01"), "2.14.1+cu126", NEWEST),
    Row("eight A100 on R550", machine(*["A100"] * 8, driver="550.54.14"), "2.14.1+cu126", NEWEST),
    Row("a GTX 1080 Ti on R580: only cu126 has sm_6x", machine("GTX 1080 Ti", driver="580.95.05"), "2.14.1+cu126"),
    Row("a V100 on R580", machine("V100", driver="580.95.05"), "2.14.1+cu126"),
    Row("a GTX 1080 on R580", machine("GTX 1080", driver="580.95.05"), "2.14.1+cu126"),
    Row("an RTX 4090 on R580", machine("RTX 4090", driver="580.95.05"), NEWEST),
    Row("an RTX 5090 on the first R580", machine("RTX 5090", driver="580.65.06"), NEWEST),
    Row("an RTX 5090 on R570: not cu126", machine("RTX 5090", driver="570.124.06"), "2.13.0+cu129", NEWEST),
    Row("an RTX 5090 on R610", machine("RTX 5090", driver="610.43.02"), NEWEST),
    Row("two unlike cards that one build serves", machine("RTX 5090", "RTX 3090", driver="580.95.05"), NEWEST),
    Row("Windows, R580: only seen wheels", windows("RTX 4090", driver="581.57"), NEWEST_ON_WINDOWS),
    Row("Windows, R570: no new cu129", windows("RTX 5090", driver="572.60"), "2.11.0+cu128", NEWEST_ON_WINDOWS),
    Row("Windows, R565: its own numbers", windows("RTX 4090", driver="566.36"), "2.14.1+cu126", NEWEST_ON_WINDOWS),
    Row("WSL, in Windows' numbers", machine("RTX 4090", driver="566.36", **WSL), "2.14.1+cu126", NEWEST),
    Row("Grace Hopper", machine("GH200", driver="580.95.05", **ARM), NEWEST),
    Row("Thor runs the server wheels", machine("11.0", driver="580.95.05", **ARM), NEWEST),
    Row("no GPU: the CPU index", machine(), "2.15.0+cpu"),
    Row("no GPU on a Mac", machine(platform="macos-arm64"), "2.15.0+cpu"),
    Row("an old Python", machine("RTX 4090", driver="580.95.05", python="3.9"), "2.8.0+cu128", NEWEST),
    Row("free-threaded", machine("RTX 4090", driver="580.95.05", python="3.14", free_threaded=True), NEWEST),
    Row("an old glibc", machine("RTX 4090", driver="580.95.05", glibc="2.17"), "2.6.0+cu124", NEWEST),
    Row("musl", machine("RTX 4090", driver="580.95.05", libc="musl"), "", NEWEST),
    Row("a 32-bit Python", machine("RTX 4090", driver="580.95.05", python="3.12", python_bits=32), "", NEWEST),
    Row("PyPy", machine("RTX 4090", driver="580.95.05", python="3.10", implementation="PyPy"), "", NEWEST),
    Row("Windows on Arm: none", windows("RTX 4090", driver="581.57", platform="windows-aarch64"), ""),
    Row("asked for a 2.7", machine("RTX 4090", driver="580.95.05", torch="2.7.*"), "2.7.1+cu128", NEWEST),
    Row("2.7 means any 2.7", machine("RTX 4090", driver="580.95.05", torch="2.7"), "2.7.1+cu128", NEWEST),
    Row("asked for what it cannot have", machine("GTX 1080", driver="580.95.05", torch="2.15.*"), "", "2.14.1+cu126"),
    Row("asked for a variant", machine("RTX 4090", driver="580.95.05", variant="cu126"), "2.14.1+cu126", NEWEST),
    Row("asked for the CPU build", machine("RTX 4090", driver="580.95.05", variant="cpu"), "2.15.0+cpu"),
]  # fmt: skip

WITH_DRIVER: dict[str, Any] = {"driver": "580.95.05", "python": "3.12"}

REPAIR = [
    Row(
        "a CPU build becomes the CUDA build of its own version",
        machine("RTX 4090", **WITH_DRIVER, installed=Installed("2.6.0", "cpu")),
        "2.6.0+cu126",
    ),
    Row(
        "an older driver decides the variant, not the version",
        machine("RTX 4090", driver="550.54.14", python="3.12", installed=Installed("2.14.1", "cu130")),
        "2.14.1+cu126",
    ),
    Row(
        "what is too new for the card goes back to the last that serves it",
        machine("GTX 1080", **WITH_DRIVER, installed=Installed("2.15.0", "cu132")),
        "2.14.1+cu126",
    ),
    Row(
        "what is too old for the card goes to the nearest minor, its newest patch",
        machine("RTX 5090", **WITH_DRIVER, installed=Installed("2.6.0", "cu118")),
        "2.7.1+cu128",
    ),
    Row(
        "who asks for the newest gets it",
        machine("RTX 5090", **WITH_DRIVER, installed=Installed("2.6.0", "cu118"), keep=False),
        NEWEST,
    ),
    Row(
        "a package that pins torch holds its version",
        machine(
            "RTX 4090",
            **WITH_DRIVER,
            installed=Installed("2.15.0", "cpu"),
            pins=(Pin("vllm", "0.33.0", "==2.14.0"),),
        ),
        "2.14.0+cu132",
    ),
    Row(
        "installed torchaudio decides the variant: none was seen for cu132",
        machine(
            "RTX 4090",
            **WITH_DRIVER,
            installed=Installed("2.14.1", "cpu", (("torchvision", "0.29.1"), ("torchaudio", "2.11.0"))),
        ),
        "2.14.1+cu130",
    ),
]


@pytest.mark.parametrize("row", [*FRESH, *REPAIR], ids=lambda row: row.title)
def test_choice(row: Row) -> None:
    found = answer(row.need)
    assert (found.choice.version if found.choice else "") == row.torch, found.reasons
    if found.choice is None:
        assert found.reasons
    else:
        assert found.choice.reasons
        assert found.choice.index_url == f"{WHEELS}/{found.choice.variant}"
    opened = found.blocked_by[0].opens.version if found.blocked_by else ""
    if row in FRESH and row.torch != "2.7.1+cu118":
        assert opened == row.opens, [blocker.change for blocker in found.blocked_by]


HEALTHY = [
    ("RTX 4090 runs sm_86 code", machine("RTX 4090", **WITH_DRIVER, installed=Installed("2.14.1", "cu130"))),
    ("A100 on R550 runs cu128", machine("A100", driver="550.54.14", installed=Installed("2.9.1", "cu128"))),
    ("R470 with cu118", machine("RTX 3090", driver="470.223.02", installed=Installed("2.1.0", "cu118"))),
    ("no upgrade of what works", machine("RTX 3090", **WITH_DRIVER, installed=Installed("2.4.0", "cu121"))),
    ("a CPU machine with a CUDA build", machine(installed=Installed("2.14.1", "cu130"))),
]


@pytest.mark.parametrize(("title", "need"), HEALTHY, ids=[title for title, _ in HEALTHY])
def test_what_works_is_left_alone(title: str, need: Need) -> None:
    found = answer(need)
    assert found.nothing_to_do
    assert found.blocked_by == ()


def test_a_broken_installation_of_the_right_build_is_something_to_do() -> None:
    found = answer(machine("RTX 4090", **WITH_DRIVER, installed=Installed("2.14.1", "cu130", broken=True)))
    assert found.choice is not None and found.choice.version == "2.14.1+cu130"
    assert not found.nothing_to_do


class TestUnlikeGpus:
    def test_no_single_build_serves_both(self) -> None:
        found = answer(machine("RTX 5090", "GTX 1080 Ti", driver="580.95.05"))
        assert found.choice is None
        assert "no single build" in found.reasons[0]
        assert [([g.label for g in part.gpus], part.choice.version) for part in found.split] == [
            (["RTX 5090"], NEWEST),
            (["GTX 1080 Ti"], "2.14.1+cu126"),
        ]

    def test_old_ptx_is_no_choice_for_a_new_card(self) -> None:
        """Windows' cu118 builds carry PTX for Kepler: it might compile for an RTX 5090, and nobody should want that."""
        found = answer(windows("RTX 5090", "GTX 1080 Ti", driver="581.57"))
        assert found.choice is None
        assert [part.choice.version for part in found.split] == ["2.14.1+cu132", "2.14.1+cu126"]

    def test_like_ones_are_taken_together(self) -> None:
        found = answer(machine("RTX 5090", "GTX 1080 Ti", "RTX 4090", driver="580.95.05"))
        assert [[g.label for g in part.gpus] for part in found.split] == [["RTX 5090", "RTX 4090"], ["GTX 1080 Ti"]]

    def test_an_old_and_a_new_driver_cannot_meet(self) -> None:
        found = answer(machine("RTX 5090", "K80", driver="570.124.06", driver_state=UNKNOWN))
        assert found.choice is None


class TestDriver:
    @pytest.mark.parametrize("state", [BROKEN, NONE])
    def test_comes_first_and_never_means_cpu(self, state: str) -> None:
        found = answer(machine("RTX 4090", driver_state=state))
        assert found.driver_first is not None
        assert found.choice is not None and found.choice.version == NEWEST
        assert found.choice.assumes == ("a driver of 580.65.06 or newer",)

    def test_a_mismatch_is_judged_by_the_driver_that_will_be(self) -> None:
        found = answer(machine("RTX 4090", driver="550.54.14", driver_state=BROKEN))
        assert found.driver_first is not None
        assert found.choice is not None and found.choice.version == "2.14.1+cu126"

    def test_too_new_for_the_card(self) -> None:
        found = answer(machine("GTX 1080", driver="610.43.02", driver_state=UNKNOWN))
        assert found.driver_first is not None and "R580 is the last branch" in found.driver_first
        assert found.choice is not None and found.choice.version == "2.14.1+cu126"

    def test_too_old_for_the_card(self) -> None:
        found = answer(machine("RTX 5090", driver="550.54.14", driver_state=UNKNOWN))
        assert found.driver_first is not None and "R570 or newer" in found.driver_first

    def test_a_card_that_a_working_driver_lists_is_driven_by_it(self) -> None:
        assert answer(machine("RTX 4090", driver="515.65.01")).driver_first is None

    def test_not_known_is_said_beside_the_choice(self) -> None:
        found = answer(machine("RTX 4090", driver_state=UNKNOWN))
        assert found.driver_first is None
        assert found.choice is not None and found.choice.assumes == ("a driver of 580.65.06 or newer",)

    def test_blockers_speak_in_the_numbers_of_the_system(self) -> None:
        on_linux = answer(machine("RTX 5090", driver="570.124.06")).blocked_by[0]
        on_windows = answer(windows("RTX 5090", driver="572.60")).blocked_by[0]
        assert (on_linux.by, on_linux.needed) == ("driver", "580.65.06")
        assert (on_windows.by, on_windows.needed) == ("driver", "580")
        assert "Windows" in on_windows.change

    def test_the_last_branch_of_an_old_card_is_named(self) -> None:
        found = answer(machine("GTX 1080 Ti", driver="470.223.02"))
        assert "R580 being the last branch" in found.blocked_by[0].change

    def test_no_newer_driver_is_promised_to_a_card_that_has_its_last(self) -> None:
        assert answer(machine("V100", driver="580.95.05")).blocked_by == ()

    @pytest.mark.parametrize(
        ("name", "branch"), [("RTX 5090", "R580"), ("GTX 1080", "R580"), ("K80", "R470"), ("10.7", "R620")]
    )
    def test_the_branch_to_install(self, name: str, branch: str) -> None:
        found = fitting_branch((gpu(name),), MATRIX)
        assert found is not None and found.name == branch


class TestUnknown:
    def test_gpu(self) -> None:
        found = answer(Need(gpu_state=UNKNOWN))
        assert found.choice is None and found.undecided is not None

    def test_compute_capability(self) -> None:
        found = answer(Need(gpus=(Gpu("NVIDIA Something", None),), gpu_state=PRESENT, driver="580.95.05"))
        assert found.choice is None and found.undecided is not None and "NVIDIA Something" in found.undecided


def test_jetson_wheels_are_not_on_pytorchs_index() -> None:
    found = answer(machine("8.7", driver="540.4.0", **ARM, jetson=True))
    assert found.choice is None and "Jetson" in found.reasons[0]


def test_two_changes_together_where_no_single_one_helps() -> None:
    found = answer(machine("RTX 5090", driver="550.54.14", python="3.8", driver_state=WORKS))
    assert found.choice is None
    assert found.blocked_by


class TestAlternatives:
    def test_newest_of_each_variant(self) -> None:
        found = answer(machine("RTX 4090", driver="580.95.05"))
        variants = [choice.variant for choice in found.alternatives if choice.seen]
        assert len(variants) == len(set(variants))
        assert variants[:2] == ["cu130", "cu126"]

    def test_a_newer_one_that_nobody_saw_stands_beside_the_newest_seen_of_its_variant(self) -> None:
        found = answer(machine("RTX 4090", driver="580.95.05"))
        of_cu130 = [(choice.version, choice.seen) for choice in found.alternatives if choice.variant == "cu130"]
        assert of_cu130 == [("2.15.0+cu130", False), ("2.14.1+cu130", True)]

    def test_what_nobody_saw_is_an_alternative_and_no_choice(self) -> None:
        found = answer(windows("RTX 4090", driver="581.57"))
        unseen = [choice.version for choice in found.alternatives if not choice.seen]
        assert "2.15.0+cu132" in unseen
        assert found.choice is not None and found.choice.seen

    def test_the_newest_stands_beside_what_is_kept(self) -> None:
        found = answer(machine("RTX 4090", **WITH_DRIVER, installed=Installed("2.6.0", "cpu")))
        assert NEWEST in [choice.version for choice in found.alternatives]


class TestCompanions:
    def test_come_in_the_same_build(self) -> None:
        found = answer(machine("GTX 1080", driver="580.95.05", companions=("torchvision", "torchaudio")))
        assert found.choice is not None
        assert dict(found.choice.companions) == {"torchvision": "0.29.1+cu126", "torchaudio": "2.11.0+cu126"}

    def test_one_whose_tag_nobody_knows_is_pinned_without(self) -> None:
        """torchaudio 2.11.1 is one pure wheel: `==2.11.1` brings it, whatever the index calls it."""
        found = answer(machine("RTX 4090", driver="580.95.05", companions=("torchaudio",)))
        assert found.choice is not None
        assert dict(found.choice.companions) == {"torchaudio": "2.11.1"}
        assert found.choice.replaces_by_name == ("torchaudio",)

    def test_welcome_ones_change_nothing(self) -> None:
        need = machine("RTX 4090", driver="580.95.05")
        assert chosen(need._replace(welcome=("torchvision",))) == chosen(need)

    def test_a_wish_that_cannot_be_had_is_named(self) -> None:
        need = machine("RTX 4090", driver="580.95.05", variant="cu132", torch="2.14.1", companions=("torchaudio",))
        found = answer(need)
        assert found.choice is not None and found.choice.version == "2.14.1+cu132"
        assert any("torchaudio" in text for text in found.choice.breaks)

    def test_packages_that_are_tied_to_a_torch(self) -> None:
        found = answer(machine("H100", driver="580.95.05", partners=("vllm",)))
        assert found.choice is not None and found.choice.partners
        name, version = found.choice.partners[0]
        pin = MATRIX.pin(name, version)
        assert pin is not None and found.choice.torch in pin.torch


def test_a_pin_that_nothing_can_hold_gives_way_and_is_named() -> None:
    need = machine(
        "RTX 5090", **WITH_DRIVER, installed=Installed("2.5.1", "cu124"), pins=(Pin("oldthing", "1.0", "==2.5.1"),)
    )
    found = answer(need)
    assert found.choice is not None and found.choice.version == "2.7.1+cu128"
    assert any("oldthing 1.0" in text for text in found.choice.breaks)


# -- properties ---------------------------------------------------------------------------------------------------

CAPABILITIES = ["3.7", "5.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0", "12.1"]
DRIVERS = {
    "linux": ["418.87", "450.80.02", "470.223.02", "525.60.13", "535.183.01", "570.124.06", "580.65.06", "610.43.02"],
    "windows": ["452.39", "474.14", "528.33", "537.58", "566.36", "572.60", "581.57"],
}

needs = st.sampled_from(["linux", "windows"]).flatmap(
    lambda system: st.builds(
        lambda caps, driver, python, installed, keep: Need(
            gpus=tuple(Gpu(f"card {cap}", cap, 0) for cap in caps),
            gpu_state=PRESENT,
            driver=driver,
            driver_state=WORKS,
            numbering=system,
            platform=f"{system}-x86_64",
            python=python,
            installed=installed,
            keep=keep,
        ),
        st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=2),
        st.sampled_from(DRIVERS[system]),
        st.sampled_from([None, "3.9", "3.11", "3.12", "3.14"]),
        st.sampled_from([None, Installed("2.6.0", "cpu"), Installed("2.15.0", "cu132"), Installed("2.14.1", "cu126")]),
        st.booleans(),
    )
)


@settings(max_examples=25, deadline=None)
@given(needs)
def test_every_build_that_is_named_runs(need: Need) -> None:
    """Whatever is chosen or called an alternative was seen on an index (or says that it was not), has code for every
    GPU, is served by the driver, and has a wheel for the Python."""
    found = resolve(need, MATRIX)
    for choice in [*filter(None, [found.choice]), *found.alternatives]:
        release = MATRIX.torch_release(choice.torch)
        assert release is not None
        build = release.build(choice.variant, need.platform)
        assert build is not None and build.cuda is not None
        assert build.seen == choice.seen
        assert choice is not found.choice or choice.seen
        for card in need.gpus:
            assert card.capability is not None
            verdict = MATRIX.build_runs_on(build, card.capability, need.driver, need.numbering)
            assert verdict.answer in ("yes", "likely")
        assert need.driver is not None
        assert MATRIX.driver_serves(need.driver, need.numbering, build.cuda).answer == "yes"
        assert need.python is None or need.python in build.pythons


@settings(max_examples=15, deadline=None)
@given(needs)
def test_a_blocker_opens_something_newer_than_the_newest_that_runs(need: Need) -> None:
    found = resolve(need, MATRIX)
    newest = resolve(need._replace(keep=False), MATRIX).choice
    for blocker in found.blocked_by:
        assert newest is None or numbers(blocker.opens.torch) >= numbers(newest.torch)  # type: ignore[operator]
        assert blocker.change


@settings(max_examples=15, deadline=None)
@given(needs)
def test_what_was_chosen_is_left_alone_once_it_is_there(need: Need) -> None:
    choice = resolve(need, MATRIX).choice
    if choice is not None:
        again = resolve(need._replace(installed=Installed(choice.torch, choice.variant), keep=True), MATRIX)
        assert again.nothing_to_do
