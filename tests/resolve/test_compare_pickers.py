"""scripts/compare_pickers.py: the rules of other pickers as restated, uv's held against the real uv, and the table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Optional

import oracle
import pytest
from bench.index import WheelIndex
from bench.parts import clean_environ
from bench.wheels import Wheel, torch_wheel
from oracle import Build, Machine

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import compare_pickers as compare  # noqa: E402

# What it asks takes minutes, and no Python answers otherwise than another.
pytestmark = pytest.mark.once


def picked(name: str, machine: Machine) -> str:
    """ "2.14.1+cu126", or "nothing"."""
    build = compare.pickers()[name][1](machine)
    return "nothing" if build is None else f"{build.torch}+{build.variant}"


def linux(capability: str, driver: str, python: str = "3.12", glibc: str = "2.35") -> Machine:
    return Machine((capability,), driver, "linux", "linux-x86_64", python, glibc)


def windows(capability: str, driver: str, python: str = "3.12") -> Machine:
    return Machine((capability,), driver, "windows", "windows-x86_64", python)


def wsl(capability: str, driver: str) -> Machine:
    return Machine((capability,), driver, "windows", "linux-x86_64", "3.12", "2.35")


# ------------------------------------------------------------------------------------------ the rules, restated

# A machine, and what each picker takes: uv, light-the-torch, the number in nvidia-smi's corner, plain pip, ours.
PICKS = [
    # uv and light-the-torch go by the driver: R580 serves CUDA 13, and CUDA 13 has no code for Pascal.
    (linux("6.1", "580.95.05"), "2.15.0+cu132", "2.9.1+cu130", "2.14.1+cu130", "2.15.0+cu132", "2.14.1+cu126"),
    # light-the-torch takes the version that is last as text: 2.9.1, not 2.14.1.
    (linux("8.9", "580.95.05"), "2.15.0+cu132", "2.9.1+cu130", "2.14.1+cu130", "2.15.0+cu132", "2.15.0+cu132"),
    # 12.9 is the newest CUDA that R550 serves, and has an older torch than 12.6; nvidia-smi says 12.4 there.
    (linux("8.0", "550.163.01"), "2.13.0+cu129", "2.9.1+cu129", "2.6.0+cu124", "2.15.0+cu132", "2.14.1+cu126"),
    # R570 shows 12.8.
    (linux("12.0", "570.211.01"), "2.13.0+cu129", "2.9.1+cu129", "2.11.0+cu128", "2.15.0+cu132", "2.13.0+cu129"),
    # R470 shows 11.4, which never had a page of its own: the one before is 11.3, whose last torch is for Python 3.10.
    (linux("6.1", "470.256.02"), "2.7.1+cu118", "2.7.1+cu118", "nothing", "2.15.0+cu132", "2.7.1+cu118"),
    (linux("6.1", "470.256.02", "3.10"), "2.7.1+cu118", "2.7.1+cu118", "1.12.1+cu113", "2.14.1+cu130", "2.7.1+cu118"),
    # Nothing of CUDA is for this driver and this Python: they take the CPU build without a word.
    (linux("7.5", "440.33"), "2.15.0+cpu", "2.9.1+cpu", "nothing", "2.15.0+cu132", "nothing"),
    # The default index has no CUDA for Windows.
    (windows("12.0", "581.57"), "2.14.1+cu132", "2.9.1+cu130", "2.14.1+cu130", "2.15.0+cpu", "2.14.1+cu132"),
    # In WSL a Windows number meets the Linux column: 527.41 is too old for CUDA 12, and more than 525.60.13.
    (wsl("8.6", "527.41"), "2.13.0+cu129", "2.9.1+cu129", "2.7.1+cu118", "2.15.0+cu132", "2.7.1+cu118"),
]


@pytest.mark.parametrize("row", PICKS, ids=lambda row: compare.words(row[0]))
def test_what_each_picks(row: tuple[Machine, str, str, str, str, str]) -> None:
    machine, uv, ltt, smi, pip, ours = row
    found = {name: picked(name, machine) for name in compare.pickers()}
    assert found == {"uv": uv, "light-the-torch": ltt, "nvidia-smi": smi, "plain pip": pip, "cudadoctor": ours}


VERDICTS = [
    (linux("6.1", "580.95.05"), "2.14.1", "cu126", "right"),
    (linux("6.1", "580.95.05"), "2.14.1", "cu130", "cannot run"),
    (linux("8.9", "535.309.01"), "2.15.0", "cu132", "cannot run"),
    (linux("8.9", "535.309.01"), "2.13.0", "cu129", "older"),
    (linux("8.9", "535.309.01"), "2.14.1", "cpu", "CPU build"),
    (linux("8.9", "535.309.01"), None, None, "refuses"),
    (linux("7.5", "440.33"), None, None, "right"),
]


@pytest.mark.parametrize(("machine", "torch", "variant", "wanted"), VERDICTS)
def test_how_a_pick_is_judged(machine: Machine, torch: Optional[str], variant: Optional[str], wanted: str) -> None:
    build = next(
        (
            build
            for build in oracle.builds()
            if (build.torch, build.variant, build.platform) == (torch, variant, machine.platform)
        ),
        None,
    )
    assert compare.verdict(build, machine) == wanted


def test_every_rule_names_its_source_and_every_floor_is_a_driver() -> None:
    for row in compare.rules()["picker"]:
        assert len(row["source"]) > 40, row["name"]
        for column in ("linux", "windows"):
            floors = [(oracle.numbers(cuda), oracle.numbers(driver)) for cuda, driver in row.get(column, {}).items()]
            assert [cuda for cuda, _ in floors] == sorted((cuda for cuda, _ in floors), reverse=True)
            assert [driver for _, driver in floors] == sorted((driver for _, driver in floors), reverse=True)


def test_the_machines_are_a_population() -> None:
    machines = list(compare.machines())
    assert len(set(machines)) == len(machines) > 3000
    assert all(oracle.drives(machine) for machine in machines)
    assert {machine.platform for machine in machines} == {"linux-x86_64", "linux-aarch64", "windows-x86_64"}
    assert {machine.gpus[0] for machine in machines} >= {"3.7", "6.1", "7.0", "7.5", "8.9", "9.0", "12.0", "12.1"}


# ----------------------------------------------------------------------------------------------------- the real uv

# Platform as uv names it, platform as the matrix names it, Python, driver.
REAL = [
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.12", "620.70.06"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.12", "580.65.06"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.12", "575.57.08"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.12", "525.60.13"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.12", "520.61.05"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.12", "450.36.06"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.9", "450.80.02"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.9", "450.36.06"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.9", "440.33"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.9", "418.39"),
    ("x86_64-manylinux_2_28", "linux-x86_64", "3.9", "390.46"),
    ("x86_64-manylinux_2_17", "linux-x86_64", "3.12", "580.95.05"),
    ("aarch64-manylinux_2_28", "linux-aarch64", "3.12", "580.95.05"),
    ("aarch64-manylinux_2_28", "linux-aarch64", "3.12", "550.163.01"),
    ("windows", "windows-x86_64", "3.12", "581.57"),
    ("windows", "windows-x86_64", "3.12", "576.57"),
    ("windows", "windows-x86_64", "3.12", "527.41"),
    ("windows", "windows-x86_64", "3.12", "452.38"),
    ("windows", "windows-x86_64", "3.9", "451.22"),
]


@pytest.fixture(scope="module")
def whole_index(tmp_path_factory: pytest.TempPathFactory) -> WheelIndex:
    """PyTorch's index with every build of the matrix that those tests can meet, as tiny wheels."""
    index = WheelIndex(tmp_path_factory.mktemp("index"))
    wanted = {(platform, python) for _, platform, python, _ in REAL}
    for build in oracle.builds():
        for platform, python in wanted:
            if build.platform == platform and python in build.pythons and build.seen:
                index.add(build.variant, _wheel(build, python))
    return index


