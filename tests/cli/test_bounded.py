"""`check --timeout` bounds the whole run by the wall clock, whatever hangs: what was found by then counts, the rest is
unknown, and nothing that can be killed is left.

The machine is healthy but for what hangs: two cards and a driver (NVML through the stand-in library, nvidia-smi the
distribution's own or a program of the test's), an active environment with torch. Dead paths lie on a real mount that
answers nothing; see `bench/dead_paths.py`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from bench.left_behind import Left, left_behind, new_mark
from bench.parts import clean_environ, program
from bench.roots import nvidia_module, pci_gpu
from bench.venvs import Venv, activated
from bench.wheels import torch_wheel

import cudadoctor

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts, /proc and signals of Linux"),
]

ROOT = Path(cudadoctor.__file__).parent.parent

TWO_A100 = {
    **pci_gpu(device="0x20b2", class_="0x030200"),
    **pci_gpu("0000:02:00.0", "0x20b2", class_="0x030200"),
    **nvidia_module("535.183.01"),
}

# What a run may take beyond its deadline: Python's own start, the made machine's, and others at work on this one.
SLACK = 3.0

# As an installed command: where `python -m` puts the working folder on the import path, this puts its own.
PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from cudadoctor.cli import run
run()
"""


class Ran(NamedTuple):
    exit: int
    out: str
    err: str
    seconds: float
    left: list[Left]

    @property
    def report(self) -> Any:
        return json.loads(self.out)

    @property
    def facts(self) -> Any:
        return self.report["facts"]

    def outcome(self, rule: str) -> Any:
        return next(outcome for outcome in self.report["outcomes"] if outcome["rule"] == rule)

    @property
    def late(self) -> list[str]:
        """The probes that did not end in time."""
        return [entry["probe"] for entry in self.facts["examination.timed_out"]["value"]]


Check = Callable[..., Ran]


