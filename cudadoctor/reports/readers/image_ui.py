"""What ComfyUI, Stable Diffusion WebUI (A1111) and Forge print when they start.

    ** Python executable: C:\\ComfyUI\\python_embeded\\python.exe
    Total VRAM 24564 MB, total RAM 65361 MB            both in MiB; without a GPU VRAM is the RAM
    pytorch version: 2.9.1+cu128
    xformers version: 0.0.33.post2
    Set vram state to: NORMAL_VRAM
    Device: cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync

    venv "C:\\stable-diffusion-webui\\venv\\Scripts\\Python.exe"        A1111
    Python 3.10.6 (tags/v3.10.6:9c7b4bd, ...) [MSC v.1932 64 bit (AMD64)]
    Launching Web UI with arguments: --xformers --medvram

    ## Devices                                                          ComfyUI's report of an error
    - **Name:** cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync
      - **VRAM Total:** 25756696576                                     bytes

The arguments may hold a password, and no fact is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import package_claims, python_claims, torch_claims
from cudadoctor.reports.text import Text

TRIGGERS = (
    "total vram ",
    "** python version:",
    "** python executable:",
    "device: cuda:",
    'venv "',
    "launching web ui with",
    "**name:** cuda:",
)

_LONGEST = 60
_LEVEL = r"\s*(?:\[(?:INFO|WARNING)\] ?)?"
_VRAM = re.compile(_LEVEL + r"Total VRAM (\d{2,7}) MB, total RAM (\d{2,8}) MB")
_TORCH = re.compile(_LEVEL + r"py[tT]orch version: (\S+)")
_XFORMERS = re.compile(_LEVEL + r"xformers version: (\S+)")
_DEVICE = re.compile(_LEVEL + r"Device: (cuda:(\d{1,2}) (.{2,90}?)|cpu|mps)(?: : (?:cudaMallocAsync|native|\S+))?\s*$")
_LISTED = re.compile(r"\s*[-*] \*\*Name:\*\* cuda:(\d{1,2}) (.{2,90}?)(?: : (?:cudaMallocAsync|native|\S+))?\s*$")
_LISTED_VRAM = re.compile(r"\s*[-*] \*\*VRAM Total:\*\* (\d{8,13})\s*$")
_PYTHON = re.compile(r"\s*(?:\*\* )?Python(?: version:)? (\d\.\d{1,2}\.\d{1,2} \(.*)$")
_EXECUTABLE = re.compile(r'\s*(?:\*\* Python executable: (\S.{0,300})|venv "([^"]{1,300})")\s*$')
_PLATFORM = re.compile(r"\s*\*\* Platform: (Windows|Linux|Darwin)\s*$")
_OTHER = re.compile(r"\s*(?:\*\* |Version: |Commit hash: |Launching Web UI|\[(?:START|DONE)\])")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        listed = _LISTED.match(text[hit])
        if listed:
            yield _device(text, hit, listed)
            continue
        if not (_VRAM.match(text[hit]) or _OTHER.match(text[hit]) or any(_claims(text[hit], hit, 0))):
            continue
        claims: list[Claim] = []
        first = last = hit
        memory = 0
        for index, line in text.lines(first, first + _LONGEST):
            vram = _VRAM.match(line)
            if vram:
                # Without a GPU the two are one and the same memory.
                memory = int(vram.group(1)) if vram.group(1) != vram.group(2) else 0
                claims.append(Claim("memory.total", int(vram.group(2)) << 20, index))
                last = index
                continue
            stated = list(_claims(line, index, memory))
            if stated or _OTHER.match(line):
                claims += stated
                last = index
            elif index > last + 12:
                break
        end = last
        if len(claims) > 1 or any(claim.fact == "smi.gpus" for claim in claims):
            yield Block("start of an image UI", first, last, tuple(claims), REPORT)


def _device(text: Text, hit: int, listed: re.Match[str]) -> Block:
    memory, last = 0, hit
    for index, line in text.lines(hit + 1, hit + 3):
        total = _LISTED_VRAM.match(line)
        if total:
            memory, last = int(total.group(1)) >> 20, index
    name = listed.group(2)
    claims = [Claim("torch.cuda_available", True, hit)]
    if not name.startswith(("AMD", "Radeon")):
        claims.append(Claim("smi.gpus", [cuda_gpu(int(listed.group(1)), name, None, memory)], hit))
    return Block("ComfyUI's devices", hit, last, tuple(claims), REPORT)


def _claims(line: str, index: int, memory: int) -> Iterator[Claim]:
    torch, xformers, device = _TORCH.match(line), _XFORMERS.match(line), _DEVICE.match(line)
    python, executable, platform = _PYTHON.match(line), _EXECUTABLE.match(line), _PLATFORM.match(line)
    if torch:
        yield from torch_claims(torch.group(1), index)
    elif xformers:
        yield from package_claims("xformers", xformers.group(1), index)
    elif device:
        name = device.group(3)
        if name and not name.startswith(("AMD", "Radeon")):
            yield Claim("smi.gpus", [cuda_gpu(int(device.group(2)), name, None, memory)], index)
        if name:
            yield Claim("torch.cuda_available", True, index)
    elif python:
        yield from python_claims(python.group(1), index)
    elif executable:
        yield Claim("python.executable", (executable.group(1) or executable.group(2)).strip(), index)
    elif platform:
        yield Claim("system.os", platform.group(1).lower(), index)
