"""Does a scheduler give this process its node and its GPUs?"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.system.port import System

SLURM, KUBERNETES, LSF, PBS, SGE = "slurm", "kubernetes", "lsf", "pbs", "sge"

# The variable that a process inside a job has.
_JOB_VARIABLES = (
    (SLURM, "SLURM_JOB_ID"),
    (LSF, "LSB_JOBID"),
    (PBS, "PBS_JOBID"),
    (KUBERNETES, "KUBERNETES_SERVICE_HOST"),
)

# What speaks for a scheduler outside of a job: on a login node, in a prolog, in a health check.
_SITE_VARIABLES = ((SLURM, "SLURM_CONF"), (SLURM, "SLURMD_NODENAME"), (LSF, "LSF_ENVDIR"), (SGE, "SGE_ROOT"))
_SITE_FILES = (
    (SLURM, "/etc/slurm/slurm.conf"),
    (SLURM, "/etc/slurm-llnl/slurm.conf"),
    (SLURM, "/var/spool/slurmd/conf-cache/slurm.conf"),
    (SLURM, "/run/slurm/conf/slurm.conf"),
    (PBS, "/etc/pbs.conf"),
)

_CGROUP = "/proc/self/cgroup"


def look(system: System) -> dict[str, Fact[Any]]:
    kind, in_job = _kind(system)
    return {
        "scheduler.kind": kind,
        "scheduler.in_job": in_job,
        "scheduler.gpus_allocated": _gpus(system, kind, in_job),
        "scheduler.node": _node(system),
    }


def _kind(system: System) -> tuple[Fact[str], Fact[bool]]:
    for kind, name in _JOB_VARIABLES:
        variable = system.variable(name)
        if variable.is_unknown:
            return (unknown(variable.reason, variable.source),) * 2
        if variable.is_known:
            return known(kind, variable.source), known(True, variable.source)
    # SGE's JOB_ID is a name that others use, too.
    if system.variable("JOB_ID").is_known and system.variable("SGE_TASK_ID").is_known:
        return known(SGE, "$JOB_ID"), known(True, "$JOB_ID")
    group = system.read_text(_CGROUP).value or "" if system.platform == "linux" else ""
    if "slurm" in group and re.search(r"slurm\S*/job_[0-9]", group):
        # A shell that pam_slurm_adopt has put into a job: it has the job's limits and none of its variables.
        return known(SLURM, _CGROUP), known(True, _CGROUP)
    for kind, name in _SITE_VARIABLES:
        if system.variable(name).is_known:
            return known(kind, f"${name}"), known(False, "$SLURM_JOB_ID" if kind == SLURM else f"${name}")
    if system.platform == "linux":
        for kind, path in _SITE_FILES:
            if system.status(path).is_known:
                return known(kind, path), known(False, "environment")
    return absent("environment"), known(False, "environment")


def _node(system: System) -> Fact[str]:
    for name in ("SLURMD_NODENAME", "NODE_NAME"):
        variable = system.variable(name)
        if not variable.is_absent:
            return variable
    return absent("$SLURMD_NODENAME, $NODE_NAME")


# -- GPUs of the job --------------------------------------------------------------------------------------------------


def _gpus(system: System, kind: Fact[str], in_job: Fact[bool]) -> Fact[int]:
    if in_job.is_unknown:
        return unknown(in_job.reason, in_job.source)
    if not in_job.value:
        return absent(in_job.source)
    if kind.value == SLURM:
        return _slurm_gpus(system, in_job)
    if kind.value == KUBERNETES:
        return _pod_gpus(system)
    for name, count in (("PBS_NGPUS", _number), ("SGE_HGR_gpu", _listed), ("CUDA_VISIBLE_DEVICES", _listed)):
        found = _counted(system, name, count)
        if found is not None:
            return found
    return absent("environment")


def _counted(system: System, name: str, count: Any) -> Optional[Fact[int]]:
    value = system.variable(name).value
    number = count(value) if value is not None else None
    return known(number, f"${name}") if number is not None else None


def _slurm_gpus(system: System, in_job: Fact[bool]) -> Fact[int]:
    # What this step and this node have goes before what the whole job has.
    for name, count in (
        ("SLURM_STEP_GPUS", _listed),
        ("SLURM_JOB_GPUS", _listed),
        ("SLURM_GPUS_ON_NODE", _number),
        ("SLURM_GPUS_PER_NODE", _number),
        ("SLURM_GPUS", _number),
        ("SLURM_GPUS_PER_TASK", _number),
    ):
        found = _counted(system, name, count)
        if found is not None:
            return found
    visible = system.variable("CUDA_VISIBLE_DEVICES")
    if visible.value == "NoDevFiles":
        return known(0, visible.source)
    if in_job.source == _CGROUP:
        return unknown("a shell that was adopted into a job has none of its variables", _CGROUP)
    return absent("$SLURM_JOB_GPUS, $SLURM_GPUS_ON_NODE")


def _pod_gpus(system: System) -> Fact[int]:
    devices = system.variable("NVIDIA_VISIBLE_DEVICES")
    if devices.is_known and devices.get().startswith(("GPU-", "MIG-")):
        return known(_listed(devices.get()) or 0, devices.source)
    if devices.is_known:
        # "all" is what NVIDIA's images say themselves, and "void" what stands there when devices come another way.
        reason = f"NVIDIA_VISIBLE_DEVICES={devices.get()[:20]} does not say what the pod was given"
        return unknown(reason, devices.source)
    return absent(devices.source)


def _number(text: str) -> Optional[int]:
    """ "2", "a100:2" or "a100:1,v100:1"."""
    total = 0
    for part in text.split(","):
        found = re.search(r"(?:^|:)([0-9]{1,4})$", part.strip(), re.ASCII)
        if found is None:
            return None
        total += int(found.group(1))
    return total


def _listed(text: str) -> Optional[int]:
    """Members of "0,1", "0-3,6" or "GPU-...,GPU-..."; None for an empty text."""
    total = 0
    for part in re.split(r"[,\s]+", text.strip()):
        span = re.fullmatch(r"([0-9]{1,4})-([0-9]{1,4})", part, re.ASCII)
        if span:
            total += max(0, int(span.group(2)) - int(span.group(1)) + 1)
        elif part and part not in ("-1", "NoDevFiles"):
            total += 1
    return total or None


PROBE = Probe(
    "scheduler",
    EVERYWHERE,
    ("scheduler.kind", "scheduler.in_job", "scheduler.gpus_allocated", "scheduler.node"),
    look,
)