class Patient:
    """The machine on which a check runs, and how it is called."""

    def __init__(self, machine: Any, environment: dict[str, str], folder: Path) -> None:
        self.machine = machine
        self.environment = environment
        self.program = folder / "bin" / "cudadoctor"
        self.program.parent.mkdir()
        self.program.write_text(PROGRAM)

    def start(self, *arguments: str, env: Optional[dict[str, str]] = None, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.machine.command(sys.executable, str(self.program), "check", *arguments),
            env={**self.environment, **(env or {})},
            stdin=more.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def check(self, *arguments: str, env: Optional[dict[str, str]] = None, **more: Any) -> Ran:
        """Waits for the end of all output, too: whoever is left behind must not hold it."""
        mark = new_mark()
        begun = time.monotonic()
        with self.start("--format", "json", *arguments, env={**mark, **(env or {})}, **more) as running:
            out, err = running.communicate(timeout=60)
        return Ran(running.returncode, out, err, time.monotonic() - begun, left_behind(mark, 1.0))


@pytest.fixture
def environment(venv_with: Callable[..., Venv], fake_nvml: Any, tmp_path: Path) -> dict[str, str]:
    venv = venv_with(torch_wheel("2.9.1", "cu126", archs=["50", "60", "70", "75", "80", "86", "90"]))
    home = tmp_path / "home"
    home.mkdir()
    return clean_environ(fake_nvml("two_gpus"), activated(venv), HOME=str(home))


@pytest.fixture
def patient(environment: dict[str, str], fake_root: Any, tmp_path: Path) -> Patient:
    return Patient(fake_root(TWO_A100), environment, tmp_path)


def test_the_machine_is_healthy_where_nothing_hangs(patient: Patient) -> None:
    ran = patient.check("--timeout", "20")
    assert (ran.exit, ran.err, ran.late, ran.left) == (0, "", [], [])
    assert ran.facts["gpu.count"]["value"] == 2


# -- dead paths -----------------------------------------------------------------------------------------------------


class Dead(NamedTuple):
    """Where `{dead}` is put: variables, more options, the working folder. The exit status: 3 where the environment
    that is judged lies there."""

    name: str
    variables: dict[str, str]
    exit: int = 0
    options: tuple[str, ...] = ()
    folder: str = ""


DEAD = [
    Dead("HOME", {"HOME": "{dead}/home/me"}),
    Dead("CUDADOCTOR_DATA", {"CUDADOCTOR_DATA": "{dead}/data"}),
    Dead("PATH, first entry", {"PATH": "{dead}/bin:{PATH}"}),
    Dead("PATH, last entry", {"PATH": "{PATH}:{dead}/bin"}),
    Dead("VIRTUAL_ENV", {"VIRTUAL_ENV": "{dead}/venv"}, 3),
    Dead("CONDA_PREFIX", {"VIRTUAL_ENV": "", "CONDA_PREFIX": "{dead}/conda"}, 3),
    Dead("--python", {}, 3, ("--python", "{dead}/bin/python")),
    Dead(
        "several at once",
        {
            "TMPDIR": "{dead}/tmp",
            "CUDA_HOME": "{dead}/cuda",
            "PIP_CONFIG_FILE": "{dead}/pip.conf",
            "XDG_DATA_HOME": "{dead}/data",
        },
    ),
    Dead("working folder", {}, folder="{dead}"),
]


def _filled(text: str, dead: Path, path: str) -> str:
    return text.replace("{dead}", str(dead)).replace("{PATH}", path)


def _check_on(dead: Path, case: Dead, patient: Patient) -> Ran:
    path = patient.environment["PATH"]
    variables = {name: _filled(text, dead, path) for name, text in case.variables.items()}
    options = [_filled(text, dead, path) for text in case.options]
    return patient.check("--timeout", "6", *options, env=variables, cwd=_filled(case.folder, dead, path) or None)


@pytest.mark.parametrize("case", DEAD, ids=[case.name for case in DEAD])
def test_a_dead_path_costs_what_lies_there_and_no_more(case: Dead, patient: Patient, dead_path: Path) -> None:
    ran = _check_on(dead_path, case, patient)
    assert ran.seconds < 6 + SLACK  # it ends before its time: what is dead is found out once
    assert (ran.exit, ran.err, ran.left) == (case.exit, "", [])
    assert ran.late == ["folders"]
    assert " did not answer within 1." in ran.outcome("CD903")["message"]
    # The driver is no less known for it, nor is the environment where it lies elsewhere.
    assert ran.facts["gpu.count"]["value"] == 2 and ran.facts["system.kernel_release"]["state"] == "known"
    assert ran.facts["package.torch.version"]["state"] == ("unknown" if case.exit else "known")


@pytest.mark.parametrize("case", [DEAD[0], DEAD[2], DEAD[4]], ids=lambda case: case.name)
def test_who_cannot_be_killed_is_left_behind_and_holds_nothing_of_ours(
    case: Dead, patient: Patient, deaf_path: Path
) -> None:
    """Whoever looks below this mount is in uninterruptible sleep. The caller's streams are at their end all the same
    (or `check` here would not return), and so is a file that a shell had opened for it (`exec 3>...`)."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    ran = _check_on(deaf_path, case, patient)
    os.close(writer)
    assert ran.seconds < 6 + SLACK
    assert (ran.exit, ran.err) == (case.exit, "")
    assert ran.left and {left.state for left in ran.left} == {"D"}, ran.left
    assert all(len(left.pipes) <= 1 for left in ran.left), ran.left  # the way to the process that has gone
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_link_into_a_dead_path_costs_the_probes_that_follow_it(
    patient: Patient, dead_path: Path, tmp_path: Path
) -> None:
    """No variable leads there, so each probe finds out for itself; the others overtake it."""
    venv = Path(patient.environment["VIRTUAL_ENV"])
    (next(venv.glob("lib/python*")) / "site-packages" / "nvidia").symlink_to(dead_path / "nvidia")
    ran = patient.check("--timeout", "4")
    assert ran.seconds < 4 + SLACK
    assert ran.left == [] and ran.late
    assert ran.facts["gpu.count"]["value"] == 2 and ran.facts["package.torch.version"]["state"] == "known"


# -- the driver -----------------------------------------------------------------------------------------------------

DEAF_NVML = "hang_deaf = 1\nhang.nvmlInit_v2 = 120\n"

SMI = {
    "ignores all but the last signal": "trap '' TERM INT HUP; while :; do sleep 5; done",
    "stops itself": "kill -STOP $$",
    "writes without end": "while :; do echo yes yes yes yes yes yes yes; done",
    "ends, and leaves somebody who ignores signals": "(trap '' TERM INT HUP; sleep 60) & exit 0",
}


@pytest.mark.parametrize("script", SMI.values(), ids=SMI)
def test_whatever_nvidia_smi_does_the_verdict_is_nvmls(script: str, patient: Patient, fake_program: Any) -> None:
    ran = patient.check("--timeout", "4", env=in_front(patient, fake_program("nvidia-smi", script)))
    assert ran.seconds < 4 + SLACK
    assert (ran.exit, ran.err, ran.left) == (0, "", [])


def in_front(patient: Patient, folder: str) -> dict[str, str]:
    return {"PATH": f"{folder}:{patient.environment['PATH']}"}


def test_a_driver_that_does_not_answer_is_a_fault_of_the_machine(
    patient: Patient, fake_nvml: Any, fake_program: Any
) -> None:
    variables = {
        **in_front(patient, fake_program("nvidia-smi", SMI["ignores all but the last signal"])),
        "FAKE_NVML": fake_nvml("two_gpus", text=DEAF_NVML)["FAKE_NVML"],
    }
    ran = patient.check("--timeout", "5", "--retry-code", "75", env=variables)
    assert ran.seconds < 5 + SLACK
    assert (ran.exit, ran.err, ran.left) == (75, "", [])
    assert ran.report["root_causes"] == ["CD106"]
    assert ran.late == []  # it is CD106 that says so
    assert ran.facts["package.torch.version"]["state"] == "known"


@pytest.mark.parametrize("seconds", ["0.3", "1"])
def test_a_driver_that_was_given_too_little_time_is_undecided(seconds: str, patient: Patient, fake_nvml: Any) -> None:
    variables = {"FAKE_NVML": fake_nvml("two_gpus", text=DEAF_NVML)["FAKE_NVML"]}
    ran = patient.check("--timeout", seconds, env=variables)
    assert ran.seconds < float(seconds) + SLACK
    assert (ran.exit, ran.err, ran.left) == (3, "", [])
    assert "driver" in ran.late
    assert ran.outcome("CD106")["status"] == "unknown"


def test_nvidia_smi_whose_file_does_not_come_says_nothing_about_the_driver(
    patient: Patient, fake_nvml: Any, fake_program: Any, dead_path: Path
) -> None:
    """Starting it is what hangs: its interpreter lies on a dead path. NVML refuses, so nvidia-smi would decide."""
    folder = fake_program("nvidia-smi", f"#!{dead_path}/sh\n")
    variables = {**in_front(patient, folder), "FAKE_NVML": fake_nvml("no_driver_9")["FAKE_NVML"]}
    ran = patient.check("--timeout", "3", env=variables)
    assert ran.seconds < 3 + SLACK
    assert ran.left == []
    assert ran.facts["driver.smi_failure"]["reason"] == "nvidia-smi: timed out before it began"


# -- what is read and written for the check -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["a dead path", "a pipe that nobody writes to"])
@pytest.mark.parametrize("option", ["--log", "--policy", "-o", "--also"])
def test_a_file_that_does_not_answer_is_an_unusable_one(
    option: str, kind: str, patient: Patient, dead_path: Path, tmp_path: Path
) -> None:
    path = str(dead_path / "file") if kind == "a dead path" else str(tmp_path / "pipe")
    if kind != "a dead path":
        os.mkfifo(path)
    ran = patient.check("--timeout", "1", option, f"text={path}" if option == "--also" else path)
    assert ran.seconds < 1 + SLACK
    assert (ran.exit, ran.left) == (2, [])
    verb = "write" if option in ("-o", "--also") else "read"
    assert ran.err.startswith(f"cudadoctor: error: cannot {verb} ") and path in ran.err
    assert ran.err.endswith(": it did not answer in time\n")
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.endswith(".tmp")) == []


def test_standard_input_that_does_not_end_is_given_up(patient: Patient) -> None:
    reader, writer = os.pipe()
    ran = patient.check("--timeout", "1", "--log", "-", stdin=reader)
    os.close(reader)
    os.close(writer)
    assert ran.seconds < 1 + SLACK
    assert (ran.exit, ran.left) == (2, [])
    assert ran.err == "cudadoctor: error: cannot read standard input: it did not end in time\n"


@pytest.mark.parametrize("target", ["-", "/dev/stdout", "link"])
def test_the_streams_of_the_caller_are_written_to_as_ever(target: str, patient: Patient, tmp_path: Path) -> None:
    if target == "link":
        target = str(tmp_path / "link")
        os.symlink("/dev/stdout", target)
    ran = patient.check("--timeout", "20", "-o", target)
    assert (ran.exit, ran.err) == (0, "") and ran.report["exit"] == 0


# -- the end before its time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_who_ends_a_check_leaves_nothing_behind(number: signal.Signals, patient: Patient, fake_nvml: Any) -> None:
    nvml = fake_nvml("two_gpus", text=DEAF_NVML)["FAKE_NVML"]
    for processes, moment in ((1, 0.0), (1, 0.1), (2, 0.0), (2, 0.05), (2, 0.5)):
        mark = new_mark()
        running = patient.start("--timeout", "20", env={**mark, "FAKE_NVML": nvml}, start_new_session=True)
        while len(left_behind(mark)) < processes:
            assert running.poll() is None
            time.sleep(0.01)
        time.sleep(moment)
        os.kill(running.pid, number)
        _, err = running.communicate(timeout=20)
        assert left_behind(mark, 2.0) == []
        if processes > 1:  # before, Python itself may still be on its way
            assert (running.returncode in (130, -number), err.strip()) == (True, ""), err


def test_what_a_killed_check_has_left_ends_by_itself(patient: Patient, fake_program: Any) -> None:
    """Nobody can do anything at SIGKILL: what ran for it ends soon after the time that it was given."""
    mark = new_mark()
    smi = fake_program("nvidia-smi", "exec sleep 60")
    running = patient.start("--timeout", "2", env={**mark, **in_front(patient, smi)})
    while not any("sleep" in left.command for left in left_behind(mark)):
        assert running.poll() is None
        time.sleep(0.05)
    running.kill()
    running.communicate(timeout=20)
    assert left_behind(mark, 10.0) == []


# -- others ---------------------------------------------------------------------------------------------------------


def test_many_at_once_do_not_disturb_each_other(patient: Patient) -> None:
    mark = new_mark()
    command = ("--format", "json", "--timeout", "60")
    running = [patient.start(*command, env=mark) for _ in range(8)]
    done = [(*one.communicate(timeout=120), one.returncode) for one in running]
    assert [(err, status) for _, err, status in done] == [("", 0)] * 8
    assert left_behind(mark, 1.0) == []
    changing = ("memory.", "disk.", "system.load", "python.pid")
    facts = [
        {name: fact for name, fact in json.loads(out)["facts"].items() if not name.startswith(changing)}
        for out, _, _ in done
    ]
    assert all(one == facts[0] for one in facts)


# Calls that make, change or take away something in the file system, as strace prints them.
CHANGES = re.compile(
    r" (?:open(?:at)?\((?!.*\"/dev/null\").*(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)"
    r"|(?:mkdir|rmdir|rename|unlink|symlink|link|mknod|chmod|chown|truncate|utime|utimens|setxattr)(?:at|at2)?\()"
    r".* = [0-9]"
)


def test_a_check_writes_nothing(patient: Patient, tmp_path: Path) -> None:
    """Neither in the home, nor in the folders of temporary files, nor beside itself."""
    strace = program("strace", "Debian: apt-get install strace")
    trace = tmp_path / "trace"
    command = [
        strace,
        "-f",
        "-qq",
        "-e",
        "trace=%file",
        "-o",
        str(trace),
        sys.executable,
        str(patient.program),
        "check",
    ]
    done = subprocess.run(
        patient.machine.command(*command), env=patient.environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = trace.read_text("utf-8", "replace").splitlines()
    assert len(lines) > 500  # it has been watched
    assert [line for line in lines if CHANGES.search(line)] == []
