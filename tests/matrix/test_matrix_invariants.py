"""What must hold of the data, whatever it says: it does hold, and of a broken copy it is said in a sentence."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable

import pytest

from cudadoctor.matrix import MatrixError
from cudadoctor.matrix.compile import SECTIONS, section
from cudadoctor.matrix.invariants import violations

Data = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def sections(compat: str) -> Data:
    return {name: section(compat, name) for name in SECTIONS}


def test_the_data_holds_them_all(sections: Data) -> None:
    assert violations(lambda name: sections[name]) == []


# -- one slip each


def _find(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    return next(row for row in rows if all(row.get(key) == value for key, value in wanted.items()))


def _release(data: Data, version: str) -> dict[str, Any]:
    return _find(data["torch"][version.rpartition(".")[0]]["release"], version=version)


def _build(data: Data, version: str, variant: str, platform: str = "linux-x86_64") -> dict[str, Any]:
    return _find(_release(data, version)["builds"], variant=variant, platform=platform)


class _Gpu:
    """A GPU's row, which is stored as text."""

    def __init__(self, data: Data, name: str) -> None:
        self._rows: list[str] = data["gpus"]["rows"]
        self._number = next(n for n, row in enumerate(self._rows) if json.loads(row)["name"] == name)

    def update(self, **columns: Any) -> None:
        """Sets columns, or takes away those that are None."""
        row = {**json.loads(self._rows[self._number]), **columns}
        self._rows[self._number] = json.dumps({key: value for key, value in row.items() if value is not None})

    @property
    def pci(self) -> list[str]:
        return list(json.loads(self._rows[self._number])["pci"])


def _gpu(data: Data, name: str) -> _Gpu:
    return _Gpu(data, name)


def _branch(data: Data, name: str) -> dict[str, Any]:
    return _find(data["driver_branches"]["branch"], name=name)


def _toolkit(data: Data, release: str) -> dict[str, Any]:
    return _find(data["cuda_toolkits"]["toolkit"], release=release)


def _floor(data: Data, cuda: int) -> dict[str, Any]:
    return _find(data["cuda_toolkits"]["floor"], cuda=cuda)


def _compat(data: Data, cuda: str) -> dict[str, Any]:
    return _find(data["forward_compat"]["compat"], cuda=cuda)


def _architecture(data: Data, capability: str) -> dict[str, Any]:
    return next(row for row in data["architectures"]["architecture"] if capability in row["capability"])


def _framework(data: Data, name: str) -> dict[str, Any]:
    return _find(data["frameworks"]["framework"], name=name)


def _framework_rule(data: Data, package: str) -> dict[str, Any]:
    return _find(data["frameworks"]["rule"], package=package)


def _xid(data: Data, code: int) -> dict[str, Any]:
    return _find(data["xid"]["xid"], code=code)


def _compiler(data: Data, cuda: str) -> dict[str, Any]:
    return _find(data["host_compilers"]["compiler"], cuda=cuda)


Slip = tuple[str, Callable[[Data], Any], str]

