"""CD121: nvidia-smi fails, CUDA works."""

from __future__ import annotations

from cudadoctor.testing import container, fails, linux, passes, skips, unknown_when

RULE = "CD121"

WORKS = {"torch.cuda_available": True}
REPORT = linux().only("system.os").set({"examination.kind": "report"})
NOT_FOUND = {"symptom.smi_not_found": {"text": "bash: nvidia-smi: command not found"}}

CASES = [
    skips("nobody has told whether CUDA works", linux()),
    passes("both work", linux().set(WORKS)),
    fails(
        "NVML does not start, and torch sees the GPU",
        linux().driver_fails(999, "unknown-error", 255).set(WORKS),
        says="CUDA works",
        severity="warning",
        certainty="likely",
        fix="manual",
    ),
    fails("nvidia-smi is missing, and torch sees the GPU", REPORT.set({**WORKS, **NOT_FOUND}), says="not found"),
    fails("in a container", container().set({**WORKS, "driver.smi_failure": "no-library"}), fix="manual"),
    skips("CUDA does not work either", REPORT.set({**NOT_FOUND, "torch.cuda_available": False})),
    unknown_when("nvidia-smi is missing, and no more is told", REPORT.set(NOT_FOUND)),
]
