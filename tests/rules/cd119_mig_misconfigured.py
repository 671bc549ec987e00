"""CD119: MIG without instances, or beside whole GPUs."""

from __future__ import annotations

from cudadoctor.testing import Machine, container, fails, linux, passes, skips, unknown_when

RULE = "CD119"

NO_GPU = {"symptom.no_cuda_gpus": {"text": "RuntimeError: No CUDA GPUs are available"}}


def a100s(*devices: int | None) -> Machine:
    """One card each: the number of its MIG devices, or None where MIG is off."""
    machine = linux()
    for index, count in enumerate(devices):
        machine = machine.gpu("NVIDIA A100-SXM4-40GB", "8.0", 40, device_id="20b0", index=index)
        machine = machine.set({f"gpu.{index}.mig_mode": count is not None, f"gpu.{index}.mig_devices": count or 0})
    return machine


REPORT = linux().only("system.os").set({"examination.kind": "report"})
SWITCHED_ON = {"symptom.mig_enabled": {"text": "Enabled MIG Mode for GPU 00000000:06:00.0", "gpu": "00000000:06:00.0"}}
IN_A_TABLE = {
    "smi.gpus": [dict(row, mig=True) for row in a100s(None).facts.value("smi.gpus")],
}

CASES = [
    passes("MIG is off", a100s(None)),
    passes("MIG is on, with instances", a100s(3)),
    skips("a card without MIG", linux()),
    fails(
        "no instances were made",
        a100s(0),
        says="CUDA sees no GPU",
        certainty="certain",
        severity="error",
        blame="machine",
        fix="switch-mig-off",
    ),
    fails("another card serves CUDA", a100s(0, None), says="other GPUs", severity="warning"),
    fails("another card could, and a program finds none", a100s(0, None).set(NO_GPU), severity="error"),
    fails(
        "one of two is split, and a program finds none",
        a100s(2, None).set(NO_GPU),
        severity="error",
        certainty="likely",
    ),
    passes("one of two is split, and all is well", a100s(2, None)),
    fails(
        "it was switched on, and a program fails",
        REPORT.set({**SWITCHED_ON, **NO_GPU}),
        says="06:00.0",
        severity="error",
    ),
    fails("it was switched on", REPORT.set(SWITCHED_ON), certainty="likely"),
    fails(
        "a table says that there are none",
        REPORT.set({**IN_A_TABLE, "symptom.mig_device_missing": {"text": "No MIG devices found"}}),
        says="no instances",
        severity="error",
    ),
    fails(
        "the words alone",
        REPORT.set({"symptom.mig_device_missing": {"text": "No MIG devices found"}}),
        severity="error",
    ),
    fails(
        "a variable names an instance, and MIG is off",
        a100s(None).set({"env.CUDA_VISIBLE_DEVICES": "MIG-5c89c2d0"}),
        says="CUDA_VISIBLE_DEVICES",
        fix="unset-variable",
    ),
    fails(
        "a container is given what exists",
        container().set({"gpu.0.mig_mode": True, "gpu.0.mig_devices": 0}),
        fix="manual",
    ),
    unknown_when("a table without the list of instances", REPORT.set(IN_A_TABLE)),
]
