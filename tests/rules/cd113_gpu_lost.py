"""CD113: a GPU that has fallen off the bus."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, report, skips, unknown_when

RULE = "CD113"

TWO = linux().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2", index=1)
OFF_THE_BUS = [{"kind": "off-the-bus", "text": "NVRM: GPU 0000:02:00.0: GPU has fallen off the bus.", "values": {}}]


def silent(reason: str) -> Machine:
    """The second card tells nothing, for this reason."""
    names = [name for name in TWO.facts if name.startswith("gpu.1.")]
    return TWO.unknown(*names, reason=reason)


CASES = [
    fails(
        "the second card answers everything with Unknown Error",
        silent("NVML: Unknown Error"),
        says="GPU 1 answers nothing but Unknown Error",
        certainty="likely",
        blame="machine",
    ),
    passes("a card that this user may not ask, as in a job", silent("NVML: Insufficient Permissions")),
    passes("every card answers", TWO),
    passes("an old line in the log, and every card answers again", TWO.set({"kernel.log_events": OFF_THE_BUS})),
    fails("NVML says that the second is lost", TWO.set({"gpu.1.lost": True}), says="GPU 1", certainty="certain"),
    fails("nvidia-smi and NVML refuse for a lost GPU", linux().driver_fails(15, "gpu-lost", 15), blame="machine"),
    fails(
        "only the kernel log says so, and the driver does not answer",
        linux().driver_fails(999, "unknown-error", 255).set({"kernel.log_events": OFF_THE_BUS}),
        certainty="likely",
        fix="manual",
    ),
    skips("no driver that could lose one", linux().no_driver()),
    unknown_when("nobody asked the driver", linux().only("system.os", "pci.gpus")),
    fails(
        "a report: Xid 79",
        report().log("xid", "NVRM: Xid", "0000:21:00.0", number="79"),
        says="Xid 79",
        certainty="likely",
    ),
    fails(
        "a report: nvidia-smi gets no answer of one",
        report().says("device_handle_unknown", "Unable to determine the device handle", gpu="0000:0B:00.0"),
        says="0000:0B:00.0",
        certainty="likely",
    ),
    fails("a report: a message", report().says("gpu_lost", "GPU is lost"), certainty="likely"),
    unknown_when(
        "a report: nvidia-smi has no handle, since the driver never had the card",
        report("linux").says("device_handle_unknown", "Unable to determine", gpu="0000:0B:00.0", reason="Not Found"),
    ),
    unknown_when("a report about torch", report("linux")),
    passes(
        "a report: a reset is due for the memory's sake",
        report().says("gpu_lost", "GPU requires reset").set({"gpu.0.remap_pending": True}),
    ),
]
