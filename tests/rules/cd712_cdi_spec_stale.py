"""CD712: the description of the GPUs for containers."""

from __future__ import annotations

from cudadoctor.testing import container, fails, linux, skips

RULE = "CD712"
NEVER_PASSES = "a description is not read: only the engine knows whether it serves"
NEVER_UNDECIDED = "without the engine's words there is nothing to decide"

REPORT = linux().only()

CASES = [
    fails(
        "podman knows no such device",
        REPORT.set({"symptom.cdi_unresolvable": {"text": "unresolvable CDI devices", "device": "nvidia.com/gpu=all"}}),
        says="no description of nvidia.com/gpu=all",
        severity="error",
        certainty="certain",
        blame="machine",
        fix="generate-cdi-spec",
    ),
    fails(
        "a library of the former driver",
        REPORT.set({"symptom.cdi_file_missing": {"path": "/usr/lib/libEGL_nvidia.so.535.154.05"}}),
        says=["libEGL_nvidia.so.535.154.05", "older than the driver"],
        certainty="likely",
        fix="generate-cdi-spec",
    ),
    fails(
        "a version that the engine does not read",
        REPORT.set({"symptom.cdi_spec_unsupported": {"text": "failed to parse CDI Spec: invalid version"}}),
        says="the toolkit is newer",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "Docker without CDI",
        REPORT.set({"symptom.cdi_driver_missing": {"text": 'could not select device driver "cdi"'}}),
        certainty="possible",
        fix=["set-up-container-toolkit", "generate-cdi-spec"],
    ),
    skips("nothing is reported", linux()),
    skips("nor in a container", container()),
    fails(
        "a container with a list of device files, after a restart of the machine",
        REPORT.set({"symptom.container_device_gone": {"text": "custom device", "device": "/dev/nvidia-uvm"}}),
        says="/dev/nvidia-uvm, which nothing has created",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "nvidia-ctk lists it, and the engine looks elsewhere",
        REPORT.set(
            {
                "symptom.cdi_unresolvable": {"text": "unresolvable CDI devices", "device": "nvidia.com/gpu=all"},
                "symptom.cdi_devices_listed": {"text": "Found 2 CDI devices"},
            }
        ),
        says="it reads other folders",
        certainty="likely",
        fix="manual",
    ),
]
