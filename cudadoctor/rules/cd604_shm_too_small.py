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

import re
from typing import Optional

from cudadoctor.derive.surroundings import in_container
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import (
    ALLOCATION,
    CERTAIN,
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

_GUESSED = pattern(r"\bis possible that\b|\bmight be caused\b", re.IGNORECASE)

_EXHAUSTED, _WORKER, _BUS_ERROR = "symptom.shm_exhausted", "symptom.worker_killed", "symptom.bus_error"


def judge(case: Case) -> Outcome:
    size = case.fact("memory.shm_size")
    reported = case.fact(_EXHAUSTED)
    known = size.is_known or any(case.fact(name).is_known for name in (_EXHAUSTED, _WORKER, _BUS_ERROR))
    if case.value("system.os", "linux" if known else "") != "linux":
        return case.skipped("only Linux has /dev/shm")
    if not reported.is_known:
        told = _bus_error(case)
        if told is not None:
            return told
        if size.is_absent:
            return case.skipped("there is no /dev/shm")
        if not size.is_known:
            return case.undecided(f"cannot tell the size of /dev/shm: {size.reason}", ("memory.shm_size",))
        if size.get() >= _ROOM:
            return case.passed(f"/dev/shm has {size.get() / (1024 * _MIB):.0f} GiB", ("memory.shm_size",))
    if reported.is_known and _GUESSED.search(str(reported.get().get("text", ""))):
        return _guessed(case)
    shown = f" ({size.get() // _MIB} MiB)" if size.is_known else ""
    what = f"{_who(case)} ran out of shared memory" if reported.is_known else "/dev/shm is small"
    evidence = ("symptom.shm_exhausted", "memory.shm_size") if reported.is_known else ("memory.shm_size",)
    return case.failed(
        f"{what}{shown}: DataLoader workers and NCCL need more",
        evidence,
        certainty=CERTAIN if reported.is_known else LIKELY,
        severity=ERROR if reported.is_known else WARNING,
        blame=ALLOCATION if in_container(case) or _engine(case) else MACHINE,
        fixes=(
            Remedy(
                "enlarge-shm", {"size": _WANTED, "runtime": _engine(case), "effect": {"symptom.shm_exhausted": None}}
            ),
        ),
    )


def _guessed(case: Case) -> Outcome:
    """torch adds its guess to every bus error of a worker; a file that the worker maps may have been cut as well."""
    size = case.fact("memory.shm_size")
    ample = size.is_known and size.get() >= _ROOM
    small = size.is_known and not ample
    shown = f" ({size.get() // _MIB} MiB)" if small else ""
    message = f"a data loader's worker died of a bus error: mostly because /dev/shm is full{shown}"
    if ample:
        message = (
            f"a data loader's worker died of a bus error, though /dev/shm has {size.get() // (1024 * _MIB)} GiB: it "
            "may be full all the same, or a file that the worker maps was cut (a full disk, an unfinished copy)"
        )
    return case.failed(
        message,
        ("symptom.shm_exhausted", "memory.shm_size") if size.is_known else ("symptom.shm_exhausted",),
        certainty=POSSIBLE if ample else CERTAIN if small else LIKELY,
        severity=ERROR,
        blame=ALLOCATION if in_container(case) or _engine(case) else MACHINE,
        fixes=(Remedy("enlarge-shm", {"size": _WANTED, "runtime": _engine(case), "effect": {_EXHAUSTED: None}}),),
    )


def _who(case: Case) -> str:
    """Whom the error names."""
    text = str(case.value(_EXHAUSTED, {}).get("text", "")).lower()
    return "NCCL" if "nccl" in text else "a data loader" if "worker" in text or "torch_" in text else "a program"


def _bus_error(case: Case) -> Optional[Outcome]:
    """A process or worker that died of a bus error: mostly of a full /dev/shm, surely only where that is small."""
    worker = case.value(_WORKER, {}).get("signal") == "Bus error"
    name = _WORKER if worker else _BUS_ERROR
    if not worker and not case.fact(_BUS_ERROR).is_known:
        return None
    size = case.fact("memory.shm_size")
    if size.is_known and size.get() >= _ROOM:
        return None
    what = "a data loader's worker" if worker else "a process"
    shown = f" ({size.get() // _MIB} MiB)" if size.is_known else ""
    return case.failed(
        f"{what} died of a bus error: mostly because /dev/shm is full{shown}",
        (name, "memory.shm_size") if size.is_known else (name,),
        certainty=LIKELY if worker or size.is_known or in_container(case) else POSSIBLE,
        severity=ERROR,
        blame=ALLOCATION if in_container(case) or _engine(case) else MACHINE,
        fixes=(Remedy("enlarge-shm", {"size": _WANTED, "runtime": _engine(case), "effect": {name: None}}),),
    )


def _engine(case: Case) -> str:
    """The engine of the container that a report shows being started; empty: what this machine is tells it."""
    return "" if in_container(case) else str(case.value("container.engine", ""))
