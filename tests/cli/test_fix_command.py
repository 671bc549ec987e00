"""`cudadoctor fix` from the outside: verdicts, exit statuses, documents, and what a mistyped option is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cli_runner import Run

from cudadoctor.model import Facts
from cudadoctor.render.schema import schema_of
from cudadoctor.testing import GONE, Machine, linux, windows

FactsFile = Callable[[Machine], str]


def plan(run: Run, *arguments: str) -> dict[str, Any]:
    result = run("fix", "--print", "--format", "json", *arguments)
    document: dict[str, Any] = json.loads(result.out)
    assert document["schema"] == "cudadoctor.plan/1"
    assert document["exit"] == result.exit
    assert result.err == ""
    return document


# -- planning for another machine: the questions that other installers get wrong ------------------------------------

# The options, the build, what the first blocker needs.
QUESTIONS = [
    ("--gpu K80 --driver 418.87", "1.8.1+cu101", "450.80.02"),
    ("--gpu GTX1080Ti --driver 470.223.02 --python 3.11", "2.7.1+cu118", "525.60.13"),
    ("--gpu RTX4090 --driver 535.183.01", "2.14.1+cu126", "580.65.06"),
    ("--gpu A100 --driver 550.54.14", "2.14.1+cu126", "580.65.06"),
    ("--gpu GTX1080Ti --driver 580.95.05", "2.14.1+cu126", None),
    ("--gpu V100 --driver 580.95.05", "2.14.1+cu126", None),
    ("--gpu RTX4090 --driver 580.95.05", "2.15.0+cu132", None),
    ("--gpu RTX5090 --driver 580.65.06", "2.15.0+cu132", None),
    ("--gpu RTX5090 --driver 570.124.06", "2.13.0+cu129", "580.65.06"),
    ("--gpu RTX5090 --driver 572.60 --os windows", "2.11.0+cu128", "580"),
    ("--gpu RTX5090 --gpu GTX1080Ti --driver 580.95.05", None, None),
    ("--gpu RTX5090 --driver 610.43.02", "2.15.0+cu132", None),
    ("--gpu 8.9 --driver R580", "2.15.0+cu132", None),
    ("--gpu RTX4090 --driver 581.57 --os wsl", "2.15.0+cu132", None),
    ("--gpu GH200 --arch aarch64 --driver 580.95.05", "2.15.0+cu132", None),
    ("--gpu GH200 --driver 580.95.05", "2.15.0+cu132", None),
    ("--gpu GH200 --arch x86_64 --driver 580.95.05", None, None),
    ("--gpu RTX4090 --driver 580.95.05 --glibc 2.17", "2.6.0+cu124", "2.28"),
    ("--gpu RTX4090 --driver 580.95.05 --python 3.13t", "2.12.0+cu130", None),
    ("--gpu none", "2.15.0+cpu", None),
    ("--gpu RTX4090 --torch 2.7.* --driver 550.54", "2.7.1+cu128", None),
]


@pytest.mark.parametrize(("options", "version", "needed"), QUESTIONS, ids=[row[0] for row in QUESTIONS])
def test_what_should_i_install(run: Run, options: str, version: str | None, needed: str | None) -> None:
    document = plan(run, "--os", "linux", *options.split()) if "--os" not in options else plan(run, *options.split())
    choice = document["choice"]
    assert (None if choice is None else choice["version"]) == version
    assert document["exit"] == (1 if version is None else 0)
    if choice is not None:
        assert choice["index_url"] == f"https://download.pytorch.org/whl/{choice['variant']}"
        assert choice["reasons"]
        argv = document["steps"][-1]["argv"]
        assert f"torch=={version}" in argv and choice["index_url"] in argv
    if needed is not None:
        assert needed in [blocker["needed"] for blocker in document["blocked_by"]]


def test_unlike_cards_are_told_which_build_serves_which(run: Run) -> None:
    result = run(
        "fix", "--print", "--gpu", "RTX 5090", "--gpu", "GTX 1080 Ti", "--driver", "580.95.05", "--os", "linux"
    )
    assert result.exit == 1
    assert result.out.startswith("FAIL  no single torch build serves")
    assert "one Linux system cannot drive" in " ".join(result.out.split())
    assert "CUDA_VISIBLE_DEVICES" in result.out
    assert '"torch==2.15.0+cu132"' in result.out and '"torch==2.14.1+cu126"' in result.out


@pytest.mark.parametrize("gpu", ["GH200", "GB200", "GB300", "Tesla T4G", "GB10"])
def test_what_comes_beside_an_arm_processor_only_is_planned_for_one(run: Run, gpu: str) -> None:
    out = run("fix", "--print", "--gpu", gpu, "--os", "linux").out
    assert "has an ARM processor beside it: this is for --arch aarch64" in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--gpu RTX4090 --with vllm==0.6.6", "vllm==0.6.6 is not in our data"),
        ("--gpu GH200 --arch aarch64 --torch 2.6", "which GPUs torch 2.6.0+cu126 on linux-aarch64 has code for is not"),
    ],
)
def test_what_the_data_does_not_have_is_undecided(run: Run, options: str, words: str) -> None:
    result = run("fix", "--print", "--os", "linux", *options.split())
    assert result.exit == 3
    text = " ".join(result.out.split())
    assert text.startswith("???? undecided: ") and words in text and "Say which GPU" not in text


def test_a_driver_number_that_is_cut_short_is_told_so(run: Run) -> None:
    for driver, words in (
        ("525.60", "525.60 is too short: name the whole number; 525.60.13 or newer serves CUDA 12"),
        ("450.80", "450.80 is too short: name the whole number; 450.80.02 or newer serves CUDA 11"),
        ("525.60.13", ""),
        ("580.95", ""),
    ):
        out = " ".join(run("fix", "--print", "--gpu", "T4", "--driver", driver, "--os", "linux").out.split())
        assert words in out and ("too short" in out) == bool(words), driver


def test_cards_that_need_different_kernel_modules_fail_whatever_build_serves_both(run: Run) -> None:
    document = plan(run, "--gpu", "V100", "--gpu", "RTX 5090", "--driver", "580.95.05", "--os", "linux")
    assert document["exit"] == 1
    assert document["verdict"].startswith("one Linux system cannot drive GeForce RTX 5090 and V100 together: ")
    old = plan(run, "--gpu", "GTX 1080", "--gpu", "RTX 5090", "--driver", "535.104", "--os", "linux")
    assert old["exit"] == 1 and "RTX 5090 needs R570 or newer" in old["verdict"]
    beside = plan(run, "--gpu", "V100", "--gpu", "A100", "--driver", "580.95.05", "--os", "linux")
    assert beside["exit"] == 0


def test_a_driver_that_does_not_drive_the_card_comes_first(run: Run) -> None:
    document = plan(run, "--gpu", "GTX 1080", "--driver", "610.43.02", "--os", "linux")
    assert "R580 is the last branch" in document["driver_first"]
    assert [step["id"] for step in document["steps"]] == ["install-driver", "reboot", "install-torch"]


def test_the_first_line_is_the_answer_and_commands_are_whole(run: Run) -> None:
    out = run("fix", "--print", "--gpu", "RTX 4090", "--driver", "535.183.01", "--os", "linux").out
    lines = out.splitlines()
    assert lines[0] == "OK    torch 2.14.1+cu126 for GeForce RTX 4090 with driver 535.183.01"
    assert (
        '   python -m pip install "torch==2.14.1+cu126" "torchvision==0.29.1+cu126" '
        "--index-url https://download.pytorch.org/whl/cu126"
    ) in lines
    assert all(len(line) <= 80 for line in lines if "pip install" not in line)
    assert out.isascii()
    for word in ("changes ", "needs ", "undo ", "better ", "also "):
        assert any(line.strip().startswith(word) for line in lines), word


def test_an_interpreter_by_its_path_stands_in_the_command(run: Run) -> None:
    out = run("fix", "--print", "--gpu", "RTX 4090", "--python", "/opt/my env/bin/python").out
    assert '"/opt/my env/bin/python" -m pip install' in out


# -- what a person reads -------------------------------------------------------------------------------------------

INVOCATIONS = [
    "--gpu GTX1080Ti --driver 580.95.05",
    "--gpu RTX5090 --driver 570.124.06",
    "--gpu RTX4090 --driver 550.54.14",
    "--gpu RTX5090 --gpu GTX1080Ti --driver 580.95.05",
    "--gpu K80 --driver 418.87",
    "--gpu A100 --gpu A100 --gpu A100 --gpu A100 --driver 550.54.14",
    "--gpu RTX4090 --driver 581.57 --os windows",
    "--gpu RTX5090 --driver 572.60 --os wsl",
    "--gpu GH200 --arch aarch64 --driver 580.95.05",
    "--gpu none",
    "--gpu RTX4090 --driver 580.95.05 --python 3.9",
    "--gpu RTX4090 --driver 580.95.05 --torch 2.6",
    "--gpu RTX4090 --driver 550.54.14 --with vllm",
    "--gpu RTX4090 --driver 550.54.14 --with xformers --with jax",
    "--gpu RTX3060",
    "--gpu GTX1080 --driver 610.43.02",
    "--gpu A100 --driver 535.183.01 --torch 2.15",
    "--gpu RTX4090 --driver 580.95.05 --torch 1.2",
    "--gpu A100 --driver 535.183.01 --installer conda",
    "--gpu A100 --driver 535.183.01 --installer uv",
    "--gpu A100 --driver 535.183.01 --mirror https://mirror.example/whl --mirror-layout flat",
    "--gpu 8.7 --arch aarch64",
    "--driver 580.95.05",
    "--driver 550.54.14",
]


@pytest.mark.parametrize("options", INVOCATIONS)
def test_the_text_of_a_plan(run: Run, options: str) -> None:
    """First the verdict, then the command, then the rest: in 80 columns, in ASCII, nothing twice."""
    result = run("fix", "--print", *([] if "--os" in options else ["--os", "linux"]), *options.split())
    lines = result.out.splitlines()
    assert result.err == ""
    assert lines[0][:6] in ("OK    ", "TODO  ", "FAIL  ", "????  ")
    assert result.exit == {"OK  ": 0, "TODO": 1, "FAIL": 1, "????": 3}[lines[0][:4]]
    assert result.out.isascii()
    commands = ("pip install", "pip uninstall", "conda install", "conda remove", "program.py", "https://")
    assert [line for line in lines if len(line) > 80 and not any(word in line for word in commands)] == []
    rows = [line for line in lines if line.startswith(("not  ", "better  ", "note  ", "each  ", "or  "))]
    assert len(rows) == len(set(rows))
    if lines[0].startswith("OK"):
        assert any("install" in line for line in lines[1:5])
    for word in ("None", "[]", "()", "{", "  ;", "..", "::"):
        assert word not in result.out.replace("...", ""), word


# The options, what the plan says, and what it must not say.
WORDS: list[tuple[str, list[str], list[str]]] = [
    (
        "--gpu GTX1080 --driver 461.40 --os windows --python 3.15",
        ["uv venv --seed --python 3.13 .venv", "Python: there is a wheel for 3.13"],
        ["python -m venv .venv\n   changes", "Python: not given"],
    ),
    (
        "--gpu RTX4090 --driver 580.95.05 --os linux --with deepspeed --with flashinfer-python --with jax[cuda12]",
        [
            "pip install --no-build-isolation deepspeed changes",
            'pip install "flashinfer-python[cu12]"',
            'pip install "jax[cuda12]==',
        ],
        [],
    ),
    (
        "--gpu GRIDT4-8Q --os linux",
        ["for GRIDT4-8Q", "takes only the guest driver that matches its host's"],
        ["is the one to install"],
    ),
    (
        "--gpu A16-4Q --os windows --driver 472.12 --torch 2.14",
        ["Update the driver: the vGPU guest driver This is a virtual GPU"],
        ["nvidia.com/drivers"],
    ),
    (
        "--gpu RTX4090 --driver 580.95.05 --os linux --python 3.12 --with vllm --with xformers --format requirements",
        ["another build of xformers", " --extra-index-url https://download.pytorch.org/whl/cu130 torch=="],
        ["\n--index-url"],
    ),
    (
        "--gpu GTX1080 --driver 590.48 --os linux --installer conda",
        ["then conda-forge's torch 2.13.0", "pytorch=2.13.0=", "export CONDA_OVERRIDE_CUDA=13.0"],
        ["CONDA_OVERRIDE_CUDA=13.1"],
    ),
    (
        "--gpu A100 --driver 450.80 --torch 2.12 --os linux --installer conda",
        ["pytorch=2.12.1=cuda130*", "export CONDA_OVERRIDE_CUDA=13.0"],
        ["pip install"],
    ),
    (
        "--gpu RTX4090 --driver 580.95.05 --os linux --format conda",
        ["# conda-forge's torch 2.13.0 for GeForce RTX 4090"],
        ["# torch 2.15.0"],
    ),
    (
        "--gpu RTX4090 --driver 580.95.05 --os linux --installer conda --format json",
        ['"choice": { "torch": "2.13.0", "variant": "cuda129", "version": "2.13.0"'],
        ["torch==2.15.0+cu132"],
    ),
]


@pytest.mark.parametrize(("options", "says", "says_not"), WORDS, ids=[row[0] for row in WORDS])
def test_what_a_plan_says(run: Run, options: str, says: list[str], says_not: list[str]) -> None:
    result = run("fix", "--print", *options.split())
    assert result.err == ""
    flowing = " ".join(result.out.split())
    for text in says:
        assert text in flowing
    for text in says_not:
        assert text not in result.out


def test_one_command_follows_the_verdict_at_once(run: Run) -> None:
    lines = run("fix", "--print", "--gpu", "RTX 4090", "--driver", "550.54.14", "--os", "linux").out.splitlines()
    assert lines[1] == ""
    assert lines[2].strip().startswith("python -m pip install ")


def test_several_cards_of_a_kind_are_counted(run: Run) -> None:
    out = run("fix", "--print", "--os", "linux", *["--gpu", "A100"] * 8, "--driver", "550.54.14").out
    assert out.startswith("OK    torch 2.14.1+cu126 for 8x A100 with driver 550.54.14")


def test_a_driver_alone_serves_any_card_or_says_which_build_serves_which(run: Run) -> None:
    old = run("fix", "--print", "--os", "linux", "--driver", "550.54.14")
    assert old.out.startswith("OK    torch 2.14.1+cu126 for any GPU on driver 550.54.14")
    new = run("fix", "--print", "--os", "linux", "--driver", "580.95.05")
    assert new.exit == 3
    assert "torch 2.14.1+cu126" in new.out and "torch 2.15.0+cu132" in new.out


# -- the examined machine -------------------------------------------------------------------------------------------

SICK = linux().torch("2.6.0+cpu").package("torchvision", "0.21.0+cpu")


def test_nothing_to_do(run: Run, facts_file: FactsFile) -> None:
    result = run("fix", "--facts", facts_file(linux()))
    assert result.exit == 0
    assert result.out.startswith("OK    nothing to do: torch 2.14.1+cu130 runs on")


def test_something_to_do(run: Run, facts_file: FactsFile) -> None:
    result = run("fix", "--facts", facts_file(SICK))
    assert result.exit == 1
    assert result.out.startswith("TODO  1 step: torch 2.6.0+cpu is built without CUDA")
    assert "more  cudadoctor explain CD302" in result.out


def test_undecided(run: Run, facts_file: FactsFile) -> None:
    result = run("fix", "--facts", facts_file(Machine(Facts({}))))
    assert result.exit == 3
    assert result.out.startswith("????  undecided: ")


def test_nothing_mends_a_machine_without_a_gpu(run: Run, facts_file: FactsFile) -> None:
    result = run("fix", "--facts", facts_file(linux().no_gpu()))
    assert result.exit == 1
    assert result.out.startswith("FAIL  nothing that cudadoctor knows mends this: ")


def test_what_is_not_mended_does_not_look_mended(run: Run, facts_file: FactsFile) -> None:
    result = run("fix", "--facts", facts_file(linux().no_gpu().no_torch()))
    assert result.out.startswith("FAIL  no step mends this: ")
    assert "whl/cpu" in result.out


def test_a_driver_that_is_gone_never_means_the_cpu_build(run: Run, facts_file: FactsFile) -> None:
    machine = linux().driver_fails(18, "mismatch", 18, "Driver/library version mismatch")
    document = plan(run, "--facts", facts_file(machine))
    assert document["driver_first"]
    assert document["choice"]["variant"] != "cpu"
    assert all("whl/cpu" not in " ".join(step["argv"] or []) for step in document["steps"])


def test_windows_reads_powershell(run: Run, facts_file: FactsFile) -> None:
    out = run("fix", "--facts", facts_file(windows().torch("2.9.1+cpu"))).out
    assert 'python.exe -m pip install "torch==2.9.1+cu130"' in out


def test_wishes_on_a_healthy_machine(run: Run, facts_file: FactsFile) -> None:
    document = plan(run, "--torch", "2.15.*", "--with", "torchaudio", "--facts", facts_file(linux()))
    assert document["choice"]["version"] == "2.15.0+cu132"
    assert set(document["choice"]["companions"]) == {"torchvision", "torchaudio"}
    assert document["exit"] == 1


def test_a_wish_that_nothing_serves(run: Run, facts_file: FactsFile) -> None:
    result = run("fix", "--torch", "9.9.*", "--facts", facts_file(linux()))
    assert result.exit == 1
    assert "9.9" in result.out


def test_hostile_names_steer_no_terminal(run: Run, facts_file: FactsFile) -> None:
    machine = SICK.set({"python.environment_name": "\x1b[2J\x1b]0;owned\x07", "python.pip_on_path": GONE})
    assert "\x1b" not in run("fix", "--facts", facts_file(machine)).out


# -- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [linux(), SICK, linux().no_driver(), Machine(Facts({}))])
def test_the_document_keeps_to_its_schema(run: Run, facts_file: FactsFile, machine: Machine) -> None:
    document = plan(run, "--facts", facts_file(machine))
    schema = schema_of("cudadoctor.plan/1")
    assert set(schema["required"]) <= set(document)
    step = schema["$defs"]["StepEntry"]["required"]
    for entry in (*document["steps"], *document["advice"]):
        assert set(step) <= set(entry)
    choice = schema["$defs"]["ChoiceEntry"]["required"]
    for entry in filter(None, [document["choice"], *document["alternatives"]]):
        assert set(choice) <= set(entry)


FORMS = [
    ("requirements", ["--index-url https://download.pytorch.org/whl/cu126", "torch==2.14.1+cu126"]),
    (
        "uv",
        [
            "  \"torch==2.14.1+cu126; sys_platform != 'darwin'\",",
            "  \"torch==2.14.1; sys_platform == 'darwin'\",",
            'torch = { index = "pytorch-cu126", marker = "sys_platform != \'darwin\'" }',
            "explicit = true",
        ],
    ),
    ("conda", ["  - conda-forge", "  - python=3.12", "  - torchvision"]),
    ("dockerfile", ["FROM python:3.12-slim-trixie"]),
    ("poetry", ['torch = { version = "==2.14.1+cu126", source = "pytorch-cu126" }', 'priority = "explicit"']),
    ("pixi", ['platforms = ["linux-64"]', 'python = "3.12.*"']),
]


@pytest.mark.parametrize(("form", "lines"), FORMS)
def test_forms(run: Run, form: str, lines: list[str]) -> None:
    options = ["--gpu", "RTX 4090", "--driver", "535.183.01", "--os", "linux", "--python", "3.12"]
    result = run("fix", "--print", "--format", form, *options)
    assert result.exit == 0
    for line in lines:
        assert line in result.out.splitlines()


def test_a_file_gets_the_plan(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "plan.json"
    result = run("fix", "--print", "--gpu", "RTX 4090", "--format", "json", "-o", str(path))
    assert (result.exit, result.out) == (0, "")
    assert json.loads(path.read_text())["choice"]["torch"] == "2.15.0"


# -- mistakes -------------------------------------------------------------------------------------------------------

MISTAKES = [
    (["--gpu", "RTX 5909"], "did you mean GeForce RTX 5090"),
    (["--gpu", "Radeon RX 7900"], "there is no GPU 'Radeon RX 7900'"),
    (["--gpu", "4.2"], "no GPU of compute capability 4.2 is known"),
    (["--gpu", "RTX 4090", "--driver", "newest"], "--driver takes a driver number such as 580.95.05, not 'newest'"),
    (["--gpu", "RTX 4090", "--driver", "12.2"], "is no driver number"),
    (["--gpu", "RTX 4090", "--driver", "566.36", "--os", "linux"], "is a Windows number (R565)"),
    (["--gpu", "RTX 4090", "--driver", "550.54; reboot"], "--driver takes a driver number"),
    (["--arch", "x86_64"], "which GPU is the plan for?"),
    (["--gpu", "RTX 4090", "--glibc", "new"], "--glibc takes a version such as 2.28"),
    (["--gpu", "RTX 4090", "--python", "three"], "--python takes a version such as 3.12"),
    (["--gpu", "RTX 4090", "--torch", "2.7; reboot"], "--torch takes a version or a range"),
    (["--gpu", "RTX 4090", "--mirror", "not a url"], "--mirror takes an http or https address"),
    (["--gpu", "RTX 4090", "--with", "numpy"], "it is not known which torch or CUDA 'numpy' goes with"),
    (["--gpu", "RTX 4090", "--with", "vllm; reboot"], "--with takes a package such as vllm"),
    (["--gpu", "RTX 4090", "--mirror", "https://me:secret@mirror.example/whl"], "~/.netrc"),
    (["--gpu", "RTX 4090", "--mirror", "https://mirror.example/{cuda}/"], "{variant}"),
    (["--gpu", "RTX 4090", "--replay", "somewhere"], "leave --replay"),
    (["--replay", "no/such/folder"], "no/such/folder"),
    (["--apply", "--print"], "use either"),
    (["--apply", "--gpu", "RTX 4090"], "the plan is for another one"),
]


@pytest.mark.parametrize(("options", "says"), MISTAKES, ids=[" ".join(row[0]) for row in MISTAKES])
def test_mistakes_are_told_in_one_sentence(run: Run, options: list[str], says: str) -> None:
    result = run("fix", *(["--os", "linux"] if "--gpu" in options and "--os" not in options else []), *options)
    assert result.exit == 2
    assert result.out == ""
    assert says in result.err
    assert len(result.err.splitlines()) == 1
