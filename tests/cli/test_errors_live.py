"""What a run on a live machine has said, together with what the machine shows: `check --log`.

The real CUDA runtime prints the errors: it asks a libcuda that answers as a broken machine would. The real nvidia-smi
prints its failures. The machine is live: cards and kernel module are laid over /proc and /sys, NVML is the stand-in
library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from bench.installed import torch_as_installed
from bench.parts import clean_environ
from bench.roots import Entry, FakeRoot, nvidia_module, pci_gpu
from bench.venvs import activated

# Asks the CUDA runtime for devices as torch does, and says what torch says.
ASK = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaGetErrorString.restype = ctypes.c_char_p
count = ctypes.c_int()
code = runtime.cudaGetDeviceCount(ctypes.byref(count))
print("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
      "NumCudaDevices() that might have already set an error?",
      f"Error {code}: {runtime.cudaGetErrorString(code).decode()}")
"""


@pytest.fixture
def said_by_cuda(real_nvcc: str, fake_cuda: Callable[..., dict[str, str]]) -> Callable[..., str]:
    """`said_by_cuda(driver=12040, init=803)`: the line that a program prints on such a machine."""
    runtime = next(Path(real_nvcc).parent.parent.glob("lib/libcudart.so.*"))

    def said(**libcuda: int) -> str:
        environment = clean_environ(fake_cuda(**libcuda))
        argv = [sys.executable, "-c", ASK, str(runtime)]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout

    return said


@pytest.fixture
def checked(
    doctor: list[str], fake_root: Callable[..., FakeRoot], fake_nvml: Any, venv_with: Callable[..., Any], tmp_path: Path
) -> Callable[..., dict[str, Any]]:
    """`checked(scenario, cards, module, log, ...)`: the document of `check --log` on that machine."""

    def check(
        scenario: str,
        cards: Mapping[str, Entry],
        module: str,
        log: str,
        variables: Mapping[str, str],
        torch: str,
    ) -> dict[str, Any]:
        venv = venv_with(*torch_as_installed(torch, "3.12"), python="3.12", pip=True)
        path = tmp_path / "run.log"
        path.write_text("epoch 1\n" + log, encoding="utf-8")
        environment = clean_environ(
            fake_nvml(scenario), {"PATH": "/usr/bin:/bin"}, activated(venv), {"PIP_CONFIG_FILE": "/dev/null"}, variables
        )
        root = fake_root(dict(cards), nvidia_module(module, open_=False))
        done = root.run([*doctor, "check", "--log", str(path), "--format", "json"], env=environment)
        assert done.stderr == ""
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    return check


ADA = pci_gpu("0000:01:00.0", "0x2684", driver="nvidia")


class Row(NamedTuple):
    title: str
    libcuda: dict[str, int]
    says: str
    causes: tuple[str, ...]
    variables: Mapping[str, str] = MappingProxyType({})
    driver: str = "580"
    torch: str = "2.9.1+cu128"
    scenario: str = ""


ROWS = [
    Row(
        "803: another libcuda than the driver's",
        {"driver": 13000, "init": 803},
        "Error 803: system has unsupported display driver / cuda driver combination",
        ("CD208",),
    ),
    Row(
        "804: forward compatibility on a GeForce",
        {"driver": 13000, "init": 804},
        "Error 804: forward compatibility was attempted on non supported HW",
        ("CD208",),
    ),
    Row(
        "100: the job hides the card",
        {"driver": 13000, "init": 100},
        "Error 100: no CUDA-capable device is detected",
        ("CD706",),
        {"CUDA_VISIBLE_DEVICES": "7"},
    ),
    Row(
        "35: the driver is too old for the wheel",
        {"driver": 12020, "init": 0},
        "Error 35: CUDA driver version is insufficient for CUDA runtime version",
        ("CD303",),
        driver="535",
        torch="2.14.1+cu130",
    ),
    Row(
        "999: nvidia-smi is fine, and CUDA is not",
        {"driver": 13000, "init": 999},
        "Error 999: unknown error",
        ("CD112",),
    ),
    Row(
        "46: somebody has the card for himself",
        {"driver": 13000, "init": 46},
        "Error 46: CUDA-capable device(s) is/are busy or unavailable",
        ("CD118",),
        scenario="exclusive_580",
    ),
    Row(
        "802: the fabric is not up",
        {"driver": 13000, "init": 802},
        "Error 802: system not yet initialized",
        ("CD116", "CD122"),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.title for row in ROWS])
def test_the_cause_of_an_error_of_cuda(
    row: Row, said_by_cuda: Callable[..., str], checked: Callable[..., dict[str, Any]]
) -> None:
    log = said_by_cuda(**row.libcuda)
    assert row.says in log
    module = {"535": "535.183.01", "580": "580.95.05"}[row.driver]
    document = checked(row.scenario or f"rtx4090_{row.driver}", ADA, module, log, row.variables, row.torch)
    assert document["root_causes"][:1] and document["root_causes"][0] in row.causes
    outcomes = {outcome["rule"]: outcome for outcome in document["outcomes"]}
    errors = [rule for rule in document["root_causes"] if outcomes[rule]["severity"] == "error"]
    assert set(errors) <= set(row.causes)


@pytest.mark.parametrize("row", ROWS, ids=[row.title for row in ROWS])
def test_the_words_alone_prove_nothing(row: Row, said_by_cuda: Callable[..., str]) -> None:
    """Pasted without the machine: the suspects are named, none of them for certain."""
    import cudadoctor

    diagnosis = cudadoctor.diagnose_text(said_by_cuda(**row.libcuda))
    certain = [
        outcome["rule"]
        for outcome in diagnosis.document["outcomes"]
        if outcome["status"] == "fail" and outcome["severity"] == "error" and outcome["certainty"] == "certain"
    ]
    assert certain == []
    told = diagnosis.document["pasted"]
    assert diagnosis.root_causes or told["unexplained"]
    assert any(name.startswith("symptom.") for name in diagnosis.document["facts"])
