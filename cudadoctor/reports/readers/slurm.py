"""Job scripts and commands for Slurm: whether they ask for GPUs.

#SBATCH --gres=gpu:1
srun --gpus=1 --pty bash
srun python -c "import torch; print(torch.cuda.is_available())"
salloc: Granted job allocation 1234
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("#sbatch ", "srun ", "sbatch ", "salloc ", "submitted batch job", "slurmstepd")

_DIRECTIVE = re.compile(r"\s*#SBATCH\s+(-.*)")
# A command at a prompt, in a script, or at the beginning of a line; prose that names srun has words before it.
_COMMAND = re.compile(r"(?:^|[$#%>]|&&|;|\|)\s*(srun|sbatch|salloc)\s+(\S.*)")
_GPUS = re.compile(r"(?:^|\s)(?:--gres[= ]\S*gpu|--gpus(?:-per-\w+)?[= ]|-G ?\d|--tres[\w-]*[= ]\S*gpu)", re.IGNORECASE)
_OWN = re.compile(r"submitted batch job \d+|slurmstepd", re.IGNORECASE)
_ERROR = re.compile(r"\b(error|fatal):", re.IGNORECASE)
_LONGEST = 600


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    asked = False
    shown: list[int] = []
    seen: list[int] = []
    for hit in hits:
        line = text[hit][:_LONGEST]
        directive = _DIRECTIVE.match(line)
        command = None if directive or _ERROR.search(line) else _COMMAND.search(line)
        if directive is None and command is None:
            if _OWN.search(line):
                seen.append(hit)
            continue
        words = directive.group(1) if directive else command.group(2) if command else ""
        asked = asked or _GPUS.search(words) is not None
        # `sbatch job.sh` tells nothing of what stands in the script.
        if directive or (command and command.group(1) == "srun") or _GPUS.search(words):
            shown.append(hit)
        seen.append(hit)
    if seen:
        claims = [Claim("scheduler.kind", "slurm", seen[0])]
        if shown:
            claims.append(Claim("scheduler.gpus_requested", asked, shown[0]))
        yield Block("Slurm", seen[0], seen[-1], tuple(claims), LOG)
