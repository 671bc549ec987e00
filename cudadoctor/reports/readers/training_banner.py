"""What Unsloth and SD.Next print of the machine when they start.

    ==((====))==  Unsloth 2025.3.19: Fast Llama patching. Transformers: 4.50.0.
       \\\\   /|    GPU: NVIDIA GeForce RTX 3060. Num GPUs = 1. Max memory: 11.754 GB. Platform: Linux.
    O^O/ \\_/ \\    Torch: 2.6.0+cu124. CUDA: 8.6. CUDA Toolkit: 12.4. Triton: 3.2.0

    10:12:33-100000 INFO     Torch: torch==2.7.1+cu128 torchvision==0.22.1+cu128
    10:12:35-100001 INFO     Device: device=NVIDIA GeForce RTX 4090 n=1 arch=sm_90 capability=(8, 9) cuda=12.8
                             driver=576.80                                                    (one line)
    17:52:02-404548 INFO     Torch detected GPU: Tesla T4 VRAM 15102 Arch (7, 5)

What Unsloth calls CUDA is the card's compute capability, and its toolkit what torch was built with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import built_with_cuda_claims, capability, package_claims, torch_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("max memory: ", ". cuda toolkit", "device: device=", "torch detected gpu: ", "torch: torch==")

_UNSLOTH_GPU = re.compile(r"GPU: (.{2,80}?)\. (?:Num GPUs = (\d{1,2})\. )?Max memory: (\d{1,4}(?:\.\d{1,4})?) GB\. ")
_PLATFORM = re.compile(r"Platform(?: =|:) (Linux|Windows)\b")
_UNSLOTH_TORCH = re.compile(
    r"(?:Pyt|T)orch: (\d[\w.+]{2,40}?)\. CUDA(?: =|:) (\d{1,2}\.\d)\. CUDA Toolkit(?: =|:) (\d{1,2}\.\d{1,2})"
)
_DEVICE = re.compile(
    r"Device: device=((?:NVIDIA|Tesla|Quadro) .{2,80}?) n=(\d{1,2})\b(?:.{0,60}? capability=(\(\d{1,2}, \d\)))?"
    r"(?:.{0,80}? driver=(\d{3}\.\d{2,3}(?:\.\d{1,3})?))?"
)
_DETECTED = re.compile(
    r"Torch detected GPU: ((?:NVIDIA|Tesla|Quadro|GeForce) .{2,80}?) VRAM (\d{3,7}) Arch (\(\d{1,2}, \d\))"
)
_PACKAGES = re.compile(r"\bTorch: (torch==\S{3,40}(?: torchvision==\S{3,40})?)")
_MOST = 60


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits[:_MOST]:
        claims = tuple(_claims(text, hit))
        if claims:
            driver = next((claim.value for claim in claims if claim.fact == "driver.smi_version"), None)
            yield Block("start of a program", hit, hit, claims, REPORT, driver)


def _claims(text: Text, hit: int) -> Iterator[Claim]:
    line = text[hit]
    card, torch, device = _UNSLOTH_GPU.search(line), _UNSLOTH_TORCH.search(line), _DEVICE.search(line)
    detected, packages = _DETECTED.search(line), _PACKAGES.search(line)
    if card:
        memory = int(float(card[3]) * 1024)
        yield Claim("smi.gpus", [cuda_gpu(n, card[1].strip(), None, memory) for n in range(int(card[2] or 1))], hit)
        yield Claim("torch.cuda_available", True, hit)
        platform = _PLATFORM.search(line)
        if platform:
            yield Claim("system.os", platform[1].lower(), hit)
    elif torch:
        yield from torch_claims(torch[1], hit)
        yield from built_with_cuda_claims(torch[3], hit)
    elif device:
        yield Claim(
            "smi.gpus", [cuda_gpu(n, device[1], capability(device[3] or "")) for n in range(int(device[2]))], hit
        )
        yield Claim("torch.cuda_available", True, hit)
        if device[4] and is_driver_version(device[4]):
            yield Claim("driver.smi_version", device[4], hit)
    elif detected:
        yield Claim("smi.gpus", [cuda_gpu(0, detected[1], capability(detected[3]), int(detected[2]))], hit)
        yield Claim("torch.cuda_available", True, hit)
    elif packages:
        for word in packages[1].split():
            name, _, version = word.partition("==")
            yield from package_claims(name, version, hit)
