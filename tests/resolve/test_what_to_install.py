"""What should I install? Each situation in a line: the machine, the torch that runs there, and what has to be said.

The first table is what other tools get wrong, the rest are the corners of each rule. A row's phrases must all stand in
the answer, whoever prints it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from needs import ARM, NEWEST, NEWEST_ON_WINDOWS, WINDOWS, WSL, answer, chosen, machine, planned, whole, windows

from cudadoctor.resolve import Need
from cudadoctor.resolve.need import NONE, UNKNOWN, WORKS


class Row(NamedTuple):
    title: str
    need: Need
    torch: str  # the choice; empty: there is none
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def row(title: str, need: Need, torch: str, *says: str, never: tuple[str, ...] = ()) -> Row:
    return Row(title, need, torch, says, never)


R580: dict[str, Any] = {"driver": "580.95.05"}
R580_312: dict[str, Any] = {"driver": "580.95.05", "python": "3.12"}

# The table of what other tools answered wrongly, as asked with --gpu and --driver.
QUESTIONS = [
    row(
        "a K80 on R418, with the Python of today",
        planned("K80", driver="418.87", python="3.12"),
        "",
        "driver: a driver of 450.80.02 or newer, R470 being the last branch for this card opens 2.7.1+cu118",
        "python: Python 3.9 opens 1.8.1+cu101",
        never=("525", "580"),
    ),
    row("a K80 on R418, with the Python of its time", planned("K80", driver="418.87", python="3.8"), "1.8.1+cu101"),
    row(
        "a GTX 1080 Ti on R470",
        planned("GTX 1080 Ti", driver="470.223.02", python="3.11"),
        "2.7.1+cu118",
        "driver: 470.223.02 serves every CUDA 11.x (450.80.02 or newer does)",
        "a driver of 525.60.13 or newer, R580 being the last branch for this card opens 2.14.1+cu126",
    ),
    row(
        "an RTX 4090 on R535: the minor numbers are not compared",
        planned("RTX 4090", driver="535.183.01", python="3.12"),
        "2.14.1+cu126",
        "GPU: sm_86 code runs on RTX 4090 (compute capability 8.9)",
        "not torch 2.15.0: CUDA 13.x needs driver 580.65.06 or newer on Linux, this is 535.183.01",
        f"a driver of 580.65.06 or newer opens {NEWEST}",
    ),
    row(
        "eight A100 on R550",
        planned(*["A100"] * 8, driver="550.54.14"),
        "2.14.1+cu126",
        "sm_80 code runs on A100",
        never=("sm_86 code",),
    ),
    row(
        "a GTX 1080 Ti on R580: a newer driver is no help",
        planned("GTX 1080 Ti", **R580),
        "2.14.1+cu126",
        "not torch 2.15.0: its cu132 build has no code for GTX 1080 Ti (sm_61), only for sm_75 80 86 90 100 120",
        "not a newer driver: R580 is the last branch for GTX 1080 Ti, and no build newer than 2.14.1 has code for",
        never=("opens",),
    ),
    row("a V100 on R580", planned("V100", **R580), "2.14.1+cu126", "drivers R384 R580 R580 proprietary"),
    row("an RTX 4090 on R580", planned("RTX 4090", **R580), NEWEST, never=("opens",)),
    row("an RTX 5090 on the first R580", planned("RTX 5090", driver="580.65.06"), NEWEST, "drivers R570 - R580 open"),
    row(
        "an RTX 5090 on R570",
        planned("RTX 5090", driver="570.124.06"),
        "2.13.0+cu129",
        f"a driver of 580.65.06 or newer opens {NEWEST}",
    ),
    row(
        "an RTX 5090 on R570 in Windows, where the cu129 builds end early",
        planned("RTX 5090", driver="572.60", **WINDOWS),
        "2.11.0+cu128",
        f"a driver of 580 or newer (Windows' numbers) opens {NEWEST_ON_WINDOWS}",
    ),
    row("an RTX 5090 on R610", planned("RTX 5090", driver="610.43.02"), NEWEST),
    row(
        "a driver that is not at work is mended first, and the choice is no CPU build",
        machine("RTX 4090", driver_state=NONE),
        NEWEST,
        "no NVIDIA driver is at work",
        "taken for granted: a driver of 580.65.06 or newer",
        never=("cpu",),
    ),
    row("a mismatch likewise", machine("RTX 4090", driver=None), NEWEST, "the driver does not work"),
    row(
        "no NVIDIA GPU: the CPU build by its own index",
        machine(python="3.12"),
        "2.15.0+cpu",
        "no NVIDIA GPU: the CPU build, which a plain `pip install torch` is not on this platform",
    ),
]

PLANNED = [
    row(
        "only the GPU: the driver that it will have is taken for granted",
        planned("RTX 5090"),
        NEWEST,
        "taken for granted: a driver of 580.65.06 or newer",
        "drivers R570 - R580 open",
    ),
    row(
        "only an old GPU: up to which branch",
        planned("GTX 1080"),
        "2.14.1+cu126",
        "taken for granted: a driver of 525.60.13 or newer, R580 being the last branch for this card",
        "drivers R367 R580 R580 proprietary",
    ),
    row(
        "a GPU that is newer than the driver",
        planned("RTX 5090", driver="550.54.14"),
        NEWEST,
        "driver 550.54.14 is R550, and RTX 5090 needs R570 or newer",
    ),
    row(
        "a GPU that came later than its architecture, and a driver from between",
        planned("Tesla T4G", driver="450.248", **ARM),
        "",
        "driver 450.248 is R450, and Tesla T4G needs R470 or newer",
    ),
    row(
        "another one",
        planned("GTX 1660 SUPER", driver="418.226"),
        NEWEST,
        "driver 418.226 is R418, and GTX 1660 SUPER needs R440 or newer",
    ),
    row(
        "a driver that has dropped the GPU",
        planned("GTX 1080", driver="610.43.02"),
        "2.14.1+cu126",
        "driver 610.43.02 is R610, and R580 is the last branch that drives GTX 1080",
        never=("not a newer driver",),
    ),
    row(
        "a driver from after the data, and a GPU that was dropped long before",
        planned("GTX 1080", driver="640.12"),
        "2.14.1+cu126",
        "R580 is the last branch that drives GTX 1080",
    ),
    row("a driver from after the data", planned("RTX 5090", driver="640.12"), NEWEST),
    row(
        "only the driver: what serves every GPU that it drives",
        planned(driver="535.183.01", python="3.12"),
        "2.14.1+cu126",
        "GPU: not named; there is code for what R535 drives: Maxwell, Pascal, Volta, Turing, Ampere, Ada Lovelace",
        "taken for granted: the GPU is one that R535 drives",
    ),
    row(
        "only the driver, and the GPU decides",
        planned(driver="580.95.05"),
        "",
        "which GPU the machine has is not known, and it decides",
        "Maxwell Pascal Volta: 2.14.1+cu126",
        f"Turing Ampere Ada Lovelace Hopper Blackwell Blackwell Ultra: {NEWEST}",
    ),
    row(
        "only an old driver: the Kepler cards that no build has code for are named",
        planned(driver="470.223.02"),
        "2.7.1+cu118",
        "not compute capability 3.0, 3.5",
    ),
    row("neither GPU nor driver", planned(), "", "which GPU the machine has is not known"),
]

SYSTEMS = [
    row(
        "WSL counts in the Windows driver's numbers",
        planned("RTX 4090", driver="566.36", **WSL),
        "2.14.1+cu126",
        "driver: 566.36 serves every CUDA 12.x (528.33 or newer does)",
        f"a Windows driver of 580 or newer opens {NEWEST}",
    ),
    row(
        "Windows: 2.15's wheels were never seen there",
        windows("RTX 4090", driver="581.57"),
        NEWEST_ON_WINDOWS,
        "not torch 2.15.0: its cu132 build was announced, but not seen on an index",
    ),
    row(
        "Windows on Arm",
        windows("RTX 4090", driver="581.57", platform="windows-aarch64"),
        "",
        "PyTorch has no CUDA wheels for windows-aarch64; NVIDIA has some on an index of its own",
    ),
    row(
        "Jetson Orin: JetPack's own wheels",
        planned("Jetson AGX Orin", **ARM),
        "",
        "torch for it comes from NVIDIA's index for that JetPack",
        never=("drivers",),
    ),
    row("Jetson Thor takes the server builds", planned("Jetson T5000", **ARM), NEWEST, "sm_110 code runs on"),
    row(
        "Jetson Thor, planned on a PC",
        planned("Jetson T5000"),
        "",
        "Jetson T5000 has an ARM processor beside it: its wheels are for aarch64, not linux-x86_64",
    ),
    row("GB10: sm_120 code runs on 12.1", planned("GB10", **R580, **ARM), NEWEST, "sm_120 code runs on GB10"),
    row("GH200", planned("GH200 480GB", **R580, **ARM), NEWEST, "sm_90 code"),
    row("GB200", planned("GB200", **R580, **ARM), NEWEST, "sm_100 code", "drivers R570 - R580 open"),
    row(
        "GH200 on R550",
        planned("GH200 480GB", driver="550.54.14", **ARM),
        "2.14.1+cu126",
        f"a driver of 580.65.06 or newer opens {NEWEST}",
    ),
    row(
        "an ARM server with a T4: its builds start at sm_80",
        planned("T4", **R580, **ARM),
        "",
        "torch 2.15.0+cu132 has no code for T4 (sm_75), only for sm_80 90 100 110 120",
        "not a newer driver: no torch build for linux-aarch64 has code for T4",
    ),
    row(
        "an ARM build whose GPU list nobody has read is no choice",
        planned("GH200 480GB", **R580, **ARM, torch="2.8"),
        "",
        "which GPUs torch 2.8.0+cu129 on linux-aarch64 has code for is not known",
        f"not asking for 2.8 opens {NEWEST}",
    ),
    row(
        "a vGPU guest: host and guest are updated together",
        planned("GRID A100-10C", driver="535.129.03"),
        "2.14.1+cu126",
        "vGPU: guest and host drivers must match, so the host's administrator updates both",
        never=("forward-compat",),
    ),
]

FORWARD_COMPAT = [
    row(
        "a data-center GPU on R535: a package of user libraries instead of a driver update",
        planned("H100", driver="535.129.03"),
        "2.14.1+cu126",
        f"forward-compat: cuda-compat-13-2 beside the R535 driver opens {NEWEST}",
        "its folder has to be the first in LD_LIBRARY_PATH",
    ),
    row(
        "V100: its last CUDA by such a package too",
        planned("V100", driver="470.223.02"),
        "2.7.1+cu118",
        "forward-compat: cuda-compat-12-6 beside the R470 driver opens 2.14.1+cu126",
    ),
    row(
        "a GeForce cannot use one", planned("RTX 4090", driver="535.183.01"), "2.14.1+cu126", never=("forward-compat",)
    ),
    row(
        "where one of the cards is a GeForce",
        planned("A100", "RTX 4090", driver="535.183.01"),
        "2.14.1+cu126",
        never=("forward-compat",),
    ),
    row("Windows has none", windows("H100", driver="537.58"), "2.14.1+cu126", never=("forward-compat",)),
    row("nor where nothing is to be had by it", planned("H100", **R580), NEWEST, never=("forward-compat",)),
    row("a branch that NVIDIA does not name", planned("H100", driver="555.42"), "2.14.1+cu126", never=("forward",)),
]

PYTHONS = [
    row("3.6", planned("RTX 3090", **R580, python="3.6"), "1.10.2+cu113", f"Python 3.11 opens {NEWEST}"),
    row("3.8", planned("RTX 4090", **R580, python="3.8"), "2.4.1+cu121", f"Python 3.11 opens {NEWEST}"),
    row("3.9", planned("RTX 4090", **R580, python="3.9"), "2.8.0+cu128", never=("driver of",)),
    row("3.10", planned("RTX 4090", **R580, python="3.10"), "2.14.1+cu132", f"Python 3.11 opens {NEWEST}"),
    row("3.15", planned("RTX 4090", **R580, python="3.15"), NEWEST),
    row(
        "one that torch has no wheel for yet",
        planned("RTX 4090", **R580, python="3.16"),
        "",
        "torch 2.15.0+cu132 has no wheel for Python 3.16: it has 3.11, 3.12, 3.13, 3.14, 3.14t, 3.15, 3.15t",
        f"Python 3.15 opens {NEWEST}",
    ),
    row("one that it never had a wheel for", planned("RTX 4090", **R580, python="3.5"), "", f"opens {NEWEST}"),
    row(
        "free-threaded 3.13 ends with 2.12",
        planned("RTX 4090", **R580, python="3.13", free_threaded=True),
        "2.12.0+cu130",
        f"Python 3.13 with the GIL (not 3.13t) opens {NEWEST}",
    ),
    row("free-threaded 3.14", planned("RTX 4090", **R580, python="3.14", free_threaded=True), NEWEST),
    row(
        "32 bits",
        planned("RTX 4090", **R580_312, python_bits=32),
        "",
        "this Python is a 32-bit one, torch has 64-bit wheels only",
        f"a 64-bit Python 3.12 opens {NEWEST}",
    ),
    row("32 bits of a Python that is not known", planned("RTX 4090", **R580, python_bits=32), "", "a 64-bit Python"),
    row(
        "PyPy",
        planned("RTX 4090", **R580, python="3.10", implementation="PyPy"),
        "",
        "torch has wheels for CPython only, this is PyPy",
        f"CPython 3.11 opens {NEWEST}",
    ),
    row(
        "musl",
        planned("RTX 4090", **R580_312, libc="musl"),
        "",
        f"a system with glibc 2.28 or newer in place of musl opens {NEWEST}",
    ),
    row(
        "CentOS 7",
        planned("RTX 4090", **R580, python="3.11", glibc="2.17"),
        "2.6.0+cu124",
        "glibc: 2.17 is 2.17 or newer",
        "not torch 2.15.0: its cu132 build needs glibc 2.28 or newer, this is 2.17",
    ),
    row(
        "a glibc that refuses the executable stack which old builds ask for",
        planned("K80", driver="418.87", python="3.9", glibc="2.42", torch="1.12.1"),
        "",
        "glibc from 2.41 on does not load torch 1.12.1+",
        "this is 2.42: one of its libraries asks for an executable stack",
    ),
    row(
        "CentOS 7 and a card that came later",
        planned("RTX 5090", **R580, python="3.11", glibc="2.17"),
        "",
        f"glibc: a system with glibc 2.28 or newer opens {NEWEST}",
    ),
    row(
        "two changes where no single one is enough",
        planned("RTX 5090", **R580, python="3.8", glibc="2.17"),
        "",
        f"python and glibc: Python 3.11, and a system with glibc 2.28 or newer opens {NEWEST}",
    ),
    row(
        "three",
        machine("RTX 5090", driver="470.223.02", python="3.8", glibc="2.17"),
        "",
        "driver and python and glibc: a driver of 580.65.06 or newer, and Python 3.11, and a system with glibc 2.28",
    ),
]

OLD_CARDS = [
    row("K80 on R470", planned("K80", driver="470.223.02", python="3.10"), "2.7.1+cu118", "drivers - R470 R470"),
    row(
        "K40: sm_35 ended before the first wheel that is known",
        planned("Tesla K40m", driver="470.223.02"),
        "",
        "has no code for Tesla K40m (sm_35)",
        "not a newer driver: R470 is the last branch for Tesla K40m",
    ),
    row("GTX 750 Ti on R470", planned("GTX 750 Ti", driver="470.223.02", python="3.8"), "2.4.1+cu118"),
    row("GTX 1080 on R418 in Windows", planned("GTX 1080", driver="426.78", python="3.8", **WINDOWS), "1.8.1+cu101"),
    row("GTX 750 Ti on R390 in Windows", planned("GTX 750 Ti", driver="391.35", **WINDOWS), "", "528.33 or newer"),
    row("Fermi", planned("2.1", driver="390.48"), "", "R390 is the last branch"),
    row(
        "Rubin needs a newer branch than its CUDA", planned("10.7"), NEWEST, "taken for granted: a driver of 615.71.09"
    ),
]

REQUESTS = [
    row(
        "a release that has no code for the card",
        planned("GTX 1080", **R580, torch="2.15"),
        "",
        "torch 2.15.0+cu132 has no code for GTX 1080 (sm_61)",
        "not asking for 2.15 opens 2.14.1+cu126",
    ),
    row(
        "a release that nobody knows",
        planned("RTX 4090", **R580, torch="2.99"),
        "",
        f"no torch 2.99 is known for linux-x86_64; the newest is {NEWEST}",
    ),
    row(
        "a build that the driver does not serve",
        planned("RTX 3090", driver="470.223.02", torch="2.7.1", variant="cu128"),
        "",
        "CUDA 12.x needs driver 525.60.13 or newer on Linux, this is 470.223.02",
        "driver: a driver of 525.60.13 or newer opens 2.7.1+cu128",
        "not asking for 2.7.1 cu128 opens 2.7.1+cu118",
    ),
    row(
        "a build that is too old for the card",
        planned("RTX 5090", **R580, variant="cu118"),
        "",
        "torch 2.7.1+cu118 has no code for RTX 5090 (sm_120)",
        f"not asking for cu118 opens {NEWEST}",
        never=("driver of",),
    ),
]

CPU = [
    row("a Mac", planned(gpu_state=NONE, platform="macos-arm64"), "2.15.0+cpu", never=("plain",)),
    row("an Intel Mac", planned(gpu_state=NONE, platform="macos-x86_64"), "2.2.2+cpu"),
    row("musl", planned(gpu_state=NONE, libc="musl"), "", "in place of musl opens 2.15.0+cpu"),
    row("an old glibc", planned(gpu_state=NONE, glibc="2.12"), "", "a system with glibc 2.28 or newer opens"),
    row("no wheel for the Python", planned(gpu_state=NONE, python="3.16"), "", "Python 3.15 opens 2.15.0+cpu"),
    row("asked for, beside a GPU", planned("RTX 4090", **R580, variant="cpu"), "2.15.0+cpu", "was asked for"),
]

TABLES = {
    "question": QUESTIONS,
    "planned": PLANNED,
    "system": SYSTEMS,
    "forward-compat": FORWARD_COMPAT,
    "python": PYTHONS,
    "old-cards": OLD_CARDS,
    "request": REQUESTS,
    "cpu": CPU,
}


@pytest.mark.parametrize(
    "situation", [pytest.param(one, id=f"{name}: {one.title}") for name, table in TABLES.items() for one in table]
)
def test_what_to_install(situation: Row) -> None:
    found = answer(situation.need)
    text = whole(found)
    assert (found.choice.version if found.choice else "") == situation.torch, text
    for phrase in situation.says:
        assert phrase in text
    for phrase in situation.never:
        assert phrase not in text


@pytest.mark.parametrize("situation", [one for table in TABLES.values() for one in table], ids=lambda one: one.title)
def test_what_is_not_chosen_is_explained(situation: Row) -> None:
    """Without a choice there is a reason, and with one nothing is said twice."""
    found = answer(situation.need)
    if found.choice is None:
        assert found.reasons or found.undecided
    else:
        assert len(set(found.choice.reasons)) == len(found.choice.reasons)
        assert found.choice.sources


def test_a_card_that_a_working_driver_lists_is_driven_by_it() -> None:
    """Whatever the tables say of first branches: they are upper bounds for many products."""
    need = machine("RTX 5090", driver="565.57.01", driver_state=WORKS)
    assert answer(need).driver_first is None
    assert answer(need._replace(driver_state=UNKNOWN)).driver_first is not None


def test_the_glibc_of_no_linux_is_nobodys_business() -> None:
    need = windows("RTX 4090", driver="581.57", python="3.12")
    assert chosen(need._replace(glibc="2.17")) == chosen(need)
