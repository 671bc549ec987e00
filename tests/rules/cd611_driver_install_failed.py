"""CD611: the installation of the driver failed."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, skips, windows

RULE = "CD611"
NEVER_UNDECIDED = "without a report there is nothing to decide"
NEVER_PASSES = "that no failure was reported says nothing of the installation"

REPORT = linux().only().set({"examination.kind": "report"})


def failed(text: str, machine: Machine = REPORT, **caught: str) -> Machine:
    return machine.set({"symptom.driver_install_failed": {"text": text, **caught}})


CASES = [
    fails(
        "Windows does not find a file",
        failed("NVIDIA driver installation failed with error 0x80070002", code="0x80070002"),
        says=["Windows could not install the driver", "0x80070002"],
        severity="error",
        certainty="likely",
        blame="machine",
        fix="clean-windows-driver",
    ),
    fails("the number alone", failed("Error: 0x80070002"), certainty="possible", fix="clean-windows-driver"),
    fails("NVIDIA's installer", failed("NVIDIA Installer failed"), says="NVIDIA's installer", certainty="likely"),
    fails(
        "an update that failed over a driver that works",
        failed("NVIDIA Installer failed", windows()),
        severity="warning",
    ),
    fails(
        "standard against DCH",
        failed("The standard NVIDIA graphics driver is not compatible with this version of Windows."),
        says="not for this Windows",
    ),
    fails(
        "Code 43",
        REPORT.set({"symptom.driver_device_stopped": {"text": "Windows has stopped this device (Code 43)"}}),
        says="Code 43",
        certainty="possible",
        fix="clean-windows-driver",
    ),
    fails(
        "a module that is in use",
        failed("ERROR: An NVIDIA kernel module 'nvidia-drm' appears to already be loaded in your kernel."),
        says="cannot replace",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails("a display server", failed("ERROR: You appear to be running an X server"), says="display server"),
    fails("the module is not built", failed("ERROR: Unable to build the NVIDIA kernel module."), says="not be built"),
    fails(
        "the module is not taken", failed("ERROR: Unable to load the kernel module 'nvidia.ko'."), says="did not take"
    ),
    fails(
        "packages of two sources",
        failed("nvidia-driver-535 : Depends: nvidia-dkms-535 but it is not going to be installed"),
        says="contradict",
    ),
    fails("CUDA's installer", failed("[ERROR]: Install of driver component failed."), says="CUDA installer"),
    fails(
        "its last words alone",
        REPORT.set({"symptom.driver_installer_stopped": {"text": "ERROR: Installation has failed."}}),
        says="stopped with an error",
    ),
    fails("any other step", failed("ERROR: Installation has failed."), says="stopped with an error"),
    skips("nothing failed", linux()),
    skips("nor on Windows", windows()),
]
