"""CD702: a container that had its GPU and has lost it."""

from __future__ import annotations

from cudadoctor.testing import GONE, container, container_without_gpu, fails, linux, passes, skips, unknown_when

RULE = "CD702"

UNKNOWN_ERROR = {"symptom.nvml_unknown_error": {"text": "Failed to initialize NVML: Unknown Error"}}
REPORT = linux().only("system.os").set({"examination.kind": "report"})

CASES = [
    passes("a container with its GPU", container()),
    skips("no container", linux()),
    skips("no container, and NVML fails", linux().driver_fails(999, "unknown-error", 255)),
    fails(
        "NVML fails inside, and the device nodes are there",
        container().driver_fails(999, "unknown-error", 255, "Unknown Error"),
        says="has lost its GPU",
        severity="error",
        certainty="likely",
        blame="allocation",
        fix="restart-container",
    ),
    skips("it never had one", container_without_gpu().driver_fails(999, "unknown-error", 255)),
    skips("started without one", container_without_gpu()),
    skips("another failure", container().driver_fails(18, "mismatch", 18)),
    skips("apptainer makes no control group", container("apptainer").driver_fails(999, "unknown-error", 255)),
    fails(
        "a report, and the host's table in it",
        REPORT.set({"driver.smi_version": "570.133.20", **UNKNOWN_ERROR}),
        certainty="likely",
    ),
    fails("a report about pods", REPORT.set({"scheduler.kind": "kubernetes", **UNKNOWN_ERROR}), certainty="likely"),
    fails("a report from a container", REPORT.set({"system.container": "docker", **UNKNOWN_ERROR}), certainty="likely"),
    fails(
        "a report: the host still has it",
        REPORT.set({"symptom.gpu_fine_on_host": {"text": "it works on the host"}, **UNKNOWN_ERROR}),
        certainty="likely",
    ),
    fails("the words alone", REPORT.set(UNKNOWN_ERROR), certainty="possible"),
    skips(
        "the log tells of a card that fails",
        REPORT.set(UNKNOWN_ERROR).log("xid", "NVRM: Xid (PCI:0000:01:00): 79", number="79"),
    ),
    skips("surely no container", REPORT.set({"system.container": GONE, **UNKNOWN_ERROR})),
    unknown_when("nobody asked", linux().only("system.os").set({"system.container": "docker"})),
    skips("a report: torch sees the GPU", REPORT.set({"torch.cuda_available": True, **UNKNOWN_ERROR})),
]
