"""The real child script, in a real process, on a machine that a stand-in torch plays: what it proves, and what becomes
of a GPU that computes wrong, crashes, hangs or talks nonsense. (No test here has seen a GPU: `scripts/record_verify.sh`
keeps what a real one gives.)"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from bench.parts import clean_environ, find_python
from verify_bench import FAKE_TORCH, SMALL, plays, two_a100

from cudadoctor.actions import child_process, verify
from cudadoctor.model import ParseError
from cudadoctor.verify.results import Proof, Result, exit_status

# Long enough for a slow machine to start Python and count to a few thousand.
SECONDS = 60.0
# For what hangs on purpose.
SHORT = 4.0


def prove(
    monkeypatch: pytest.MonkeyPatch, scenario: dict[str, Any], seconds: float = SECONDS, python: str = sys.executable,
    checks: tuple[str, ...] = (), gpus: tuple[int, ...] = (), facts: Any = None, **variables: str,
) -> Proof:  # fmt: skip
    for name in list(os.environ):
        if name not in clean_environ():
            monkeypatch.delenv(name)
    for name, value in {**plays(**scenario), **variables}.items():
        monkeypatch.setenv(name, value)
    return verify.prove(python, checks, gpus, seconds, facts, sizes=SMALL)


def result(proof: Proof, name: str, gpu: Optional[int] = None) -> Result:
    (found,) = [one for one in proof.results if one.name == name and one.gpu == gpu]
    return found


def states(proof: Proof, gpu: Optional[int]) -> dict[str, str]:
    return {one.name: one.status for one in proof.results if one.gpu == gpu}


ONE_GPU = (
    "allocation", "matmul fp32", "matmul fp16", "matmul bf16", "bandwidth to-gpu", "bandwidth from-gpu",
    "memory-bandwidth", "cudnn",
)  # fmt: skip


def test_a_healthy_machine_passes_every_check_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # The second card has half the lanes, and the copies half the rate that the first one's would be expected to have.
    proof = prove(monkeypatch, {"rates": {"to-gpu": 14.0, "from-gpu": 25.0}}, facts=two_a100())
    assert states(proof, None) == dict.fromkeys(("versions", "peer", "nccl"), "pass")
    assert states(proof, 1) == {**dict.fromkeys(ONE_GPU, "pass"), "compile": "skip"}
    assert [one.name for one in proof.results if one.gpu == 0] == [*ONE_GPU, "compile"]
    assert (proof.torch.version, proof.torch.cuda, proof.torch.cudnn) == ("2.9.1+cu128", "12.8", "9.10.2")
    assert (proof.torch.nccl, proof.torch.gpus) == ("2.27.5", 2)
    assert [(gpu.number, gpu.name, gpu.pci) for gpu in proof.gpus] == [
        (0, "NVIDIA A100-SXM4-80GB", "0000:01:00.0"),
        (1, "NVIDIA A100-SXM4-80GB", "0000:41:00.0"),
    ]
    assert (proof.gpus[0].total, proof.gpus[0].allocated, proof.gpus[0].reserved) == (85_000_000_000, 0, 2 << 20)
    slow = result(proof, "bandwidth to-gpu", 0)
    assert (slow.status, slow.severity, slow.how, slow.rule) == ("fail", "warning", "slow", "CD504")
    assert slow.message == "14 GB/s to the GPU: PCIe 4 x16 can do 31.5 GB/s, at least 18.9 GB/s are expected"
    assert result(proof, "bandwidth to-gpu", 1).message == "14 GB/s to the GPU, of 15.8 GB/s (PCIe 4 x8)"
    memory = result(proof, "memory-bandwidth", 1)
    assert memory.expected is not None and (memory.value, memory.expected.most) == (pytest.approx(1800.0), 2039.0)
    assert result(proof, "peer").message == "2 copies between GPUs arrive right, directly"
    assert exit_status(proof) == 0 and exit_status(proof, "warning") == 1


class Row(NamedTuple):
    """What the machine plays; the check that fails, on which GPU, how, and what its message says; how many checks of
    that GPU were still proven."""

    title: str
    scenario: dict[str, Any]
    name: str
    gpu: Optional[int]
    how: str
    says: str
    proven: int
    also: tuple[str, ...] = ()


ROWS = [
    Row(
        "a product with one wrong value of 144",
        {"at": {"matmul float32": "flip"}, "on": 1},
        "matmul fp32", 1, "wrong", "1 of 144 values is wrong: not what the CPU gives", 7,
    ),
    Row(
        "memory that keeps a wrong value",
        {"at": {"allocation": "flip"}, "on": 0},
        "allocation", 0, "wrong", "1 of 1,024 values is wrong", 7,
    ),
    Row(
        "a copy to the host that arrives wrong",
        {"at": {"copy from-gpu": "flip"}, "on": 0},
        "bandwidth from-gpu", 0, "wrong", "1 of 1,024 values is wrong", 7,
    ),
    Row(
        "a convolution with a wrong value",
        {"at": {"conv2d": "flip"}, "on": 1},
        "cudnn", 1, "wrong", "1 of 100 values is wrong", 7,
    ),
    Row(
        "a crash in a product: what came before stays proven",
        {"at": {"matmul float16": "crash"}, "on": 1},
        "matmul fp16", 1, "crash", "the check crashed (SIGSEGV)", 2,
    ),
    Row(
        "a process that ends by itself",
        {"at": {"matmul bfloat16": "exit"}, "on": 0},
        "matmul bf16", 0, "ended", "the process ended with status 7", 3,
    ),
    Row(
        "an error after which CUDA works on",
        {"at": {"cudnn version": "error"}, "on": 0, "says": "cuDNN version incompatibility"},
        "cudnn", 0, "error", "failed: RuntimeError: cuDNN version incompatibility", 7,
    ),
    Row(
        "an error after which CUDA does not",
        {"at": {"matmul float32": "error", "after": "error"}, "on": 1},
        "matmul fp32", 1, "error", "failed: RuntimeError: CUDA error: unspecified launch failure", 1,
    ),
    Row(
        "pinned memory that is refused",
        {"at": {"pin": "error"}, "says": "CUDA error: out of memory", "gpus": 1},
        "bandwidth to-gpu", 0, "error", "failed: RuntimeError: CUDA error: out of memory", 6,
        also=("bandwidth from-gpu",),
    ),
    Row(
        "copies between GPUs that arrive wrong",
        {"at": {"peer": "flip"}},
        "peer", None, "wrong", "2 of 2 copies between GPUs arrive wrong: 0 to 1, 1 to 0", 2,
    ),
    Row(
        "a sum over all GPUs that is wrong on one",
        {"at": {"nccl": "flip"}, "on": 1},
        "nccl", None, "wrong", "1 of 128 values is wrong", 2,
    ),
    Row(
        "one of NCCL's processes crashes",
        {"at": {"nccl": "crash"}, "on": 1},
        "nccl", None, "crash", "rank 1: ended by SIGSEGV", 2,
    ),
    Row(
        "one of NCCL's processes has an error, and the others wait for it",
        {"at": {"nccl": "error"}, "on": 0, "says": "NCCL error: unhandled system error"},
        "nccl", None, "error", "failed: rank 0: RuntimeError: NCCL error: unhandled system error", 2,
    ),
    Row(
        "an import that crashes",
        {"at": {"import": "crash"}},
        "versions", None, "crash", "the check crashed (SIGSEGV)", 0,
    ),
    Row(
        "an import that fails",
        {"at": {"import": "error"}, "says": "libcudnn.so.9: cannot open shared object file"},
        "versions", None, "error", "torch cannot be imported: RuntimeError: libcudnn.so.9: cannot open", 0,
    ),
    Row(
        "a driver that is too old",
        {"available": False, "says": "The NVIDIA driver on your system is too old (found version 11040)."},
        "versions", None, "unavailable", "CUDA is not available (RuntimeError: The NVIDIA driver on your system is", 0,
    ),
    Row(
        "a link that carries a tenth",
        {"rates": {"to-gpu": 3.1}, "gpus": 1},
        "bandwidth to-gpu", 0, "slow", "3.1 GB/s to the GPU: PCIe 4 x16 can do 31.5 GB/s", 7,
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.title for row in ROWS])
@pytest.mark.once
def test_what_goes_wrong_is_the_result_of_one_check(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(monkeypatch, row.scenario, facts=two_a100())
    failed = [one for one in proof.results if one.failed]
    assert [(one.name, one.gpu) for one in failed] == [(name, row.gpu) for name in (row.name, *row.also)]
    found = result(proof, row.name, row.gpu)
    assert (found.status, found.severity, found.how) == ("fail", "error", row.how)
    assert row.says in found.message
    assert found.rule in found.suspects and found.certainty == "possible"
    assert sum(one.status == "pass" and one.gpu == row.gpu for one in proof.results) == row.proven
    assert exit_status(proof) == 1
    # Nobody else is blamed: what the other GPU can do was proven all the same.
    if row.gpu is not None and row.scenario.get("gpus") != 1:
        assert set(states(proof, 1 - row.gpu).values()) == {"pass", "skip"}


# -- hangs, floods and noise ------------------------------------------------------------------------------------------


def is_running(*command: str) -> bool:
    listed = subprocess.run(["ps", "-eww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return any(line.split() == list(command) for line in listed.splitlines())


@pytest.mark.parametrize(
    ("scenario", "name", "gpu"),
    [
        ({"at": {"conv2d": "hang"}, "on": 1}, "cudnn", 1),
        ({"at": {"available": "deaf"}}, "versions", None),
        ({"at": {"nccl": "hang"}, "on": 1}, "nccl", None),
    ],
    ids=["a kernel that never ends", "a driver that never answers, and nobody hears signals", "NCCL"],
)
@pytest.mark.once
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
def test_a_hang_ends_at_the_deadline_and_leaves_nothing(
    scenario: dict[str, Any], name: str, gpu: Optional[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # What a hanging stand-in starts, as it would a compiler; nobody else's sleeps so long.
    seconds = f"600.{os.getpid()}"
    proof = prove(monkeypatch, {**scenario, "sleep": seconds}, SHORT, TMPDIR=str(tmp_path))
    found = result(proof, name, gpu)
    assert (found.status, found.how, found.message) == ("fail", "hang", "did not end within 4 s")
    assert not is_running("sleep", seconds)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_noise_on_standard_output_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(monkeypatch, {"at": {"import": "noise", "matmul float32": "noise"}, "gpus": 1}, facts=two_a100())
    assert states(proof, 0) == {**dict.fromkeys(ONE_GPU, "pass"), "compile": "skip"}


@pytest.mark.once
def test_output_without_end_fills_no_memory_and_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(monkeypatch, {"at": {"available": "flood"}}, SHORT)
    found = result(proof, "versions")
    assert (found.how, len(found.error) <= 16 << 10) == ("hang", True)


@pytest.mark.once
def test_an_interpreter_that_floods_the_pipe_itself_is_cut_off() -> None:
    command = [sys.executable, "-c", "import os\nwhile True: os.write(1, b'verify-0 {\"event\": 1}\\n' * 999)"]
    output, ending = child_process.run_process(command, os.environ, 2.0)
    assert ending.timed_out and len(output) == 1 << 20


# -- which GPUs -------------------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize(
    ("visible", "asked", "numbers"),
    [
        (None, (), [0, 1, 2]),
        (None, (2,), [2]),
        ("2,0", (), [0, 1]),
        ("2,0", (1,), [1]),
    ],
)
def test_each_gpu_has_a_process_of_its_own(
    visible: Optional[str], asked: tuple[int, ...], numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    proof = prove(monkeypatch, {"gpus": 3}, checks=("allocation",), gpus=asked, **variables)
    assert [gpu.number for gpu in proof.gpus] == numbers
    buses = {None: ["01", "41", "82"], "2,0": ["82", "01"]}[visible]
    assert [gpu.pci for gpu in proof.gpus] == [f"0000:{buses[number]}:00.0" for number in numbers]


@pytest.mark.once
def test_no_gpu_of_that_number_and_no_check_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParseError, match=r"there is no GPU 2: CUDA shows 2, counted from 0"):
        prove(monkeypatch, {}, checks=("allocation",), gpus=(2,))
    with pytest.raises(ParseError, match=r"there is no check 'mathmul'; there are versions, allocation, matmul"):
        prove(monkeypatch, {}, checks=("mathmul",))


# -- the interpreter --------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_an_interpreter_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found = result(prove(monkeypatch, {}, python="/no/such/python"), "versions")
    assert (found.status, found.rule) == ("fail", None)
    assert found.message == "the interpreter cannot be started: No such file or directory"


@pytest.mark.once
def test_an_interpreter_that_does_not_run_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(monkeypatch, {}, python="/bin/false")
    assert result(proof, "versions").message == "the process ended with status 1"
    assert states(proof, None)["peer"] == "skip" and exit_status(proof) == 1


@pytest.mark.once
def test_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = find_python("3.9")
    if python is None:
        pytest.skip("needs an interpreter without torch")
    found = result(prove(monkeypatch, {}, python=python, PYTHONPATH=str(tmp_path)), "versions")
    assert (found.how, found.rule, found.message) == ("missing", "CD301", "there is no torch in this environment")


def state_of(process: int) -> str:
    """ "S", "Z", as /proc has it; "" where there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
