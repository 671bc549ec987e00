"""CD110: CUDA has no device node to open."""

from __future__ import annotations

from cudadoctor.testing import (
    container,
    container_without_gpu,
    device_nodes,
    fails,
    jetson,
    linux,
    passes,
    pci_card,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD110"

WITHOUT_UVM = {"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl")}
NO_NODES = {"device.nodes": []}
EIGHT = container("kubernetes").set(
    {"pci.gpus": [pci_card(f"0000:{slot:02x}:00.0", "2684", "nvidia") for slot in range(1, 9)]}
)

CASES = [
    passes("the nodes are there", linux()),
    passes("nvidia-uvm is made at the first use of CUDA", linux().set(WITHOUT_UVM)),
    passes("no node yet, and the driver answers: its library makes them", linux().set(NO_NODES)),
    passes("NVML opens the cards, though /dev could not be listed", linux().unknown("device.nodes")),
    fails(
        "a server after its start: nobody has made them, and the user may not",
        linux().driver_fails(9, "no-driver", 9).set(NO_NODES),
        says="/dev/nvidia0 does not exist",
        certainty="likely",
        severity="error",
        blame="machine",
        fix="create-device-nodes",
    ),
    fails(
        "a container without nvidia-uvm: nvidia-smi works and CUDA does not",
        container().set(WITHOUT_UVM),
        says=["/dev/nvidia-uvm is not in this container", "nvidia-smi works"],
        certainty="certain",
        blame="allocation",
        fix="create-device-nodes",
    ),
    fails("a Proxmox container (LXC) without nvidia-uvm", container("lxc").set(WITHOUT_UVM), blame="allocation"),
    fails(
        "Apptainer shows the host's own /dev: the host has not loaded nvidia-uvm",
        container("apptainer").set(WITHOUT_UVM),
        blame="machine",
        fix="manual",
    ),
    fails(
        "a container with a card and without nvidiactl",
        container()
        .driver_fails(9, "no-driver", 9)
        .set({"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidia-uvm")}),
        says="/dev/nvidiactl is not in this container",
    ),
    passes(
        "a pod with one of eight cards",
        EIGHT.set({"device.nodes": device_nodes("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")}),
    ),
    passes(
        "a slice of a card (MIG) in a container",
        container().set(
            {
                "device.nodes": device_nodes(
                    "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"
                )
            }
        ),
    ),
    skips("a container without its GPU: for CD701", container_without_gpu()),
    skips("the module is not loaded", linux().not_loaded()),
    skips("no card", linux().no_gpu()),
    skips("WSL has /dev/dxg", wsl()),
    skips(
        "Docker Desktop: a container in WSL2",
        container().set({"system.wsl": 2, "device.nodes": device_nodes("/dev/dxg")}),
    ),
    skips("a Jetson has nodes of its own", jetson()),
    skips("Windows", windows()),
    unknown_when("/dev could not be listed", linux().driver_fails(9, "no-driver", 9).unknown("device.nodes")),
    unknown_when(
        "nobody knows of the module",
        linux().driver_fails(9, "no-driver", 9).set(NO_NODES).unknown("driver.module_loaded"),
    ),
    fails(
        "a report: a container without nvidia-uvm, in which CUDA fails",
        report().set({"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl"), "torch.cuda_available": False}),
        says="/dev/nvidia-uvm",
        certainty="likely",
        fix="manual",
    ),
    passes(
        "a report: nobody says that CUDA fails",
        report().set({"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl")}),
    ),
    unknown_when("a report: half a listing", report().set({"device.nodes": device_nodes("/dev/nvidia0")})),
]
