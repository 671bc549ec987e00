"""What should I install, and is this environment all right? Asked of live machines, without a word about the machine.

The rows are those that other tools answer wrongly. Cards and kernel module are laid over the real /proc and /sys, NVML
is the stand-in library through the real nvidia-ml-py, nvidia-smi the distribution's own where there is one of that
generation, and torch a small wheel in a virtual environment, or not there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from bench import native
from bench.installed import torch_as_installed
from bench.parts import clean_environ
from bench.roots import Entry, FakeRoot, nvidia_module, pci_gpu
from bench.venvs import Venv, activated
from bench.wheels import torch_wheel

Doctor = list[str]
Document = dict[str, Any]
Machine = dict[str, Entry]

PYTORCH = "https://download.pytorch.org/whl"

# PCI device and class: 0x0302 is a card without a display.
CARDS = {
    "K80": ("0x102d", "0x030200"),
    "GTX 1080 Ti": ("0x1b06", "0x030000"),
    "V100": ("0x1db1", "0x030200"),
    "T4": ("0x1eb8", "0x030200"),
    "A100": ("0x20b2", "0x030200"),
    "RTX 4090": ("0x2684", "0x030000"),
    "RTX 5090": ("0x2b85", "0x030000"),
}


def cards(*names: str, driver: Optional[str] = "nvidia") -> Machine:
    """These cards on the bus, in a row; `driver`: what is bound to them."""
    found: Machine = {}
    for bus, name in enumerate(names, start=1):
        device, class_ = CARDS[name]
        found.update(pci_gpu(f"0000:{bus:02x}:00.0", device, class_=class_, driver=driver))
    return found


class Live:
    """A live machine and the environment that is looked at."""

    def __init__(self, doctor: Doctor, root: FakeRoot, environment: Mapping[str, str]) -> None:
        self._doctor, self._root, self._environment = doctor, root, environment

    def ask(self, *arguments: str) -> Document:
        done = self._root.run([*self._doctor, *arguments, "--format", "json"], env=self._environment)
        assert done.stderr == ""
        document: Document = json.loads(done.stdout)
        assert document["exit"] == done.returncode
        return document

    def check(self) -> Document:
        return self.ask("check")

    def fix(self) -> Document:
        return self.ask("fix", "--print")


class Start(NamedTuple):
    """A machine: the scenario that NVML plays ("": there is no such library), its cards, its module ("": none is
    loaded), and the generation of which the real nvidia-smi is on PATH."""

    scenario: str
    cards: tuple[str, ...]
    module: str
    smi: str = ""
    open: bool = False


@pytest.fixture
def live(
    doctor: Doctor, fake_root: Callable[..., FakeRoot], fake_nvml: Any, real_nvidia_smi: Callable[[str], str]
) -> Callable[..., Live]:
    """`live(start, venv)`: the machine, the venv being active; settings of pip that the real one has are not seen."""

    def made(start: Start, venv: Venv, path: str = "", also: Optional[Machine] = None) -> Live:
        loaded = nvidia_module(start.module, open_=start.open) if start.module else {}
        root = fake_root(cards(*start.cards, driver="nvidia" if start.module else None), loaded, also or {})
        environment = clean_environ(
            fake_nvml(start.scenario) if start.scenario else {},
            {"PATH": path or (real_nvidia_smi(start.smi) if start.smi else "/usr/bin:/bin")},
            activated(venv),
            {"PIP_CONFIG_FILE": "/dev/null"},
        )
        return Live(doctor, root, environment)

    return made


def install_of(steps: list[Document]) -> list[str]:
    """The command of the step that installs torch."""
    (argv,) = [step["argv"] for step in steps if step["id"] == "install-torch"]
    return list(argv)


# -- what should I install? -----------------------------------------------------------------------------------------


class Question(NamedTuple):
    """A machine without torch; the right build, and the one that a newer driver opens."""

    title: str
    start: Start
    python: str
    right: str
    opens: str = ""


QUESTIONS = [
    # No CUDA 11 or newer runs on R418.
    Question("K80 on R418", Start("k80_418", ("K80", "K80"), "418.87.00"), "3.9", "1.8.1+cu101", "2.7.1+cu118"),
    Question(
        "GTX 1080 Ti on R470",
        Start("gtx1080ti_470", ("GTX 1080 Ti",), "470.256.02", smi="470"),
        "3.11",
        "2.7.1+cu118",
        "2.14.1+cu126",
    ),
    Question(
        "RTX 4090 on R535",
        Start("rtx4090_535", ("RTX 4090",), "535.183.01", smi="535"),
        "3.12",
        "2.14.1+cu126",
        "2.15.0+cu132",
    ),
    Question(
        "eight A100 on R550",
        Start("a100x8_550", ("A100",) * 8, "550.54.15", smi="550"),
        "3.12",
        "2.14.1+cu126",
        "2.15.0+cu132",
    ),
    Question("GTX 1080 Ti on R580", Start("gtx1080ti_580", ("GTX 1080 Ti",), "580.95.05"), "3.12", "2.14.1+cu126"),
    Question("V100 on R580", Start("v100_580", ("V100",), "580.95.05"), "3.12", "2.14.1+cu126"),
    Question("RTX 4090 on R580", Start("rtx4090_580", ("RTX 4090",), "580.95.05"), "3.12", "2.15.0+cu132"),
    Question("RTX 5090 on R580", Start("rtx5090_580", ("RTX 5090",), "580.65.06", open=True), "3.13", "2.15.0+cu132"),
    Question(
        "RTX 5090 on R570",
        Start("rtx5090_570", ("RTX 5090",), "570.124.06", open=True),
        "3.12",
        "2.13.0+cu129",
        "2.15.0+cu132",
    ),
    Question("RTX 5090 on R610", Start("rtx5090_610", ("RTX 5090",), "610.43.02", open=True), "3.12", "2.15.0+cu132"),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=[question.title for question in QUESTIONS])
def test_what_should_i_install(question: Question, live: Callable[..., Live], venv_with: Callable[..., Venv]) -> None:
    venv = venv_with(python=question.python, pip=True)
    machine = live(question.start, venv)
    variant = question.right.partition("+")[2]

    report = machine.check()
    # Nothing is wrong but that torch is not there.
    assert report["root_causes"] == ["CD301"]
    assert [
        outcome["rule"]
        for outcome in report["outcomes"]
        if outcome["severity"] == "error" and outcome["status"] == "fail"
    ] == []
    command = install_of(report["plan"]["steps"])
    assert command[:5] == [venv.python, "-m", "pip", "install", f"torch=={question.right}"]
    assert command[-2:] == ["--index-url", f"{PYTORCH}/{variant}"]

    plan = machine.fix()
    assert (plan["choice"]["version"], plan["choice"]["python"]) == (question.right, question.python)
    assert [step["argv"] for step in plan["steps"]] == [command]
    opened = [blocker["opens"]["version"] for blocker in plan["blocked_by"] if blocker["by"] == "driver"]
    assert opened == ([question.opens] if question.opens else [])


R610_HEADER = """\
Mon Nov 30 12:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 5090        Off |   00000000:01:00.0  On |                  N/A |
|  0%   34C    P8             14W /  575W |     402MiB /  32607MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""


