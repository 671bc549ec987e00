"""CD122: NVLink, NVSwitches, IMEX."""

from __future__ import annotations

from cudadoctor.testing import Machine, container, fails, linux, passes, skips, unknown_when

RULE = "CD122"


def servers(name: str = "NVIDIA H100 80GB HBM3", capability: str = "9.0", device_id: str = "2330") -> Machine:
    machine = linux()
    for index in range(2):
        machine = machine.gpu(name, capability, 80, device_id=device_id, index=index)
    return machine


def xid(number: int) -> Machine:
    return servers().log("xid", f"NVRM: Xid (PCI:0000:01:00): {number}", "0000:01:00.0", number=str(number))


ERROR_802 = {"symptom.cuda_not_initialized": {"text": "Error 802: system not yet initialized"}}
B200 = servers("NVIDIA B200", "10.0", "2901").set({"driver.fabric_manager": "running", **ERROR_802})

CASES = [
    passes("two GPUs and a quiet log", servers()),
    skips("one GPU", linux()),
    fails("Xid 74", xid(74), says="Xid 74", severity="error", certainty="likely", blame="machine", fix="manual"),
    fails("Xid 145: its words tell whether it was fatal", xid(145), severity="warning"),
    passes("Xid 137 is a program's fault", xid(137)),
    passes("before the driver was loaded anew", xid(74).log("module-loaded", "NVRM: loading")),
    fails(
        "an NVSwitch fails",
        servers().log("sxid", "nvidia-nvswitch3: SXid (PCI:0000:06:00.0): 14017, Fatal", number="14017", fatal="yes"),
        says="SXid 14017",
        severity="error",
    ),
    passes(
        "an NVSwitch reports a small thing", servers().log("sxid", "SXid: 12028, Non-fatal", number="12028", fatal="no")
    ),
    fails(
        "a program met it",
        linux().set({"symptom.nvlink_uncorrectable": {"text": "uncorrectable NVLink error was detected"}}),
        severity="error",
    ),
    fails(
        "IMEX is stopped", servers().set({"driver.imex": "stopped", **ERROR_802}), says="IMEX", fix="restart-service"
    ),
    fails(
        "IMEX is not ready, in a container",
        container().set({"symptom.imex_not_ready": {"text": "IMEX domain is not ready"}}),
        fix="manual",
    ),
    passes("IMEX is stopped where nobody needs it", servers().set({"driver.imex": "stopped"})),
    fails("the modules of InfiniBand are missing", B200, says="InfiniBand", fix=("load-module", "restart-service")),
    passes("they are loaded", B200.set({"kernel.modules": ["nvidia", "nvidia_uvm", "ib_umad"]})),
    skips("nobody may read the log, and the GPUs answer", servers().unknown("kernel.log_events")),
    unknown_when(
        "nobody may read the log, and NVML was not asked", servers().unknown("kernel.log_events", "gpu.1.lost")
    ),
]
