from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.scheduler import PROBE

from .tables import ABSENT, Unknown, check, machine, windows

NONE = (ABSENT, False, ABSENT)

CASES: list[tuple[str, dict[str, Any], tuple[Any, Any, Any]]] = [
    ("a workstation", {}, NONE),
    # -- Slurm
    (
        "a Slurm step with two GPUs",
        {"variables": {"SLURM_JOB_ID": "42", "SLURM_STEP_GPUS": "0,1", "SLURM_JOB_GPUS": "0,1,2,3"}},
        ("slurm", True, 2),
    ),
    ("a batch script", {"variables": {"SLURM_JOB_ID": "42", "SLURM_JOB_GPUS": "0-3,6"}}, ("slurm", True, 5)),
    ("by number", {"variables": {"SLURM_JOB_ID": "42", "SLURM_GPUS_ON_NODE": "4"}}, ("slurm", True, 4)),
    ("by kind", {"variables": {"SLURM_JOB_ID": "42", "SLURM_GPUS": "a100:2"}}, ("slurm", True, 2)),
    ("a job that asked for none", {"variables": {"SLURM_JOB_ID": "42"}}, ("slurm", True, ABSENT)),
    (
        "a job that asked for none, on a node that hides its devices",
        {"variables": {"SLURM_JOB_ID": "42", "CUDA_VISIBLE_DEVICES": "NoDevFiles"}},
        ("slurm", True, 0),
    ),
    ("a login node", {"files": {"/etc/slurm/slurm.conf": ""}}, ("slurm", False, ABSENT)),
    ("a health check", {"variables": {"SLURMD_NODENAME": "n3"}}, ("slurm", False, ABSENT)),
    (
        "a prolog knows its job's GPUs",
        {"variables": {"SLURMD_NODENAME": "n3", "SLURM_JOB_ID": "42", "SLURM_JOB_GPUS": "0,1"}},
        ("slurm", True, 2),
    ),
    (
        "a shell that was adopted into a job",
        {"files": {"/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_42/step_extern/user\n"}},
        ("slurm", True, Unknown("adopted")),
    ),
    # -- Kubernetes
    (
        "a pod with a GPU",
        {"variables": {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NVIDIA_VISIBLE_DEVICES": "GPU-1111,GPU-2222"}},
        ("kubernetes", True, 2),
    ),
    (
        "an image says all, whatever the pod was given",
        {"variables": {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NVIDIA_VISIBLE_DEVICES": "all"}},
        ("kubernetes", True, Unknown("does not say")),
    ),
    (
        "void: devices may come another way",
        {"variables": {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NVIDIA_VISIBLE_DEVICES": "void"}},
        ("kubernetes", True, Unknown("does not say")),
    ),
    ("a pod without", {"variables": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}}, ("kubernetes", True, ABSENT)),
    # -- others
    ("PBS", {"variables": {"PBS_JOBID": "42.srv", "PBS_NGPUS": "1"}}, ("pbs", True, 1)),
    ("LSF", {"variables": {"LSB_JOBID": "42", "CUDA_VISIBLE_DEVICES": "0,1"}}, ("lsf", True, 2)),
    ("LSF without GPUs", {"variables": {"LSB_JOBID": "42"}}, ("lsf", True, ABSENT)),
    (
        "SGE",
        {"variables": {"JOB_ID": "42", "SGE_TASK_ID": "undefined", "SGE_HGR_gpu": "0 1"}},
        ("sge", True, 2),
    ),
    ("JOB_ID alone is anybody's", {"variables": {"JOB_ID": "42"}}, NONE),
    ("an SGE submit host", {"variables": {"SGE_ROOT": "/opt/sge"}}, ("sge", False, ABSENT)),
    # -- not known
    (
        "a recording without variables",
        {"variables": {"SLURM_JOB_ID": {"error": "not in the recording"}}},
        (Unknown("not in the recording"),) * 3,
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_scheduler(title: str, sections: dict[str, Any], expected: tuple[Any, Any, Any]) -> None:
    names = ("scheduler.kind", "scheduler.in_job", "scheduler.gpus_allocated")
    check(PROBE, machine(**sections), dict(zip(names, expected)))


@pytest.mark.parametrize(
    ("variables", "node"),
    [
        ({"SLURMD_NODENAME": "n3", "NODE_NAME": "other"}, "n3"),
        ({"NODE_NAME": "gpu-pool-7"}, "gpu-pool-7"),
        ({"HOSTNAME": "secret"}, ABSENT),
    ],
)
def test_only_a_scheduler_names_the_node(variables: dict[str, str], node: Any) -> None:
    check(PROBE, machine(variables=variables), {"scheduler.node": node})


def test_windows_has_no_scheduler() -> None:
    check(PROBE, windows(), {"scheduler.kind": ABSENT, "scheduler.in_job": False})
