"""`python -m sglang.check_env`, and OpenMMLab's collect_env (mmcv, mmengine), which has the same lines:

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

    sys.platform: linux                                   OpenMMLab
    {'CUDA available': True,
    PyTorch compiling details: PyTorch built with:

GPUs are numbered as torch numbers them. "Module Not Found" is said of what cannot be imported, whatever the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import REPORT, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import available_claims, package_claims, python_claims, torch_claims
from cudadoctor.reports.readers._torch_config import config_claims
from cudadoctor.reports.readers._variables import variable_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("cuda available:", "cuda available':")

_LONGEST = 90
_QUOTED = re.compile(r"\s*\{?'([A-Za-z][\w ,.-]{0,60})':\s+(?:'([^']{1,300})'|([^,{}]{1,60}))[,}]*\s*$")
_LINE = re.compile(r"[\s`*]*([A-Za-z][\w ,.-]{0,60}?):[ \t]+(\S.*)$")
_GPUS = re.compile(r"GPU (\d{1,3}(?:,\d{1,3}){0,63})( Compute Capability)?")
_ITS_OWN = ("cuda driver version", "sglang", "pytorch", "sgl_kernel", "nvcc")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or _field(text[hit]) not in (("CUDA available", "True"), ("CUDA available", "False")):
            continue
        first = hit
        while first > hit - 3 and first > 0 and (_field(text[first - 1]) or ("",))[0] in ("Python", "sys.platform"):
            first -= 1
        claims: list[Claim] = []
        names: dict[int, str] = {}
        capabilities: dict[int, str] = {}
        keys: set[str] = set()
        last = hit
        for index, line in text.lines(first, first + _LONGEST):
            if index > last + 30:
                break
            field = _field(line)
            if field is None:
                config = list(config_claims(line, index))
                claims += config
                last = index if config else last
                continue
            key, value = field
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
        kind = "OpenMMLab's environment" if "sys.platform" in keys or "mmengine" in keys else "sglang check_env"
        yield Block(kind, first, last, tuple(claims), REPORT, driver)


def _field(line: str) -> Optional[tuple[str, str]]:
    match = _QUOTED.match(line) or _LINE.match(line)
    if not match:
        return None
    value = next(part for part in match.groups()[1:] if part is not None)
    return match.group(1), value.strip()


def _claims(key: str, value: str, line: int) -> Iterator[Claim]:
    if key == "Python":
        yield from python_claims(value, line)
    elif key == "CUDA available":
        yield from available_claims(value, line)
    elif key == "sys.platform":
        system = {"linux": "linux", "win32": "windows", "darwin": "darwin"}.get(value)
        if system:
            yield Claim("system.os", system, line)
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
