"""The machine's own memory, or a limit on it, did not suffice

What it checks
    Whether the kernel, a scheduler or a container engine ended a process for its memory, whether one was killed in the
    way that this looks (exit 137, "Killed", a data loader's worker), whether an allocation of the machine's memory
    failed, and what the limits of this process are (address space, open files, the control group's memory).

Why it matters
    The killer leaves no traceback: a run just ends, or a worker does, and the GPU is blamed. Each DataLoader worker
    holds a copy of what the data set keeps in Python objects, and loading a model can take twice its size for a moment.

How to fix
    Fewer DataLoader workers, a model loaded with low_cpu_mem_usage or from safetensors, more memory for the job or
    container (--mem, --memory, limits), swap on a machine of its own. ulimit -n for open files; ulimit -v unlimited:
    CUDA reserves far more addresses than it uses.

References
    https://docs.kernel.org/admin-guide/cgroup-v2.html
    https://docs.docker.com/engine/containers/resource_constraints/
    https://slurm.schedmd.com/sbatch.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, in_job, in_report
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import (
    ALLOCATION,
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    LIKELY,
    MACHINE,
    POSSIBLE,
    WARNING,
    Case,
    Outcome,
    Remedy,
    Rule,
)

RULE = Rule(
    id="CD610",
    name="memory-limit",
    title="The machine's own memory, or a limit on it, did not suffice",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD602", "CD604", "CD614"),
    precedence=45,
)

_GIB = 1 << 30
_KILLED, _WORKER, _SIGNAL, _REFUSED, _FILES = (
    "symptom.killed_for_memory",
    "symptom.worker_killed",
    "symptom.killed_by_signal",
    "symptom.host_out_of_memory",
    "symptom.too_many_open_files",
)
_OPEN = "symptom.shared_object_not_opened"
# CUDA reserves addresses for all memory of machine and cards together: an address space below this is felt at once.
_ADDRESSES = 64 * _GIB


def judge(case: Case) -> Outcome:
    for name, judged in ((_KILLED, _ended), (_WORKER, _worker), (_REFUSED, _refused), (_FILES, _files)):
        if case.fact(name).is_known and case.value(name).get("signal", "Killed") == "Killed":
            return judged(case)
    if case.fact(_OPEN).is_known:
        return _unopened(case)
    if case.fact(_SIGNAL).is_known:
        return _signal(case)
    return _limits(case)


def _ended(case: Case) -> Outcome:
    told: dict[str, Any] = case.value(_KILLED)
    text, scope = str(told.get("text", "")), str(told.get("scope", ""))
    who = told.get("process") or "a process"
    limited = "cgroup" in scope.lower() or "MEMCG" in scope or "oomkilled" in text.lower() or _of_job(text)
    what = "it met the limit of its job or container" if limited else "the machine's memory ran out"
    return _failed(case, f"{who} was ended for its memory: {what}", (_KILLED,), CERTAIN, limited)


def _of_job(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in ("oom_kill", "oom-kill event", "srun: error", "memory limit", "slurmstepd"))


def _worker(case: Case) -> Outcome:
    killed = "killed" in str(case.value(_WORKER).get("text", "")).lower()
    return _failed(
        case,
        "a DataLoader worker was killed: mostly because the machine's memory ran out"
        if killed
        else "a DataLoader worker ended unexpectedly: perhaps it was killed for its memory",
        (_WORKER,),
        LIKELY if killed else POSSIBLE,
        not_helping=("less GPU memory: it is the machine's own that ran out",) if killed else (),
    )


def _signal(case: Case) -> Outcome:
    return _failed(
        case,
        "a process was killed from outside: mostly because the machine's memory, or its limit, ran out",
        (_SIGNAL,),
        LIKELY if _short(case) else POSSIBLE,
    )


def _short(case: Case) -> bool:
    """Whether facts show that memory is scarce, not only that something was killed."""
    total, free = case.value("memory.total"), case.value("memory.available")
    return bool(
        events(case, "process-killed")
        or case.fact("memory.cgroup_limit").is_known
        or (total is not None and total < 32 * _GIB)
        or (free is not None and free < 2 * _GIB)
    )


def _refused(case: Case) -> Outcome:
    tried = case.value(_REFUSED, {}).get("tried")
    shown = f" ({tried} asked for)" if tried and not str(tried).isdigit() else ""
    if tried and str(tried).isdigit() and len(str(tried)) < 16:
        shown = f" ({show_size(int(tried))} asked for)"
    return _failed(case, f"the machine's own memory did not suffice{shown}", (_REFUSED,), CERTAIN)


def _unopened(case: Case) -> Outcome:
    """Each tensor that a worker hands over is a file of /dev/shm, and the number of open ones is limited."""
    return case.failed(
        "a process could not open a piece of shared memory: mostly because too many files are open",
        (_OPEN, *(("limits.nofile",) if case.fact("limits.nofile").is_known else ())),
        certainty=POSSIBLE,
        blame=ENVIRONMENT,
        fixes=(_more_files(_OPEN),),
    )


def _files(case: Case) -> Outcome:
    limit = case.fact("limits.nofile")
    shown = f" ({limit.get()})" if limit.is_known else ""
    return case.failed(
        f"the process met its limit of open files{shown}",
        (_FILES, *(("limits.nofile",) if limit.is_known else ())),
        certainty=CERTAIN,
        blame=ENVIRONMENT,
        fixes=(_more_files(_FILES),),
    )


def _more_files(symptom: str) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Let the process open more files",
            "text": "In the shell that starts it:\n    ulimit -n 65536\nOr at the beginning of the program: "
            "torch.multiprocessing.set_sharing_strategy('file_system').",
            "kind": "setting",
            "id": "more-open-files",
            "effect": {symptom: None},
        },
    )


def _limits(case: Case) -> Outcome:
    addresses = case.fact("limits.address_space")
    if addresses.is_known and addresses.get() < _ADDRESSES:
        return case.failed(
            f"the address space is limited to {show_size(addresses.get())} (ulimit -v): CUDA reserves more when it "
            "starts",
            ("limits.address_space",),
            certainty=LIKELY,
            severity=WARNING,
            blame=ALLOCATION if in_job(case) else MACHINE,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Lift the limit on addresses",
                        "text": "In the shell that starts the program:\n    ulimit -v unlimited\nOn a cluster ask for "
                        "memory in place of addresses (h_vmem limits both).",
                        "kind": "setting",
                        "id": "unlimited-addresses",
                    },
                ),
            ),
        )
    group = case.fact("memory.cgroup_limit")
    if group.is_known:
        return case.passed(f"the control group may use {show_size(group.get())} of memory", ("memory.cgroup_limit",))
    if addresses.is_absent or addresses.is_known or group.is_absent:
        return case.passed("nothing was killed for its memory", ("memory.cgroup_limit", "limits.address_space"))
    if in_report(case) or not case.fact("system.os").is_known:
        return case.skipped("no program reported that it was killed, or refused memory")
    return case.undecided("cannot tell the limits of this process", ("limits.address_space", "memory.cgroup_limit"))


def _failed(
    case: Case,
    message: str,
    symptoms: tuple[str, ...],
    certainty: str,
    limited: Optional[bool] = None,
    not_helping: tuple[str, ...] = ("another torch build or driver: the GPU has no part in it",),
) -> Outcome:
    more = [name for name in ("memory.cgroup_limit", "memory.total", "memory.swap_total") if case.fact(name).is_known]
    if limited is None:
        limited = case.fact("memory.cgroup_limit").is_known or in_container(case) or in_job(case)
    return case.failed(
        message,
        (*symptoms, *more),
        certainty=certainty,
        blame=ALLOCATION if limited else MACHINE,
        fixes=(_less(limited, dict.fromkeys(symptoms)),),
        not_helping=not_helping,
    )


def _less(limited: bool, effect: dict[str, None]) -> Remedy:
    more = (
        "More for the job: sbatch --mem=64G; for the container: docker run --memory=64g; for the pod: limits, memory."
        if limited
        else "More: swap (cudadoctor explain CD601), or a machine with more memory."
    )
    return Remedy(
        "manual",
        {
            "title": "Use less of the machine's memory, or get more of it",
            "text": "Less: DataLoader(num_workers=2) or 0, no persistent_workers, data in arrays and not in lists of "
            f"Python objects; a model from safetensors with low_cpu_mem_usage=True. {more}",
            "kind": "job" if limited else "setting",
            "id": "less-host-memory",
            "effect": effect,
        },
    )
