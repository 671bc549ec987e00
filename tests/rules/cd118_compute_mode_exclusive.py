"""CD118: a compute mode that keeps programs out."""

from __future__ import annotations

from cudadoctor.testing import Machine, container, fails, linux, passes, skips, unknown_when

RULE = "CD118"

BUSY = {"symptom.device_busy": {"text": "all CUDA-capable devices are busy or unavailable"}}
ANOTHER = {"gpu.0.processes": [{"pid": 4242, "memory": 1 << 30}]}
TWO = linux().gpu("NVIDIA RTX A6000", "8.6", 48, device_id="2230", index=1)


def exclusive(machine: Machine | None = None) -> Machine:
    return (machine or linux()).set({"gpu.0.compute_mode": "exclusive-process"})


CASES = [
    passes("default", linux()),
    passes("default, and busy for another reason", linux().set(BUSY)),
    fails("exclusive, and free", exclusive(), says="one process", severity="info"),
    fails(
        "exclusive and in use",
        exclusive().set(ANOTHER),
        says="error 46",
        severity="warning",
        certainty="likely",
        fix="set-compute-mode",
    ),
    fails("a job holds its own GPU", exclusive().set(ANOTHER).job(gpus=1), severity="info"),
    fails("one of two is in use", exclusive(TWO).set(ANOTHER), severity="info"),
    fails(
        "a program met it, and the process is seen",
        exclusive().set({**ANOTHER, **BUSY}),
        severity="error",
        certainty="certain",
        blame="machine",
        fix="set-compute-mode",
    ),
    fails("a program met it", exclusive().set(BUSY), severity="error", certainty="likely"),
    fails(
        "prohibited",
        linux().set({"gpu.0.compute_mode": "prohibited"}),
        says="Prohibited",
        severity="error",
        certainty="certain",
        fix="set-compute-mode",
    ),
    fails("one of two is prohibited", TWO.set({"gpu.1.compute_mode": "prohibited"}), says="GPU 1", severity="warning"),
    fails("in a container the host sets it", exclusive(container()).set(BUSY), fix="manual"),
    fails(
        "error 46 alone",
        linux().only("system.os").set({"examination.kind": "report", **BUSY}),
        certainty="possible",
        severity="error",
    ),
    skips("no card", linux().no_gpu()),
    unknown_when("it cannot be read", linux().unknown("gpu.0.compute_mode")),
]