SLIPS: list[Slip] = [
    # Columns.
    ("a column nobody knows", lambda d: _gpu(d, "GeForce RTX 4090").update(colour="black"), "unknown column 'colour'"),
    ("a branch with a slip of the pen", lambda d: _branch(d, "R580").update(end_of_live="2028"), "'end_of_live'"),
    ("a build without Pythons", lambda d: _build(d, "2.14.1", "cu126").pop("pythons"), "pythons is missing"),
    ("a target that is none", lambda d: _build(d, "2.14.1", "cu126").update(sass="fast"), "is not targets like"),
    ("a source that is not named", lambda d: _gpu(d, "GeForce RTX 4090").update(source=["hearsay"]), "'hearsay'"),
    # Revision and dates.
    ("a revision that is none", lambda d: d["meta"].update(revision="new"), "'new' is not a year, a month"),
    ("a thirteenth month", lambda d: d["meta"].update(revision="2026.13.0"), "names no month"),
    ("a revision of next year", lambda d: d["meta"].update(revision="2099.1.0"), "newer than the check"),
    ("a row checked tomorrow", lambda d: d["gpus"].update(checked="2999-01-01"), "was checked on 2999-01-01"),
    # Floors and toolkits.
    (
        "a floor that falls",
        lambda d: _floor(d, 13).update(linux="500.10", linux_table="500"),
        "is below that of CUDA 12",
    ),
    ("a Windows floor that falls", lambda d: _floor(d, 13).update(windows="400"), "its windows floor 400 is below"),
    ("a floor of another branch", lambda d: _floor(d, 13).update(linux_table="570"), "is not of the branch 570"),
    ("a floor twice", lambda d: d["cuda_toolkits"]["floor"].append(dict(_floor(d, 13))), "has more than one floor"),
    ("a floor that is gone", lambda d: d["cuda_toolkits"]["floor"].remove(_floor(d, 12)), "CUDA 12: has no floor"),
    ("a toolkit that fell", lambda d: _toolkit(d, "12.6.0").update(linux="545.1"), "its linux driver 545.1 is older"),
    ("a toolkit below its floor", lambda d: _toolkit(d, "12.1.0").update(linux="525.1"), "below the floor 525.60.13"),
    ("a toolkit twice", lambda d: d["cuda_toolkits"]["toolkit"].append(dict(_toolkit(d, "12.6.0"))), "more than once"),
    ("a release of another CUDA", lambda d: _toolkit(d, "12.6.0").update(cuda="12.5"), "12.6.0: is not of CUDA 12.5"),
    (
        "a toolkit without any driver",
        lambda d: _toolkit(d, "13.3.0").pop("linux"),
        "neither a Linux driver nor a branch",
    ),
    # Branches.
    ("a branch with another number", lambda d: _branch(d, "R580").update(linux=581), "its Linux number is 581"),
    ("a Windows number of two branches", lambda d: _branch(d, "R580")["windows"].append(576), "is said to be of"),
    ("a Windows number below its branch", lambda d: _branch(d, "R580")["windows"].append(579), "579 lies below it"),
    ("a driver of another branch", lambda d: _branch(d, "R580").update(latest_linux="570.1"), "570.1 is not of this"),
    (
        "a first driver after the last",
        lambda d: _branch(d, "R580").update(first_linux="580.999"),
        "first driver 580.999 is newer than its latest",
    ),
    (
        "a branch twice",
        lambda d: d["driver_branches"]["branch"].append(
            {key: value for key, value in _branch(d, "R580").items() if key != "windows"}
        ),
        "R580: stands more than once",
    ),
    (
        "a branch that shows too little",
        lambda d: _branch(d, "R580").update(cuda="12.9"),
        "shows CUDA 12.9, but toolkit",
    ),
    (
        "a newer branch that shows less",
        lambda d: _branch(d, "R565").update(cuda="12.1"),
        "R565: shows CUDA 12.1, the older R560 shows 12.6",
    ),
    (
        "a newer branch that serves less",
        lambda d: _branch(d, "R570").update(first_linux="400.10"),
        "is served by 565.57.01 (R565) but not by 400.10 (R570)",
    ),
    (
        "proprietary modules that come back",
        lambda d: _branch(d, "R620").update(modules=["open", "proprietary"]),
        "R620: has proprietary modules again",
    ),
    # What a branch drops is GPUs, and both rows say so.
    (
        "a dropped architecture",
        lambda d: _branch(d, "R470").pop("last_for"),
        "Kepler: ends with R470, whose row does not",
    ),
    (
        "a drop that is not one",
        lambda d: _branch(d, "R595").update(last_for=["Turing"]),
        "R595: is said to be the last",
    ),
    # Forward compatibility.
    ("a package of no toolkit", lambda d: _compat(d, "13.0").update(cuda="13.9"), "there is no toolkit 13.9"),
    (
        "a package of an unknown driver",
        lambda d: _compat(d, "13.0").update(driver="999.1"),
        "driver 999.1 is not known",
    ),
    ("a package of an older driver", lambda d: _compat(d, "13.0").update(driver="570.1"), "whose branch shows only"),
    ("a package for a newer kernel", lambda d: _compat(d, "13.0")["bases"].append("R595"), "no older than R580"),
    ("a package for no branch", lambda d: _compat(d, "13.0")["bases"].append("R531"), "the branch R531 is not known"),
    # Architectures and GPUs.
    ("a capability twice", lambda d: _architecture(d, "8.6")["capability"].append("8.9"), "8.9: stands in"),
    ("an end before the start", lambda d: _architecture(d, "7.0").update(last_cuda="8.0"), "before its first"),
    (
        "a first CUDA that never was",
        lambda d: _architecture(d, "8.9").update(first_cuda="12.7"),
        "no row among the tool",
    ),
    ("a first driver that never was", lambda d: _architecture(d, "8.9").update(min_driver="R521"), "R521 has no row"),
    (
        "a toolkit beyond the last driver",
        lambda d: _architecture(d, "3.5").update(last_cuda="12.0"),
        "than what its last",
    ),
    (
        "a GPU without an architecture",
        lambda d: _gpu(d, "GeForce RTX 4090").update(compute_capability="8.5"),
        "RTX 4090: compute capability 8.5 has no row",
    ),
    (
        "a GPU of another architecture",
        lambda d: _gpu(d, "GeForce RTX 4090").update(architecture="Hopper"),
        "is called Hopper, but 8.9 is Ada",
    ),
    (
        "a GPU without modules",
        lambda d: _gpu(d, "GeForce RTX 4090").update(modules=None),
        "nothing of the Linux kernel modules",
    ),
    (
        "a GPU with the wrong modules",
        lambda d: _gpu(d, "GeForce RTX 5090").update(modules="proprietary"),
        "its architecture takes open",
    ),
    (
        "a GPU that its driver could not know",
        lambda d: _gpu(d, "GeForce RTX 5090").update(min_driver="R470", min_driver_bound="exact", guessed=["tdp_w"]),
        "its architecture starts with R570",
    ),
    (
        "a guessed column that is none",
        lambda d: _gpu(d, "GeForce RTX 4090").update(guessed=["price"]),
        "guessed column 'price'",
    ),
    (
        "a name that leads elsewhere",
        lambda d: _gpu(d, "GeForce RTX 4090").update(smi=["NVIDIA GeForce RTX 3090"]),
        "RTX 4090: is not found by its own name 'NVIDIA GeForce RTX 3090'",
    ),
    (
        "a PCI id of two capabilities",
        lambda d: _gpu(d, "GeForce RTX 4090").update(pci=_gpu(d, "GeForce RTX 5090").pci),
        "stands for GPUs of 12.0 and 8.9",
    ),
    (
        "a PCI id among another chip's",
        lambda d: d["pci_chips"]["chip"][-1].update(capability="8.9"),
        "lies among those of",
    ),
    (
        "ranges that overlap",
        lambda d: d["pci_chips"]["chip"][0].update(last=d["pci_chips"]["chip"][1]["last"]),
        "overlaps or follows",
    ),
    ("a chip without an architecture", lambda d: d["pci_chips"]["chip"][0].update(capability="9.9"), "9.9 has no row"),
    # torch.
    (
        "a release in another minor's file",
        lambda d: d["torch"].update({"2.99": d["torch"].pop("2.14")}),
        "torch/2.99: holds the release 2.14.1",
    ),
    (
        "a release twice",
        lambda d: d["torch"]["2.14"]["release"].append(_release(d, "2.14.1")),
        "torch 2.14.1: stands more than once",
    ),
    (
        "a release without a CPU build",
        lambda d: _release(d, "2.14.1").update(
            builds=[row for row in _release(d, "2.14.1")["builds"] if row["variant"] != "cpu"]
        ),
        "has no CPU build",
    ),
    (
        "a default without a build",
        lambda d: _release(d, "2.14.1")["default"].update({"linux-x86_64": "cu999"}),
        "cu999 is the default on linux-x86_64, but there is no such build",
    ),
    (
        "a default that nobody has seen",
        lambda d: _build(d, "2.14.1", "cu130").update(seen=False),
        "is the default on linux-x86_64, but nobody has seen",
    ),
    (
        "a CUDA default on Windows",
        lambda d: _release(d, "2.14.1")["default"].update({"windows-x86_64": "cu130"}),
        "the default on windows-x86_64 is cu130",
    ),
    (
        "a build twice",
        lambda d: _release(d, "2.14.1")["builds"].append(dict(_build(d, "2.14.1", "cu126"))),
        "the build cu126 for linux-x86_64 stands more than once",
    ),
    (
        "a release without torchvision",
        lambda d: _release(d, "2.14.1")["companions"].pop("torchvision"),
        "no torchvision",
    ),
    (
        "an untagged companion that is none",
        lambda d: _release(d, "2.14.1").update(companions_untagged=["torchtext"]),
        "torchtext is untagged but no companion",
    ),
    (
        "a companion that falls",
        lambda d: _release(d, "2.13.0")["companions"].update(torchvision="0.20.0"),
        "torch 2.13.0: has torchvision 0.20.0, the older torch 2.12.1 has",
    ),
    (
        "a companion of two torches that takes one",
        lambda d: _release(d, "2.9.1")["companions"].update(torchvision="0.24.0"),
        "torchvision 0.24.0: wants exactly one torch, but stands in 2.9.0 and 2.9.1",
    ),
    ("Pythons out of nowhere", lambda d: _build(d, "2.14.1", "cu126").update(pythons_inferred="3.7"), "infers Pythons"),
    (
        "a Windows build with glibc",
        lambda d: _build(d, "2.14.1", "cu126", "windows-x86_64").update(glibc="2.28"),
        "glibc",
    ),
    ("a guess that was seen", lambda d: _build(d, "2.14.1", "cu126").update(guessed=True), "is a guess and yet seen"),
    (
        "a guess that was read",
        lambda d: _build(d, "2.14.1", "cu126").update(verified_in_binary=True, archs_guessed=True),
        "was read from the wheel and yet is a guess",
    ),
    (
        "CUDA on a Mac",
        lambda d: _build(d, "2.14.1", "cu126").update(platform="macos-arm64"),
        "there is no CUDA on macOS",
    ),
    (
        "GPU code in a CPU build",
        lambda d: _build(d, "2.14.1", "cpu").update(sass="80", archs=_build(d, "2.14.1", "cu126")["archs"]),
        "a CPU build has no GPU code",
    ),
    ("a variant without a toolkit", lambda d: _build(d, "2.14.1", "cu126").update(variant="cu127"), "no toolkit 12.7"),
    ("a build without a GPU list", lambda d: _build(d, "2.14.1", "cu126").pop("sass"), "has no GPU list"),
    ("code for a GPU that is not", lambda d: _build(d, "2.14.1", "cu126").update(sass="85"), "target 85 has no row"),
    (
        "code before its compiler",
        lambda d: _build(d, "2.14.1", "cu126").update(sass="80 120"),
        "120 came with CUDA 12.8",
    ),
    ("code after its compiler", lambda d: _build(d, "2.14.1", "cu130").update(sass="61 80"), "61 ended with CUDA 12.9"),
    # What surrounds torch.
    (
        "a release of a package twice",
        lambda d: d["frameworks"]["pin"].append(dict(d["frameworks"]["pin"][0])),
        "stands more than once",
    ),
    (
        "binaries for a CUDA that never was",
        lambda d: d["frameworks"]["pin"][0].update(cuda="12.7"),
        "there is no toolkit 12.7",
    ),
    (
        "releases in the wrong order",
        lambda d: d["frameworks"]["pin"].append(d["frameworks"]["pin"].pop(0)),
        "stands after the older",
    ),
    (
        "a pin of nobody",
        lambda d: d["frameworks"]["pin"][0].update(package="vlm"),
        "pin vlm 0.33.0: the package has no row",
    ),
    (
        "a pin without a rule",
        lambda d: _framework_rule(d, "vllm").update(package="torchaudio"),
        "pin vllm: has no rule",
    ),
    (
        "a torch that never was",
        lambda d: d["frameworks"]["pin"][0].update(torch="==2.14.9"),
        "pin vllm 0.33.0: there is no torch ==2.14.9",
    ),
    (
        "a companion of another torch",
        lambda d: d["frameworks"]["pin"][0].update(torchvision="==0.28.0"),
        "pin vllm 0.33.0: wants torchvision==0.28.0, but torch 2.14.0 has 0.29.0",
    ),
    (
        "a CUDA major without a floor",
        lambda d: d["frameworks"]["pin"][0].update(cuda="14"),
        "CUDA 14 has no driver floor",
    ),
    (
        "a package for such a CUDA",
        lambda d: _framework(d, "jax")["cuda"].update({"14": "jax[cuda14]"}),
        "jax: CUDA 14 has",
    ),
    ("two packages of one name", lambda d: _framework(d, "jax").update(names=["cupy"]), "cupy: is the name of two"),
    (
        "a release for a CUDA that its package is not for",
        lambda d: _find(d["frameworks"]["release"], package="tensorflow").update(
            cuda="13", install={"13": "tensorflow"}
        ),
        "tensorflow 2.21.0: is for CUDA 13, which the package is not",
    ),
    (
        "a package that wants an older driver than CUDA",
        lambda d: _framework(d, "tensorrt").update(driver_linux={"12": "470"}),
        "tensorrt: wants driver 470 for CUDA 12",
    ),
    ("a capability that no GPU has", lambda d: _framework(d, "jax").update(capability={"12": "4.4"}), "4.4 has no row"),
    (
        "releases of both kinds",
        lambda d: d["frameworks"]["release"].append(
            {**d["frameworks"]["release"][0], "package": "sglang", "cuda": "13"}
        ),
        "sglang: has releases that are tied to torch and releases that are not",
    ),
    (
        "a compiler that is taken back",
        lambda d: _compiler(d, "12.8").update(gcc_max=9),
        "host compilers of 12.8: gcc_max 9 is below",
    ),
    ("compilers of no toolkit", lambda d: _compiler(d, "12.8").update(cuda="12.7"), "there is no such toolkit"),
    ("a range upside down", lambda d: _compiler(d, "12.8").update(gcc_min=20), "the oldest is newer than the newest"),
    ("an MSVC range upside down", lambda d: _compiler(d, "12.8").update(msvc_min=2000), "oldest MSVC is newer"),
    # Xids.
    ("an Xid twice", lambda d: d["xid"]["xid"].append(_xid(d, 79)), "Xid 79: comes after"),
    ("an action nobody explains", lambda d: _xid(d, 79).update(action="pray"), "'pray' is not explained"),
    ("an action of no Xid", lambda d: d["xid"]["action"].append({"name": "pray", "advice": "x"}), "pray: no Xid"),
    ("a program's fault that condemns the GPU", lambda d: _xid(d, 31).update(severity="critical"), "yet critical"),
    ("a grave one to which nothing is done", lambda d: _xid(d, 48).update(action="none"), "do not go together"),
    ("a family that is none", lambda d: _xid(d, 48).update(family="ghosts"), "is not a family"),
]


@pytest.mark.parametrize(("change", "says"), [slip[1:] for slip in SLIPS], ids=[slip[0] for slip in SLIPS])
def test_a_slip_is_told_in_a_sentence(sections: Data, change: Callable[[Data], Any], says: str) -> None:
    broken = copy.deepcopy(sections)
    change(broken)
    found = violations(lambda name: broken[name])
    assert any(says in sentence for sentence in found), found
    assert all("\n" not in sentence and sentence.isascii() for sentence in found)


def test_a_section_that_is_missing_is_a_sentence_too(sections: Data) -> None:
    def section_of(name: str) -> dict[str, Any]:
        if name == "gpus":
            raise MatrixError("The compatibility data lacks gpus.json: install cudadoctor again.")
        return sections[name]

    assert violations(section_of) == ["The compatibility data lacks gpus.json: install cudadoctor again."]
