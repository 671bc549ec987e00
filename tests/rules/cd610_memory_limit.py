"""CD610: the machine's own memory, or a limit on it."""

from __future__ import annotations

from cudadoctor.testing import GIB, container, fails, linux, passes, skips, unknown_when, windows

RULE = "CD610"

REPORT = linux().only("system.os").set({"examination.kind": "report"})
KILLED = {"symptom.killed_for_memory": {"text": "Out of memory: Killed", "scope": "Out of memory", "process": "python"}}
IN_GROUP = {"symptom.killed_for_memory": {"text": "...", "scope": "Memory cgroup out of memory", "process": "python"}}
SLURM = {"symptom.killed_for_memory": {"text": "slurmstepd: error: Detected 1 oom_kill event in StepId=1234.batch."}}
POD = {"symptom.killed_for_memory": {"text": "Reason: OOMKilled"}}
WORKER = {"symptom.worker_killed": {"text": "DataLoader worker (pid 4242) is killed by signal: Killed."}}
SIGNAL = {"symptom.killed_by_signal": {"text": "Killed"}}
REFUSED = {"symptom.host_out_of_memory": {"text": "not enough memory", "tried": "8589934592"}}
ARRAY = {"symptom.host_out_of_memory": {"text": "Unable to allocate", "tried": "12.3 GiB"}}
FILES = {"symptom.too_many_open_files": {"text": "OSError: [Errno 24] Too many open files"}}

CASES = [
    passes("no limits", linux()),
    passes("a container with a limit", container().set({"memory.cgroup_limit": 32 * GIB}), says="32.0 GiB"),
    passes("Windows", windows()),
    fails(
        "the kernel ended a process",
        REPORT.set(KILLED),
        says=["python was ended", "the machine's memory ran out"],
        severity="error",
        certainty="certain",
        blame="machine",
        fix="manual",
    ),
    fails(
        "its container's limit", REPORT.set(IN_GROUP), says="limit of its job", certainty="certain", blame="allocation"
    ),
    fails("Slurm ended the job", REPORT.set(SLURM), certainty="certain", blame="allocation"),
    fails("Kubernetes ended the pod", REPORT.set(POD), certainty="certain", blame="allocation"),
    fails("a worker was killed", REPORT.set(WORKER), says="DataLoader worker", certainty="likely", severity="error"),
    fails(
        "a worker ended, and nobody says how",
        REPORT.set({"symptom.worker_killed": {"text": "DataLoader worker (pid(s) 4242) exited unexpectedly"}}),
        says="perhaps",
        certainty="possible",
    ),
    fails("exit 137 and no more", REPORT.set(SIGNAL), says="killed from outside", certainty="possible"),
    fails("killed on a small machine", REPORT.set(SIGNAL).set({"memory.total": 16 * GIB}), certainty="likely"),
    fails("torch was refused memory", REPORT.set(REFUSED), says="8.0 GiB asked for", certainty="certain"),
    fails("numpy was refused memory", REPORT.set(ARRAY), says="12.3 GiB asked for", certainty="certain"),
    fails("open files", linux().set(FILES), says="open files (1024)", certainty="certain", blame="environment"),
    fails(
        "ulimit -v",
        linux().set({"limits.address_space": 8 * GIB}),
        says="ulimit -v",
        severity="warning",
        certainty="likely",
        fix="manual",
    ),
    passes("an ample ulimit -v", linux().set({"limits.address_space": 512 * GIB})),
    skips(
        "a worker that died of a bus error: CD604",
        REPORT.set({"symptom.worker_killed": {"text": "...", "signal": "Bus error"}}),
    ),
    skips("a report that says nothing of it", REPORT),
    unknown_when("the limits cannot be read", linux().unknown("memory.cgroup_limit", "limits.address_space")),
    fails(
        "a piece of shared memory that could not be opened",
        linux().only().set({"symptom.shared_object_not_opened": {"text": "unable to open shared memory object"}}),
        says="too many files are open",
        certainty="possible",
        fix="manual",
    ),
]
