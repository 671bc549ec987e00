"""`python -m sglang.check_env`:

    Python: 3.12.3 (main, ...) [GCC 13.3.0]
    CUDA available: True
    GPU 0,1: NVIDIA H100 80GB HBM3
    GPU 0,1 Compute Capability: 9.0
    CUDA_HOME: /usr/local/cuda
    NVCC: Cuda compilation tools, release 12.9, V12.9.86
    CUDA Driver Version: 580.95.05
    PyTorch: 2.9.1+cu129
    sgl_kernel: 0.3.18
    vllm: Module Not Found
    ulimit soft: 1048576

GPUs are numbered as torch numbers them. "Module Not Found" is said of what cannot be imported, whatever the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import available_claims, package_claims, python_claims, torch_claims
from cudadoctor.reports.readers._variables import variable_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("cuda available:",)

_LONGEST = 90
_LINE = re.compile(r"\s*([A-Za-z][\w ,.-]{0,60}?):[ \t]+(\S.*)$")
_GPUS = re.compile(r"GPU (\d{1,3}(?:,\d{1,3}){0,63})( Compute Capability)?")
_ITS_OWN = ("cuda driver version", "sglang", "pytorch", "sgl_kernel", "nvcc")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not re.match(r"\s*CUDA available: (?:True|False)", text[hit]):
            continue
        first = hit - 1 if hit and text[hit - 1].lstrip().startswith("Python: ") else hit
        claims: list[Claim] = []
        names: dict[int, str] = {}
        capabilities: dict[int, str] = {}
        keys: set[str] = set()
        last = hit
        for index, line in text.lines(first, first + _LONGEST):
            match = _LINE.match(line)
            if index > last + 30:
                break
            if not match:
                continue
            key, value = match.group(1), match.group(2).strip()
            gpus = _GPUS.fullmatch(key)
            if key.lower() in keys:
                break
            keys.add(key.lower())
            if gpus:
                into = capabilities if gpus.group(2) else names
                into.update((int(number), value) for number in gpus.group(1).split(","))
                last = index
                continue
            stated = list(_claims(key, value, index))
            claims += stated
            last = index if stated or key == "ulimit soft" else last
            if key == "ulimit soft":
                break
        if len(keys.intersection(_ITS_OWN)) < 2:
            continue
        if names:
            claims.append(Claim("smi.gpus", [cuda_gpu(n, name, capabilities.get(n)) for n, name in names.items()], hit))
        end = last
        driver = next((claim.value for claim in claims if claim.fact == "driver.smi_version"), None)
        yield Block("sglang check_env", first, last, tuple(claims), REPORT, driver)


def _claims(key: str, value: str, line: int) -> Iterator[Claim]:
    if key == "Python":
        yield from python_claims(value, line)
    elif key == "CUDA available":
        yield from available_claims(value, line)
    elif key == "PyTorch":
        yield from torch_claims(value, line)
    elif key == "CUDA_HOME" and value != "None":
        yield from variable_claims(key, value, line)
    elif key == "CUDA Driver Version" and is_driver_version(value):
        yield Claim("driver.smi_version", value, line)
    elif key == "NVCC":
        match = re.search(r"release \d{1,2}\.\d{1,2}, V(\d{1,2}(?:\.\d{1,4}){1,2})", value)
        if match:
            yield Claim("toolkit.nvcc_on_path_version", match.group(1), line)
    elif key == "ulimit soft" and value.isascii() and value.isdigit() and len(value) < 12:
        yield Claim("limits.nofile", int(value), line)
    elif re.fullmatch(r"[\w.-]+", key):
        yield from package_claims(key, value, line)
