"""Environment reports of torch and of what builds on it: each sample, and what is learnt from it."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from bench.venvs import Venv
from report_reading import ABSENT, SAMPLES, UNKNOWN, expect, facts_of, reading_of, shown

HF = """\
- `{tool}` version: 4.41.2
- Platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.31
- Python version: 3.9.19
- Accelerate version: 0.30.1
- PyTorch version ({what}): {torch}
- Using GPU in script?: <fill in>
"""
BNB = """\
=================== bitsandbytes v0.47.0 ===================
Platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.31
  libc: glibc-2.31
Python: 3.10.14
PyTorch: 2.8.0+cu126
  CUDA: {cuda}
  HIP: N/A
Related packages:
  transformers: 4.55.0
  triton: not found
============================================================
"""

REPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a CPU build on Windows": (
        "collect_env_windows_cpu.txt",
        {
            "torch.version": "2.5.1+cpu",
            "torch.cuda": ABSENT,
            "torch.cuda_available": False,
            "system.os": "windows",
            "system.arch": "x86_64",
            "system.windows_build": 22631,
            "python.version": "3.11.5",
            "python.bits": 64,
            "driver.smi_version": "546.33",
            "toolkit.nvcc_on_path_version": "12.3.52",
            "package.torch.version": "2.5.1",
            "package.torch.installer": "pip",
            "gpus": [(0, "NVIDIA GeForce RTX 3070 Laptop GPU", None, 0)],
            "system.glibc": UNKNOWN,
        },
    ),
    "conda, and a GPU divided by MIG": (
        "collect_env_conda_mig.txt",
        {
            "torch.version": "2.3.0",
            "torch.cuda": "11.8",
            "torch.origin": "conda",
            "python.environment": "conda",
            "package.torch.installer": "conda",
            "package.torch.conda_build": "py3.11_cuda11.8_cudnn8.7.0_0",
            "package.pytorch-cuda.version": "11.8",
            "system.distribution": "rocky",
            "system.distribution_version": "8.9",
            "system.glibc": "2.28",
            "system.kernel_release": "4.18.0-513.el8.x86_64",
            "gpus": [(0, "NVIDIA A100-PCIE-40GB", None, 0), (1, "NVIDIA A100-PCIE-40GB", None, 0)],
        },
    ),
    "vLLM's": (
        "collect_env_vllm.txt",
        {
            "torch.version": "2.7.1+cu128",
            "torch.cuda_available": True,
            "torch.cudnn": "9.7.1.26",
            "package.vllm.version": "0.10.0",
            "system.arch": "aarch64",
            "driver.smi_version": "570.124.06",
            "env.CUDA_VISIBLE_DEVICES": "GPU-*",
            "libraries.search_path": ["/usr/local/cuda/lib64", "/opt/other/lib"],
            "env.HF_TOKEN": UNKNOWN,
        },
    ),
    "DeepSpeed's": (
        "ds_report.txt",
        {
            "torch.version": "2.3.1+cu118",
            "torch.cuda": "11.8",
            "toolkit.nvcc_on_path_version": "12.1",
            "package.deepspeed.version": "0.14.2",
            "package.deepspeed.built_for_torch": "2.2",
            "memory.shm_size": int(62.5 * (1 << 30)),
        },
    ),
}


@pytest.mark.parametrize(("sample", "wanted"), REPORTS.values(), ids=REPORTS)
def test_a_report_is_read(sample: str, wanted: dict[str, Any]) -> None:
    text = (SAMPLES / sample).read_text(encoding="utf-8")
    expect(text, wanted)
    # As somebody else quotes it, in a mail and between fences.
    quoted = "".join(f"> {line}\n" for line in ["```text", *text.splitlines(), "```"])
    expect(quoted, wanted)


def test_a_divided_gpu_is_told() -> None:
    text = (SAMPLES / "collect_env_conda_mig.txt").read_text()
    assert [gpu["mig"] for gpu in facts_of(text)["smi.gpus"].get()] == [True, None]


def test_a_driver_that_was_not_collected_is_not_missing() -> None:
    """From R610 on the report's own expression does not read nvidia-smi's table."""
    text = (SAMPLES / "collect_env_windows_cpu.txt").read_text().replace("546.33", "Could not collect")
    expect(text, {"driver.smi_version": UNKNOWN, "driver.smi_failure": UNKNOWN})
    assert len(facts_of(text)["smi.gpus"].get()) == 1


def test_a_torch_that_pip_does_not_list_is_not_there() -> None:
    text = (SAMPLES / "collect_env_windows_cpu.txt").read_text()
    text = text.replace("PyTorch version: 2.5.1+cpu", "PyTorch version: N/A").replace("[pip3] torch==2.5.1\n", "")
    expect(text, {"torch.version": ABSENT, "package.torch.version": ABSENT, "torch.cuda": UNKNOWN})
    # Without the end of the list nobody knows.
    expect(text.replace("[conda] Could not collect\n", ""), {"torch.version": UNKNOWN})


OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "transformers 4": (
        HF.format(tool="transformers", what="GPU?", torch="2.3.0+cu118 (False)"),
        {
            "torch.version": "2.3.0+cu118",
            "torch.cuda_available": False,
            "package.transformers.version": "4.41.2",
            "system.glibc": "2.31",
            "python.version": "3.9.19",
        },
    ),
    "transformers 5": (
        HF.format(tool="transformers", what="accelerator?", torch="2.13.0+cu130 (CUDA)"),
        {"torch.version": "2.13.0+cu130", "torch.cuda_available": True},
    ),
    "a torch that transformers does not take": (
        HF.format(tool="transformers", what="GPU?", torch="not installed (NA)"),
        {"torch.version": UNKNOWN, "torch.cuda_available": UNKNOWN},
    ),
    "accelerate": (
        "- `Accelerate` version: 1.15.0\n- Platform: Windows-11-10.0.26100-SP0\n- Python version: 3.12.3\n"
        "- PyTorch version: 2.13.0+cpu\n- PyTorch accelerator: N/A\n- System RAM: 31.75 GB\n",
        {
            "torch.version": "2.13.0+cpu",
            "torch.cuda_available": False,
            "system.os": "windows",
            "memory.total": int(31.75 * (1 << 30)),
        },
    ),
    "diffusers": (
        "- Diffusers version: 0.31.0\n- Platform: Linux-6.1.0-18-amd64-x86_64-with-glibc2.36\n"
        "- PyTorch version (GPU?): 2.5.1+cu124 (True)\n- Accelerator: NVIDIA L40S, 46068 MiB\nNVIDIA L4, 23034 MiB\n",
        {"gpus": [(0, "NVIDIA L40S", None, 46068), (1, "NVIDIA L4", None, 23034)], "torch.cuda_available": True},
    ),
    "sglang": (
        "Python: 3.10.12 (main, Feb  4 2025, 14:57:36) [GCC 11.4.0]\nCUDA available: True\nGPU 0,1: NVIDIA L20\n"
        "GPU 0,1 Compute Capability: 8.9\nCUDA_HOME: /usr/local/cuda\nCUDA Driver Version: 550.144.03\n"
        "PyTorch: 2.6.0+cu124\nsglang: 0.4.6\nvllm: Module Not Found\nulimit soft: 65535\n",
        {
            "gpus": [(0, "NVIDIA L20", "8.9", 0), (1, "NVIDIA L20", "8.9", 0)],
            "driver.smi_version": "550.144.03",
            "torch.version": "2.6.0+cu124",
            "package.sglang.version": "0.4.6",
            "package.vllm.version": UNKNOWN,
            "limits.nofile": 65535,
        },
    ),
    "bitsandbytes": (
        BNB.format(cuda="12.6"),
        {"torch.cuda": "12.6", "package.bitsandbytes.version": "0.47.0", "package.triton.version": UNKNOWN},
    ),
    "bitsandbytes with a CPU build": (BNB.format(cuda="N/A"), {"torch.cuda": ABSENT}),
    "bitsandbytes 0.43": (
        "PyTorch settings found: CUDA_VERSION=118, Highest Compute Capability: (7, 5).",
        {"torch.cuda": "11.8", "gpus": [(0, None, "7.5", 0)]},
    ),
    "xformers": (
        "xFormers 0.0.28\npytorch.version:          2.4.1+cu121\npytorch.cuda:             available\n"
        "gpu.compute_capability:   7.5\ngpu.name:                 Tesla T4\nbuild.cuda_version:       1201\n"
        "build.torch_version:      2.4.1+cu121\n",
        {
            "package.xformers.version": "0.0.28",
            "package.xformers.built_for_torch": "2.4.1+cu121",
            "package.xformers.built_for_cuda": "12.1",
            "torch.cuda_available": True,
            "gpus": [(0, "Tesla T4", "7.5", 0)],
        },
    ),
    "xformers of another torch": (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch 2.5.1+cu121 with CUDA 1201 (you have 2.6.0+cu124)\n    Python  3.10.11 (you have 3.10.6)\n",
        {
            "torch.version": "2.6.0+cu124",
            "package.xformers.built_for_torch": "2.5.1+cu121",
            "python.version": "3.10.6",
        },
    ),
    "ultralytics": (
        "Ultralytics 8.3.20 \U0001f680 Python-3.10.14 torch-2.4.0+cu124 CUDA:0 (NVIDIA RTX A2000 12GB, 12028MiB)\n"
        "                                                       CUDA:1 (NVIDIA T400 4GB, 3902MiB)\n",
        {
            "torch.version": "2.4.0+cu124",
            "torch.cuda_available": True,
            "gpus": [(0, "NVIDIA RTX A2000 12GB", None, 12028), (1, "NVIDIA T400 4GB", None, 3902)],
        },
    ),
    "ultralytics told to use a GPU": (
        "ValueError: Invalid CUDA 'device=0' requested.\n\ntorch.cuda.is_available(): False\n"
        "torch.cuda.device_count(): 0\nos.environ['CUDA_VISIBLE_DEVICES']: -1\n",
        {"torch.cuda_available": False, "env.CUDA_VISIBLE_DEVICES": "-1"},
    ),
    "ComfyUI": (
        "** Python executable: D:\\ui\\python_embeded\\python.exe\nTotal VRAM 8188 MB, total RAM 32606 MB\n"
        "pytorch version: 2.4.1+cu124\nDevice: cuda:0 NVIDIA GeForce RTX 4060 : cudaMallocAsync\n",
        {
            "gpus": [(0, "NVIDIA GeForce RTX 4060", None, 8188)],
            "memory.total": 32606 << 20,
            "torch.version": "2.4.1+cu124",
            "python.executable": "D:\\ui\\python_embeded\\python.exe",
        },
    ),
    "ComfyUI without a GPU": (
        "Total VRAM 32606 MB, total RAM 32606 MB\npytorch version: 2.4.1+cpu\nDevice: cpu\n",
        {"gpus": [], "torch.version": "2.4.1+cpu", "torch.cuda_available": UNKNOWN},
    ),
    "llama.cpp": (
        "ggml_cuda_init: found 2 CUDA devices:\n  Device 0: NVIDIA GeForce GTX 1070, compute capability 6.1, VMM: yes\n"
        "  Device 1: NVIDIA RTX A4000, compute capability 8.6, VMM: yes, VRAM: 16376 MiB\n",
        {"gpus": [(0, "NVIDIA GeForce GTX 1070", "6.1", 0), (1, "NVIDIA RTX A4000", "8.6", 16376)]},
    ),
    "ollama": (
        'time=2025-11-02T08:00:00Z level=INFO source=types.go:130 msg="inference compute" id=GPU-0 library=cuda '
        'variant=v12 compute=7.5 driver=12.2 name="Tesla T4" total="14.6 GiB"\n',
        {"gpus": [(0, "Tesla T4", "7.5", 0)], "driver.smi_cuda": "12.2", "driver.smi_version": UNKNOWN},
    ),
}


@pytest.mark.parametrize(("text", "wanted"), OTHERS.values(), ids=OTHERS)
def test_a_programs_own_words(text: str, wanted: dict[str, Any]) -> None:
    expect(text, wanted)
    expect("".join(f"app-1  | {line}\n" for line in text.splitlines()), wanted)


def test_gpus_of_cuda_are_matched_by_name() -> None:
    """A CUDA program has the fastest first: its device 0 is not nvidia-smi's."""
    smi = "GPU 0: NVIDIA GeForce GTX 1650 (UUID: GPU-0)\nGPU 1: NVIDIA GeForce RTX 3090 (UUID: GPU-1)\n"
    cuda = "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
    expect(smi + cuda, {"gpus": [(0, "NVIDIA GeForce GTX 1650", None, 0), (1, "NVIDIA GeForce RTX 3090", "8.6", 0)]})
    # Of which of the two it is, is not said.
    unnamed = "PyTorch settings found: CUDA_VERSION=121, Highest Compute Capability: (8, 6).\n"
    assert [gpu["compute_capability"] for gpu in facts_of(smi + unnamed)["smi.gpus"].get()] == [None, None]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("- OS: Ubuntu 22.04", "system.distribution_version", "22.04"),
        ("**PyTorch version**: 2.5.1+cu121", "torch.version", "2.5.1+cu121"),
        ("Driver version: 535.54.03", "driver.told_version", "535.54.03"),
        ("Driver version: 535.xx", "driver.told_version", UNKNOWN),
        ("* GPU: 2x RTX 3090", "gpu.told", ["NVIDIA GeForce RTX 3090"] * 2),
        ("GPU: yes", "gpu.told", UNKNOWN),
        ("CUDA: 12.4", "torch.cuda", UNKNOWN),
        ("torch 2.1.0 fails, too", "torch.version", UNKNOWN),
        ("### TensorFlow version\n\n2.18.0", "package.tensorflow.version", "2.18.0"),
        (
            "- TensorFlow version (use command below): v2.11.0-rc2-15-g0123456 2.11.0",
            "package.tensorflow.version",
            "2.11.0",
        ),
        ("### OS platform and distribution\n\nWindows 11 24H2", "system.os", "windows"),
        ("### Python version\n\n### GPU model\n\nRTX 3060", "python.version", UNKNOWN),
        ("A new box with an RTX 5090 (driver 570.124.06)", "driver.told_version", "570.124.06"),
        ("it works with driver 535.54.03, not with driver 570.12.02", "driver.told_version", UNKNOWN),
        ("cu130 needs driver 580.65.06", "driver.told_version", UNKNOWN),
        ("### GPU model\n\nRTX 3090", "gpu.told", ["NVIDIA GeForce RTX 3090"]),
    ],
)
def test_what_a_person_typed(line: str, name: str, value: object) -> None:
    expect(f"Hi all,\n{line}\nthanks\n", {name: value})


