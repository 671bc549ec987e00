"""CD701: the container was started without its GPU."""

from __future__ import annotations

from cudadoctor.testing import (
    GONE,
    Machine,
    container,
    container_without_gpu,
    device_nodes,
    fails,
    jetson,
    linux,
    passes,
    pci_card,
    skips,
    unknown_when,
    wsl,
)

RULE = "CD701"

# Docker Desktop and Docker inside WSL: the engine's machine is WSL2.
IN_WSL = {
    "system.wsl": 2,
    "system.kernel_release": "6.6.87.2-microsoft-standard-WSL2",
    "pci.gpus": [],
    "driver.module_loaded": False,
    "procfs.gpus": GONE,
}


def told(**texts: str) -> Machine:
    """A report with these error texts, and nothing else."""
    report = linux().only().set({"examination.kind": "report"})
    return report.set({f"symptom.{name}": {"text": text} for name, text in texts.items()})


def hook(stage: str, reason: str) -> Machine:
    value = {"text": f"nvidia-container-cli: {stage}: {reason}", "stage": stage, "reason": reason}
    return told().set({"symptom.container_hook_failed": value})


CASES = [
    passes("docker run --gpus all", container()),
    passes("rootless podman with a device", container("podman").set({"system.is_admin": True})),
    passes("apptainer --nv", container("apptainer")),
    passes(
        "a pod with one of eight cards",
        container("kubernetes")
        .job("kubernetes", gpus=1)
        .set(
            {
                "pci.gpus": [pci_card(f"0000:{slot:02x}:00.0", "2684", "nvidia") for slot in range(1, 9)],
                "device.nodes": device_nodes("/dev/nvidia5", "/dev/nvidiactl", "/dev/nvidia-uvm"),
            }
        ),
    ),
    passes("Docker Desktop with its GPU", container().set(IN_WSL).set({"device.nodes": device_nodes("/dev/dxg")})),
    passes("a container on a Jetson", jetson().set({"system.container": "docker"})),
    passes("/dev cannot be listed, and the driver answers", container().unknown("device.nodes")),
    passes(
        "the nodes are there, and the driver fails for another reason", container().driver_fails(18, "mismatch", 18)
    ),
    fails(
        "docker run without --gpus",
        container_without_gpu(),
        says="the host has one",
        certainty="certain",
        severity="error",
        blame="allocation",
        fix="run-container-with-gpu",
    ),
    fails(
        "a stub of NVML in the image, and still no node",
        container_without_gpu().set({"driver.nvml_library": "libnvidia-ml.so.1", "driver.nvml_error": 9}),
        certainty="certain",
    ),
    fails(
        "only a left-over /dev/nvidiactl",
        container_without_gpu().set({"device.nodes": device_nodes("/dev/nvidiactl")}),
    ),
    fails("NVIDIA_VISIBLE_DEVICES=void", container_without_gpu().set({"env.NVIDIA_VISIBLE_DEVICES": "void"})),
    fails(
        "the bus is hidden, the loaded module is not", container_without_gpu().unknown("pci.gpus"), certainty="likely"
    ),
    fails(
        "the modules are hidden, the bus is not",
        container_without_gpu().unknown("driver.module_loaded"),
        certainty="likely",
    ),
    fails(
        "apptainer without --nv: the host's nodes and none of its libraries",
        container_without_gpu("apptainer").set(
            {"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")}
        ),
        says="none of the driver's libraries",
        certainty="likely",
        fix="run-container-with-gpu",
    ),
    fails("Docker Desktop without --gpus", container_without_gpu().set(IN_WSL), says="/dev/dxg", certainty="likely"),
    fails(
        "a container on a Jetson without its runtime",
        jetson().set({"system.container": "docker", "device.nodes": []}),
        says="Jetson",
        certainty="likely",
    ),
    fails(
        "Docker knows no GPUs",
        told(container_toolkit_missing='could not select device driver "" with capabilities: [[gpu]].'),
        says="Container Toolkit is missing",
        severity="error",
        certainty="likely",
        blame="machine",
        fix="set-up-container-toolkit",
    ),
    fails("Docker knows no runtime", told(container_toolkit_missing="unknown or invalid runtime name: nvidia")),
    fails("control groups", told(container_cgroup_denied="failed to add device rules"), says="too old"),
    fails(
        "the toolkit finds no driver and the host has one",
        hook("initialization error", "load library failed: libnvidia-ml.so.1").set({"driver.smi_version": "550.54.14"}),
        says="Docker Desktop",
        certainty="likely",
    ),
    fails("the toolkit finds no driver", hook("initialization error", "load library failed"), certainty="possible"),
    fails("an image with a driver in it", hook("mount error", "file creation failed: /x: file exists"), fix="manual"),
    fails("ldconfig", hook("ldcache error", "process /sbin/ldconfig failed with error code: 1"), says="ldconfig"),
    fails("a GPU that is not there", hook("device error", "1: unknown device"), says="does not have"),
    fails(
        "the banner of NVIDIA's images",
        told(container_driver_not_detected="The NVIDIA Driver was not detected."),
        certainty="likely",
        blame="allocation",
        fix="run-container-with-gpu",
    ),
    fails(
        "singularity without --nv",
        told(driver_insufficient="driver version is insufficient").set({"container.gpus_requested": False}),
        says="does not ask for one",
        certainty="likely",
        fix="run-container-with-gpu",
    ),
    fails(
        "a prompt inside a container, and no driver",
        told(no_driver_found="Found no NVIDIA driver on your system").set({"system.container": "docker"}),
        certainty="likely",
    ),
    fails(
        "a compose file that says nothing of GPUs",
        told(no_driver_found="Found no NVIDIA driver").set({"container.image": "pytorch/pytorch:2.6.0-cuda12.4"}),
        certainty="possible",
    ),
    skips(
        "the command asks for them: something else is wrong",
        told(no_driver_found="Found no NVIDIA driver").set({"container.gpus_requested": True}),
    ),
    skips("the driver is too old for the image: CD711", hook("requirement error", "unsatisfied condition: cuda>=12.8")),
    skips("a prestart hook failed, and no more is told", told(container_toolkit_missing="error running prestart hook")),
    skips("a report without a container", told(no_driver_found="Found no NVIDIA driver")),
    skips("a machine of its own", linux()),
    skips("WSL itself", wsl()),
    skips(
        "the host has no card",
        container_without_gpu().set({"pci.gpus": [], "procfs.gpus": GONE, "driver.module_loaded": False}),
    ),
    skips(
        "the host's cards are lent to virtual machines",
        container_without_gpu().set(
            {"pci.gpus": [pci_card("0000:01:00.0", "2684", "vfio-pci")], "driver.module_loaded": False}
        ),
    ),
    skips("the host has no driver: for CD101", container_without_gpu().set({"driver.module_loaded": False})),
    unknown_when("whether this is a container", linux().unknown("system.container")),
    unknown_when("/dev cannot be listed", container_without_gpu().unknown("device.nodes")),
    unknown_when("a sandbox that hides the host", container_without_gpu().unknown("pci.gpus", "driver.module_loaded")),
    fails(
        "the engine finds no nvidia-smi to run",
        told(container_without_smi="executable file `nvidia-smi` not found", smi_not_found="not found"),
        says="nvidia-smi, which the engine brings",
        certainty="likely",
        fix="run-container-with-gpu",
    ),
    fails(
        "apptainer was given --nv and finds no driver",
        told(apptainer_no_nv="Could not find any nv files on this host!").set({"container.gpus_requested": True}),
        says="finds nothing of a driver",
        certainty="possible",
        fix="manual",
    ),
]
