"""torch's report that the GPU's memory did not suffice, of every release, with its numbers in bytes.

CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 6.42 GiB already allocated; 15.56 MiB
    free; 6.89 GiB reserved in total by PyTorch)
CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 31.84 GiB of which 1.02 GiB is free.
    Process 4242 has 8.00 GiB memory in use. Including non-PyTorch memory, this process has 22.10 GiB memory in use.
    24.00 GiB allowed; Of the allocated memory 20.90 GiB is allocated by PyTorch, with 512.00 MiB allocated in private
    pools (e.g., CUDA Graphs), and 311.20 MiB is reserved by PyTorch but unallocated.

And with the allocator cudaMallocAsync:

torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)
Currently allocated     : 10.95 GiB
Requested               : 512.00 MiB
Device limit            : 11.99 GiB
Free (according to CUDA): 0 bytes
PyTorch limit (set by user-supplied memory fraction)
                        : 17179869184.00 GiB

The traceback above it tells what the program was at: its deepest line that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.sizes import size_or_none
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("tried to allocate", "has a total capa", "would exceed allowed memory")

_SIZE = r"(\d[\d.]{0,12} ?(?:[KMGT]i?B|bytes))"
_NUMBERS = (
    ("oom.tried", re.compile(rf"Tried to allocate {_SIZE}")),
    ("oom.total", re.compile(rf"{_SIZE} total capacity")),
    ("oom.total", re.compile(rf"total capac?i?ty of {_SIZE}")),
    ("oom.allocated", re.compile(rf"{_SIZE} already allocated")),
    ("oom.allocated", re.compile(rf"{_SIZE} is allocated by PyTorch")),
    ("oom.free", re.compile(rf"{_SIZE} free\b")),
    ("oom.free", re.compile(rf"of which {_SIZE} is free")),
    ("oom.reserved", re.compile(rf"{_SIZE} (?:reserved in total by PyTorch|cached)")),
    ("oom.unallocated", re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")),
    ("oom.process", re.compile(rf"this process has {_SIZE} memory in use")),
    ("oom.allowed", re.compile(rf"{_SIZE} allowed")),
    ("oom.private_pools", re.compile(rf"{_SIZE} allocated in private pools")),
)
_ASYNC = "would exceed allowed memory"
# Of cudaMallocAsync. Where no fraction was set, the limit is more than any machine has, and is none.
_ASYNC_NUMBERS = (
    ("oom.allocated", re.compile(rf"Currently allocated\s*: {_SIZE}")),
    ("oom.tried", re.compile(rf"Requested\s*: {_SIZE}")),
    ("oom.total", re.compile(rf"Device limit\s*: {_SIZE}")),
    ("oom.free", re.compile(rf"Free \(according to CUDA\)\s*: {_SIZE}")),
    ("oom.allowed", re.compile(rf"user-supplied memory fraction\)\s*: {_SIZE}")),
)
_DEVICE = re.compile(r"\bGPU (\d{1,3})(?:;| has a total)|Allocation on device (\d{1,3}) would")
# What a line of a traceback (a file, or the code in it) says of what the program was at.
_PHASES = re.compile(
    r"(?P<attention>attn_weights|attention_scores|attention_probs|eager_attention|scaled_dot_product|_attn\()"
    r"|(?P<loss>cross_entropy|log_softmax|nll_loss|[Ll]oss_function|CausalLMLoss|logits\.float\(|shift_logits)"
    r"|(?P<cache>cache_utils\.py|key_cache|DynamicCache|kv_cache)"
    r"|(?P<optimizer>torch[/\\]optim[/\\]|optimizer\.step\(|bitsandbytes[/\\]optim|_foreach_|exp_avg)"
    r"|(?P<loading>from_pretrained\(|load_state_dict|load_model\(|model\.(?:to|cuda)\(|create_weights"
    r"|set_module_tensor_to_device|load_checkpoint)"
    r"|(?P<backward>\.backward\(|_engine_run_backward|torch[/\\]autograd[/\\])"
)
# An inference engine that stands in a traceback.
_ENGINE = re.compile(r"[/\\](vllm|sglang)[/\\]")
_WIDTH = 400
_TRACEBACK = 120
_OTHERS = re.compile(rf"\bProcess \d{{1,10}} has {_SIZE} memory in use")
_LINES = 6
# One report has a good deal less than this many letters.
_LONGEST = 3000
_MOST = 200


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    # The last report counts: of very many the last are enough.
    for hit in hits[-_MOST:]:
        line = text[hit]
        start = line.find("Tried to allocate")
        if _ASYNC in line and hit > end:
            last = min(hit + _LINES + 1, len(text) - 1)
            said = " ".join(below.strip() for _, below in text.lines(hit, last))[:_LONGEST]
            claims = [*_numbers_of(said, _ASYNC_NUMBERS, hit), *_about(text, said, hit)]
            if claims:
                end = last
                yield Block("torch's report of full memory", hit, last, tuple(claims), LOG)
            continue
        if hit <= end or (start < 0 and "has a total capa" not in line):
            continue
        parts, last = [line[max(0, start) :]], hit
        for index, below in text.lines(hit + 1, hit + _LINES):
            if not below.strip() or "Tried to allocate" in below or _finished(parts):
                break
            parts.append(below.strip())
            last = index
        end = last
        said = " ".join(parts)[:_LONGEST]
        claims = list(_claims(said, hit))
        # A size alone may be of another kind of memory: of the machine, or of a GPU that is not NVIDIA's.
        if len(claims) > 1 or _DEVICE.search(said):
            claims += _about(text, said, hit)
            yield Block("torch's report of full memory", hit, last, tuple(claims), LOG)


def _finished(parts: list[str]) -> bool:
    said = parts[-1]
    return "unallocated" in said or "by PyTorch)" in said or "cached)" in said or "avoid fragmentation" in said


def _claims(said: str, line: int) -> Iterator[Claim]:
    found: dict[str, int] = {}
    for fact, pattern in _NUMBERS:
        match = pattern.search(said)
        size = size_or_none(match.group(1)) if match else None
        if size is not None:
            found.setdefault(fact, size)
    unallocated = found.pop("oom.unallocated", None)
    if unallocated is not None and "oom.allocated" in found:
        # Since torch 2.1 the text tells what is reserved beyond what is allocated; before, it told the sum.
        found["oom.reserved"] = found["oom.allocated"] + unallocated
    elif found.get("oom.reserved", 1 << 62) < found.get("oom.allocated", 0):
        # torch 1.0 to 1.3: "cached" is what is reserved beyond what is allocated.
        found["oom.reserved"] += found["oom.allocated"]
    others = [size for size in map(size_or_none, _OTHERS.findall(said)) if size is not None]
    # Seen from a container, this process is listed by its number on the host, and is none of the others.
    itself = sum(others) + found.get("oom.allocated", 0) > found.get("oom.total", 1 << 62)
    if others and not itself:
        found["oom.others"] = sum(others)
    for fact, value in found.items():
        yield Claim(fact, value, line)


def _numbers_of(said: str, patterns: Sequence[tuple[str, re.Pattern[str]]], line: int) -> Iterator[Claim]:
    for fact, pattern in patterns:
        match = pattern.search(said)
        size = size_or_none(match.group(1)) if match else None
        if size is not None:
            yield Claim(fact, size, line)


def _about(text: Text, said: str, line: int) -> Iterator[Claim]:
    """Whose report it is, of which GPU, and what the program was at."""
    engine, phase = _traceback(text, line)
    yield Claim("oom.program", engine or "torch", line)
    device = _DEVICE.search(said)
    if device:
        yield Claim("oom.device", int(device.group(1) or device.group(2)), line)
    if phase:
        yield Claim("oom.phase", phase, line)


def _traceback(text: Text, line: int) -> tuple[str, str]:
    """The engine whose traceback stands above `line`, and what it was at: the deepest line that tells. Empty where
    there is none, or it tells nothing."""
    engine = phase = ""
    for index in range(line - 1, max(-1, line - _TRACEBACK), -1):
        above = text[index][:_WIDTH]
        if "Traceback (most recent" in above or "Tried to allocate" in above:
            break
        if not phase:
            told = _PHASES.search(above)
            phase = str(told.lastgroup) if told else ""
        if not engine:
            made = _ENGINE.search(above)
            engine = made.group(1) if made else ""
    return engine, phase