def test_the_table_of_r610_is_a_driver_at_work_where_nvml_cannot_be_asked(
    live: Callable[..., Live], venv_with: Callable[..., Venv], fake_program: Any
) -> None:
    """Its header says `KMD Version` where it said `Driver Version`; it knows no query that this doctor may ask."""
    script = f"""#!/bin/sh
case "$*" in
"") cat <<'TABLE'
{R610_HEADER}TABLE
;;
-L) echo "GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-00000000-0000-0000-0000-000000000000)" ;;
*) echo "Field is not a valid field to query."; exit 2 ;;
esac
"""
    venv = venv_with(python="3.12", pip=True)
    start = Start("", ("RTX 5090",), "610.43.02", open=True)
    machine = live(start, venv, path=fake_program("nvidia-smi", script) + ":/usr/bin:/bin")
    report = machine.check()
    assert report["root_causes"] == ["CD301"]
    assert "torch==2.15.0+cu132" in install_of(report["plan"]["steps"])
    assert machine.fix()["choice"]["version"] == "2.15.0+cu132"


def test_two_generations_are_told_which_build_serves_which(
    live: Callable[..., Live], venv_with: Callable[..., Venv]
) -> None:
    venv = venv_with(python="3.12", pip=True)
    both = ("RTX 5090", "GTX 1080 Ti")
    plan = live(Start("rtx5090_beside_gtx1080ti", both, "580.95.05", open=True), venv).fix()
    assert plan["choice"] is None and plan["exit"] == 1
    parts = {part["gpus"][0]: part["choice"]["version"] for part in plan["split"]}
    assert parts == {"NVIDIA GeForce RTX 5090": "2.15.0+cu132", "NVIDIA GeForce GTX 1080 Ti": "2.14.1+cu126"}
    held = [step["instructions"] for step in plan["steps"] if step["id"].startswith("run-on-")]
    # The numbers are those that the driver gives.
    assert [f"CUDA_VISIBLE_DEVICES={number}" in text for number, text in enumerate(held)] == [True, True]


