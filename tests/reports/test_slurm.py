"""What job scripts and commands for Slurm tell: whether GPUs are asked for."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.matrix import load_matrix
from cudadoctor.reports import read_report


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("#!/bin/bash\n#SBATCH -N 1\n#SBATCH --gres=gpu:1\nsrun python train.py\n", True),
        ("#!/bin/bash\n#SBATCH -N 1\n#SBATCH -t 10\nsrun python train.py\n", False),
        ("#SBATCH --gpus-per-node=4\n", True),
        ("#SBATCH -G 2\n", True),
        ("$ srun --gpus=1 --pty bash\n", True),
        ("$ srun --gres gpu:a100:1 nvidia-smi\n", True),
        ("$ srun --pty bash\n", False),
        ("$ sbatch job.sh\nSubmitted batch job 1234\n", None),
        ("$ sbatch --gres=gpu:1 job.sh\n", True),
        ("srun: error: n3: task 2: Exited with exit code 1\n", None),
        ("I start it with srun and it does not work\n", None),
    ],
)
def test_gpus_are_asked_for(text: str, asked: Optional[bool]) -> None:
    facts = read_report([("report", text)], load_matrix()).facts
    assert facts.value("scheduler.gpus_requested") is asked


def test_slurm_is_known_by_what_it_prints() -> None:
    facts = read_report([("report", "Submitted batch job 1234\n")], load_matrix()).facts
    assert facts.value("scheduler.kind") == "slurm"
    prose = read_report([("report", "On our cluster we have srun and sbatch.\n")], load_matrix()).facts
    assert not prose["scheduler.kind"].is_known
