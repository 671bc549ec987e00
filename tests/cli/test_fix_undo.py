"""The one printed command that takes an install back: the environment is then what it was, package by package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bench.index import WheelIndex
from bench.venvs import Venv
from fix_bench import Doctor, facts_of, paste, paste_lines, plan, stock

from cudadoctor.model import Fact
from cudadoctor.testing import Machine, linux

# What runs the printed commands is a Python of its own, whichever runs the doctor.
pytestmark = pytest.mark.once

MakeVenv = Callable[..., Venv]

OLD_DRIVER = linux().driver("550.54.14", "12.4")


# What is there before, from which page, and the machine on which it does not run.
CASES: list[tuple[str, Machine, list[str], str, list[str]]] = [
    ("nothing at all", OLD_DRIVER, [], "cpu", []),
    ("a CPU build alone", OLD_DRIVER, ["torch==2.6.0+cpu"], "cpu", []),
    (
        "a CPU build with its companions",
        OLD_DRIVER,
        ["torch==2.6.0+cpu", "torchvision==0.21.0+cpu", "torchaudio==2.6.0+cpu"],
        "cpu",
        [],
    ),
    (
        "a build of the default index, without its build in its version",
        OLD_DRIVER,
        ["torch==2.14.1", "torchvision==0.29.1"],
        "simple",
        [],
    ),
    (
        "a build of the same CUDA major: NVIDIA's packages change their versions",
        OLD_DRIVER,
        ["torch==2.6.0+cu124", "torchvision==0.21.0+cu124"],
        "cu124",
        ["--torch", "2.14.1+cu126"],
    ),
]


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize(
    ("machine", "before", "page", "options"), [row[1:] for row in CASES], ids=[r[0] for r in CASES]
)
def test_the_undo_brings_back_what_was_there(
    doctor: Doctor,
    wheel_index: WheelIndex,
    venv_with: MakeVenv,
    real_uv: str,
    tmp_path: Path,
    installer: str,
    machine: Machine,
    before: list[str],
    page: str,
    options: list[str],
) -> None:
    index = stock(wheel_index)
    venv = venv_with(python="3.12", pip=True)
    internet = {**index.as_internet(), "PATH": f"{real_uv.rpartition('/')[0]}:/usr/bin:/bin"}
    if before:
        url = [] if page == "simple" else ["--index-url", f"https://download.pytorch.org/whl/{page}"]
        if installer == "uv":  # and a second or two sooner
            paste_lines([" ".join(["uv pip install -q --python", venv.python, *before, *url])], internet)
        else:
            installed = venv.run("-m", "pip", "install", "-q", *before, *url, env=internet)
            assert installed.returncode == 0, installed.stderr
    was = venv.installed()
    facts = facts_of(venv, machine)
    if installer == "uv":
        facts = facts.updated(
            {"python.pip": Fact("absent"), "python.uv_environment": Fact("known", True, "pyvenv.cfg")}
        )
    document = plan(doctor, facts, tmp_path, *options)
    paste(document, internet)
    assert venv.installed() != was
    came = venv.torch_build()
    assert came is not None and came[1] is not None
    undo = document["undo"]
    assert "\n" not in undo
    paste_lines([undo], internet)
    torch = ("torch", "torchvision", "torchaudio")
    is_now = {name: version.partition("+")[0] for name, version in venv.installed().items()}
    # A build of the default index comes back as its twin, which names its build.
    expected = {name: version.partition("+")[0] for name, version in was.items()}
    left = {name: is_now[name] for name in is_now if name not in expected}
    assert set(left) <= {"filelock", "typing-extensions"}, left
    assert {name: is_now.get(name) for name in expected} == expected
    if page != "simple":
        assert all(venv.installed().get(name) == was.get(name) for name in torch)
    assert document["before"].get("torch", "").partition("+")[0] == expected.get("torch", "")


def test_the_undo_of_a_new_environment_deletes_it(
    doctor: Doctor, wheel_index: WheelIndex, venv_with: MakeVenv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = stock(wheel_index)
    base = venv_with(python="3.12", pip=True)
    facts = facts_of(base, OLD_DRIVER.no_torch().set({"disk.environment_writable": False}))
    document = plan(doctor, facts, tmp_path)
    monkeypatch.chdir(tmp_path)
    paste(document, index.as_internet())
    assert Venv(tmp_path / ".venv").torch_build() == ("2.14.1+cu126", "12.6")
    assert document["undo"] == "rm -r .venv"
    paste_lines([document["undo"]], {})
    assert not (tmp_path / ".venv").exists()
