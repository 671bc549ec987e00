"""CD505: memory that somebody else holds."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GIB, MIB, Machine, fails, linux, passes, skips, unknown_when

RULE = "CD505"

OOM = {"symptom.cuda_out_of_memory": {"text": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"}}
IN_REPORT = {"examination.kind": "report"}
NOTEBOOK = [{"pid": 4711, "memory": 20 * GIB}]
TWO = [{"pid": 11, "memory": 10 * GIB, "name": "python"}, {"pid": 12, "memory": 10 * GIB, "name": "ollama"}]


def held(used: int, processes: list[dict[str, Any]], base: Machine = linux()) -> Machine:  # noqa: B008
    return base.set({"gpu.0.memory_used": used, "gpu.0.processes": processes})


def told(**numbers: int) -> Machine:
    return linux().only("torch.version").set({**IN_REPORT, **OOM, **{f"oom.{n}": v for n, v in numbers.items()}})


def engine(free: str) -> Machine:
    text = f"Free memory on device ({free}/23.6 GiB) on startup is less than desired GPU memory utilization"
    value = {"text": text, "free": free, "total": "23.6", "share": "0.9", "wanted": "21.2"}
    return linux().only("torch.version").set({**IN_REPORT, "symptom.engine_memory_share": value})


CASES = [
    passes("an idle machine", linux(), says="nobody else holds much"),
    passes("somebody's small process", held(900 * MIB, [{"pid": 9, "memory": 300 * MIB}])),
    passes("somebody works, and nobody complains", held(12 * GIB, NOTEBOOK)),
    passes("a complaint, and an empty card: the program needed it all", held(600 * MIB, []).set(OOM)),
    fails(
        "the log of a run, and a notebook that still holds its memory",
        held(20 * GIB, NOTEBOOK).set(OOM),
        says=["4711 holds 20.0 GiB", "24.0 GiB"],
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "torch names the others",
        told(total=24 * GIB, free=1 * GIB, others=18 * GIB, tried=2 * GIB),
        says="other processes hold 18.0 GiB of the GPU's 24.0 GiB",
        severity="error",
        certainty="certain",
    ),
    fails(
        "what is neither free nor the process's own",
        told(total=24 * GIB, free=0, process=4 * GIB, tried=2 * GIB),
        certainty="likely",
    ),
    fails(
        "an old torch that names only its own memory: most of the rest is not this program's",
        told(total=11 * GIB, free=20 * MIB, reserved=2 * GIB, tried=20 * MIB),
        says="other processes hold about 9.0 GiB",
        certainty="likely",
    ),
    unknown_when(
        "what an old torch leaves over is its own context",
        told(total=11 * GIB, free=20 * MIB, reserved=10 * GIB, tried=20 * MIB),
    ),
    unknown_when(
        "what was asked for was free: nobody kept it",
        told(total=6 * GIB, free=3 * GIB, reserved=1 * GIB, tried=2 * GIB),
    ),
    fails("an engine at its start", engine("5.1"), says="held 18.5 of the GPU's 23.6 GiB", certainty="likely"),
    fails(
        "a table in a report: it may be the program itself",
        held(20 * GIB, TWO).set({**IN_REPORT, **OOM}),
        certainty="possible",
        severity="warning",
    ),
    fails("a full card, and nobody complains: advice", held(23 * GIB, NOTEBOOK), severity="info"),
    skips("no GPU", linux().no_gpu()),
    unknown_when("the others hold little: the rest is for CD612", told(total=24 * GIB, free=0, others=1 * GIB)),
    unknown_when("an out-of-memory alone", linux().only("torch.version").set({**IN_REPORT, **OOM})),
    skips("a desktop beside an engine that wants too much", engine("21.0")),
    fails(
        "somebody tells that a run ended and its memory stayed",
        linux().only().set({**IN_REPORT, "symptom.memory_not_released": {"text": "still holds GPU memory"}}),
        says="is still held",
        certainty="possible",
        fix="manual",
    ),
    fails(
        "and the next run lacked it",
        linux().only().set({**IN_REPORT, **OOM, "symptom.memory_not_released": {"text": "still holds GPU memory"}}),
        certainty="likely",
    ),
]
