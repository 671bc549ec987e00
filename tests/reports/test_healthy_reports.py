"""Texts of machines on which nothing is wrong with CUDA: no error, no warning, whatever else the person tells of."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from report_reading import UNKNOWN, shown

from cudadoctor import diagnose_text
from cudadoctor.model import CRASH, ERROR, FAIL, WARNING

OK, UNDECIDED = 0, 3


class Healthy(NamedTuple):
    """A text, how `check --from` ends on it, and what is learnt from it."""

    text: str
    exit: int
    facts: dict[str, Any]


def env(
    torch: str, cuda: str, system: str, python: str, gpus: str, driver: str, nvcc: str = "Could not collect"
) -> str:
    """torch's collect_env."""
    arch = "aarch64" if "aarch64" in system else "x86_64"
    windows = system.startswith("Microsoft")
    platform = "Windows-10-10.0.22631-SP0" if windows else f"Linux-5.15.0-105-generic-{arch}-with-glibc2.35"
    compiler = "[MSC v.1929 64 bit (AMD64)]" if windows else "[GCC 11.4.0]"
    listed = gpus.splitlines()
    models = f" {listed[0]}" if len(listed) == 1 else "\n" + gpus
    return (
        f"Collecting environment information...\nPyTorch version: {torch}\nIs debug build: False\n"
        f"CUDA used to build PyTorch: {cuda}\nROCM used to build PyTorch: N/A\n\nOS: {system}\n"
        f"GCC version: {'Could not collect' if windows else '(Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0'}\n"
        f"Clang version: Could not collect\nCMake version: version 3.22.1\n"
        f"Libc version: {'N/A' if windows else 'glibc-2.35'}\n\n"
        f"Python version: {python} (main, Apr 12 2024, 09:15:10) {compiler} (64-bit runtime)\n"
        f"Python platform: {platform}\nIs CUDA available: True\nCUDA runtime version: {nvcc}\n"
        f"CUDA_MODULE_LOADING set to: LAZY\nGPU models and configuration:{models}\n"
        f"Nvidia driver version: {driver}\ncuDNN version: Could not collect\nHIP runtime version: N/A\n"
        "MIOpen runtime version: N/A\nIs XNNPACK available: True\n"
    )


def old_table(driver: str, cuda: str, name: str, memory: str, state: str = "P8", watts: str = "11W / 250W") -> str:
    """nvidia-smi's table as drivers up to R525 print it, with a program that computes."""
    return f"""\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI {driver:<12} Driver Version: {driver:<12} CUDA Version: {cuda:<5}    |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  {name:<19} Off  | 00000000:01:00.0 Off |                  N/A |
| 27%   34C    {state}    {watts:>11} | {memory:>20} |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A     10412      C   python                           2110MiB |
+-----------------------------------------------------------------------------+
"""


def table(
    driver: str, cuda: str, *cards: tuple[str, str], mode: str = "Default", mig: str = "N/A", p: str = "Off"
) -> str:
    """nvidia-smi's table as drivers from R530 on print it; cards are (name, memory)."""
    rows = "".join(
        f"|   {number}  {name:<28} {p:>6}  |   00000000:{number + 1:02X}:00.0 Off |                  N/A |\n"
        f"| N/A   35C    P8             10W /  300W |{memory:>23} |      0%   {mode:>10} |\n"
        f"|                                         |                        |{mig:>21} |\n"
        "+-----------------------------------------+------------------------+----------------------+\n"
        for number, (name, memory) in enumerate(cards)
    )
    return (
        "+-----------------------------------------------------------------------------------------+\n"
        f"| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<6}   |\n"
        "|-----------------------------------------+------------------------+----------------------+\n"
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
        "|                                         |                        |               MIG M. |\n"
        "|=========================================+========================+======================|\n" + rows
    )


RANK = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x512 and 768x3072)\n"
ASSERT = """\
../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.
RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
"""  # noqa: E501
HUB = (
    "requests.exceptions.ConnectionError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max "
    'retries exceeded with url: /gpt2/resolve/main/config.json"))\nRetrying in 4s [Retry 3/5].\n'
)
A100 = "NVIDIA A100-SXM4-80GB"
UBUNTU = "Ubuntu 22.04.4 LTS (x86_64)"

