"""Reports of others than torch that the GPU's memory did not suffice, with their numbers in bytes.

JAX, TensorFlow (their allocator tells what it may take, and what is in use of it):
    RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.
    Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.50GiB (rounded to 2684354560)requested by op
    Limit:                     15703998464
    InUse:                     15365245952
    OOM when allocating tensor with shape[64,512,56,56] and type float on /job:localhost/replica:0/device:GPU:0 by ...
llama.cpp, and what is built on it:
    ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18432.00 MiB on device 0: cudaMalloc failed: out of memory
    ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2684354560
CuPy:
    Out of memory allocating 8,000,000,000 bytes (allocated so far: 12,000,000,000 bytes, limit set to: ...)
vLLM, TensorRT:
    CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or
    Requested amount of GPU memory (34359738368 bytes) could not be allocated.
PaddlePaddle:
    Out of memory error on GPU 0. Cannot allocate 512.000000MB memory on GPU 0, 10.500000GB memory has been allocated
    and available memory is only 256.000000MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.sizes import size_or_none
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "out of memory while trying to allocate",
    "ran out of memory trying to allocate",
    "oom when allocating tensor",
    "cudamalloc failed: out of memory",
    "failed to allocate cuda",
    "out of memory allocating",
    "out of memory error on gpu",
    "maxinuse:",
    "amount of gpu memory (",
    "lowering `max_num_seqs`",
)

_SIZE = r"(\d[\d.]{0,12} ?(?:[KMGT]i?B|bytes))"
_WHOLE = r"(\d{1,3}(?:,\d{3}){1,6}|\d{1,18})"
# Program, pattern, and what its groups are: facts in their order.
_WORDINGS: tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...] = (
    ("vllm", re.compile(r"out of memory occurred when .{0,80}lowering `max_num_seqs`"), ()),
    ("tensorrt", re.compile(rf"Requested amount of GPU memory \({_WHOLE} bytes\) could not be allocated"), ("tried",)),
    ("jax", re.compile(rf"Out of memory while trying to allocate {_WHOLE} ?bytes"), ("tried",)),
    ("jax", re.compile(rf"Out of memory while trying to allocate {_SIZE}"), ("tried",)),
    (
        "",
        re.compile(rf"Allocator \(GPU_(\d{{1,3}})_bfc\) ran out of memory trying to allocate {_SIZE}"),
        ("device", "tried"),
    ),
    (
        "llama.cpp",
        re.compile(rf"allocating {_SIZE} on device (\d{{1,3}}): cudaMalloc failed: out of memory"),
        ("tried", "device"),
    ),
    ("llama.cpp", re.compile(rf"failed to allocate CUDA(\d{{1,3}}) buffer of size {_WHOLE}"), ("device", "tried")),
    (
        "cupy",
        re.compile(
            rf"Out of memory allocating {_WHOLE} bytes \(allocated so far: {_WHOLE} bytes(?:, limit set to: {_WHOLE})?"
        ),
        ("tried", "allocated", "allowed"),
    ),
    (
        "paddle",
        re.compile(
            rf"Out of memory error on GPU (\d{{1,3}})\. Cannot allocate {_SIZE} memory on GPU \d{{1,3}}, {_SIZE} "
            rf"memory has been allocated and available memory is only {_SIZE}"
        ),
        ("device", "tried", "allocated", "free"),
    ),
)
_TENSOR = re.compile(
    r"OOM when allocating tensor with shape ?\[(\d{1,12}(?:,\d{1,12}){0,11})\] and type (\w{2,12})"
    r"[^\n]{0,80}device:GPU:(\d{1,3})"
)
# Bytes of one number.
_WIDTHS = {"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "bool": 1}
_STATISTICS = re.compile(r"^(Limit|InUse): +(\d{1,18})$")
_MOST = 200
_WIDTH = 2000


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits[-_MOST:]:
        line = text[hit][:_WIDTH]
        claims = _statistics(text, hit) if "MaxInUse:" in line else list(_claims(line, hit))
        if claims:
            yield Block("a report of full GPU memory", hit, hit, tuple(claims), LOG)


def _claims(line: str, number: int) -> Iterator[Claim]:
    tensor = _TENSOR.search(line)
    if tensor:
        yield from _tensor(tensor, number)
        return
    for program, pattern, names in _WORDINGS:
        match = pattern.search(line)
        if not match:
            continue
        for name, group in zip(names, match.groups()):
            value = None if group is None else int(group) if name == "device" else _amount(group)
            if value is not None:
                yield Claim(f"oom.{name}", value, number)
        if program:
            yield Claim("oom.program", program, number)
        return


def _tensor(match: re.Match[str], number: int) -> Iterator[Claim]:
    width = _WIDTHS.get(match.group(2))
    if width is not None:
        for size in match.group(1).split(","):
            width *= int(size)
        if 0 < width < 1 << 62:
            yield Claim("oom.tried", width, number)
    yield Claim("oom.device", int(match.group(3)), number)
    yield Claim("oom.program", "tensorflow", number)


def _statistics(text: Text, hit: int) -> list[Claim]:
    """What the allocator of JAX and TensorFlow may take, and what is in use of it: two lines above this one."""
    facts = {"Limit": "oom.allowed", "InUse": "oom.allocated"}
    found = []
    for index, line in text.lines(hit - 2, hit - 1):
        match = _STATISTICS.match(line)
        if match:
            found.append(Claim(facts[match.group(1)], int(match.group(2)), index))
    return found if len(found) == len(facts) else []


def _amount(group: str) -> Optional[int]:
    digits = group.replace(",", "")
    return int(digits) if digits.isdigit() else size_or_none(group)
