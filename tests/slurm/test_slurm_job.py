"""The pre-flight of a job on a real Slurm: who is looked at, when the job trains, when it moves to other nodes."""

from __future__ import annotations

from typing import Callable

import pytest
from bench.slurm import Cluster, Job, fields_of, wait_for
from slurm_pieces import DOCTOR, piece

pytestmark = [pytest.mark.once, pytest.mark.real_part("Slurm")]

Program = Callable[[str, str], str]

NOBODY = 65534


def preflight(doctor: str = DOCTOR, **settings: str) -> str:
    return f"{piece('job', doctor, **settings)} || exit\n"


def back_in_the_queue(cluster: Cluster, job: Job, restarts: int) -> None:
    """Waits until the job has gone back so often and has left its nodes; then it need not wait its two minutes."""
    wait_for(
        lambda: job.show()["Restarts"] == str(restarts) and job.show()["Reason"] == "BeginTime",
        40,
        f"the job to be back in the queue ({restarts})",
        lambda: f"{job.output}\n{cluster.logs()}",
    )
    job.start_now()


def n1_is_ill(program: Program) -> str:
    """A doctor in a few lines, which finds n1 ill and all others well."""
    return program(
        "stand-in",
        """
if [ "$1" = fleet ]; then
  case $SLURM_JOB_NODELIST in *1*) ;; *) exit 0 ;; esac
  case $* in *bad-nodes) echo n1 ;; esac
  exit 75
fi
for word; do
  case $word in json-line=* | termination-log=*) echo 'CD113 gpu-lost: it is' >"${word#*=}" ;; esac
done
[ "$SLURMD_NODENAME" != n1 ] || exit 75""",
    )


def test_four_machines_and_the_job_ends_on_the_good_nodes(cluster: Cluster) -> None:
    cluster.plays("n2", "mismatch_18")
    cluster.plays("n3", "one_gpu_lost")
    cluster.plays("n4", "t4_470", smi="470")
    train = "srun --ntasks=3 --ntasks-per-node=1 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader\n"
    script = preflight(OPTIONS="--require driver.version=>=525") + train + "echo trained on $SLURM_JOB_NODELIST"
    job = cluster.submit(script, "-N3", "--gres=gpu:2", "--requeue")

    back_in_the_queue(cluster, job, 1)
    assert job.show()["ExcNodeList"] == "n[2-3]"
    back_in_the_queue(cluster, job, 2)  # n1, n4 and n5 were the next
    assert job.show()["ExcNodeList"] == "n[2-3],n4"
    job.completes()

    text = job.output
    assert "  n2: CD105 driver-library-mismatch: the loaded NVIDIA module" in text
    assert "  n3: CD113 gpu-lost: GPU 1 has fallen off the bus" in text
    assert "  n4: CD006 driver-version: the driver is 470.256.02" in text
    assert text.count("send this to your admin:") == 2
    assert text.count("NVIDIA A100-SXM4-80GB, 535.183.01\n") == 6  # two GPUs on each of three nodes
    assert text.endswith("trained on n[1,5-6]\n")
    assert cluster.drained() == {}  # a user drains nobody


@pytest.mark.parametrize(
    "options",
    [
        ["--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=1", "--gres=gpu:2", "--distribution=cyclic"],
        ["--ntasks=4", "--ntasks-per-node=2", "--gpus-per-task=1", "--mem-per-cpu=10"],
    ],
    ids=lambda options: " ".join(options),
)
def test_one_look_a_node_at_all_its_gpus(cluster: Cluster, program: Program, options: list[str]) -> None:
    # What a job script may have set for its own steps.
    own = "export SLURM_LABELIO=1 SLURM_HINT=nomultithread SLURM_CPU_BIND=cores SLURM_EXACT=1 SRUN_CPUS_PER_TASK=2\n"
    doctor = program(
        "noting",
        f'[ "$1" = fleet ] || echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" >>{cluster.root}/jobs/looks\n'
        f'exec {DOCTOR} "$@"',
    )
    looks = cluster.root / "jobs" / "looks"
    looks.unlink(missing_ok=True)
    job = cluster.submit(own + preflight(doctor) + "echo trained", "-N2", *options)
    shown = job.wait()
    assert (shown["JobState"], sorted(looks.read_text().splitlines())) == ("COMPLETED", ["n1 0,1", "n2 0,1"])
    assert "nothing found that breaks CUDA on all 2 nodes" in job.output
    assert job.output.endswith("pre-flight: 2 of 2 nodes are well\ntrained\n")
    assert not list((cluster.root / "jobs").glob(f"cudadoctor-{job.id}.*"))  # nothing is left where all is well


def test_a_job_without_gres_is_told_so_and_nobody_is_drained(cluster: Cluster) -> None:
    job = cluster.submit(preflight() + "echo trained", "-N2")
    shown = job.wait()
    assert (shown["JobState"], shown["ExitCode"], shown["Restarts"]) == ("FAILED", "1:0", "0")
    assert "FAIL  likely: this Slurm job was given no GPU: it did not ask for one" in job.output
    assert "--gres=gpu:1" in job.output
    assert "send this to your admin" not in job.output
    assert "trained" not in job.output
    assert cluster.drained() == {}


def test_an_environment_at_fault_stops_the_job_where_it_is(cluster: Cluster) -> None:
    cluster.plays("n2", "one_gpu_lost")
    job = cluster.submit(preflight(OPTIONS="--require torch.version=>=2") + "echo trained", "-N2", "--gres=gpu:2")
    shown = job.wait()
    assert (shown["JobState"], shown["ExitCode"], shown["Restarts"]) == ("FAILED", "1:0", "0")
    text = job.output
    assert "pre-flight: your environment or your request is at fault" in text
    assert "pip install" in text
    assert "trained" not in text


