"""Prolog and HealthCheckProgram on a real Slurm: who is drained, with which reason, and who comes back."""

from __future__ import annotations

from typing import Callable

import pytest
from bench.slurm import Cluster, wait_for
from slurm_pieces import look_around, piece, when_asked

pytestmark = [pytest.mark.once, pytest.mark.real_part("Slurm")]

Program = Callable[[str, str], str]

LOST = "cudadoctor: CD113 gpu-lost: GPU 1 has fallen off the bus: the driver says that it is lost (auto)"
MISMATCH = (
    "cudadoctor: CD105 driver-library-mismatch: the loaded NVIDIA module and the drivers libraries are of different "
    "versions (auto)"
)
HANGS = "cudadoctor: CD106 driver-unreachable: the NVIDIA driver did not answer in time: it hangs (auto)"


def drain(cluster: Cluster, node: str, reason: str) -> None:
    """What an admin does."""
    cluster.run("scontrol", "update", f"NodeName={node}", "State=drain", f"Reason={reason}")


def test_the_health_check_drains_the_bad_nodes_and_takes_back_what_it_drained(cluster: Cluster) -> None:
    cluster.plays("n2", "mismatch_18")
    cluster.plays("n3", "one_gpu_lost")
    cluster.plays("n4", "t4_470", smi="470")  # an older driver, and well
    drain(cluster, "n5", "memory test, ask Ada")
    cluster.plays("n6", "one_gpu_lost")
    drain(cluster, "n6", "cudadoctor: looked at by Ada")

    cluster.hang_in("health_check", when_asked(cluster, piece("health_check")))
    look_around(cluster)
    expected = {"n2": MISMATCH, "n3": LOST, "n5": "memory test, ask Ada", "n6": "cudadoctor: looked at by Ada"}
    assert cluster.drained() == expected

    # Both are mended. An admin has taken over the one, by changing a word of the reason.
    cluster.run("scontrol", "update", "NodeName=n2", f"Reason={MISMATCH} until Monday")
    cluster.plays("n2", "two_gpus")
    cluster.plays("n3", "two_gpus")
    cluster.plays("n6", "two_gpus")
    look_around(cluster, "n2", "n3", "n5", "n6")
    del expected["n3"]
    assert cluster.drained() == {**expected, "n2": f"{MISMATCH} until Monday"}
    cluster.run("srun", "-w", "n3", "--gres=gpu:2", "true")


def test_another_fault_is_another_reason_and_undecided_looks_take_nobody_back(
    cluster: Cluster, program: Program
) -> None:
    say = program("say", f"cat {cluster.root}/jobs/words; exit $(cat {cluster.root}/jobs/status)")

    def says(status: int, text: str) -> None:
        (cluster.root / "jobs" / "words").write_text(text + "\n")
        (cluster.root / "jobs" / "status").write_text(str(status))

    says(75, "CD113 gpu-lost: GPU 1 has fallen off the bus")
    cluster.hang_in("health_check", when_asked(cluster, piece("health_check", say)))
    look_around(cluster, "n1")
    assert cluster.drained() == {"n1": "cudadoctor: CD113 gpu-lost: GPU 1 has fallen off the bus (auto)"}
    says(75, "CD115 ecc-errors: GPU 0 waits for a reset")
    look_around(cluster, "n1")
    for status in (3, 2):
        says(status, "whatever it says")
        look_around(cluster, "n1")
        assert cluster.drained() == {"n1": "cudadoctor: CD115 ecc-errors: GPU 0 waits for a reset (auto)"}
    says(0, "ok: nothing found")
    look_around(cluster, "n1")
    assert cluster.drained() == {}


CRASHES = {
    "n1": "real",  # exit 2: an option that nobody knows
    "n2": "kill -SEGV $$",
    "n3": "exec /nowhere/cudadoctor",
    "n4": "sleep 60",
    "n5": "echo 'CD501 undecided: cannot tell'; exit 3",
    "n6": "echo 'out of paper'; exit 75",
}
"""Ways in which the doctor itself fails, or does not know, a node each."""


def crashing(program: Program, hook: str, **settings: str) -> str:
    """A hook whose doctor fails on each node in its own way."""
    lines = [f"{name}) {script} ;;" for name, script in CRASHES.items() if script != "real"]
    doctor = program("crash", 'case "$SLURMD_NODENAME" in\n' + "\n".join(lines) + "\nesac")
    real = piece(hook, OPTIONS="--select CD999", **settings)
    return f'[ "$SLURMD_NODENAME" = n1 ] && {{ {real}; exit; }}\n{piece(hook, doctor, DEADLINE="1", **settings)}'


