"""The Slurm pieces as files: POSIX sh, documented, and alike where they must be."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, Optional

import pytest
from slurm_pieces import PIECES

pytestmark = pytest.mark.once

ALL = sorted(PIECES.glob("*.sh"))


def test_the_pieces_are_these() -> None:
    assert [file.name for file in ALL] == ["health_check.sh", "job.sh", "prolog.sh", "task_prolog.sh"]


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_piece_says_what_it_is_where_it_goes_and_how_to_try_it(file: Path) -> None:
    comment = file.read_text().split("\n\n")[0]
    assert all(line.startswith("#") for line in comment.splitlines())
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
    verdict: str = VERDICT


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
    "ours, and a doctor that says nothing": Look("IDLE+DRAIN", f"{OURS} [{ME}@2026-11-30T18:44:56]", 0, "", verdict=""),
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
        doctor=f"printf '{look.verdict}'; exit {look.status}",
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


def health_check(folder: Path, **settings: str) -> None:
    done = subprocess.run(
        ["sh", str(PIECES / "health_check.sh")],
        env={
            "PATH": f"{folder}:/usr/bin:/bin",
            "SLURMD_NODENAME": "n7",
            "CUDADOCTOR": "doctor",
            "CUDADOCTOR_MEMORY": str(folder / "run"),
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0


def test_a_well_node_does_not_ask_the_controller_each_time(tmp_path: Path) -> None:
    asked = tmp_path / "asked"

    def slurm_says(what: str) -> None:
        write(tmp_path, scontrol=f'echo "$2 $3" >>{asked}\n[ $1 != --oneliner ] || echo {shlex.quote(what)}')

    def questions() -> list[str]:
        found = asked.read_text().splitlines() if asked.exists() else []
        asked.unlink(missing_ok=True)
        return found

    slurm_says("NodeName=n7 Gres=gpu:8 State=IDLE ThreadsPerCore=1")
    write(tmp_path, doctor="echo ok: nothing found; exit 0")
    looks = []
    for _ in range(3):
        health_check(tmp_path)
        looks.append(questions())
    assert looks == [["show node"], [], []]

    # A fault is told, whatever was known; and what was drained is asked for until it is taken back.
    write(tmp_path, doctor=f"echo '{VERDICT}'; exit 75")
    health_check(tmp_path)
    assert questions() == ["show node", "NodeName=n7 State=drain"]
    slurm_says(f"NodeName=n7 Gres=gpu:8 State=IDLE+DRAIN ThreadsPerCore=1 Reason={OURS} [{ME}@2026-11-30T18:44:56]")
    write(tmp_path, doctor="echo ok: nothing found; exit 0")
    health_check(tmp_path)
    assert questions() == ["show node", "show node", "NodeName=n7 State=undrain"]

    # After an hour it is asked again.
    slurm_says("NodeName=n7 Gres=gpu:8 State=IDLE ThreadsPerCore=1")
    health_check(tmp_path)
    os.utime(tmp_path / "run" / "n7", (0, 0))
    questions()
    health_check(tmp_path)
    assert questions() == ["show node"]


def test_a_node_without_gpus_is_left_alone_for_an_hour(tmp_path: Path) -> None:
    asked, looked = tmp_path / "asked", tmp_path / "looked"
    write(
        tmp_path,
        doctor=f"echo >{looked}; exit 75",
        scontrol=f"echo >>{asked}; echo NodeName=n7 Gres='(null)' State=IDLE ThreadsPerCore=1",
    )
    for _ in range(2):
        health_check(tmp_path)
    assert (asked.read_text(), looked.exists()) == ("\n", False)


MISTAKES = {
    "a quote left open": "CUDADOCTOR=doctor\nCUDADOCTOR_OPTIONS='--fail-on error\n",
    "an end": "CUDADOCTOR=doctor\nexit 1\n",
    "a strict shell": "set -eu\nCUDADOCTOR=doctor\n",
    "a strict shell, and a word that fails": "set -eu\nCUDADOCTOR=doctor\nfalse\n",
    "a last line that fails": "CUDADOCTOR=doctor\n[ -e /nowhere ] && CUDADOCTOR=/nowhere\n",
    "no shell at all": "\x7fELF;;)(\n",
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
@pytest.mark.parametrize("name", ["prolog", "health_check", "task_prolog"])
def test_a_mistake_in_the_settings_stops_no_job_and_drains_no_node(name: str, text: str, tmp_path: Path) -> None:
    settings = tmp_path / "slurm.sh"
    settings.write_text(text)
    piece = tmp_path / f"{name}.sh"
    piece.write_text((PIECES / f"{name}.sh").read_text().replace("/etc/cudadoctor/slurm.sh", str(settings)))
    write(tmp_path, doctor="echo undecided; exit 3", cudadoctor="exit 2", scontrol="exit 1")
    for shell in filter(shutil.which, ("dash", "sh", "bash")):
        done = subprocess.run(
            [shell, str(piece)],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_GPUS": "0", "SLURMD_NODENAME": "n7"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, (shell, done.stderr)


@pytest.mark.parametrize(
    ("deadline", "seconds"),
    # A driver that nothing keeps awake takes ten seconds and more: by itself, it is given twice that.
    [(None, 20), ("60", 55), ("10", 5), ("3", 1), ("5s", 20), ("ten", 20), ("08", 20), ("-3", 20), ("", 20)],
)
@pytest.mark.parametrize("name", ["prolog", "health_check", "task_prolog"])
def test_the_driver_has_time_to_wake_up(name: str, deadline: Optional[str], seconds: int, tmp_path: Path) -> None:
    write(
        tmp_path,
        doctor=f'echo "$*" >{tmp_path}/asked; echo ok; exit 0',
        scontrol="echo NodeName=n7 Gres=gpu:8 State=IDLE ThreadsPerCore=1",
    )
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CUDADOCTOR": "doctor", "SLURM_JOB_GPUS": "0"}
    environment.update(SLURMD_NODENAME="n7", CUDADOCTOR_MEMORY="no")
    if deadline is not None:
        environment["CUDADOCTOR_DEADLINE"] = deadline
    done = subprocess.run(
        ["sh", str(PIECES / f"{name}.sh")], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"--timeout {seconds} " in (tmp_path / "asked").read_text()


def preflight(
    folder: Path, srun: str, shown: str = "JobId=7 JobState=RUNNING ", doctor: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """job.sh in a job on n1 and n2 with this srun; each node is well, and what does not answer is bad. `doctor` is what
    the stand-in for it does first."""
    nodes = "n1\nn2"
    write(
        folder,
        scontrol=f"""case "$*" in
  'show hostnames n[1-2]') printf '{nodes}\\n' ;;
  'show hostnames n2') echo n2 ;;
  *'show job'*) echo '{shown}' ;;
  *) echo "scontrol $*" ;;
