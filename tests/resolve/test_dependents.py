"""Packages that are bound to torch: those that are asked for decide it, those that are installed hold it or move."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from needs import MATRIX, WINDOWS, answer, machine, planned, whole

from cudadoctor.resolve import Installed, Need, Pin

R580: dict[str, Any] = {"driver": "580.95.05", "python": "3.12"}
R570: dict[str, Any] = {"driver": "570.124.06", "python": "3.12"}
R550: dict[str, Any] = {"driver": "550.54.14", "python": "3.12"}


class Row(NamedTuple):
    title: str
    need: Need
    torch: str
    says: tuple[str, ...]


def row(title: str, need: Need, torch: str, *says: str) -> Row:
    return Row(title, need, torch, says)


ASKED_FOR = [
    row(
        "vllm decides torch, its CUDA, and the companions that it wants",
        planned("H100", **R580, partners=("vllm",)),
        "2.14.0+cu130",
        "with vllm 0.33.0",
        "with torchvision 0.29.0+cu130",
        "with torchaudio 2.11.0+cu130",
        "not torch 2.15.0: no known vllm takes torch 2.15.0; 0.33.0 wants torch==2.14.0",
        "not asking for vllm opens 2.15.0+cu132",
    ),
    row(
        "one release of it",
        planned("H100", **R580, partners=("vllm==0.31.0",)),
        "2.13.0+cu130",
        "with vllm 0.31.0",
    ),
    row("a range of it", planned("H100", **R580, partners=("vllm<0.27",)), "2.11.0+cu130", "with vllm 0.26.0"),
    row(
        "two that agree on an older torch",
        planned("H100", **R580, partners=("vllm", "sglang")),
        "2.13.0+cu130",
        "with vllm 0.32.0",
        "with sglang 0.5.21",
    ),
    row(
        "a driver that its CUDA is too new for",
        planned("RTX 4090", **R550, partners=("vllm>=0.20",)),
        "",
        "vllm 0.33.0 goes with torch 2.14.0+cu130",
        "CUDA 13.x needs driver 580.65.06 or newer on Linux, this is 550.54.14",
        "driver: a driver of 580.65.06 or newer opens 2.14.0+cu130",
        "request: not asking for vllm>=0.20 opens 2.14.1+cu126",
    ),
    row(
        "on that driver its last release for the older CUDA",
        planned("RTX 4090", **R550, partners=("vllm",)),
        "2.10.0+cu129",
        "with vllm 0.19.1",
        "not torch 2.14.1: no known vllm takes torch 2.14.1; 0.33.0 wants torch==2.14.0",
        "driver: a driver of 580.65.06 or newer opens 2.14.0+cu130",
    ),
    row(
        "a card that it does not serve",
        planned("GTX 1080", **R580, partners=("vllm",)),
        "",
        "vllm wants compute capability 7.0 or newer, GTX 1080 has 6.1",
        "not asking for vllm opens 2.14.1+cu126",
    ),
    row(
        "a card that its torch has no code for",
        planned("V100", **R580, partners=("sglang>=0.5.22",)),
        "",
        "sglang 0.5.23 goes with torch 2.14.1+cu130",
        "torch 2.14.1+cu130 has no code for V100 (sm_70)",
    ),
    row(
        "a system that it has no wheels for",
        planned("RTX 4090", driver="581.57", python="3.12", partners=("vllm",), **WINDOWS),
        "",
        "vllm uses the GPU on Windows only inside WSL",
    ),
    row(
        "a Python that only an older release takes",
        planned("RTX 4090", driver="580.95.05", python="3.10", partners=("vllm",)),
        "2.13.0+cu130",
        "with vllm 0.31.0",
    ),
    row(
        "beside a torch that it does not take",
        planned("H100", **R580, partners=("vllm",), torch="2.15"),
        "",
        "no known vllm takes torch 2.15.0; 0.33.0 wants torch==2.14.0",
        "not asking for vllm opens 2.15.0+cu132",
        "not asking for 2.15 opens 2.14.0+cu130",
    ),
    row("a release that nobody knows", planned("H100", **R580, partners=("vllm==9",)), "", "no vllm==9 is known"),
    row(
        "xformers decides the CUDA",
        planned("RTX 4090", **R580, partners=("xformers",)),
        "2.14.1+cu130",
        "not torch 2.15.0: xformers 0.0.35 is built for CUDA 12.6, 12.8, 13.0, not for 13.2",
    ),
    row(
        "an older release of the package goes before an older torch",
        planned("RTX 5090", **R570, partners=("bitsandbytes",)),
        "2.13.0+cu129",
        "with bitsandbytes 0.49.2",
    ),
    row(
        "a companion in a range",
        planned("H100", **R580, companions=("torchvision<0.28",)),
        "2.12.1+cu132",
        "not torch 2.15.0: no torchvision<0.28 for torch 2.15.0+cu132 was seen on the index",
    ),
    row(
        "what works is changed for it",
        machine("H100", **R580, installed=Installed("2.15.0", "cu132"), partners=("vllm",)),
        "2.14.0+cu130",
        "torch 2.14.0 is the nearest release to 2.15.0 that serves this machine",
    ),
]

VLLM = Pin("vllm", "0.33.0", "==2.14.0", ("13",))
SGLANG = Pin("sglang", "0.5.23", "==2.14.1")
FLASH_ATTN = Pin("flash-attn", "2.7.4", "==2.6.*", ("12",), built=True)
XFORMERS = Pin("xformers", "0.0.34", "==2.10.0", ("13",))
OLD_XFORMERS = Pin("xformers", "0.0.29.post3", "==2.6.0")
TORCHTEXT = Pin("torchtext", "0.18.0", "==2.3.0")

INSTALLED = [
    row(
        "vllm holds its torch",
        machine("H100", **R580, installed=Installed("2.15.0", "cpu"), pins=(VLLM,)),
        "2.14.0+cu132",
        "pin: doing without vllm, or with a release of it that takes torch 2.15.0 opens 2.15.0+cu132",
    ),
    row(
        "vllm's CUDA is newer than the driver: the torch stays, vllm cannot",
        machine("RTX 4090", **R550, installed=Installed("2.14.0", "cu130"), pins=(VLLM,)),
        "2.14.0+cu126",
        "keeps torch 2.14.0",
        "breaks: vllm 0.33.0 is built for CUDA 13, torch 2.14.0+cu126 is not",
        "away vllm 0.33.0 to None",
        "a driver of 580.65.06 or newer opens 2.14.0+cu132",
    ),
    row(
        "flash-attn was built for a torch without code for the card",
        machine("RTX 5090", **R580, installed=Installed("2.6.0", "cu124"), pins=(FLASH_ATTN,)),
        "2.7.1+cu128",
        "rebuild flash-attn 2.7.4 to None: flash-attn 2.7.4 was built for torch 2.6, this is 2.7.1",
    ),
    row(
        "flash-attn holds minor and CUDA major, the build is free within them",
        machine("RTX 4090", **R550, installed=Installed("2.6.0", "cpu"), pins=(FLASH_ATTN,)),
        "2.6.0+cu126",
    ),
    row(
        "xformers goes up with torch",
        machine(
            "RTX 5090",
            **R580,
            installed=Installed("2.6.0", "cu124"),
            pins=(Pin("xformers", "0.0.29.post3", "==2.6.0"),),
        ),
        "2.7.1+cu128",
        "up xformers 0.0.29.post3 to 0.0.31.post1: xformers 0.0.29.post3 requires torch==2.6.0, this is 2.7.1",
    ),
    row(
        "sglang goes down with a torch that was asked for",
        machine("H100", **R580, installed=Installed("2.14.1", "cu130"), pins=(SGLANG,), torch="2.13"),
        "2.13.0+cu132",
        "down sglang 0.5.23 to 0.5.21: sglang 0.5.23 requires torch==2.14.1, this is 2.13.0",
    ),
    row(
        "xformers is laid down anew for another CUDA",
        machine("GTX 1080", **R580, installed=Installed("2.10.0", "cu130"), pins=(XFORMERS,)),
        "2.10.0+cu126",
        "rebuild xformers 0.0.34 to 0.0.34: xformers 0.0.34 is built for CUDA 13, torch 2.10.0+cu126 is not",
    ),
    row(
        "of packages that contradict each other as few as can be move",
        machine(
            "RTX 4090",
            **R550,
            installed=Installed("2.14.0", "cu130"),
            pins=(Pin("vllm", "0.33.0", "==2.14.0"), Pin("one", "1.0", "==2.9.0"), Pin("two", "2.0", "==2.9.*")),
        ),
        "2.9.0+cu129",
        "down vllm 0.33.0 to 0.13.0",
    ),
    row(
        "bitsandbytes has no library for CUDA 12.9",
        machine(
            "RTX 5090",
            **R570,
            installed=Installed("2.13.0", "cu130"),
            pins=(Pin("bitsandbytes", "0.50.2", "<3,>=2.4", ("12.6", "12.8", "13.0")),),
        ),
        "2.11.0+cu128",
        "a release of it that takes torch 2.13.0 opens 2.13.0+cu129",
    ),
    row(
        "a package that the data does not know",
        machine(
            "RTX 5090", **R580, installed=Installed("2.3.0", "cu121"), pins=(Pin("torchtext", "0.18.0", "==2.3.0"),)
        ),
        "2.7.1+cu128",
        "up torchtext 0.18.0 to None: torchtext 0.18.0 requires torch==2.3.0, this is 2.7.1",
    ),
    row(
        "a requirement that nobody can read holds nothing up",
        machine("RTX 4090", **R580, installed=Installed("2.6.0", "cpu"), pins=(Pin("odd", "1.0", "=~what"),)),
        "2.6.0+cu126",
    ),
]


@pytest.mark.parametrize("row", [*ASKED_FOR, *INSTALLED], ids=lambda row: row.title)
def test_dependents(row: Row) -> None:
    found = answer(row.need)
    text = whole(found)
    assert (found.choice.version if found.choice else "") == row.torch, text
    for phrase in row.says:
        assert phrase in text


@pytest.mark.parametrize("row", ASKED_FOR, ids=lambda row: row.title)
def test_what_was_asked_for_is_among_what_is_installed_or_nothing_is(row: Row) -> None:
    choice = answer(row.need).choice
    wanted = {text.partition("=")[0].partition("<")[0] for text in (*row.need.partners, *row.need.companions)}
    assert choice is None or wanted <= {name for name, _ in (*choice.partners, *choice.companions)}


def test_pins_of_the_partner_hold() -> None:
    """Each release that is named takes the torch, in its CUDA, and the companions that come with it."""
    from cudadoctor.parse.versions import satisfies

    for name in ("vllm", "sglang", "xformers", "bitsandbytes"):
        for release in MATRIX.pins(name):
            choice = answer(planned("RTX 4090", **R580, partners=(f"{name}=={release.version}",))).choice
            if choice is None:
                continue
            assert (name, release.version) in (*choice.partners, *choice.companions)
            assert satisfies(choice.torch, release.torch)
            for companion, version in choice.companions:
                wants = getattr(release, companion, None)
                assert wants is None or satisfies(version.partition("+")[0], wants)


def test_what_lies_beside_torch_on_its_index_is_installed_with_it() -> None:
    """PyPI's xformers is built for one CUDA; PyTorch's index has it for each."""
    choice = answer(planned("RTX 4090", **R550, partners=("xformers",))).choice
    assert choice is not None and choice.partners == ()
    assert choice.requirements == ("torch==2.14.1+cu126", "xformers==0.0.35")
    assert choice.replaces_by_name == ("xformers",)


def test_a_python_is_taken_for_granted_where_it_decides() -> None:
    def assumed(package: str) -> tuple[str, ...]:
        choice = answer(planned("RTX 4090", driver="580.95.05", partners=(package,))).choice
        return choice.assumes if choice is not None else ()

    assert assumed("vllm") == ("Python >=3.11,<3.15, which vllm 0.33.0 wants",)
    assert assumed("xformers") == ()


def test_packages_to_add_are_something_to_do() -> None:
    there = machine("H100", **R580, installed=Installed("2.14.0", "cu130"))
    assert answer(there).nothing_to_do
    assert not answer(there._replace(partners=("vllm",))).nothing_to_do
    assert not answer(there._replace(companions=("torchvision",))).nothing_to_do


def test_moves_only_what_has_to() -> None:
    there = machine("H100", **R580, installed=Installed("2.14.0", "cu130"), pins=(VLLM, FLASH_ATTN))
    assert [move.package for move in answer(there).moves] == ["flash-attn"]