def test_a_doctor_that_crashes_drains_nobody(cluster: Cluster, program: Program) -> None:
    script = crashing(program, "health_check")
    cluster.hang_in("health_check", when_asked(cluster, script))
    cluster.hang_in("prolog", crashing(program, "prolog"))
    job = cluster.submit("srun true; echo ran", "-N6", "--gres=gpu:2")
    job.completes()
    assert "ran" in job.output
    look_around(cluster)
    assert cluster.drained() == {}


def test_a_site_may_ask_for_more(cluster: Cluster, program: Program) -> None:
    script = crashing(program, "health_check", DRAIN_ON="undecided failure timeout")
    cluster.hang_in("health_check", when_asked(cluster, script))
    look_around(cluster)
    reasons = cluster.drained()
    assert reasons.pop("n1").startswith("cudadoctor: failure: the doctor itself failed (exit status 2): ")
    assert reasons.pop("n2").startswith("cudadoctor: failure: the doctor itself failed (exit status 139)")
    assert reasons.pop("n3").startswith("cudadoctor: failure: the doctor itself failed (exit status 127)")
    assert reasons == {
        "n4": "cudadoctor: timeout: the doctor did not end within 1 s (auto)",
        "n5": "cudadoctor: undecided: CD501 undecided: cannot tell (auto)",
        "n6": "cudadoctor: failure: exit status 75 without a verdict: out of paper (auto)",
    }


def test_a_prolog_with_a_hung_driver_ends_and_the_job_is_held(cluster: Cluster) -> None:
    cluster.plays("n2", "hang")
    cluster.hang_in("prolog", piece("prolog", DEADLINE="10"))
    job = cluster.submit("echo ran", "-w", "n2", "--gres=gpu:1")
    # The doctor gives the driver five seconds; Slurm itself would wait for ever.
    wait_for(lambda: "held" in job.show()["Reason"], 25, "the job to be held", cluster.logs)
    shown = job.show()
    assert (shown["JobState"], shown["Reason"]) == ("PENDING", "launch_failed_requeued_held")
    assert cluster.drained() == {"n2": HANGS}

    # The node is mended, and taken back: prolog and health check know each other's reasons. The user releases the job.
    wait_for(lambda: cluster.state("n2") == "IDLE+DRAIN", 20, "n2 to be done with the job", cluster.logs)
    cluster.plays("n2", "two_gpus")
    cluster.hang_in("health_check", when_asked(cluster, piece("health_check")))
    look_around(cluster, "n2")
    assert cluster.drained() == {}
    cluster.run("scontrol", "release", str(job.id))
    job.start_now()
    job.completes()
    assert job.output.endswith("\nran\n")


def test_with_nohold_on_prolog_fail_the_job_runs_on_another_node(cluster: Cluster) -> None:
    cluster.scheduler_parameters("nohold_on_prolog_fail")
    cluster.plays("n2", "one_gpu_lost")
    cluster.hang_in("prolog", piece("prolog"))
    job = cluster.submit("echo ran on $SLURMD_NODENAME", "--exclude=n1,n3,n4,n5,n6", "--gres=gpu:1")
    # It would start in two minutes, by itself.
    wait_for(lambda: job.show()["Reason"] == "BeginTime", 25, "the job to be back in the queue", cluster.logs)
    assert job.state == "PENDING"
    assert cluster.drained() == {"n2": LOST}
    cluster.run("scontrol", "update", f"JobId={job.id}", "ExcNodeList=n1")
    job.start_now()
    job.completes()
    assert job.output.endswith("\nran on n3\n")


def test_the_prolog_leaves_jobs_without_gpus_and_an_admins_reason_alone(cluster: Cluster) -> None:
    cluster.plays("n2", "mismatch_18")
    cluster.hang_in("prolog", piece("prolog"))
    plain = cluster.submit("echo ran", "-w", "n2")
    plain.completes()
    assert cluster.drained() == {}

    # The admin is faster than the prolog, which looks for some tenths of a second.
    taken = 'scontrol update NodeName=$SLURMD_NODENAME State=drain "Reason=Ada was here"'
    cluster.hang_in("prolog", f"{taken}\n{piece('prolog')}")
    job = cluster.submit("echo ran", "-w", "n2", "--gres=gpu:1")
    wait_for(lambda: "held" in job.show()["Reason"], 20, "the job to be held", cluster.logs)
    assert cluster.drained() == {"n2": "Ada was here"}