ILL = [
    (
        "no module is loaded (9)",
        Start("no_driver_9", ("RTX 4090",), "", smi="535"),
        "CD103",
        {"kernel", "driver", "command", "reboot"},
    ),
    (
        "module and library differ (18)",
        Start("mismatch_18", ("RTX 4090",), "535.183.01", smi="535"),
        "CD105",
        {"reboot"},
    ),
]


@pytest.mark.parametrize(("start", "cause", "kinds"), [row[1:] for row in ILL], ids=[row[0] for row in ILL])
def test_the_driver_is_mended_first_and_no_cpu_build_is_the_answer(
    start: Start, cause: str, kinds: set[str], live: Callable[..., Live], venv_with: Callable[..., Venv]
) -> None:
    machine = live(start, venv_with(python="3.12", pip=True))
    report = machine.check()
    assert (report["root_causes"][0], report["exit"]) == (cause, 1)
    plan = machine.fix()
    *before, last = plan["steps"]
    assert before and {step["kind"] for step in before} <= kinds
    assert plan["driver_first"] and last["id"] == "install-torch"
    for document in (report, plan):
        assert "+cpu" not in json.dumps(document) and "whl/cpu" not in json.dumps(document)


def test_without_a_gpu_the_cpu_index_is_spelled_out(live: Callable[..., Live], venv_with: Callable[..., Venv]) -> None:
    """A plain `pip install torch` is a CUDA build on Linux."""
    venv = venv_with(python="3.12", pip=True)
    plan = live(Start("", (), ""), venv).fix()
    assert plan["choice"]["version"] == "2.15.0+cpu"
    command = install_of(plan["steps"])
    assert command[:5] == [venv.python, "-m", "pip", "install", "torch==2.15.0+cpu"]
    assert command[-2:] == ["--index-url", f"{PYTORCH}/cpu"]


# -- is this environment all right? ---------------------------------------------------------------------------------

ADA_580 = Start("rtx4090_580", ("RTX 4090",), "580.95.05")
PASCAL_580 = Start("gtx1080ti_580", ("GTX 1080 Ti",), "580.95.05")
PASCAL_470 = Start("gtx1080ti_470", ("GTX 1080 Ti",), "470.256.02", smi="470")
TURING_470 = Start("t4_470", ("T4",), "470.256.02", smi="470")
A100_550 = Start("a100x8_550", ("A100",) * 8, "550.54.15", smi="550")
BLACKWELL_580 = Start("rtx5090_580", ("RTX 5090",), "580.65.06", open=True)
NOT_LOADED = Start("no_driver_9", ("RTX 4090",), "", smi="535")


class Patient(NamedTuple):
    """A machine and its torch; what is wrong there, and the build that the plan leaves behind ("": torch stays)."""

    title: str
    start: Start
    torch: str
    causes: tuple[str, ...] = ()
    mended: str = ""
    not_helping: str = ""


PATIENTS = [
    Patient("no code for Pascal in a cu130 build", PASCAL_580, "2.14.1+cu130", ("CD305",), "2.14.1+cu126"),
    Patient("no code for Blackwell in a cu118 build", BLACKWELL_580, "2.6.0+cu118", ("CD304",), "2.7.1+cu128"),
    Patient("sm_86 code runs on Ada", ADA_580, "2.14.1+cu130"),
    Patient("a 12.8 build on a driver that shows 12.4", A100_550, "2.9.1+cu128"),
    Patient("cu118 on R470", TURING_470, "2.6.0+cu118"),
    Patient("a CPU build beside a driver that works", ADA_580, "2.14.1+cpu", ("CD302",), "2.14.1+cu132"),
    Patient(
        "neither the driver nor the card takes this build",
        PASCAL_470,
        "2.13.0+cu130",
        ("CD305", "CD303"),
        "2.7.1+cu118",
        not_helping="a newer driver: R580 is the last branch for this card, and no driver brings code",
    ),
    Patient("a build that would do, and no module is loaded", NOT_LOADED, "2.14.1+cu130", ("CD103",)),
]