def _wheel(build: Build, python: str) -> Wheel:
    machine = build.platform.rpartition("-")[2]
    of_linux = f"manylinux_{'_'.join(str(part) for part in build.glibc)}_{machine}"
    tag = "win_amd64" if build.platform.startswith("windows") else of_linux
    return torch_wheel(build.torch, build.variant, python=python, platform=tag, requires=())


@pytest.mark.real_part("openssl")
@pytest.mark.parametrize(("target", "platform", "python", "driver"), REAL)
def test_the_real_uv_takes_what_its_restated_rules_say(
    real_uv: str, whole_index: WheelIndex, tmp_path: Path, target: str, platform: str, python: str, driver: str
) -> None:
    glibc = ".".join(target.rpartition("manylinux_")[2].split("_")) if "manylinux" in target else None
    numbering = "windows" if platform.startswith("windows") else "linux"
    machine = Machine(("8.6",), driver, numbering, platform, python, glibc)
    done = subprocess.run(
        [
            *(real_uv, "pip", "install", "--dry-run", "--torch-backend=auto", "torch"),
            *("--target", str(tmp_path / "there"), "--python", sys.executable),
            *("--python-platform", target, "--python-version", python),
        ],
        env=clean_environ({**whole_index.as_internet(), "UV_CUDA_DRIVER_VERSION": driver}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (took,) = re.findall(r"^ \+ torch==(\S+)", done.stderr, re.MULTILINE)
    assert took == picked("uv", machine)


# ------------------------------------------------------------------------------------------------------ the table


@pytest.fixture(scope="module")
def comparison() -> compare.Comparison:
    return compare.compare()


def test_ours_always_runs_and_is_always_the_newest(comparison: compare.Comparison) -> None:
    assert comparison.verdicts["cudadoctor"] == {"right": comparison.machines}
    for name, counts in comparison.verdicts.items():
        assert sum(counts.values()) == comparison.machines, name
        assert name == "cudadoctor" or counts["cannot run"] > 100


def test_the_readme_shows_what_the_script_prints(comparison: compare.Comparison) -> None:
    """When the matrix has grown: scripts/compare_pickers.py prints it."""
    assert compare.markdown(comparison) in (ROOT / "README.md").read_text("utf-8")


def test_the_script_shows_machines_for_which_a_picker_is_not_right() -> None:
    script = str(ROOT / "scripts" / "compare_pickers.py")
    shown = subprocess.run(
        [sys.executable, script, "--show", "uv", "--limit", "3"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    lines = shown.stdout.splitlines()
    assert len(lines) == 3 and all(line.startswith(tuple(compare.VERDICTS[1:])) for line in lines)
