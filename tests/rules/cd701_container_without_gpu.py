"""CD701: the container was started without its GPU."""

from __future__ import annotations

from cudadoctor.testing import (
    GONE,
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
]