def test_a_program_is_believed_before_a_person() -> None:
    text = (SAMPLES / "collect_env_conda_mig.txt").read_text()
    expect(f"torch: 1.9.0\n{text}\ndriver: 470.57.02\n", {"torch.version": "2.3.0", "driver.smi_version": "535.161.08"})


def test_the_real_torch_reports_itself(real_torch_venv: Venv) -> None:
    done = real_torch_venv.run("-m", "torch.utils.collect_env", timeout=180)
    assert done.returncode == 0, done.stderr
    version, cuda = real_torch_venv.torch_build() or ("", None)
    assert cuda is None, "the part is the CPU build"
    facts = reading_of(done.stdout).facts
    assert shown(facts, "torch.version") == version
    assert facts["torch.cuda"].is_absent and facts["torch.cuda_available"].value is False
    assert facts["system.os"].value == "linux" and facts["system.glibc"].is_known
    asked = real_torch_venv.run("-c", "import platform; print(platform.python_version(), platform.machine())")
    assert [facts["python.version"].value, facts["system.arch"].value] == asked.stdout.split()


def test_a_real_one_liner(real_torch_venv: Venv) -> None:
    code = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
    done: subprocess.CompletedProcess[str] = real_torch_venv.run("-c", code)
    version, _ = real_torch_venv.torch_build() or ("", None)
    expect(
        f'$ python -c "{code}"\n{done.stdout}',
        {"torch.version": version, "torch.cuda": ABSENT, "torch.cuda_available": False},
    )
