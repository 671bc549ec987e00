"""Package lists, and what pip says beside them. What is not in a list is missing only where the list is whole."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from bench.parts import clean_environ
from bench.venvs import Venv
from report_reading import ABSENT, SAMPLES, UNKNOWN, expect, facts_of, known_names

RUNTIME = "nvidia-cuda-runtime-cu12 12.4.127\n"
TABLE = "Package                  Version\n------------------------ --------\n"

LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a local version": (
        TABLE + "torch                    2.4.1+cpu\n",
        {"torch.version": "2.4.1+cpu", "package.torch.version": "2.4.1+cpu"},
    ),
    # On Windows it is a CPU build, from PyPI on Linux one with CUDA, of conda either.
    "no local version": (TABLE + "torch                    2.2.2\n", {"torch.version": "2.2.2", "torch.cuda": UNKNOWN}),
    "no local version, beside the CUDA that PyPI's wheel brings": (
        TABLE + RUNTIME + "torch                    2.6.0\n",
        {"torch.version": "2.6.0+cu124", "torch.cuda": "12.4"},
    ),
    "beside the CUDA of another package": (
        TABLE + RUNTIME + "torch                    2.9.1\n",
        {"torch.version": "2.9.1", "torch.cuda": UNKNOWN},
    ),
    "filtered": ("$ pip list | grep torch\ntorch          2.5.0+cu118\n", {"torch.version": "2.5.0+cu118"}),
    "pip 9": (
        "torch (1.3.0)\ntorchvision (0.4.1)\n",
        {"torch.version": "1.3.0", "package.torchvision.version": "0.4.1"},
    ),
    "a sentence": ("I use torch (1.3.0)\n", {"torch.version": UNKNOWN}),
    "JSON": ('[{"name": "torch", "version": "2.3.0+cu121"}]\n', {"torch.version": "2.3.0+cu121"}),
    "editable": (
        "Package Version      Editable project location\n------- ------------ -------------------------\n"
        "torch   2.8.0a0+gitb  /src/pytorch\n",
        {"torch.origin": "source", "torch.version": "2.8.0a0+gitb"},
    ),
    "-v": (
        "Package Version Location                              Installer\n"
        "------- ------- ------------------------------------- ---------\n"
        "torch   2.8.0   /opt/e/lib/python3.12/site-packages   uv\n",
        {"package.torch.location": "/opt/e/lib/python3.12/site-packages", "package.torch.installer": "uv"},
    ),
    "uv's tree": (
        "vllm v0.8.2\n\u251c\u2500\u2500 torch v2.6.0+cu124\n",
        {"torch.version": "2.6.0+cu124", "package.vllm.version": "0.8.2"},
    ),
    "freeze": (
        "$ pip freeze\nflash-attn @ file:///w/flash_attn-2.7.0+cu12torch2.4cxx11abiFALSE-cp310-cp310-linux_x86_64.whl\n"
        "torch==2.5.1+cu121\n",
        {"package.flash-attn.built_for_torch": "2.4", "torch.version": "2.5.1+cu121"},
    ),
    "a requirements file": ("requirements.txt:\nnumpy==1.26.4\ntorch==1.4.0\n", {"torch.version": UNKNOWN}),
    "a frozen list without its command": (
        "filelock==3.13.1\nsympy==1.12\ntorch==2.5.1\n",
        {"torch.version": "2.5.1"},
    ),
    "show": (
        "Name: torch\nVersion: 2.1.2\nLocation: /opt/e/lib/python3.11/site-packages\nRequires: filelock\n",
        {
            "torch.version": "2.1.2",
            "torch.cuda": UNKNOWN,
            "package.torch.location": "/opt/e/lib/python3.11/site-packages",
        },
    ),
    "show of what is not there": (
        "WARNING: Package(s) not found: torch, xformers\n",
        {"torch.version": ABSENT, "package.xformers.version": ABSENT, "package.vllm.version": UNKNOWN},
    ),
    "conda's CPU build": (
        "pytorch                   2.4.1           cpu_generic_py312h1234567_0    conda-forge\n",
        {"torch.cuda": ABSENT, "torch.version": "2.4.1", "torch.origin": "conda"},
    ),
    "conda-forge's CUDA build": (
        "pytorch                   2.5.1           cuda118_py311hc7e9d6c_300    conda-forge\n",
        {"torch.cuda": "11.8", "package.torch.conda_channel": "conda-forge"},
    ),
    "micromamba": (
        'List of packages in environment: "/home/u/mm/envs/x"\n\n  Name     Version  Build                   Channel\n'
        "\u2500\u2500\u2500\u2500\u2500\n  pytorch  2.5.1    cuda126_py312h2ab7a7d_300  conda-forge\n",
        {"torch.cuda": "12.6", "python.prefix": "/home/u/mm/envs/x", "python.environment": "conda"},
    ),
    "conda env export": (
        "dependencies:\n  - python=3.9.18=h955ad1f_0\n  - pytorch=1.13.1=py3.9_cuda11.7_cudnn8.5.0_0\n",
        {"torch.cuda": "11.7", "torch.version": "1.13.1", "python.version": "3.9.18"},
    ),
    "an environment file that a person wrote": (
        "dependencies:\n  - python=3.9\n  - pytorch=1.13.1\n  - pytorch-cuda=11.7\n",
        {"torch.version": UNKNOWN, "python.version": UNKNOWN},
    ),
    "conda info": (
        "          virtual packages : __archspec=1=x86_64\n                             __glibc=2.31=0\n"
        "                             __linux=5.4.0=0\n                  platform : linux-64\n",
        {"conda.virtual_cuda": ABSENT, "system.glibc": "2.31", "system.arch": "x86_64"},
    ),
    "conda's plan": (
        "    package                    |            build\n    ---------------------------|-----------------\n"
        "    pytorch-2.1.2              |     py3.10_cpu_0       133.8 MB  pytorch\n"
        "    pytorch-mutex-1.0          |              cpu           3 KB  pytorch\n",
        {"torch.version": "2.1.2", "torch.cuda": ABSENT, "torch.origin": "conda"},
    ),
    "conda's plan, what it links": (
        "The following NEW packages will be INSTALLED:\n\n"
        "  blas               pkgs/main/win-64::blas-1.0-mkl\n"
        "  pytorch            pytorch/win-64::pytorch-2.1.2-py3.10_cuda12.1_cudnn8_0\n",
        {"torch.version": "2.1.2", "torch.cuda": "12.1", "system.os": "windows"},
    ),
    "uv has put it there": (
        "Installed 10 packages in 34ms\n + numpy==2.2.3\n + onnxruntime==1.20.1\n + onnxruntime-gpu==1.20.1\n",
        {"package.onnxruntime.version": "1.20.1", "package.onnxruntime-gpu.version": "1.20.1"},
    ),
    "already satisfied": (
        "Requirement already satisfied: torch>=2.0 in ./e/lib/python3.10/site-packages (from x) (2.2.2+cu121)\n",
        {"torch.version": "2.2.2+cu121"},
    ),
    "installed": (
        "Successfully installed nvidia-cublas-cu12-12.4.5.8 torch-2.6.0 flash-attn-2.7.4.post1\n",
        {
            "torch.version": "2.6.0",
            "package.flash-attn.version": "2.7.4.post1",
            "package.nvidia-cublas-cu12.version": "12.4.5.8",
        },
    ),
    "a conflict": (
        "torchaudio 2.5.1+cu124 requires torch==2.5.1, but you have torch 2.6.0+cu126 which is incompatible.\n",
        {
            "torch.version": "2.6.0+cu126",
            "package.torchaudio.version": "2.5.1+cu124",
            "package.torchaudio.requires": ["torch==2.5.1"],
        },
    ),
    "a download": (
        "  Downloading torch-2.9.1-cp312-cp312-win_amd64.whl (109.9 MB)\n",
        {"python.version": "3.12", "system.os": "windows", "torch.version": UNKNOWN},
    ),
    "leftovers": (
        "WARNING: Ignoring invalid distribution ~orch (/opt/e/lib/python3.10/site-packages)\n",
        {"packages.leftovers": ["~orch"]},
    ),
    "a Python that the system owns": ("error: externally-managed-environment\n", {"python.externally_managed": True}),
}


@pytest.mark.parametrize(("text", "wanted"), LISTS.values(), ids=LISTS)
def test_a_list_is_read(text: str, wanted: dict[str, Any]) -> None:
    expect(text, wanted)


def test_torch_is_missing_from_a_whole_list_alone() -> None:
    whole = (SAMPLES / "package_list_whole.txt").read_text()
    expect(whole, {"torch.version": ABSENT, "package.torch.version": ABSENT, "package.numpy.version": "2.2.3"})
    for spoilt in (
        whole.replace("Package           Version\n----------------- ---------\n", ""),  # its head is gone
        whole.replace("pip               25.0\n", ""),  # somebody has picked lines
        whole.replace("typing_extensions 4.12.2\n", ""),  # it is cut off: the head is too wide for what is left
        whole.replace("$ pip list", "$ pip list --user"),
        whole.replace("numpy             2.2.3\n", "...\n"),
        (SAMPLES / "package_list_picked.txt").read_text(),
    ):
        assert facts_of(spoilt)["torch.version"].is_unknown, spoilt


def test_a_list_of_another_environment_does_not_undo_what_ran() -> None:
    text = ">>> torch.__version__\n'2.4.0+cu121'\n" + (SAMPLES / "package_list_whole.txt").read_text()
    expect(text, {"torch.version": "2.4.0+cu121"})


def test_pip_over_conda() -> None:
    expect(
        (SAMPLES / "conda_list_mixed.txt").read_text(),
        {
            "torch.version": "2.4.1",
            "torch.cuda": UNKNOWN,  # of which of the two it would be
            "package.torch.installer": "pip",
            "package.torch.conda_build": "cpu_py310h84a6dc3_0",
            "package.torchvision.installer": "conda",
            "package.cudatoolkit.version": "11.8.0",
            "python.environment": "conda",
            "system.os": "windows",
        },
    )
    (both,) = facts_of((SAMPLES / "conda_list_mixed.txt").read_text())["packages.duplicates"].get()
    assert (both["name"], both["versions"]) == ("torch", ["2.4.1", "2.2.0"])


REAL = (["list"], ["list", "--format=freeze"], ["list", "-v"], ["list", "--format=json"], ["show", "torch"])


@pytest.mark.parametrize("command", REAL, ids=" ".join)
def test_the_real_pip(real_torch_venv: Venv, command: list[str]) -> None:
    done = real_torch_venv.run("-m", "pip", "--disable-pip-version-check", *command)
    assert done.returncode == 0, done.stderr
    version, _ = real_torch_venv.torch_build() or ("", None)
    expect(f"$ pip {' '.join(command)}\n{done.stdout}", {"torch.version": version})
    if command == ["list"]:
        expect(done.stdout, {"package.xformers.version": ABSENT, "package.jax.version": ABSENT})


@pytest.mark.parametrize("command", [["list"], ["show", "torch"], ["tree"], ["freeze"]], ids=" ".join)
def test_the_real_uv(real_uv: str, real_torch_venv: Venv, command: list[str]) -> None:
    done = subprocess.run(
        [real_uv, "pip", *command, "--python", real_torch_venv.python],
        env=clean_environ({"UV_NO_CACHE": "1", "UV_OFFLINE": "1"}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    version, _ = real_torch_venv.torch_build() or ("", None)
    expect(f"$ uv pip {' '.join(command)}\n{done.stderr}{done.stdout}", {"torch.version": version})


def test_the_real_pip_says_that_a_package_is_not_there(real_torch_venv: Venv) -> None:
    done = real_torch_venv.run("-m", "pip", "--disable-pip-version-check", "show", "xformers")
    assert known_names(done.stdout + done.stderr) == {"package.xformers.version"}