MACHINES: dict[str, Healthy] = {
    "R470 and the torch of its time": Healthy(
        "loss is nan after 200 steps\n"
        + env("1.12.1+cu113", "11.3", "Ubuntu 20.04.6 LTS (x86_64)", "3.9.18", "GPU 0: Tesla T4", "470.239.06"),
        OK,
        {"driver.smi_version": "470.239.06", "torch.version": "1.12.1+cu113", "python.version": "3.9.18"},
    ),
    "a table and a run: the CUDA numbers differ within a major": Healthy(
        old_table("525.147.05", "12.0", "NVIDIA GeForce ...", "2113MiB / 12288MiB")
        + ">>> import torch\n>>> torch.__version__\n'2.5.1+cu124'\n>>> torch.cuda.get_device_name(0)\n"
        "'NVIDIA GeForce RTX 3060'\n" + RANK,
        OK,
        {"driver.smi_cuda": "12.0", "torch.version": "2.5.1+cu124", "system.os": "linux"},
    ),
    "Windows, a card that idles": Healthy(
        env(
            "2.3.1+cu121",
            "12.1",
            "Microsoft Windows 11 Pro",
            "3.10.11",
            "GPU 0: NVIDIA GeForce RTX 4070",
            "552.44",
        )
        + "KeyError: 'lora_unet_down_blocks_0'\n",
        OK,
        {"system.os": "windows", "driver.smi_version": "552.44", "gpus": [(0, "NVIDIA GeForce RTX 4070", None, 0)]},
    ),
    "ComfyUI on Windows, a node that lacks a package": Healthy(
        "** Platform: Windows\n** Python version: 3.12.9 (tags/v3.12.9:fdb8142, Feb  4 2025, 15:27:58) "
        "[MSC v.1942 64 bit (AMD64)]\nTotal VRAM 16375 MB, total RAM 65277 MB\npytorch version: 2.8.0+cu129\n"
        "Set vram state to: NORMAL_VRAM\nDevice: cuda:0 NVIDIA GeForce RTX 5080 : cudaMallocAsync\n"
        "ModuleNotFoundError: No module named 'kornia'\n"
        "Cannot import C:\\ComfyUI\\custom_nodes\\depth for custom nodes\n",
        OK,
        {"torch.version": "2.8.0+cu129", "gpus": [(0, "NVIDIA GeForce RTX 5080", None, 16375)], "system.os": "windows"},
    ),
    "ComfyUI's log with times between the pieces": Healthy(
        "2025-03-02T10:00:01.100001 - Total VRAM 24564 MB, total RAM 64230 MB\n"
        "2025-03-02T10:00:01.100052 - pytorch version: 2.6.0+cu124\n"
        "2025-03-02T10:00:01.100090 - ** Platform:2025-03-02T10:00:01.100101 -  2025-03-02T10:00:01.100110 - "
        "Linux2025-03-02T10:00:01.100118 - \n"
        "2025-03-02T10:00:01.100130 - Device: cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync\n",
        OK,
        {"system.os": "linux", "torch.version": "2.6.0+cu124", "gpus": [(0, "NVIDIA GeForce RTX 4090", None, 24564)]},
    ),
    "ComfyUI's report of an error": Healthy(
        "- **Python Version:** 3.11.9 (tags/v3.11.9:de54cf5, Apr  2 2024, 10:12:12) [MSC v.1938 64 bit (AMD64)]\n"
        "- **PyTorch Version:** 2.4.1+cu124\n## Devices\n\n"
        "- **Name:** cuda:0 NVIDIA GeForce RTX 3090 : cudaMallocAsync\n  - **Type:** cuda\n"
        "  - **VRAM Total:** 25769279488\n  - **VRAM Free:** 24000000000\n\nValueError: too many values to unpack\n",
        OK,
        {"torch.version": "2.4.1+cu124", "gpus": [(0, "NVIDIA GeForce RTX 3090", None, 24575)]},
    ),
    "WSL: its nvidia-smi has another number than the driver": Healthy(
        "| NVIDIA-SMI 550.76.01              Driver Version: 552.22         CUDA Version: 12.4     |\n"
        "Linux desk 5.15.153.1-microsoft-standard-WSL2 #1 SMP x86_64 x86_64 x86_64 GNU/Linux\n"
        ">>> torch.__version__, torch.cuda.is_available(), torch.cuda.get_device_name(0)\n"
        "('2.3.0+cu121', True, 'NVIDIA GeForce RTX 3080')\n",
        OK,
        {"system.wsl": 2, "driver.smi_version": "552.22"},
    ),
    "eight A100, persistence off, no swap, an index out of range": Healthy(
        table("535.183.06", "12.2", *[(A100, "4MiB /  81920MiB")] * 8)
        + env("2.4.0+cu121", "12.1", UBUNTU, "3.10.12", "\n".join(f"GPU {n}: {A100}" for n in range(8)), "535.183.06")
        + "Swap:             0B          0B          0B\n"
        + ASSERT,
        OK,
        {"driver.smi_cuda": "12.2", "torch.cuda": "12.1"},
    ),
    "H100 divided by MIG, in an image of NVIDIA's": Healthy(
        env(
            "2.8.0+cu128",
            "12.8",
            UBUNTU,
            "3.12.3",
            "GPU 0: NVIDIA H100 80GB HBM3\n  MIG 3g.40gb     Device  0:",
            "570.172.08",
            "12.9.86",
        ),
        OK,
        {"driver.smi_version": "570.172.08", "toolkit.nvcc_on_path_version": "12.9.86"},
    ),
    "an old driver that the image's forward-compatibility libraries help": Healthy(
        env("2.1.2+cu121", "12.1", UBUNTU, "3.10.12", f"GPU 0: {A100}", "470.239.06", "12.1.105"),
        OK,
        {"driver.smi_version": "470.239.06", "torch.cuda_available": True},
    ),
    "R580 and CUDA 13, nvcc of an older minor": Healthy(
        env("2.9.1+cu130", "13.0", UBUNTU, "3.13.1", "GPU 0: NVIDIA GeForce RTX 5090", "580.95.05", "13.0.48"),
        OK,
        {"torch.version": "2.9.1+cu130", "driver.smi_version": "580.95.05"},
    ),
    "the table of R610": Healthy(
        "+-----------------------------------------------------------------------------------------+\n"
        "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.4     |\n"
        "|-----------------------------------------+------------------------+----------------------+\n"
        "|   0  NVIDIA GeForce RTX 5070 Ti     Off |   00000000:01:00.0  On |                  N/A |\n"
        "|  0%   38C    P8             15W /  300W |     801MiB /  16303MiB |      2%      Default |\n"
        "+-----------------------------------------+------------------------+----------------------+\n"
        "torch.__version__: 2.12.0+cu130\ntorch.cuda.is_available(): True\n" + HUB,
        OK,
        {"driver.smi_version": "610.43.02", "driver.smi_cuda": "13.4"},
    ),
    "GB10: memory is not told": Healthy(
        table("580.95.05", "13.0", ("NVIDIA GB10", "Not Supported"))
        + env(
            "2.9.1+cu130",
            "13.0",
            "Ubuntu 24.04.3 LTS (aarch64)",
            "3.12.3",
            "GPU 0: NVIDIA GB10",
            "580.95.05",
            "13.0.88",
        ),
        OK,
        {"system.arch": "aarch64", "gpus": [(0, "NVIDIA GB10", None, 0)]},
    ),
    "a Jetson, whose driver has no number": Healthy(
        "Linux orin 5.15.148-tegra #1 SMP PREEMPT aarch64 aarch64 aarch64 GNU/Linux\n"
        "| NVIDIA-SMI 540.4.0                Driver Version: 540.4.0      CUDA Version: 12.6     |\n"
        "|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |\n"
        "| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |\n"
        ">>> torch.cuda.is_available()\nTrue\n",
        UNDECIDED,
        {"system.arch": "aarch64", "torch.cuda_available": True},
    ),
    "transformers env, a tokenizer's fault": Healthy(
        "- `transformers` version: 4.46.0\n- Platform: Linux-6.8.0-45-generic-x86_64-with-glibc2.39\n"
        "- Python version: 3.12.3\n- Accelerate version: 1.0.1\n- PyTorch version (GPU?): 2.5.0+cu124 (True)\n"
        "- Using GPU in script?: yes\n- GPU type: NVIDIA L4\nValueError: Couldn't instantiate the backend tokenizer\n",
        OK,
        {"torch.version": "2.5.0+cu124", "gpus": [(0, "NVIDIA L4", None, 0)], "system.glibc": "2.39"},
    ),
    "TRL, a label out of range": Healthy(
        "- Platform: Linux-5.15.0-91-generic-x86_64-with-glibc2.35\n- Python version: 3.11.10\n- TRL version: 0.16.0\n"
        f"- PyTorch version: 2.6.0\n- CUDA device(s): {A100}, {A100}\n- Transformers version: 4.50.0\n" + ASSERT,
        OK,
        {"gpus": [(0, A100, None, 0), (1, A100, None, 0)], "torch.version": "2.6.0", "system.os": "linux"},
    ),
    "Lightning": Healthy(
        "* CUDA:\n\t- GPU:\n\t\t- NVIDIA RTX A6000\n\t\t- NVIDIA RTX A6000\n\t- available:         True\n"
        "\t- version:           12.1\n* Lightning:\n\t- lightning:         2.4.0\n\t- torch:             2.4.1+cu121\n"
        "\t- torchvision:       0.19.1+cu121\n* Packages:\n\t- numpy:             1.26.4\n* System:\n"
        "\t- OS:                Linux\n\t- architecture:\n\t\t- 64bit\n\t\t- ELF\n\t- processor:         x86_64\n"
        "\t- python:            3.11.9\n\t- release:           5.15.0-119-generic\n",
        OK,
        {
            "torch.version": "2.4.1+cu121",
            "torch.cuda": "12.1",
            "system.os": "linux",
            "python.version": "3.11.9",
            "gpus": [(0, "NVIDIA RTX A6000", None, 0), (1, "NVIDIA RTX A6000", None, 0)],
            "package.torchvision.version": "0.19.1+cu121",
        },
    ),
    "OpenMMLab, with torch's own list of GPUs": Healthy(
        "2024-05-03 10:00:00,120 - mmdet - INFO - Environment info:\n"
        "------------------------------------------------------------\nsys.platform: linux\n"
        "Python: 3.8.18 (default, Sep 11 2023, 13:40:15) [GCC 11.2.0]\nCUDA available: True\n"
        "GPU 0,1: NVIDIA GeForce RTX 3090\nCUDA_HOME: /usr/local/cuda\n"
        "NVCC: Cuda compilation tools, release 11.3, V11.3.109\nGCC: gcc (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0\n"
        "PyTorch: 1.11.0\nPyTorch compiling details: PyTorch built with:\n  - GCC 7.3\n  - CUDA Runtime 11.3\n"
        "  - NVCC architecture flags: -gencode;arch=compute_37,code=sm_37;-gencode;arch=compute_86,code=sm_86;"
        "-gencode;arch=compute_37,code=compute_37\n  - CuDNN 8.2\nTorchVision: 0.12.0\nMMCV: 1.7.1\n"
        "KeyError: 'masks'\n",
        OK,
        {
            "torch.cuda": "11.3",
            "torch.sass": ["sm_37", "sm_86"],
            "torch.ptx": ["compute_37"],
            "gpus": [(0, "NVIDIA GeForce RTX 3090", None, 0), (1, "NVIDIA GeForce RTX 3090", None, 0)],
            "system.os": "linux",
        },
    ),
    "OpenMMLab's, as a dictionary": Healthy(
        "{'CUDA available': True,\n 'CUDA_HOME': '/usr/local/cuda-11.8',\n 'GPU 0,1': 'NVIDIA A100-SXM4-80GB',\n"
        " 'NVCC': 'Cuda compilation tools, release 11.8, V11.8.89',\n 'PyTorch': '2.0.1+cu118',\n"
        " 'Python': '3.10.12 (main, Jul  5 2023, 18:54:27) [GCC 11.2.0]',\n 'sys.platform': 'linux'}\n",
        OK,
        {"torch.version": "2.0.1+cu118", "gpus": [(0, A100, None, 0), (1, A100, None, 0)], "system.os": "linux"},
    ),
    "detectron2": Healthy(
        "-------------------------------  ------------------------------------------------\n"
        "sys.platform                     linux\n"
        "Python                           3.9.16 (main, Mar  8 2023) [GCC 11.2.0]\n"
        "detectron2                       0.6 @/opt/detectron2/detectron2\nCUDA compiler                    CUDA 11.7\n"
        "detectron2 arch flags            8.6\nPyTorch                          1.13.1+cu117 @/opt/venv/torch\n"
        "PyTorch debug build              False\nGPU available                    Yes\n"
        "GPU 0,1                          NVIDIA GeForce RTX 3080 (arch=8.6)\n"
        "Driver version                   525.105.17\nCUDA_HOME                        /usr/local/cuda\n"
        "torchvision                      0.14.1+cu117 @/opt/venv/torchvision\n"
        "-------------------------------  ------------------------------------------------\n"
        "AssertionError: Checkpoint model_final.pth not found!\n",
        OK,
        {
            "torch.version": "1.13.1+cu117",
            "driver.smi_version": "525.105.17",
            "gpus": [(0, "NVIDIA GeForce RTX 3080", "8.6", 0), (1, "NVIDIA GeForce RTX 3080", "8.6", 0)],
        },
    ),
    "Ultralytics": Healthy(
        "Ultralytics 8.3.40 Python-3.11.9 torch-2.5.1+cu121 CUDA:0 (NVIDIA GeForce RTX 3060, 12288MiB)\n"
        "RuntimeError: Dataset 'data.yaml' error: images not found\n",
        OK,
        {"torch.version": "2.5.1+cu121", "gpus": [(0, "NVIDIA GeForce RTX 3060", None, 12288)]},
    ),
    "Unsloth": Healthy(
        "==((====))==  Unsloth 2025.3.19: Fast Llama patching. Transformers: 4.50.0.\n"
        "   \\\\   /|    GPU: NVIDIA GeForce RTX 3060. Num GPUs = 1. Max memory: 11.754 GB. Platform: Linux.\n"
        "O^O/ \\_/ \\    Torch: 2.6.0+cu124. CUDA: 8.6. CUDA Toolkit: 12.4. Triton: 3.2.0\n"
        "Loading checkpoint shards: 100%|#####| 4/4 [00:09<00:00,  2.40s/it]\nValueError: no chat template\n",
        OK,
        {"torch.version": "2.6.0+cu124", "torch.cuda": "12.4", "gpus": [(0, "NVIDIA GeForce RTX 3060", None, 12036)]},
    ),
    "SD.Next": Healthy(
        "10:12:33-100000 INFO     Torch: torch==2.7.1+cu128 torchvision==0.22.1+cu128\n"
        "10:12:35-100001 INFO     Device: device=NVIDIA GeForce RTX 4090 n=1 arch=sm_90 capability=(8, 9) cuda=12.8 "
        "cudnn=90701 driver=576.80\nTypeError: load_lora() got an unexpected keyword argument\n",
        OK,
        {
            "torch.version": "2.7.1+cu128",
            "driver.smi_version": "576.80",
            "gpus": [(0, "NVIDIA GeForce RTX 4090", "8.9", 0)],
        },
    ),
    "a failure of long ago": Healthy(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. That was last month; everything "
        "works.\n"
        + env("2.5.1+cu124", "12.4", UBUNTU, "3.12.3", "GPU 0: NVIDIA GeForce RTX 3050", "550.120")
        + "AttributeError: 'Trainer' object has no attribute 'tokenizer'\n",
        OK,
        {"driver.smi_failure": UNKNOWN, "driver.smi_version": "550.120"},
    ),
    "DeepSpeed takes an nvcc of another minor": Healthy(
        "Installed CUDA version 12.3 does not match the version torch was compiled with 12.4 but since the APIs are "
        "compatible, accepting this combination\n" + RANK,
        UNDECIDED,
        {"symptom.cuda_version_mismatch": UNKNOWN},
    ),
    "TensorFlow opens its GPU": Healthy(
        "2023-04-06 12:07:39.881632: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1613] Created device "
        "/job:localhost/replica:0/task:0/device:GPU:0 with 14242 MB memory:  -> device: 0, name: Tesla T4, pci bus id: "
        "0000:00:04.0, compute capability: 7.5\n2024-12-11 09:11:01.238944: E external/local_xla/xla/stream_executor/"
        "cuda/cuda_fft.cc:485] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when "
        "one has already been registered\nValueError: Shapes (None, 10) and (None, 8) are incompatible\n",
        UNDECIDED,
        {"gpus": [(0, "Tesla T4", "7.5", 0)]},
    ),
    "llama.cpp, of 2023 and of today": Healthy(
        "ggml_init_cublas: found 1 CUDA devices:\n  Device 0: NVIDIA GeForce RTX 3090\nthe output is gibberish\n",
        UNDECIDED,
        {"gpus": [(0, "NVIDIA GeForce RTX 3090", None, 0)]},
    ),
    "ollama": Healthy(
        'time=2025-03-02T12:00:00.000Z level=INFO source=types.go:130 msg="inference compute" id=GPU-0 library=cuda '
        'variant=v12 compute=8.9 driver=12.8 name="NVIDIA GeForce RTX 4090" total="23.5 GiB" available="23.1 GiB"\n'
        'level=WARN msg="truncating input prompt" limit=2048 prompt=3100\n',
        UNDECIDED,
        {"gpus": [(0, "NVIDIA GeForce RTX 4090", "8.9", 0)], "driver.smi_cuda": "12.8"},
    ),
    "nvidia-smi -q of a card that idles": Healthy(
        env("2.6.0+cu126", "12.6", UBUNTU, "3.12.3", "GPU 0: NVIDIA GeForce RTX 4080", "560.35.03")
        + "==============NVSMI LOG==============\n\nDriver Version                            : 560.35.03\n"
        "CUDA Version                              : 12.6\n\nAttached GPUs                             : 1\n"
        "GPU 00000000:01:00.0\n    Product Name                          : NVIDIA GeForce RTX 4080\n"
        "    Persistence Mode                      : Disabled\n    PCI\n        GPU Link Info\n"
        "            PCIe Generation\n"
        "                Max                       : 4\n                Current                   : 1\n"
        "            Link Width\n                Max                       : 16x\n"
        "                Current                   : 16x\n    Performance State                     : P8\n"
        "    Clocks Event Reasons\n        Idle                              : Active\n"
        "        SW Power Cap                      : Active\n        HW Slowdown                       : Not Active\n",
        OK,
        {"driver.smi_version": "560.35.03"},
    ),
    "two processes that waited for each other": Healthy(
        env(
            "2.5.1+cu124",
            "12.4",
            UBUNTU,
            "3.11.9",
            "\n".join(f"GPU {n}: NVIDIA H100 80GB HBM3" for n in range(2)),
            "550.90.07",
        )
        + "[rank1]:[E205 14:27:19 ProcessGroupNCCL.cpp:1515] [PG 0 Rank 1] Process group watchdog thread terminated "
        "with exception: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=456, OpType=ALLREDUCE, "
        "NumelIn=65297, NumelOut=65297, Timeout(ms)=600000) ran for 600054 milliseconds before timing out.\n",
        OK,
        {"driver.smi_version": "550.90.07"},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_healthy_machine(name: str) -> None:
    row = MACHINES[name]
    found = diagnose_text(row.text)
    alarms = [
        (outcome.rule, outcome.message)
        for outcome in found.view.report.outcomes
        if outcome.status == CRASH or (outcome.status == FAIL and outcome.severity in (ERROR, WARNING))
    ]
    assert (alarms, found.root_causes, found.commands) == ([], (), ())
    assert found.exit == row.exit, found.verdict
    facts = found.view.report.facts
    assert {fact: shown(facts, fact) for fact in row.facts} == row.facts


@pytest.mark.parametrize("said", [ASSERT, HUB, RANK])
def test_an_error_that_is_not_of_cuda_is_no_fault_of_it(said: str) -> None:
    verdict = diagnose_text(said).verdict
    assert "cause" not in verdict and not verdict.startswith("FAIL")
