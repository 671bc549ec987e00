"""The job asked for no GPU

What it checks
    Whether this process runs in a job of a scheduler that was given no GPU, by the scheduler's own variables, and sees
    none. A job that sees one, on a node that hides nothing, is left alone.

    In a report: whether the job's script or command asks for a GPU, and whether the scheduler refused the request.

Why it matters
    On a cluster, a job that does not request a GPU does not get one, even on a node full of them: the driver then looks
    broken (no devices, no permission), and torch reports no driver or no GPU.

How to fix
    Request one and submit again: sbatch --gres=gpu:1 (or --gpus=1), in Kubernetes resources.limits nvidia.com/gpu: 1.
    On a login node, open a job first: srun --gres=gpu:1 --pty bash.

References
    https://slurm.schedmd.com/gres.html
    https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.surroundings import in_job, in_report
from cudadoctor.rules.api import ALLOCATION, CERTAIN, ERROR, LIKELY, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD705",
    name="job-without-gpu-allocation",
    title="The job asked for no GPU",
    severity=ERROR,
    blame=ALLOCATION,
    precedence=1,
)

_JOBS = {
    "slurm": "Slurm job",
    "kubernetes": "Kubernetes pod",
    "lsf": "LSF job",
    "pbs": "PBS job",
    "sge": "Grid Engine job",
}
# What Slurm sets where it hides every device of a node that has some.
_NO_DEVICES = "NoDevFiles"


_ASKED, _GRES = "scheduler.gpus_requested", "symptom.slurm_gres_invalid"
# What a program says in a job without a GPU; each has other causes, too.
_NO_GPU = (
    "symptom.no_driver_found",
    "symptom.driver_insufficient",
    "symptom.no_cuda_device",
    "symptom.no_cuda_gpus",
    "symptom.no_devices_found",
    "symptom.cuda_init_failed",
    "symptom.smi_no_driver",
    "symptom.smi_not_found",
    "symptom.libcuda_missing",
)


def judge(case: Case) -> Outcome:
    told = _told(case)
    if told is not None:
        return told
    kind = case.fact("scheduler.kind")
    if not kind.is_known:
        return case.skipped("no scheduler is seen")
    inside = case.fact("scheduler.in_job")
    if inside.is_unknown:
        return case.undecided(f"cannot tell whether this is a job: {inside.reason}", ("scheduler.in_job",))
    if not in_job(case):
        return case.skipped("not inside a job")
    visible = case.value("env.CUDA_VISIBLE_DEVICES")
    hidden = visible is not None and visible.strip() in ("", _NO_DEVICES)
    if case.derived(answer).state == YES and case.value("gpu.count", 0) > 0 and not hidden:
        return case.passed(f"the job sees {case.value('gpu.count')} GPU(s)", ("gpu.count",))
    allocated = case.fact("scheduler.gpus_allocated")
    if allocated.is_unknown and visible != _NO_DEVICES:
        return case.undecided(f"cannot tell what the job was given: {allocated.reason}", ("scheduler.gpus_allocated",))
    if allocated.is_known and allocated.get() > 0:
        return case.passed(f"the job was given {allocated.get()} GPU(s)", ("scheduler.gpus_allocated",))
    evidence = ["scheduler.kind", "scheduler.gpus_allocated"]
    if case.fact("env.CUDA_VISIBLE_DEVICES").is_known:
        evidence.append("env.CUDA_VISIBLE_DEVICES")
    job = _JOBS.get(kind.get(), "job")
    return case.failed(
        f"this {job} was given no GPU: it did not ask for one",
        evidence,
        # That the variables name none is strong evidence, and a site's own prolog may have taken them away.
        certainty=CERTAIN if visible == _NO_DEVICES or allocated.is_known else LIKELY,
        fixes=(Remedy("request-gpu", {"effect": {"scheduler.gpus_allocated": 1, "env.CUDA_VISIBLE_DEVICES": "0"}}),),
        not_helping=("a driver update or another torch build: a job sees no GPU that it did not ask for",),
    )


def _without_devices(case: Case) -> Optional[Outcome]:
    """nvidia-smi finds no device in a job: Slurm shows a job its own cards only. A kernel log tells more."""
    none = [name for name in ("driver.smi_failure", "symptom.no_devices_found") if case.fact(name).is_known]
    inside = case.value("scheduler.kind") == "slurm" or case.fact("env.SLURM_JOB_ID").is_known
    if not in_report(case) or not inside or case.value("driver.smi_failure", "no-devices") != "no-devices":
        return None
    given = case.value("env.SLURM_JOB_GPUS") or case.value("env.SLURM_GPUS_ON_NODE")
    if not none or given or case.value("kernel.log_events") or case.value("smi.gpus"):
        return None
    job = next((name for name in ("env.SLURM_JOB_ID", "scheduler.kind") if case.fact(name).is_known), "")
    return case.failed(
        "nvidia-smi finds no device in a Slurm job: the job was given none, if the node's cards are well",
        (*none, job),
        certainty=POSSIBLE,
        fixes=(Remedy("request-gpu", {"effect": {_ASKED: True, **dict.fromkeys(none)}}),),
        not_helping=("another torch build: nvidia-smi itself finds no device",),
    )


def _told(case: Case) -> Optional[Outcome]:
    """What a report shows of the request; None where it shows none."""
    if case.fact(_GRES).is_known:
        return case.failed(
            "Slurm refused the request for a GPU: it knows no such resource, or no node has as many",
            (_GRES,),
            certainty=LIKELY,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Ask for a GPU that the cluster has",
                        "text": "What there is, by partition:\n    sinfo -o '%P %N %G'\nThen name it as it stands "
                        "there: --partition=NAME --gres=gpu:1",
                        "kind": "job",
                        "id": "known-gres",
                        "effect": {_GRES: None},
                    },
                ),
            ),
            not_helping=("a driver update or another torch build: the job does not even start",),
        )
    visible = str(case.value("env.CUDA_VISIBLE_DEVICES") or "").strip()
    if in_report(case) and visible == _NO_DEVICES:
        return case.failed(
            f"this Slurm job was given no GPU: CUDA_VISIBLE_DEVICES={_NO_DEVICES} is Slurm's word for it",
            ("env.CUDA_VISIBLE_DEVICES",),
            fixes=(Remedy("request-gpu", {"effect": {_ASKED: True, "env.CUDA_VISIBLE_DEVICES": "0"}}),),
            not_helping=(
                "to unset the variable: the job may not use the node's GPUs",
                "a driver update or another torch build: a job sees no GPU that it did not ask for",
            ),
        )
    if case.value(_ASKED) is not False:
        return _without_devices(case)
    trouble = [name for name in _NO_GPU if case.fact(name).is_known]
    if case.value("torch.cuda_available") is False:
        trouble.append("torch.cuda_available")
    if not trouble:
        return None
    return case.failed(
        "the job was given no GPU: neither its script nor its command asks for one",
        (_ASKED, *trouble),
        certainty=LIKELY,
        fixes=(Remedy("request-gpu", {"effect": {_ASKED: True}}),),
        not_helping=(
            "a driver update or another torch build: a job sees no GPU that it did not ask for",
            "a look at the login node: what it sees says nothing of the job",
        ),
    )