@pytest.mark.parametrize("patient", PATIENTS, ids=[patient.title for patient in PATIENTS])
def test_is_this_environment_all_right(
    patient: Patient, live: Callable[..., Live], venv_with: Callable[..., Venv]
) -> None:
    venv = venv_with(*torch_as_installed(patient.torch, "3.12"), python="3.12", pip=True)
    machine = live(patient.start, venv)
    report = machine.check()
    wrong = [o for o in report["outcomes"] if o["status"] not in ("pass", "skip") and o["severity"] == "error"]
    assert tuple(report["root_causes"]) == patient.causes, wrong
    assert report["exit"] == (1 if patient.causes else 0)
    assert bool(wrong) == bool(patient.causes)
    plan = machine.fix()
    if patient.mended:
        assert plan["choice"]["version"] == patient.mended
        assert f"torch=={patient.mended}" in install_of(plan["steps"])
    else:
        assert not [step for step in plan["steps"] if "torch" in step["id"]]
    if not patient.causes:
        assert plan["nothing_to_do"] and plan["steps"] == []
    assert patient.not_helping in " ".join(plan["not_helping"])


def test_a_torch_whose_cuda_runtime_is_gone_is_broken_and_no_cpu_build(
    live: Callable[..., Live], venv_with: Callable[..., Venv], tmp_path: Path
) -> None:
    """Its library needs libcudart.so.13, which lies nowhere: `import torch` would fail."""
    venv = venv_with(torch_wheel("2.14.1", "cu130", python="3.12"), python="3.12", pip=True)
    built = tmp_path / "built"
    built.mkdir()
    (built / "empty.c").write_text("")
    for arguments in (
        ["-Wl,-soname,libcudart.so.13", "-o", "libcudart.so.13", "empty.c"],
        [
            "-Wl,--no-as-needed",
            "-o",
            str(venv.site_packages / "torch/lib/libc10_cuda.so"),
            "empty.c",
            "libcudart.so.13",
        ],
    ):
        subprocess.run([native.compiler(), "-shared", "-fPIC", *arguments], cwd=built, check=True, timeout=60)
    # Nor does a toolkit of the real machine bring it.
    machine = live(ADA_580, venv, also={"/etc/ld.so.cache": None})
    report = machine.check()
    assert (report["root_causes"], report["exit"]) == (["CD309"], 1)
    (outcome,) = [o for o in report["outcomes"] if o["rule"] == "CD309"]
    assert "libcudart.so.13" in json.dumps(outcome)
    plan = machine.fix()
    assert plan["choice"]["version"] == "2.14.1+cu130"


def test_the_nvidia_smi_of_r470_knows_no_compute_cap_and_the_driver_is_fine(
    live: Callable[..., Live],
    venv_with: Callable[..., Venv],
    fake_nvml: Any,
    fake_program: Any,
    real_nvidia_smi: Callable[[str], str],
) -> None:
    """It alone reaches NVML here: everything that is known of the card comes out of the real nvidia-smi."""
    nvml = fake_nvml("t4_470")
    variables = " ".join(f"{name}='{value}'" for name, value in nvml.items())
    path = fake_program("nvidia-smi", f'#!/bin/sh\n{variables} exec {real_nvidia_smi("470")}/nvidia-smi "$@"\n')
    venv = venv_with(*torch_as_installed("2.6.0+cu118", "3.12"), python="3.12", pip=True)
    machine = live(TURING_470._replace(scenario=""), venv, path=path + ":/usr/bin:/bin")
    report = machine.check()
    assert (report["root_causes"], report["exit"]) == ([], 0)
    asked = subprocess.run(
        [f"{path}/nvidia-smi", "--query-gpu=compute_cap", "--format=csv"], capture_output=True, text=True, timeout=30
    )
    assert "not a valid field" in asked.stdout
