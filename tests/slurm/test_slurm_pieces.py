"""The Slurm pieces as files: POSIX sh, documented, and alike where they must be."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from slurm_pieces import PIECES

pytestmark = pytest.mark.once

ALL = sorted(PIECES.glob("*.sh"))


def test_the_pieces_are_these() -> None:
    assert [file.name for file in ALL] == ["health_check.sh", "job.sh", "prolog.sh", "task_prolog.sh"]


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_piece_says_what_it_is_where_it_goes_and_how_to_try_it(file: Path) -> None:
    comment = file.read_text().split("\n\n")[0]
    assert comment.startswith("#!/bin/sh\n# Slurm ")
    for heading in ("\n# Line", "\n# What it does.", "\n# Settings", "\n# By hand"):
        assert heading in comment
    named = set(re.findall(r"\$\{(CUDADOCTOR\w*):=", file.read_text()))
    explained = set(re.findall(r"^#     (CUDADOCTOR\w*) ", comment, re.MULTILINE))
    assert explained == named


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_piece_is_plain_sh(file: Path) -> None:
    shells = [shell for shell in ("dash", "sh", "bash", "busybox") if shutil.which(shell)]
    for shell in shells:
        command = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
        done = subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), shell
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-s", "sh", str(file)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "")


def test_what_prolog_and_health_check_share_is_the_same() -> None:
    def shared(name: str) -> str:
        text = (PIECES / name).read_text()
        start, end = text.index("# ---- the same in prolog.sh and health_check.sh"), text.index("# ---- to here")
        return text[start:end]

    assert shared("prolog.sh") == shared("health_check.sh")


def write(folder: Path, **programs: str) -> None:
    """Programs for PATH, as shell scripts."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("name", "environment", "status"),
    [("job", {}, 2), ("prolog", {}, 0), ("prolog", {"SLURM_JOB_GPUS": "0"}, 1), ("task_prolog", {}, 0)],
    ids=["job outside of a job", "prolog without GPUs", "prolog, ill node, no Slurm", "task prolog without GPUs"],
)
def test_by_hand_without_a_slurm(name: str, environment: dict[str, str], status: int, tmp_path: Path) -> None:
    write(tmp_path, doctor="echo 'CD105 driver-library-mismatch: two halves'; exit 75", scontrol="exit 1")
    done = subprocess.run(
        ["sh", str(PIECES / f"{name}.sh")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "CUDADOCTOR": "doctor", **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status


def test_a_dry_run_prints_what_slurm_would_be_told(tmp_path: Path) -> None:
    write(
        tmp_path,
        doctor="echo 'CD105 driver-library-mismatch: two halves'; exit 75",
        scontrol="echo 'NodeName=n7 Gres=gpu:2 State=IDLE'; [ $1 = --oneliner ]",
    )
    variables = {"CUDADOCTOR": "doctor", "CUDADOCTOR_DRY_RUN": "yes", "SLURM_JOB_GPUS": "0", "SLURMD_NODENAME": "n7"}
    for name, status in (("prolog", 1), ("health_check", 0)):
        done = subprocess.run(
            ["sh", str(PIECES / f"{name}.sh")],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == (
            "would run: scontrol update NodeName=n7 State=drain "
            "Reason=cudadoctor: CD105 driver-library-mismatch: two halves (auto)\n"
        )
        assert done.returncode == status
