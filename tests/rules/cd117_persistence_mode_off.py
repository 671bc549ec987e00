"""CD117: persistence mode, advice for servers."""

from __future__ import annotations

from cudadoctor.testing import Machine, container, fails, linux, passes, report, skips, unknown_when, windows, wsl

RULE = "CD117"


def a100(persistence: bool) -> Machine:
    machine = linux().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2")
    return machine.set({"gpu.0.persistence_mode": persistence})


SLOW = report().says("start_is_slow", "nvidia-smi takes 12 seconds")

CASES = [
    passes("it is on", a100(True)),
    fails(
        "a server without the daemon",
        a100(False),
        says=["A100", "seconds"],
        severity="info",
        blame="machine",
        fix="restart-service",
    ),
    passes("a desktop keeps the driver at work", linux().set({"gpu.0.persistence_mode": False})),
    passes("a screen runs on it", a100(False).set({"gpu.0.display_active": True})),
    skips("a container's host sets it", container().set({"gpu.0.persistence_mode": False})),
    skips("Windows has none", windows()),
    skips("WSL has none", wsl()),
    skips("no card", linux().no_gpu()),
    unknown_when("it cannot be read", linux().unknown("gpu.0.persistence_mode")),
    fails(
        "a report: nvidia-smi is slow, and the mode is off",
        SLOW.set({"gpu.0.persistence_mode": False}),
        says="slow",
        severity="warning",
        certainty="likely",
        fix="restart-service",
    ),
    fails("a report: nvidia-smi is slow", SLOW, severity="warning", certainty="likely"),
    fails(
        "a report: the first use of CUDA is slow, which may be the compiler",
        report().says("start_is_slow", "the first CUDA call takes a minute"),
        severity="warning",
        certainty="possible",
    ),
    passes("a report: a slow start, and the mode is on", SLOW.set({"gpu.0.persistence_mode": True})),
    fails(
        "the container toolkit did not wait long enough for the driver",
        linux().only().set({"symptom.driver_start_timed_out": {"text": "driver error: timed out"}}),
        says="took too long to set the GPUs up",
        severity="error",
        certainty="possible",
        fix="restart-service",
    ),
]