esac""",
        sleep="exit 0",  # nothing here takes a moment to be seen
        srun=f'while [ "$1" != sh ]; do shift; done\n{srun}',
        doctor=doctor
        + """
if [ "$1" = fleet ]; then
  case $* in *bad-nodes) echo n2 ;; esac
  [ -e "$2/n2.json" ] || exit 75
  exit 0
fi
for word; do
  case $word in json-line=* | termination-log=*) echo 'ok' >"${word#*=}" ;; esac
done""",
    )
    return subprocess.run(
        ["sh", str(PIECES / "job.sh")],
        env={
            "PATH": f"{folder}:/usr/bin:/bin",
            "CUDADOCTOR": "doctor",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "n[1-2]",
            "SLURM_JOB_NUM_NODES": "2",
            **settings,
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


ON_N1 = 'SLURMD_NODENAME=n1 "$@"'


def test_a_job_that_is_preempted_blames_no_node_and_is_not_sent_back(tmp_path: Path) -> None:
    gone = f"{ON_N1}; exit 143"
    done = preflight(tmp_path, gone, "JobId=7 JobState=RUNNING PreemptTime=2026-11-30T18:44:56 ")
    assert (done.returncode, "n2" in done.stdout, "requeue" in done.stdout) == (75, False, False)
    done = preflight(tmp_path, gone, "JobId=7 JobState=COMPLETING ")
    assert (done.returncode, "n2" in done.stdout, "requeue" in done.stdout) == (75, False, False)
    done = preflight(tmp_path, gone)
    assert (done.returncode, "n2: did not answer" in done.stdout, "scontrol requeue 7" in done.stdout) == (
        75,
        True,
        True,
    )


@pytest.mark.parametrize(
    "on_n2",
    [
        # Not shared: n2 has a folder of its own by that name, or none. Full: its file can be made and not be written.
        'SLURMD_NODENAME=n2 "$1" "$2" "$3" "$4" /nowhere/else "$5" "$6" "$7"',
        'mkdir "$5/log/n2.status"; SLURMD_NODENAME=n2 "$@"',
    ],
    ids=["no such folder", "no room"],
)
def test_a_folder_that_a_node_cannot_write_to_is_not_its_fault(on_n2: str, tmp_path: Path) -> None:
    done = preflight(tmp_path, f"{ON_N1} || exit\n{on_n2}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "CUDADOCTOR_FOLDER" in done.stdout
    assert "did not answer" not in done.stdout


def test_a_report_that_does_not_come_is_waited_for_and_then_is_none(tmp_path: Path) -> None:
    # As where the user's home lies on a server that is gone.
    both = f'{ON_N1}\nSLURMD_NODENAME=n2 "$@"'
    done = preflight(tmp_path, both, doctor='[ "$1" != fleet ] || exec /bin/sleep 100', CUDADOCTOR_DEADLINE="1")
    assert done.returncode == 2
    assert "the report did not come in time" in done.stdout
