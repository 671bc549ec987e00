"""/dev/shm has less room than the job needs

What it checks
    The free room in /dev/shm, against disk.shm of the policy.

Why it matters
    DataLoader workers hand batches over there, and NCCL its buffers. When it is full, a worker dies with "Bus error".

How to fix
    Start the container with --shm-size=16g or --ipc=host; in Kubernetes, mount an emptyDir of medium Memory at
    /dev/shm. On a machine of its own: delete what a killed job left in /dev/shm, or mount it larger.

References
    https://docs.docker.com/reference/cli/docker/container/run/
    https://pytorch.org/docs/stable/multiprocessing.html
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED
from cudadoctor.derive.surroundings import in_container
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ALLOCATION, ERROR, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD011",
    name="shm-room",
    title="/dev/shm has less room than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    precedence=41,
)

_ASKED, _FREE, _SIZE = "policy.disk.shm", "memory.shm_free", "memory.shm_size"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted: int = asked.get()
    # What is no larger than that has no more room, whoever uses it.
    name = next((name for name in (_FREE, _SIZE) if case.fact(name).is_known), _FREE)
    fact = case.fact(name)
    if fact.is_absent:
        return case.failed(
            f"there is no /dev/shm, {show_size(wanted)} in it is asked for",
            (_ASKED, name),
            blame=ALLOCATION if in_container(case) else MACHINE,
        )
    if not fact.is_known:
        return case.undecided(f"cannot tell the room in /dev/shm: {fact.reason}", (_ASKED, name))
    if fact.get() >= wanted and name == _SIZE:
        return case.undecided("cannot tell how much of /dev/shm is free", (_ASKED, _SIZE))
    if fact.get() >= wanted:
        return case.passed(f"/dev/shm has {show_size(wanted)} free, as asked for", (_ASKED, name))
    size = case.value(_SIZE)
    too_small = size is not None and size < wanted
    words = f"/dev/shm has {show_size(fact.get())}" + (f" of {show_size(size)}" if size and not too_small else "")
    return case.failed(
        f"{words} free, {show_size(wanted)} is asked for",
        (_ASKED, name, *((_SIZE,) if size is not None and name != _SIZE else ())),
        blame=ALLOCATION if in_container(case) and too_small else MACHINE,
        data={"value": fact.get(), "wanted": wanted},
        fixes=(_enlarge(case, wanted),) if too_small else (_clear(),),
    )


def _enlarge(case: Case, wanted: int) -> Remedy:
    """What is used there now stays used; and no more than the memory fits in."""
    size, free = case.value(_SIZE, 0), case.value(_FREE)
    needed = wanted + (size - free if free is not None and size > free else 0)
    memory = case.value("memory.total")
    if memory and needed > memory:
        return Remedy(
            "manual",
            {
                "title": "Take a machine with more memory",
                "text": f"/dev/shm is memory, of which this machine has {show_size(memory)}. Or ask for less: disk.shm "
                "of the policy.",
                "kind": "job",
            },
        )
    return Remedy("enlarge-shm", {"size": needed})


def _clear() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Delete what is left over in /dev/shm",
            "text": "ls -la /dev/shm shows it: a job that was killed leaves its segments (torch_*, nccl-*) behind.",
            "kind": "setting",
        },
    )
