"""`cudadoctor verify` as a person runs it: what it says, how it ends, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.parts import ROOT, clean_environ
from bench.roots import nvidia_module, pci_gpu
from bench.venvs import Venv, activated
from render.schema_validator import mistakes
from verify_bench import SMALL, plays, two_a100

from cudadoctor.actions.verify import prove
from cudadoctor.cli._proving import proof_of as proof_of_machine
from cudadoctor.matrix import load_matrix
from cudadoctor.model import Facts, absent, unknown
from cudadoctor.render.schema import schema_of
from cudadoctor.render.style import Style
from cudadoctor.render.verify_json import document
from cudadoctor.render.verify_text import render
from cudadoctor.render.verify_view import VerifyView
from cudadoctor.verify.plan import CHECKS
from cudadoctor.verify.results import exit_status

Doctor = list[str]

SCHEMA = schema_of("cudadoctor.verify/1")

TWO_A100 = {
    **pci_gpu(device="0x20b2", class_="0x030200"),
    **pci_gpu("0000:02:00.0", "0x20b2", class_="0x030200"),
    **nvidia_module("535.183.01"),
}


def first_lines(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def verify(doctor: Doctor, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environ(variables)
    return subprocess.run(
        [*doctor, "verify", *options], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )


# -- what it prints ---------------------------------------------------------------------------------------------------

HEALTHY = """\
ok    CUDA works on 2 GPUs: torch 2.9.1+cu128, Python PYTHON (1 slow, see below)

  ok    versions            torch 2.9.1+cu128, CUDA 12.8, cuDNN 9.10.2, NCCL
                            2.27.5
  ok    peer                2 copies between GPUs arrive right, directly
  ok    nccl                all-reduce over 2 GPUs is right, RATE
  GPU 0: NVIDIA A100-SXM4-80GB, sm_80, 79 GiB (75 GiB free)
         torch: 0 bytes allocated, 2 MiB reserved
  ok    allocation          4096 bytes written, changed and read back
  ok    matmul fp32         all 144 values are those of the CPU
  ok    matmul fp16         all 144 values are those of the CPU
  ok    matmul bf16         all 144 values are those of the CPU
  warn  bandwidth to-gpu    14 GB/s to the GPU: PCIe 4 x16 can do 31.5 GB/s, at
                            least 18.9 GB/s are expected
                            possible: CD504 pcie-link-degraded
  ok    bandwidth from-gpu  26 GB/s from the GPU, of 31.5 GB/s (PCIe 4 x16)
  ok    memory-bandwidth    1,800 GB/s copied within the GPU's memory, of 2,039
                            GB/s (the card's memory)
  ok    cudnn               all 100 values are those of the CPU
  skip  compile             Triton is not installed
                            CD320 triton-toolchain-missing
"""


def proof_of(monkeypatch: pytest.MonkeyPatch, seconds: float = 60.0, **scenario: Any) -> VerifyView:
    for name in list(os.environ):
        if name not in clean_environ():
            monkeypatch.delenv(name)
    for name, value in plays(**scenario).items():
        monkeypatch.setenv(name, value)
    matrix = load_matrix()
    proof = prove(sys.executable, (), (), seconds, two_a100(), matrix, SMALL)
    return VerifyView(proof, exit_status(proof), Style())


def test_a_line_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    view = proof_of(monkeypatch, rates={"to-gpu": 14.0})
    lines = render(view).splitlines()
    assert all(len(line) <= 80 for line in lines)
    # What this machine's own clock and Python add is left out.
    shown = [
        line.partition("right, ")[0] + "right, RATE" if line.startswith("  ok    nccl") else line for line in lines
    ]
    shown[0] = shown[0].replace(f"Python {view.proof.python_version}", "Python PYTHON")
    expected = HEALTHY.splitlines()
    assert shown[: len(expected)] == expected
    assert shown[len(expected)].startswith("  GPU 1: NVIDIA A100-SXM4-80GB")
    assert lines[-3:] == ["", "more  cudadoctor explain CD504", "      cudadoctor check"]


@pytest.mark.once
@pytest.mark.parametrize(
    ("scenario", "first", "holds"),
    [
        (
            {"at": {"matmul float16": "crash"}, "on": 1},
            "FAIL GPU 1: matmul fp16: the check crashed (SIGSEGV)",
            "  skip  4 more              not run: matmul fp16 failed",
        ),
        (
            {"at": {"import": "crash"}},
            "FAIL versions: the check crashed (SIGSEGV)",
            "  skip  8 more            not run: versions failed",
        ),
        (
            {"at": {"matmul float32": "flip"}, "on": 0},
            "FAIL GPU 0: matmul fp32: 1 of 144 values is wrong: not what the CPU gives",
            "possible: CD115 ecc-errors",
        ),
    ],
)
def test_the_first_line_tells_where_and_what(
    scenario: dict[str, Any], first: str, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = proof_of(monkeypatch, **scenario)
    text = render(view)
    assert first_lines(text) == first and holds in text and view.exit == 1
    assert all(len(line) <= 80 for line in text.splitlines())
    told = json.loads(json.dumps(document(view)))
    assert not mistakes(SCHEMA, told, SCHEMA)
    assert told["exit"] == 1 and told["verdict"] == first.partition(" ")[2]


@pytest.mark.once
def test_verbose_shows_what_was_said_and_where_figures_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = {"at": {"cudnn version": "error"}, "says": "cuDNN version incompatibility\nloaded 9.1, built with 9.10"}
    view = proof_of(monkeypatch, gpus=1, **scenario)
    text = render(view._replace(style=Style(verbose=True)))
    assert "loaded 9.1, built with 9.10" in text and "PCI Express Base Specification" in " ".join(text.split())


# -- the environment's own interpreter --------------------------------------------------------------------------------


def test_the_cpu_build_of_the_real_torch_is_explained(
    doctor: Doctor, real_torch_venv: Venv, fake_root: Any, fake_nvml: Any
) -> None:
    environment = clean_environ(fake_nvml("two_gpus"), activated(real_torch_venv))
    done = fake_root(TWO_A100).run([*doctor, "verify", "--format", "json"], env=environment)
    told = json.loads(done.stdout)
    assert not mistakes(SCHEMA, told, SCHEMA)
    assert done.returncode == told["exit"] == 1
    assert told["python"]["executable"].endswith("/torch/bin/python") and told["torch"]["cuda"] is None
    versions = told["results"][0]
    assert (versions["check"], versions["how"], versions["rule"]) == ("versions", "no-cuda", "CD302")
    assert [cause["rule"] for cause in told["causes"]] == ["CD302"]
    assert told["verdict"].startswith("CUDA is not available: CD302 cpu-only-torch: ")
    assert {result["status"] for result in told["results"][1:]} == {"skip"}


@pytest.mark.once
def test_a_machine_without_a_gpu(doctor: Doctor, fake_root: Any) -> None:
    done = fake_root().run([*doctor, "verify"], env=clean_environ(plays(available=False)))
    assert done.returncode == 1 and done.stderr == ""
    assert first_lines(done.stdout).startswith("FAIL CUDA is not available: CD501 no-nvidia-gpu: ")
    assert "explain CD501" in done.stdout


@pytest.mark.once
def test_an_environment_without_torch(
    doctor: Doctor, venv_with: Callable[..., Venv], fake_root: Any, fake_nvml: Any
) -> None:
    environment = clean_environ(fake_nvml("two_gpus"), activated(venv_with()))
    done = fake_root(TWO_A100).run([*doctor, "verify"], env=environment)
    assert done.returncode == 1
    assert first_lines(done.stdout).startswith("FAIL CUDA is not available: CD301 torch-missing: ")


@pytest.mark.once
def test_a_driver_that_is_too_old_is_found_beside_what_torch_says(
    doctor: Doctor, fake_root: Any, fake_nvml: Any
) -> None:
    says = "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver"
    machine = fake_root(pci_gpu(device="0x1b06"), nvidia_module("470.256.02"))
    environment = clean_environ(fake_nvml("missing_symbol"), plays(available=False, says=says))
    done = machine.run([*doctor, "verify", "--format", "json"], env=environment)
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["results"][0]["how"], told["results"][0]["rule"]) == ("unavailable", "CD303")


# -- exit status, options ---------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--check", "mathmul"), "there is no check 'mathmul'; there are versions, allocation"),
        (("--timeout", "nan"), "nan is no number of seconds"),
        (("--timeout", "0"), "0.0 is not in the range"),
        (("--gpu", "-1"), "-1 is not in the range"),
        (("--python", "/no/such/python"), "there is no file '/no/such/python'"),
        (("--check", "allocation", "--gpu", "7"), "there is no GPU 7: CUDA shows 1, counted from 0"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(options: tuple[str, ...], says: str, doctor: Doctor) -> None:
    done = verify(doctor, *options, **plays(gpus=1))
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.once
def test_nothing_proven_is_neither_good_nor_bad(doctor: Doctor, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    done = verify(doctor, "--check", "nccl,peer", "--format", "json", "-o", str(path), **plays(gpus=1))
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    told = json.loads(path.read_text("utf-8"))
    assert told["verdict"] == "nothing could be proven: there is one GPU"
    assert [(result["check"], result["status"]) for result in told["results"]] == [
        ("versions", "pass"),
        ("peer", "skip"),
        ("nccl", "skip"),
    ]


@pytest.mark.once
@pytest.mark.parametrize(
    ("fact", "says"),
    [
        (absent("PATH (python)"), "there is no Python to prove anything with: name one with --python"),
        (unknown("the folder cannot be read", "PATH"), "the folder cannot be read"),
    ],
)
def test_without_an_interpreter_nothing_is_proven(fact: Any, says: str) -> None:
    proof = proof_of_machine(Facts({"python.executable": fact}), load_matrix(), CHECKS, (), 5.0)
    assert exit_status(proof) == 3
    text = render(VerifyView(proof, 3))
    assert first_lines(text) == f"???? nothing could be proven: {says}"


def test_one_check_alone_claims_no_more_than_itself(doctor: Doctor) -> None:
    done = verify(doctor, "--check", "versions", **plays())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ok    what was checked works (versions): torch 2.9.1+cu128, Python 3.")


# -- ended from outside -----------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "a job's time limit"])
def test_who_is_ended_leaves_no_process_and_no_folder(number: int, doctor: Doctor, tmp_path: Path) -> None:
    environment = clean_environ(plays(at={"available": "hang"}), TMPDIR=str(tmp_path))
    process = subprocess.Popen(
        [*doctor, "verify"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    limit = time.monotonic() + 60
    script = ""
    while not script and time.monotonic() < limit:
        time.sleep(0.05)
        running = subprocess.run(["ps", "-eww", "-o", "args="], capture_output=True, text=True, check=True).stdout
        here = [line for line in running.splitlines() if str(tmp_path) in line and "verify.py" in line]
        script = here[0] if here else ""
    assert script
    time.sleep(0.5)  # it is in its hang by now, or will end on the way there
    os.kill(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode in (-number, 130)
    running = subprocess.run(["ps", "-eww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running
    assert list(tmp_path.iterdir()) == []


# -- the checks themselves, with the real torch -----------------------------------------------------------------------

ON_THE_CPU = """
import json, sys
sys.path.insert(0, sys.argv[1])
import child, torch
torch.cuda.synchronize = lambda *device: None
torch.backends.cudnn.is_available = lambda: True
torch.backends.cudnn.version = lambda: 91002
sizes = json.loads(sys.argv[2])
gpu = child.Gpu(torch, sizes)
gpu.device = "cpu"
gpu.has_bf16 = lambda: True
torch.manual_seed(20)
found = {"allocation": gpu.allocation(), "cudnn": gpu.cudnn(), "answers": gpu.answers()}
found.update((kind, gpu.matmul(kind)) for kind in ("fp32", "fp16", "bf16"))
gpu.rate = lambda copy, size: (copy(), 1.0)[1]
found["memory"] = gpu.memory_bandwidth()
wrong = torch.Tensor.__matmul__
def off(one, other):
    product = wrong(one, other)
    if product.dtype != torch.float64:
        product[3, 5] += 1
    return product
torch.Tensor.__matmul__ = off
found["one off"] = [gpu.matmul(kind)["wrong"] for kind in ("fp32", "fp16", "bf16")]
print(json.dumps(found))
"""


@pytest.mark.once
def test_the_real_torch_agrees_with_itself_in_full_size(real_torch_venv: Venv) -> None:
    """On the CPU in the GPU's place: exact is exact, the bound on rounding holds, and one wrong value is found."""
    from cudadoctor.verify.plan import SIZES

    sizes = {
        **SIZES,
        "allocation": 1 << 20,
        "memory": 1 << 20,
        "matmul-fp32": 256,
        "matmul-fp16": 256,
        "rounds": 1,
        "convolution": [2, 8, 32],
    }
    command = [
        str(real_torch_venv.python),
        "-B",
        "-c",
        ON_THE_CPU,
        str(ROOT / "cudadoctor" / "verify"),
        json.dumps(sizes),
    ]
    environment = clean_environ(OMP_NUM_THREADS="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answers"] is True
    for check in ("allocation", "cudnn", "fp32", "fp16", "bf16", "memory"):
        assert found[check]["wrong"] == 0 and found[check]["of"] > 1000, check
    # Half of what rounding may do at worst would be suspicious already.
    assert 0.0 < found["fp32"]["error_share"] < 0.5
    assert found["one off"] == [1, 1, 1]
