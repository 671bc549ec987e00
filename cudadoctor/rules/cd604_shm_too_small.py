"""Shared memory (/dev/shm) is too small

What it checks
    The size of /dev/shm. Docker gives a container 64 MiB unless told otherwise; a machine of its own has half its
    memory there.

Why it matters
    DataLoader workers hand batches over through shared memory, and NCCL its buffers. When it is full, a worker dies
    with "Bus error" or "unable to write to file </torch_...>".

How to fix
    Start the container with --shm-size=8g or --ipc=host; in Kubernetes, mount an emptyDir of medium Memory at
    /dev/shm. Without that, DataLoader(num_workers=0) works.

References
    https://docs.docker.com/reference/cli/docker/container/run/
    https://pytorch.org/docs/stable/multiprocessing.html
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_container
from cudadoctor.rules.api import ALLOCATION, CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD604",
    name="shm-too-small",
    title="Shared memory (/dev/shm) is too small",
    severity=WARNING,
    blame=ALLOCATION,
    precedence=63,
)

_MIB = 1 << 20
# Docker's default is 64 MiB; a few workers with batches of images need some hundred. A rule of thumb.
_ROOM = 1024 * _MIB
_WANTED = 8 * 1024 * _MIB


def judge(case: Case) -> Outcome:
    size = case.fact("memory.shm_size")
    reported = case.fact("symptom.shm_exhausted")
    if case.value("system.os", "linux" if reported.is_known or size.is_known else "") != "linux":
        return case.skipped("only Linux has /dev/shm")
    if not reported.is_known:
        if size.is_absent:
            return case.skipped("there is no /dev/shm")
        if not size.is_known:
            return case.undecided(f"cannot tell the size of /dev/shm: {size.reason}", ("memory.shm_size",))
        if size.get() >= _ROOM:
            return case.passed(f"/dev/shm has {size.get() / (1024 * _MIB):.0f} GiB", ("memory.shm_size",))
    shown = f" ({size.get() // _MIB} MiB)" if size.is_known else ""
    what = "a data loader ran out of shared memory" if reported.is_known else "/dev/shm is small"
    evidence = ("symptom.shm_exhausted", "memory.shm_size") if reported.is_known else ("memory.shm_size",)
    return case.failed(
        f"{what}{shown}: DataLoader workers and NCCL need more",
        evidence,
        certainty=CERTAIN if reported.is_known else LIKELY,
        severity=ERROR if reported.is_known else WARNING,
        blame=ALLOCATION if in_container(case) else MACHINE,
        fixes=(Remedy("enlarge-shm", {"size": _WANTED, "effect": {"symptom.shm_exhausted": None}}),),
    )
