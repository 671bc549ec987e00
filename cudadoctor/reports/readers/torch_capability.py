"""torch's warnings about GPUs that it has no code for: they name the GPU, its compute capability, and what torch has.

The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
    Found GPU0 NVIDIA GeForce GTX 1080 Ti which is of cuda capability 6.1.
- 7.5 which supports hardware CC >=7.5,<8.0
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.text import Text

TRIGGERS = (
    "supports cuda capabilities",
    "which is of cuda capability",
    "which is of compute capability",
    "which supports hardware cc",
    "with cuda capability sm_",
    "with cuda capabilities sm_",
)

_LISTED = re.compile(r"supports CUDA capabilities *(?=sm|compute|$)")
# The list ends with a full stop; without it, it is cut.
_TARGETS = re.compile(r"supports CUDA capabilities *((?:(?:sm|compute)_\d{2,3}[af]?[ ,]*)+)(\.?)")
# The lines that it may be wrapped over.
_WRAPPED_OVER = 8
_GPU = re.compile(
    r"Found GPU(\d{1,3}) (\S[^\n]{2,60}?) which is of (?:cuda|compute) capability (?:\(CC\) )?(\d{1,2}\.\d)"
)
_NAMED = re.compile(
    r"(?:^|\s{2,}|[:>|] |[`\"'])((?:NVIDIA |Tesla |Quadro |GeForce |GRID )[\w ()./+-]{2,50}?)"
    r" with CUDA capabilit(?:y|ies) sm_(\d{2,3})[af]? is not",
    re.IGNORECASE,
)
_ROW = re.compile(r"-\s*(\d{1,2})\.(\d) which supports hardware CC")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        if _LISTED.search(line):
            yield _listed(text, hit)
        gpu = _GPU.search(line)
        if gpu:
            entry = cuda_gpu(int(gpu.group(1)), gpu.group(2).strip(), gpu.group(3))
            yield Block("torch's warning", hit, hit, (Claim("smi.gpus", [entry], hit),), LOG)
        named = _NAMED.search(line)
        if named:
            sm = named.group(2)
            entry = cuda_gpu(0, named.group(1).strip(), f"{sm[:-1]}.{sm[-1]}")
            yield Block("torch's warning", hit, hit, (Claim("smi.gpus", [entry], hit),), LOG)
        row = _ROW.search(line)
        if row:
            names = []
            for index, below in text.lines(hit, hit + 30):
                row = _ROW.search(below)
                if not row:
                    break
                names.append(f"sm_{row.group(1)}{row.group(2)}")
                end = index
            yield _targets(names, hit, end)


def _listed(text: Text, hit: int) -> Block:
    """torch's list, which a terminal or a mail may have wrapped, also within a name. Of one that is cut only that is
    known: what it lacks, torch may have."""
    joined = ""
    for index, part in text.lines(hit, hit + _WRAPPED_OVER):
        if index > hit and not part.strip():
            break
        joined += part.strip() if index > hit else part
        targets = _TARGETS.search(joined)
        if targets and targets.group(2):
            names = re.findall(r"(?:sm|compute)_\d{2,3}[af]?", targets.group(1))
            return _targets(names, hit, index)
        if not (targets or _LISTED.search(joined)):
            break
    return Block("torch's warning", hit, hit, (), LOG, notes=("torch's list of capabilities is cut in the text",))


def _targets(names: list[str], first: int, last: int) -> Block:
    """The list is that of torch.cuda.get_arch_list(): machine code, and PTX where it says compute."""
    sass = [name for name in names if name.startswith("sm_")]
    ptx = [name for name in names if name.startswith("compute_")]
    claims = (Claim("torch.sass", sass, first), Claim("torch.ptx", ptx, first))
    return Block("torch's warning", first, last, claims, LOG)
