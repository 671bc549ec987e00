"""CD116: the NVSwitches have not been set up."""

from __future__ import annotations

from cudadoctor.testing import (
    GONE,
    Machine,
    container,
    device_nodes,
    fails,
    linux,
    passes,
    skips,
    unknown_when,
    windows,
)

RULE = "CD116"

ERROR_802 = {"symptom.cuda_not_initialized": {"text": "Error 802: system not yet initialized"}}
NODES = device_nodes("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-nvswitch0")


def h100(manager: object = "running", state: object = "completed") -> Machine:
    machine = linux()
    for index in range(2):
        machine = machine.gpu("NVIDIA H100 80GB HBM3", "9.0", 80, device_id="2330", index=index)
        machine = machine.set({f"gpu.{index}.fabric_state": state})
    return machine.set({"driver.fabric_manager": manager})


def a100(manager: object = "running") -> Machine:
    """Its fabric shows by the switches alone."""
    machine = linux()
    for index in range(2):
        machine = machine.gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2", index=index)
    return machine.set({"device.nodes": NODES, "driver.fabric_manager": manager})


REPORT = linux().only("system.os").set({"examination.kind": "report"})
VERSIONS = {"manager": "550.90.07", "driver": "550.127.05"}
VERSION = {"symptom.fabric_manager_failed": {"text": "fabric manager NVIDIA GPU driver interface version", **VERSIONS}}

CASES = [
    passes("it runs, and the GPUs are registered", h100()),
    passes("it runs beside switches", a100()),
    skips("a workstation", linux()),
    skips("a leftover package on a machine without switches", linux().set({"driver.fabric_manager": "stopped"})),
    fails(
        "it is stopped, and the GPUs wait for it",
        h100("stopped", "in-progress"),
        says="does not run",
        certainty="certain",
        severity="error",
        blame="machine",
        fix="restart-service",
    ),
    fails("it is stopped beside switches", a100("stopped"), severity="error", fix="restart-service"),
    fails(
        "nobody has installed it", a100(GONE), says="no fabric manager", severity="error", fix="install-fabric-manager"
    ),
    fails("it runs, and the GPUs still wait", h100("running", "not-started"), severity="warning", certainty="likely"),
    fails(
        "error 802 in a report",
        REPORT.set(ERROR_802),
        says="error 802",
        severity="error",
        certainty="likely",
        fix="install-fabric-manager",
    ),
    fails("error 802, and it is stopped", h100("stopped").set(ERROR_802), certainty="certain", fix="restart-service"),
    fails("error 802, and it is not installed", h100(GONE).set(ERROR_802), says="no fabric manager"),
    fails("error 802 though it runs", h100().set(ERROR_802), certainty="possible"),
    fails("error 802 on a GeForce card", linux().unknown("driver.fabric_manager").set(ERROR_802), certainty="possible"),
    fails(
        "it is of another version",
        REPORT.set(VERSION),
        says=["another version", "550.90.07"],
        severity="error",
        fix="install-fabric-manager",
    ),
    fails(
        "its service failed",
        REPORT.set({"symptom.fabric_manager_failed": {"text": "nvidia-fabricmanager.service: Failed"}, **ERROR_802}),
        says="does not run",
        certainty="certain",
        fix="restart-service",
    ),
    skips(
        "it fails where it has nothing to do: it found no switch",
        REPORT.set(
            {"symptom.fabric_manager_failed": {"text": "Failed"}, "symptom.nvswitch_absent": {"text": "Nothing"}}
        ),
    ),
    skips(
        "it fails beside a GeForce card",
        linux().set({"examination.kind": "report", "symptom.fabric_manager_failed": {"text": "Failed"}}),
    ),
    fails("a container cannot mend it", container().set(ERROR_802), certainty="possible", fix="manual"),
    skips("Windows", windows()),
    unknown_when("switches, and systemd does not answer", a100().unknown("driver.fabric_manager")),
]
