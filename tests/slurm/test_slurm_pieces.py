"""The Slurm pieces as files: POSIX sh, documented, and alike where they must be."""

from __future__ import annotations

import getpass
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from slurm_pieces import PIECES

pytestmark = pytest.mark.once

ALL = sorted(PIECES.glob("*.sh"))


def test_the_pieces_are_these() -> None:
    assert [file.name for file in ALL] == ["health_check.sh", "job.sh", "prolog.sh", "task_prolog.sh"]


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_piece_says_what_it_is_where_it_goes_and_how_to_try_it(file: Path) -> None:
    comment = file.read_text().split("\n\n")[0]
    shebang, title = comment.splitlines()[:2]
    assert shebang == "#!/bin/sh"
    assert len(title) <= 66  # one line of `cudadoctor recipes`
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


VERDICT = "CD105 driver-library-mismatch: two halves"
OURS = f"cudadoctor: {VERDICT} (auto)"
OLDER = "cudadoctor: CD113 gpu-lost: GPU 1 (auto)"
DRAIN = f"State=drain Reason={OURS}"
ME = getpass.getuser()


class Look(NamedTuple):
    """What Slurm and the doctor say, and what the health check would tell Slurm."""

    state: str
    reason: str
    status: int
    told: str
    gres: str = "gpu:a100:8(S:0-1)"
    settings: tuple[str, ...] = ()


LOOKS = {
    "an ill node": Look("IDLE", "", 75, DRAIN),
    "an ill node at work": Look("MIXED", "", 75, DRAIN),
    "a node without GPUs": Look("IDLE", "", 75, "", gres="(null)"),
    "a well node": Look("IDLE", "", 0, ""),
    "ours, still ill": Look("IDLE+DRAIN", f"{OURS} [{ME}@2026-11-30T18:44:56]", 75, ""),
    "ours, ill in another way": Look("IDLE+DRAIN", f"{OLDER} [{ME}@2026-11-30T18:44:56]", 75, DRAIN),
    "ours, well": Look("IDLE+DRAIN", f"{OURS} [{ME}@2026-11-30T18:44:56]", 0, "State=undrain"),
    "ours, well, with a comment": Look(
        "IDLE+DRAIN", f"{OURS} [{ME}@2026-11-30T18:44:56] Comment=rack 7", 0, "State=undrain"
    ),
    "ours, well, but not at this site": Look(
        "IDLE+DRAIN", f"{OURS} [{ME}@2026-11-30T18:44:56]", 0, "", settings=("TAKE_BACK=no",)
    ),
    "ours, undecided": Look("IDLE+DRAIN", f"{OURS} [{ME}@2026-11-30T18:44:56]", 3, ""),
    "as ours, by somebody else": Look("IDLE+DRAIN", f"{OURS} [ada@2026-11-30T18:44:56]", 0, ""),
    "an admin's, ill": Look("IDLE+DRAIN", f"new fans [{ME}@2026-11-30T18:44:56]", 75, ""),
    "an admin's, well": Look("MIXED+DRAIN", f"cudadoctor: new fans [{ME}@2026-11-30T18:44:56]", 0, ""),
    "an admin's, who took it over": Look("IDLE+DRAIN", f"{OURS}, RMA 7 [{ME}@2026-11-30T18:44:56]", 0, ""),
    "a reason that looks like a state": Look("IDLE", f"see State=IDLE+DRAIN [{ME}@2026-11-30T18:44:56]", 75, DRAIN),
    "down": Look("DOWN", "Not responding [slurm@2026-11-30T18:44:56]", 75, ""),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_the_health_check_tells_slurm(look: Look, tmp_path: Path) -> None:
    shown = f"NodeName=n7 Gres={look.gres} State={look.state} ThreadsPerCore=1"
    shown += f" Reason={look.reason}" if look.reason else ""
    write(
        tmp_path,
        doctor=f"echo '{VERDICT}'; exit {look.status}",
        scontrol=f"[ $1 = --oneliner ] && echo {shlex.quote(shown)}",
    )
    settings = dict(setting.split("=") for setting in ("DRY_RUN=yes", *look.settings))
    done = subprocess.run(
        ["sh", str(PIECES / "health_check.sh")],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "SLURMD_NODENAME": "n7",
            "CUDADOCTOR": "doctor",
            **{f"CUDADOCTOR_{key}": value for key, value in settings.items()},
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = f"would run: scontrol update NodeName=n7 {look.told}\n" if look.told else ""
    assert (done.returncode, done.stdout) == (0, told)
