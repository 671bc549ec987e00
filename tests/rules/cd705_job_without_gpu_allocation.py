"""CD705: a job that asked for no GPU."""

from __future__ import annotations

from cudadoctor.testing import container, container_without_gpu, fails, linux, passes, skips, unknown_when

RULE = "CD705"

NODEVFILES = {"env.CUDA_VISIBLE_DEVICES": "NoDevFiles"}
POD = container("kubernetes").job("kubernetes")

REPORT = linux().only().set({"examination.kind": "report"})

CASES = [
    passes("a job with two", linux().job(gpus=2), says="1 GPU"),
    passes(
        "a job with one on a node whose driver is broken: not the job's fault",
        linux().driver_fails(18, "mismatch", 18).job(gpus=1),
        says="was given 1",
    ),
    passes("no --gres on a node that hides nothing: the job sees them all", linux().job()),
    passes("a shell that was adopted into a job, and sees a card", linux().job().unknown("scheduler.gpus_allocated")),
    passes("a pod whose card came by CDI: the variable says void", POD.unknown("scheduler.gpus_allocated")),
    passes("a pod with one of eight", POD.job("kubernetes", gpus=1)),
    fails(
        "no --gres on a node that hides its cards",
        linux().no_devices().job(),
        says="this Slurm job was given no GPU",
        certainty="likely",
        severity="error",
        blame="allocation",
        fix="request-gpu",
    ),
    fails("Slurm's own word for it", linux().job(gpus=0).set(NODEVFILES), certainty="certain"),
    fails(
        "Slurm's own word for it, in an adopted shell",
        linux().job().unknown("scheduler.gpus_allocated").set(NODEVFILES),
    ),
    fails("an empty list of visible devices", linux().job().set({"env.CUDA_VISIBLE_DEVICES": ""}), certainty="likely"),
    fails("a job in the partition without cards", linux().no_gpu().job(), says="Slurm job"),
    fails("a pod without a limit", container_without_gpu("kubernetes").job("kubernetes"), says="Kubernetes pod"),
    fails("LSF", linux().no_devices().job("lsf"), says="LSF job"),
    fails("Grid Engine", linux().no_devices().job("sge"), says="Grid Engine job"),
    skips("no scheduler", linux()),
    skips("a login node", linux().no_gpu().set({"scheduler.kind": "slurm"})),
    skips("a node's own health check", linux().set({"scheduler.kind": "slurm"})),
    unknown_when("whether this is a job", linux().job().unknown("scheduler.in_job")),
    unknown_when("an adopted shell that sees none", linux().no_devices().job().unknown("scheduler.gpus_allocated")),
    unknown_when(
        "a pod without nodes whose image says NVIDIA_VISIBLE_DEVICES=all",
        container_without_gpu("kubernetes").job("kubernetes").unknown("scheduler.gpus_allocated"),
    ),
    fails(
        "Slurm's own word for it, in a report",
        REPORT.set(NODEVFILES),
        says="Slurm's word",
        certainty="certain",
        fix="request-gpu",
    ),
    fails(
        "a job in which nvidia-smi finds no device",
        REPORT.set({"scheduler.kind": "slurm", "driver.smi_failure": "no-devices"}),
        says="given none",
        certainty="possible",
        fix="request-gpu",
    ),
    skips(
        "a job in which nvidia-smi finds no device, and the kernel log tells why",
        REPORT.set(
            {
                "scheduler.kind": "slurm",
                "scheduler.in_job": False,
                "driver.smi_failure": "no-devices",
                "kernel.log_events": [{"kind": "init-failed", "text": "NVRM: RmInitAdapter failed!"}],
            }
        ),
    ),
    fails(
        "srun without --gres, in a report",
        REPORT.set({"scheduler.gpus_requested": False, "torch.cuda_available": False}),
        says="neither its script nor its command",
        severity="error",
        certainty="likely",
        blame="allocation",
        fix="request-gpu",
    ),
    fails(
        "Slurm knows no such resource",
        REPORT.set({"symptom.slurm_gres_invalid": {"text": "Invalid generic resource (gres) specification"}}),
        says="refused the request",
        certainty="likely",
        fix="manual",
    ),
    skips("a script that asks for none, and nothing is wrong", REPORT.set({"scheduler.gpus_requested": False})),
]
