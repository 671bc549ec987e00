"""CD612: the GPU's memory did not suffice. The numbers of each case are those of one report of torch, in GiB."""

from __future__ import annotations

from typing import Optional

from cudadoctor.testing import GIB, Machine, fails, linux, passes, skips, windows

RULE = "CD612"
NEVER_UNDECIDED = "without a report there is nothing to decide"

REPORT = linux().only("system.os")
SYMPTOM = {"symptom.cuda_out_of_memory": {"text": "CUDA out of memory. Tried to allocate"}}


def oom(machine: Optional[Machine] = None, **gib: float) -> Machine:
    told = {f"oom.{name}": int(value * GIB) for name, value in gib.items()}
    return (machine or REPORT).set(SYMPTOM).set(told)


CASES = [
    passes("torch's table counts none", linux().set({"allocator.ooms": 0})),
    fails(
        "more than the card has, at once",
        oom(tried=96, total=23.7, free=23.1, allocated=0.1, reserved=0.2),
        says=["asked for 96.0 GiB at once", "23.7 GiB"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="manual",
    ),
    fails(
        "the work needs it all",
        oom(tried=0.25, total=47.5, free=0.02, allocated=47.14, reserved=47.2, process=47.48),
        says=["needs more than the GPU has", "47.1 GiB of 47.5 GiB"],
        certainty="certain",
    ),
    fails(
        "one large piece on a half-full card",
        oom(tried=19.68, total=23.68, free=11.88, allocated=11.44, reserved=11.48, process=11.79),
        says="needs more",
        certainty="certain",
    ),
    fails(
        "a size that no program means: some shape is wrong",
        oom(tried=4000, total=23.56, free=16.57, allocated=5.45, reserved=6.62, process=6.97),
        says="asked for 4000.0 GiB at once",
        certainty="certain",
    ),
    fails(
        "full, and some of it idle: no certainty that the need is real",
        oom(tried=0.75, total=47.37, free=0.43, allocated=42.4, reserved=45.64, process=46.92),
        says=["needs more than the GPU has", "(45.6 GiB reserved)", "3.2 GiB lie idle in pieces"],
        certainty="likely",
        fix=["change-variable", "manual"],
    ),
    fails(
        "pools of CUDA graphs hold enough",
        oom(tried=2, total=79.15, free=1.02, allocated=76.9, reserved=77.1, process=78.12, private_pools=6.5),
        says="needs more",
        certainty="certain",
        fix=["manual", "manual"],
    ),
    fails(
        "the weights alone",
        oom(tried=0.22, total=23.65, free=0.04, allocated=23.1, reserved=23.2, process=23.6).set(
            {"oom.phase": "loading"}
        ),
        says="needs more",
        certainty="certain",
        fix=["manual", "manual"],
    ),
    fails(
        "JAX tells what it may take, and not what the card has",
        oom(tried=2.5, allowed=14.63, allocated=14.31).set({"oom.program": "jax"}),
        says="more than the program may take of the GPU: 14.3 GiB of 14.6 GiB",
        certainty="certain",
    ),
    fails(
        "llama.cpp tells the buffer alone",
        oom(tried=18).set({"oom.program": "llama.cpp"}),
        says="the program asked for 18.0 GiB",
        certainty="likely",
    ),
    fails(
        "a third is held idle, in pieces",
        oom(tried=0.37, total=3.95, free=0.34, allocated=1.72, reserved=2.46),
        says=["fragmented", "asked for"],
        certainty="likely",
        fix=["change-variable", "manual"],
    ),
    fails(
        "fragmentation on Windows",
        oom(windows(), tried=1, total=12, free=0.1, allocated=6, reserved=11.5),
        says="fragmented",
        fix="change-variable",
    ),
    fails(
        "idle pieces that would not have sufficed",
        oom(tried=5.96, total=23.69, free=0.2, allocated=18.0, reserved=21.0, process=22.9),
        says="needs more",
        certainty="certain",
    ),
    fails(
        "twenty MiB on a full card: what lies idle is what every run leaves over",
        oom(tried=0.02, total=8, free=0, allocated=6.94, reserved=7.11),
        says="needs more",
        certainty="certain",
    ),
    fails(
        "another process holds half of it",
        oom(tried=2, total=31.84, free=1.02, allocated=14.0, reserved=14.2, process=15.0, others=15.5),
        says="other processes hold 15.5 GiB",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "others, by what is left over",
        oom(tried=2, total=24, free=0.5, allocated=9, reserved=9.2, process=9.5),
        says="other processes hold 14.0 GiB",
    ),
    fails(
        "an old torch names no others; what its context takes is not theirs",
        oom(tried=0.02, total=7.93, free=0.02, allocated=5.1, reserved=5.3),
        says="other processes hold 1.9 GiB",
        certainty="likely",
    ),
    fails(
        "half a GiB on a small card is the desktop's",
        oom(tried=0.03, total=4, free=0.04, allocated=2.58, reserved=2.59, process=3.44),
        says="needs more",
    ),
    fails(
        "a desktop holds little",
        oom(tried=2, total=24, free=0.5, allocated=21.7, reserved=21.9, process=22.4, others=1.1),
        says="needs more",
    ),
    fails(
        "set_per_process_memory_fraction",
        oom(tried=2, total=23.69, free=12, allowed=10, allocated=9.1, reserved=9.8),
        says="told to keep within 10.0 GiB",
        certainty="certain",
    ),
    fails("free, and yet refused", oom(tried=1, total=24, free=20, allocated=1, reserved=1.1), certainty="possible"),
    fails("no numbers", REPORT.set(SYMPTOM), says="did not suffice", certainty="likely", severity="error"),
    fails(
        "torch's table: pieces between tensors",
        linux().set(
            {
                "allocator.ooms": 1,
                "allocator.reserved": 20 * GIB,
                "allocator.allocated": 9 * GIB,
                "allocator.not_releasable": 8 * GIB,
            }
        ),
        says="fragmented",
        certainty="likely",
        fix="change-variable",
    ),
    fails("torch's table alone", linux().set({"allocator.ooms": 2}), says="2 times"),
    fails(
        "cuBLAS could not start",
        REPORT.set({"symptom.cublas_not_initialized": {"text": "CUBLAS_STATUS_ALLOC_FAILED"}}),
        certainty="possible",
    ),
    skips("nobody reports it", linux()),
    skips("nor on Windows", windows()),
    fails(
        "much is free, and Windows has no room to back it",
        oom(windows(), tried=0.1, total=16, free=9.8, allocated=4.8, reserved=4.9),
        says=["9.8 GiB", "page file is full"],
        certainty="likely",
        fix="enlarge-page-file",
    ),
]
