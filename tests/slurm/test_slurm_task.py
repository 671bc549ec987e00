"""The TaskProlog on a real Slurm: what users read in their own job's output."""

from __future__ import annotations

from typing import Callable

import pytest
from bench.slurm import Cluster
from slurm_pieces import DOCTOR, piece

pytestmark = [pytest.mark.once, pytest.mark.real_part("Slurm")]

Program = Callable[[str, str], str]


def test_it_says_what_to_send_to_the_admin_once_a_node(cluster: Cluster) -> None:
    cluster.plays("n2", "one_gpu_lost")
    cluster.hang_in("task_prolog", piece("task_prolog"))
    # The batch script on n1, two steps of two tasks a node on both.
    step = "srun --ntasks-per-node=2 --gres=gpu:2 sh -c 'echo task on $SLURMD_NODENAME'\n"
    job = cluster.submit(f"echo script\n{step}", "-N2", "--ntasks-per-node=2", "--gres=gpu:2")
    job.completes()
    lines = job.output.splitlines()
    lost = "CD113 gpu-lost: GPU 1 has fallen off the bus: the driver says that it is lost"
    assert [line for line in lines if line.startswith("cudadoctor: ")] == [
        f"cudadoctor: {lost}",
        "cudadoctor: this is the machine's fault: nothing in your job mends it. Exclude the node",
        "cudadoctor: (sbatch --exclude=n2 ...) and send this to your admin:",
        f"cudadoctor:   n2, job {job.id}: {lost}",
    ]
    assert sorted(line for line in lines if line.startswith("task")) == ["task on n1"] * 2 + ["task on n2"] * 2
    assert cluster.drained() == {}


def test_the_batch_script_and_its_steps_are_one_job(cluster: Cluster, program: Program) -> None:
    doctor = program("told", "echo 'CD105 driver-library-mismatch: two halves'; exit 75")
    cluster.hang_in("task_prolog", piece("task_prolog", doctor))
    job = cluster.submit("srun true\nsrun true\necho done", "-N1", "--gres=gpu:1")
    job.completes()
    assert job.output.count("cudadoctor: CD105 driver-library-mismatch: two halves\n") == 1


def test_a_job_without_gpus_is_told_where_that_is_a_mistake(cluster: Cluster) -> None:
    cluster.hang_in("task_prolog", piece("task_prolog", GPU_PARTITIONS="cpu gpu"))
    told = cluster.submit("echo ran", "-w", "n1")
    told.completes()
    lines = told.output.splitlines()
    assert lines[0].startswith("cudadoctor: CD705 job-without-gpu-allocation: likely: this Slurm job was given no GPU")
    assert any("--gres=gpu:1" in line for line in lines[1:-1])
    assert lines[-1] == "ran"

    cluster.hang_in("task_prolog", piece("task_prolog", GPU_PARTITIONS="cpu"))
    quiet = cluster.submit("echo ran", "-w", "n1")
    quiet.completes()
    assert quiet.output == "ran\n"
    assert cluster.drained() == {}


def test_a_site_may_stop_the_task_and_an_environment_gets_its_cure(cluster: Cluster) -> None:
    hook = piece("task_prolog", STOP="yes", OPTIONS="--require torch.version=>=2")
    cluster.hang_in("task_prolog", hook)
    job = cluster.submit("echo ran", "-w", "n1", "--gres=gpu:2")
    assert job.wait()["JobState"] == "FAILED"
    assert "cudadoctor: what mends it:\n" in job.output
    assert "pip install" in job.output
    assert "ran" not in job.output.splitlines()
    assert cluster.drained() == {}


def test_a_doctor_that_fails_is_not_heard_of(cluster: Cluster, program: Program) -> None:
    jobs = []
    for doctor in (
        f"{DOCTOR} --nonsense",
        "/nowhere/cudadoctor",
        program("slow", "sleep 60"),
        program("dead", "kill -SEGV $$"),
    ):
        cluster.hang_in("task_prolog", piece("task_prolog", doctor, DEADLINE="1", STOP="yes"))
        jobs.append(cluster.submit("echo ran", "-w", "n1", "--gres=gpu:1"))
        jobs[-1].completes()
    assert [job.output for job in jobs] == ["ran\n"] * 4
