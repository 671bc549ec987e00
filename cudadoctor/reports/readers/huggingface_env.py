"""`transformers env` (transformers-cli env), `accelerate env`, `diffusers-cli env`, `trl env` and `lerobot-info`:
bullets about one environment.

    - `transformers` version: 4.44.2
    - Platform: Linux-6.5.0-41-generic-x86_64-with-glibc2.35
    - Python version: 3.10.12
    - PyTorch version (GPU?): 2.4.0+cu121 (True)            transformers 4, diffusers, accelerate to 1.x
    - PyTorch version (accelerator?): 2.13.0+cu130 (CUDA)   transformers 5; (NA): none
    - PyTorch accelerator: CUDA                             accelerate 1.15
    - GPU type: NVIDIA GeForce RTX 4090                     what torch calls its first device
    - CUDA device(s): NVIDIA A100, NVIDIA A100              trl, which names what torch sees
    - Cuda version: 12.6                                    lerobot: what torch was built with
    - Accelerator: NVIDIA GeForce RTX 5090, 32607 MiB       diffusers, by nvidia-smi; further GPUs on lines of their own

"not installed" is said of a torch that the program does not accept, too (a release that it holds for too old), so it
says nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.parse.nvidia_smi import gpu_entry
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import (
    available_claims,
    cuda_number,
    package_claims,
    platform_claims,
    python_claims,
    torch_claims,
)
from cudadoctor.reports.text import Text

TRIGGERS = (
    "`transformers` version:",
    "`accelerate` version:",
    "diffusers version:",
    "transformers version:",
    "pytorch version (",
    "trl version:",
    "lerobot version:",
)

_LONGEST = 40
# Of a report whose first lines were left out so many stand before the line about torch.
_MOST_BEFORE = 10
_BULLET = re.compile(r"\s*(?:[-*+\u2022]\s+)?([`\w\U0001f917][^:]{1,50}?)\s*:\s+(.*)$")
_TORCH = re.compile(r"([\w.+]{1,60})(?: \(([\w ]{1,20})\))?")
_GPU = re.compile(
    r"\s*(?:- Accelerator: )?((?:NVIDIA|Tesla|GeForce|Quadro|GRID) [^,|]{1,80}), (\d{3,7}) MiB(?: VRAM)?\s*$"
)
_DEVICE = re.compile(r"(?:NVIDIA|Tesla|GeForce|Quadro|GRID|A100|H100)\b.{0,82}")
_PACKAGES = {
    "`transformers` version": "transformers",
    "transformers version": "transformers",
    "huggingface_hub version": "huggingface-hub",
    "accelerate version": "accelerate",
    "`accelerate` version": "accelerate",
    "\U0001f917 diffusers version": "diffusers",
    "diffusers version": "diffusers",
    "deepspeed version": "deepspeed",
    "trl version": "trl",
    "vllm version": "vllm",
    "lerobot version": "lerobot",
    "huggingface hub version": "huggingface-hub",
    "numpy version": "numpy",
    "peft version": "peft",
    "bitsandbytes version": "bitsandbytes",
    "xformers version": "xformers",
    "tensorflow version (gpu?)": "tensorflow",
    "jax version": "jax",
    "jaxlib version": "jaxlib",
}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not _BULLET.match(text[hit]):
            continue
        first = _start(text, hit, end)
        claims: list[Claim] = []
        gpus: list[dict[str, Any]] = []
        last, keys = hit, set()
        for index, line in text.lines(first, first + _LONGEST):
            gpu = _GPU.match(line)
            bullet = _BULLET.match(line)
            key = bullet.group(1).strip().lower() if bullet else ""
            if gpu:
                entry = gpu_entry(len(gpus), gpu.group(1).strip())
                entry["memory_total"] = int(gpu.group(2)) << 20
                gpus.append(entry)
                last = index
            elif key and (key in _PACKAGES or key in _OTHERS or key.startswith("pytorch")):
                if key in keys:
                    break
                keys.add(key)
                last = index
                claims += _claims(key, bullet.group(2).strip() if bullet else "", index)
            elif index > last + 6:
                break
        if gpus:
            claims.append(Claim("smi.gpus", gpus, last))
        end = last
        if len(keys) > 2 and claims:
            yield Block(_kind(text, first, last), first, last, tuple(claims), REPORT)


def _start(text: Text, hit: int, before: int) -> int:
    first = hit
    for index in range(hit - 1, max(before, hit - 1 - _MOST_BEFORE, -1), -1):
        bullet = _BULLET.match(text[index])
        if bullet is None or bullet.group(1).strip().lower() not in (*_PACKAGES, *_OTHERS):
            break
        first = index
    return first


def _kind(text: Text, first: int, last: int) -> str:
    words = "\n".join(line.lower() for _, line in text.lines(first, last))
    for name in ("diffusers version", "`transformers` version", "`accelerate` version"):
        if name in words:
            return f"{name.split()[0].strip('`')} env"
    return "transformers env"


_OTHERS = (
    "platform",
    "python version",
    "safetensors version",
    "accelerate config",
    "running on google colab?",
    "running on a notebook?",
    "flax version (cpu?/gpu?/tpu?)",
    "gpu type",
    "gpu model",
    "cuda device(s)",
    "cuda version",
    "is pytorch built with cuda support?",
    "datasets version",
    "ffmpeg version",
    "npu type",
    "system ram",
    "accelerator",
    "`accelerate` bash location",
    "using gpu in script?",
    "using distributed or parallel set-up in script?",
    "`accelerate` default config",
    "`accelerate` configs",
)


def _claims(key: str, value: str, line: int) -> Iterator[Claim]:
    if key in _PACKAGES:
        yield from package_claims(_PACKAGES[key], value.partition(" ")[0], line)
    elif key == "platform":
        yield from platform_claims(value, line)
    elif key == "python version":
        yield from python_claims(value, line)
    elif key.startswith("pytorch version"):
        match = _TORCH.match(value)
        if match:
            stated = list(torch_claims(match.group(1), line))
            yield from stated
            words = match.group(2) or ""
            if stated and "?" in key:
                yield from available_claims({"CUDA": "True", "NA": "False"}.get(words, words), line)
    elif key == "pytorch accelerator":
        # Another accelerator's name stands there only where CUDA was not available.
        yield Claim("torch.cuda_available", value == "CUDA", line)
    elif key == "cuda device(s)":
        devices = [name.strip() for name in value.split(",")]
        if all(_DEVICE.fullmatch(name) for name in devices) and len(devices) <= 64:
            yield Claim("smi.gpus", [cuda_gpu(index, name) for index, name in enumerate(devices)], line)
            yield Claim("torch.cuda_available", True, line)
    elif key == "cuda version":
        number = cuda_number(value)
        if number:
            yield Claim("torch.cuda", number, line)
    elif key in ("gpu type", "gpu model"):
        name = value.strip()
        if _DEVICE.fullmatch(name):
            yield Claim("smi.gpus", [cuda_gpu(0, name)], line)
    elif key == "system ram":
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) GB", value)
        if match:  # psutil's total / 1024 ** 3
            yield Claim("memory.total", int(float(match.group(1)) * (1 << 30)), line)