@pytest.mark.parametrize("then", ["raise RuntimeError('boom')", "time.sleep(100)"], ids=["ends", "hangs"])
def test_a_daemon_that_torch_leaves_is_ended(then: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(tmp_path / "daemon")!r}, "w").write(str(os.getpid()))
        time.sleep(100)
    os._exit(0)
while not os.path.exists({str(tmp_path / "daemon")!r}) or not open({str(tmp_path / "daemon")!r}).read():
    time.sleep(0.01)
{then}
""")
    begun = time.monotonic()
    assert result(prove(monkeypatch, {}, SHORT, PYTHONPATH=str(tmp_path)), "versions").failed
    assert time.monotonic() - begun < SHORT + 10  # nor does it hold a pipe of ours
    daemon = int((tmp_path / "daemon").read_text())
    deadline = time.monotonic() + 20  # what is killed needs a moment to end
    while state_of(daemon) not in ("", "Z"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.once
@pytest.mark.parametrize("version", ["3.7", "3.8"])
def test_the_script_runs_on_pythons_older_than_ours(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} is at hand")
    proof = prove(monkeypatch, {}, python=python, facts=two_a100())
    assert proof.python_version.startswith(version + ".")
    assert exit_status(proof) == 0 and not any(one.failed and one.severity == "error" for one in proof.results)


@pytest.mark.once
def test_the_script_keeps_to_the_syntax_of_python_3_7() -> None:
    import ast

    source = child_process.source_of(verify.child).decode("utf-8")
    tree = ast.parse(source, feature_version=(3, 7))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert "cudadoctor" not in " ".join(imported) and FAKE_TORCH not in source


def test_plain_data_for_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudadoctor.verify.plan.SIZES", SMALL)
    for name, value in plays(gpus=1).items():
        monkeypatch.setenv(name, value)
    rows = verify.run(sys.executable, checks=("matmul",), timeout=SECONDS)
    assert [(row["check"], row["variant"], row["gpu"], row["status"]) for row in rows] == [
        ("versions", "", None, "pass"),
        ("allocation", "", 0, "pass"),
        ("matmul", "fp32", 0, "pass"),
        ("matmul", "fp16", 0, "pass"),
        ("matmul", "bf16", 0, "pass"),
    ]
    assert all({"rule", "message", "certainty", "severity"} <= set(row) for row in rows)
