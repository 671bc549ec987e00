"""What should I install? Machines for which other tools name the wrong build, asked as people ask:
`cudadoctor fix --print --format json --gpu ... --driver ...`.

Each row gives the whole answer: the build, which better one a change would open, and what no tool may say there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Optional

import oracle
import pytest

from cudadoctor.cli import main
from cudadoctor.testing import Machine, linux

Ask = Callable[..., "dict[str, Any]"]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """`ask("--gpu", "RTX 4090")`: the plan as a document."""

    def asking(*options: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["cudadoctor", "fix", "--print", "--format", "json", *options])
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main()
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return asking


class Row(NamedTuple):
    """A machine (`gpus`, `driver`, `system`, `python`) and the right answer: the build, and what a newer driver opens.
    `never`: variants that other tools give there, and that do not run or are no answer."""

    gpus: tuple[str, ...]
    driver: str
    right: str
    opens: Optional[str] = None
    system: str = "linux"
    python: Optional[str] = None
    never: tuple[str, ...] = ()


CU13 = ("cu130", "cu132", "cu134")

ROWS = [
    # No CUDA 11 or newer runs on R418. 1.8.1 was the last torch for CUDA 10.1; R470, its last driver, opens cu118.
    Row(("K80",), "418.87", "1.8.1+cu101", opens="2.7.1+cu118", never=("cu117", "cu121", *CU13)),
    Row(("GTX 1080 Ti",), "470.223.02", "2.7.1+cu118", opens="2.14.1+cu126", python="3.11", never=("cu113", *CU13)),
    Row(("RTX 4090",), "535.183.01", "2.14.1+cu126", opens="2.15.0+cu132", never=CU13),
    Row(("A100",) * 8, "550.54.15", "2.14.1+cu126", opens="2.15.0+cu132", never=CU13),
    Row(("GTX 1080 Ti",), "580.95.05", "2.14.1+cu126", never=("cu128", "cu129", *CU13)),
    Row(("V100",), "580.95.05", "2.14.1+cu126", never=CU13),
    Row(("RTX 4090",), "580.95.05", "2.15.0+cu132"),
    Row(("RTX 4090",), "581.57", "2.14.1+cu132", system="windows"),
    Row(("RTX 4090",), "581.57", "2.15.0+cu132", system="wsl"),
    Row(("RTX 5090",), "580.65.06", "2.15.0+cu132", never=("cu118", "cu121", "cu126")),
    Row(("RTX 5090",), "580.65", "2.15.0+cu132"),
    Row(("RTX 5090",), "570.124.06", "2.13.0+cu129", opens="2.15.0+cu132", never=("cu126", *CU13)),
    Row(("RTX 5090",), "572.83", "2.11.0+cu128", opens="2.14.1+cu132", system="windows", never=("cu126", *CU13)),
    Row(("RTX 5090",), "610.43.02", "2.15.0+cu132", never=("cpu", "cu126")),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.driver}, {len(row.gpus)}x {row.gpus[0]}, {row.system}")
def test_what_should_i_install(ask: Ask, row: Row) -> None:
    document = ask(*_options(row))
    choice = document["choice"]
    assert choice["version"] == row.right
    assert document["driver_first"] is None and document["exit"] == 0

    # The command is whole: it names the build, and the page that has it.
    install = next(step["argv"] for step in document["steps"] if step["id"] == "install-torch")
    assert f"torch=={row.right}" in install
    assert install[-2:] == ["--index-url", f"https://download.pytorch.org/whl/{choice['variant']}"]
    assert "--extra-index-url" not in install

    offered = {choice["variant"], *(one["variant"] for one in document["alternatives"])}
    assert not offered.intersection(row.never)
    opened = [one["opens"]["version"] for one in document["blocked_by"] if one["by"] == "driver"]
    assert opened == ([row.opens] if row.opens else [])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.driver}, {len(row.gpus)}x {row.gpus[0]}, {row.system}")
def test_and_it_runs_there_by_the_rules(ask: Ask, row: Row) -> None:
    """Nothing that is offered, first or second, lacks code for the card or a driver that serves it."""
    document = ask(*_options(row))
    numbering = "linux" if row.system == "linux" else "windows"
    platform = "windows-x86_64" if row.system == "windows" else "linux-x86_64"
    capability = {
        "K80": "3.7",
        "GTX 1080 Ti": "6.1",
        "V100": "7.0",
        "A100": "8.0",
        "RTX 4090": "8.9",
        "RTX 5090": "12.0",
    }
    for offer in (document["choice"], *document["alternatives"]):
        (build,) = [
            build
            for build in oracle.builds()
            if (build.torch, build.variant, build.platform) == (offer["torch"], offer["variant"], platform)
        ]
        python = row.python or min(build.pythons)
        machine = oracle.Machine((capability[row.gpus[0]],), row.driver, numbering, platform, python, None)
        unseen = [] if build.seen else ["nobody has seen it on an index"]
        assert oracle.faults(build, machine) == unseen, offer["version"]
        assert (offer["certainty"] == "possible") == bool(unseen)


def _options(row: Row) -> list[str]:
    options = [part for gpu in row.gpus for part in ("--gpu", gpu)]
    options += ["--driver", row.driver, "--os", row.system, "--arch", "x86_64"]
    return options + (["--python", row.python] if row.python else [])


def test_the_k80_hears_that_r470_is_its_last_driver(ask: Ask) -> None:
    document = ask(*_options(ROWS[0]))
    (blocker,) = document["blocked_by"]
    assert blocker["needed"] == "450.80.02"
    assert "R470 being the last branch for this card" in blocker["change"]


def test_on_r570_linux_has_an_older_build_of_cuda_12_8_beside_it(ask: Ask) -> None:
    document = ask("--gpu", "RTX 5090", "--driver", "570.124.06", "--os", "linux", "--arch", "x86_64")
    assert "2.11.0+cu128" in [one["version"] for one in document["alternatives"]]


def test_one_machine_two_generations(ask: Ask) -> None:
    """No build serves both: which serves which, and nothing is installed as if it did."""
    document = ask(
        "--gpu", "RTX 5090", "--gpu", "GTX 1080 Ti", "--driver", "580.95.05", "--os", "linux", "--arch", "x86_64"
    )
    assert document["choice"] is None and document["exit"] == 1
    parts = {tuple(part["gpus"]): part["choice"]["version"] for part in document["split"]}
    assert parts == {("GeForce RTX 5090",): "2.15.0+cu132", ("GeForce GTX 1080 Ti",): "2.14.1+cu126"}
    assert "no single build" in document["reasons"][0]
    assert not [step for step in document["steps"] if step["id"] == "install-torch"]
    assert any("CUDA_VISIBLE_DEVICES" in step["instructions"] for step in document["steps"])


def test_without_a_gpu_the_cpu_index_is_spelled_out(ask: Ask) -> None:
    """A plain `pip install torch` is a CUDA build on Linux."""
    document = ask("--gpu", "none", "--os", "linux", "--arch", "x86_64")
    assert document["choice"]["version"] == "2.15.0+cpu"
    install = next(step["argv"] for step in document["steps"] if step["id"] == "install-torch")
    assert install[-2:] == ["--index-url", "https://download.pytorch.org/whl/cpu"]


ILL = {
    "not loaded": linux().gpu("NVIDIA GeForce RTX 4090", "8.9").driver("580.95.05", "13.0").not_loaded(),
    "another library than module": linux()
    .gpu("NVIDIA GeForce RTX 4090", "8.9")
    .driver("580.95.05", "13.0")
    .driver_fails(18, "version-mismatch", 18, "Driver/library version mismatch")
    .set({"driver.library_version": "580.105.08", "driver.nvml_library_version": "580.105.08"}),
}


@pytest.mark.parametrize("machine", ILL.values(), ids=ILL)
def test_a_driver_that_does_not_answer_is_mended_first_and_is_no_reason_for_a_cpu_build(
    ask: Ask, tmp_path: Path, machine: Machine
) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(machine.facts.to_json()), "utf-8")
    document = ask("--facts", str(path))
    assert document["driver_first"] or document["steps"][0]["kind"] in ("driver", "reboot", "command", "kernel")
    assert "torch" not in document["steps"][0]["id"]
    text = json.dumps(document)
    assert "+cpu" not in text and "whl/cpu" not in text