@pytest.mark.parametrize(
    ("option", "restarts", "said"),
    [
        ("--requeue", "0", "this was attempt 1, and again a machine is at fault"),
        ("--no-requeue", "2", "submit it again with: sbatch --exclude=n6,n1 ..."),
    ],
)
def test_a_job_does_not_go_back_for_ever(
    cluster: Cluster, program: Program, option: str, restarts: str, said: str
) -> None:
    script = preflight(n1_is_ill(program), RESTARTS=restarts) + "echo trained"
    job = cluster.submit(script, "-N2", "--gres=gpu:2", "--exclude=n6", option)
    shown = job.wait()
    assert (shown["JobState"], shown["ExitCode"], shown["Restarts"]) == ("FAILED", "75:0", "0")
    assert "send this to your admin:\n  n1: CD113 gpu-lost: it is\n" in job.output
    assert said in job.output
    assert "trained" not in job.output


def test_a_doctor_that_fails_is_no_nodes_fault(cluster: Cluster, program: Program) -> None:
    segfault = program("segfault", f'[ "$SLURMD_NODENAME$1" != n2check ] || kill -SEGV $$\nexec {DOCTOR} "$@"')
    jobs = {
        "one node": cluster.submit(preflight(segfault) + "echo trained", "-N2", "-w", "n1,n2", "--gres=gpu:2"),
        "missing": cluster.submit(preflight("/nowhere/cudadoctor") + "echo trained", "-N2", "-w", "n3,n4"),
        "asked": cluster.submit(preflight("/nowhere/cudadoctor", UNPROVEN="train") + "echo trained", "-w", "n5"),
    }
    shown = {name: job.wait() for name, job in jobs.items()}
    assert {name: (job["ExitCode"], job["Restarts"], job["ExcNodeList"]) for name, job in shown.items()} == {
        "one node": ("2:0", "0", "(null)"),
        "missing": ("2:0", "0", "(null)"),
        "asked": ("0:0", "0", "(null)"),
    }
    assert "the doctor failed on n2 (exit status 139): that says nothing of the nodes" in jobs["one node"].output
    assert "the doctor failed on n3,n4 (exit status 127)" in jobs["missing"].output
    assert jobs["asked"].output.endswith("goes on all the same (CUDADOCTOR_UNPROVEN=train)\ntrained\n")
    assert cluster.drained() == {}


def test_a_node_that_does_not_answer_is_left_out(cluster: Cluster, program: Program) -> None:
    # As a node that dies: what would write down how the doctor ended is gone before it.
    dead = program(
        "dead",
        f'[ "$SLURMD_NODENAME$1" != n1check ] || kill -KILL $(cut -d" " -f4 /proc/$PPID/stat) $$\nexec {DOCTOR} "$@"',
    )
    job = cluster.submit(preflight(dead) + "echo trained on $SLURM_JOB_NODELIST", "-N2", "--gres=gpu:2")
    back_in_the_queue(cluster, job, 1)
    job.completes()
    assert "  n1: did not answer\n" in job.output
    assert job.output.endswith("trained on n[2-3]\n")


def test_two_jobs_at_once_on_one_node(cluster: Cluster) -> None:
    cluster.hang_in("prolog", piece("prolog"))
    jobs = [cluster.submit(preflight() + "echo trained", "-w", "n1", "--gres=gpu:1") for _ in range(2)]
    assert [job.completes().splitlines()[-1] for job in jobs] == ["trained"] * 2
    assert cluster.drained() == {}


def test_a_plain_user_may_do_all_of_it(cluster: Cluster, program: Program) -> None:
    # The doctor of this checkout may lie where others cannot read.
    script = preflight(n1_is_ill(program)) + "echo trained on $SLURM_JOB_NODELIST"
    job = cluster.submit(script, "-N2", "--gres=gpu:2", user=NOBODY)
    back_in_the_queue(cluster, job, 1)
    job.completes()
    assert job.output.endswith("trained on n[2-3]\n")
    assert job.show()["UserId"].startswith("nobody")


def test_a_task_of_an_array_goes_back_alone(cluster: Cluster, program: Program) -> None:
    # The last task's job has the array's own number: by that, Slurm would send back all tasks.
    doctor = program(
        "second",
        """
ill() { [ "$SLURM_ARRAY_TASK_ID.${SLURM_RESTART_COUNT:-0}" = 2.0 ]; }
if [ "$1" = fleet ]; then
  ill || exit 0
  case $* in *bad-nodes) echo "$SLURM_JOB_NODELIST" ;; esac
  exit 75
fi
for word; do
  case $word in json-line=* | termination-log=*) echo 'CD113 gpu-lost: it is' >"${word#*=}" ;; esac
done
! ill || exit 75""",
    )
    done = cluster.root / "jobs" / "done"
    script = preflight(doctor) + f"while [ ! -e {done} ]; do sleep 0.1; done\necho trained"
    array = cluster.submit(script, "--array=1-2", "-N1", "--gres=gpu:2", "--requeue")

    def task(number: int) -> dict[str, str]:
        return fields_of(cluster.run("scontrol", "--oneliner", "show", "job", f"{array.id}_{number}").stdout)

    wait_for(lambda: task(2)["Restarts"] == "1" and task(2)["ExcNodeList"] != "(null)", 40, "task 2 to be sent back")
    assert (task(2)["JobId"], task(1)["JobState"], task(1)["Restarts"], task(1)["ExcNodeList"]) == (
        str(array.id),
        "RUNNING",
        "0",
        "(null)",
    )
    done.touch()
