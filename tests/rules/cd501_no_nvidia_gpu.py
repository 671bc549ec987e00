"""CD501: is there an NVIDIA GPU at all?"""

from __future__ import annotations

from cudadoctor.model import known
from cudadoctor.testing import (
    GONE,
    container,
    container_without_gpu,
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

RULE = "CD501"

LENT = linux().no_driver().set({"pci.gpus": [pci_card("0000:01:00.0", "2684", "vfio-pci")]})
EIGHT = linux()
for position in range(8):
    EIGHT = EIGHT.gpu("NVIDIA H100 80GB HBM3", "9.0", 80, device_id="2330", index=position)
GB10 = (
    linux()
    .gpu("NVIDIA GB10", "12.1", device_id="2e12")
    .unknown("gpu.0.memory_total", "gpu.0.memory_free", "gpu.0.memory_used", reason="NVML: Not Supported")
)

CASES = [
    passes("a workstation", linux(), says="NVIDIA GeForce RTX 4090"),
    passes("eight equal cards are named once", EIGHT, says="8x NVIDIA H100 80GB HBM3"),
    passes("no driver: the bus shows the card", linux().no_driver(), says="NVIDIA GeForce RTX 4090"),
    passes("a laptop whose card sleeps (D3cold) is still on the bus", linux().not_loaded()),
    passes("a GB10 tells no memory", GB10, says="GB10"),
    passes("a card of two is lent to a virtual machine", linux().display_card("128b", "vfio-pci"), says="RTX 4090"),
    passes("a container without its GPU sees the host's bus", container_without_gpu()),
    passes("only a device node tells", container().only("system.os", "device.nodes"), says="/dev/nvidia0"),
    passes("WSL", wsl()),
    passes(
        "WSL: the driver does not answer, and Windows' library is there",
        wsl().driver_fails(9, "no-driver", 9),
        says="Windows' NVIDIA driver",
    ),
    passes("Windows", windows(), says="RTX 4070"),
    passes("Windows without a driver", windows().no_driver(), says="RTX 4070"),
    passes("a Jetson has it on the chip", jetson(), says="Jetson"),
    passes(
        "a container on a Jetson, without its GPU",
        jetson().set({"system.container": "docker", "device.nodes": []}).unknown("system.jetson"),
    ),
    passes("planning for a machine that has one", linux().no_gpu().set({"request.gpu": True})),
    skips(
        "a build for ROCm beside a card of AMD's",
        report().says("other_gpu_named", "AMD Radeon RX 7900 XTX").set({"torch.version": "2.8.0+rocm6.4"}),
    ),
    fails(
        "a notebook in Colab",
        report()
        .says("hosted_notebook_named", "I run it in Colab")
        .says("smi_not_found", "/bin/bash: line 1: nvidia-smi: command not found"),
        says="lent without a GPU",
        certainty="likely",
        blame="allocation",
    ),
    fails(
        "a laptop with Intel graphics",
        linux().no_gpu().set({"pci.other_display": ["8086"]}),
        says=["no NVIDIA GPU", "it has an Intel one"],
        certainty="certain",
        severity="error",
        blame="machine",
    ),
    fails("an AMD card", linux().no_gpu().set({"pci.other_display": ["1002", "8086"]}), says="an AMD and an Intel"),
    fails(
        "the driver is installed: the card may be switched off",
        linux()
        .no_gpu()
        .set(
            {
                "pci.other_display": ["8086"],
                "driver.packages": [{"name": "nvidia-driver-580-open", "version": None}],
                "driver.smi_path": "/usr/bin/nvidia-smi",
            }
        ),
        says=["though a driver is installed", "is the card switched off?"],
        fix="manual",
    ),
    fails("the host of virtual machines", LENT, says=["held for virtual machines (vfio-pci)", "a guest can"]),
    fails(
        "Windows with AMD",
        windows()
        .no_gpu()
        .set(
            {"windows.gpus": [{"name": "AMD Radeon", "driver_version": None, "vendor_id": "1002", "device_id": "744c"}]}
        ),
        says="it has an AMD one",
    ),
    fails("macOS", linux().no_gpu().set({"system.os": "darwin", "pci.gpus": GONE}), says="macOS has no CUDA"),
    fails(
        "the login node of a cluster",
        linux().no_gpu().set({"scheduler.kind": "slurm"}),
        says=["in no job", "inside a job"],
        blame="allocation",
        fix="request-gpu",
    ),
    # Slurm's daemon runs prologs and health checks on its nodes, outside of any job.
    fails(
        "a node whose cards are gone, seen by a health check",
        linux().no_gpu().set({"scheduler.kind": "slurm", "scheduler.node": known("n7", "$SLURMD_NODENAME")}),
        says="this machine has no NVIDIA GPU",
        blame="machine",
    ),
    fails(
        "the same, seen by a cron job",
        linux()
        .no_gpu()
        .set({"scheduler.kind": "slurm", "driver.packages": [{"name": "nvidia-driver-580", "version": None}]}),
        says="are the cards off the bus",
        blame="machine",
    ),
    fails("a job on a node without cards", linux().no_gpu().job(), says="no NVIDIA GPU"),
    fails("a board without PCI, library or node", linux().no_gpu().set({"pci.gpus": GONE}), says="no NVIDIA GPU"),
    unknown_when("a sandbox hides the bus", linux().no_gpu().unknown("pci.gpus", reason="/sys is empty")),
    unknown_when("WSL without Windows' libraries", wsl().no_driver(), says="Windows' driver"),
    unknown_when("WSL whose libraries could not be looked for", wsl().no_driver().unknown("driver.libcuda")),
    unknown_when("Windows' registry could not be read", windows().no_driver().unknown("windows.gpus")),
    unknown_when("nothing is known", linux().only("examination.kind")),
    fails(
        "a report about a card of another maker",
        linux()
        .only("system.arch")
        .set({"examination.kind": "report", "symptom.other_gpu_named": {"text": "can I use this with an AMD GPU?"}}),
        says="another maker",
        certainty="likely",
    ),
    fails(
        "a report about a machine of Apple's",
        report().says("apple_machine_named", "I run it on my MacBook Pro M2"),
        says="Apple's",
        certainty="likely",
    ),
    unknown_when(
        "a report about a Linux machine, written on a MacBook",
        report("linux").says("apple_machine_named", "I use ssh from my MacBook Pro"),
    ),
    unknown_when(
        "a report with what no torch on a MacBook says",
        report()
        .says("apple_machine_named", "it works on my MacBook Pro")
        .says("no_driver_found", "Found no NVIDIA driver on your system"),
    ),
    unknown_when(
        "a graphics unit of Intel's beside a torch with CUDA",
        report().says("other_gpu_named", "GPU 2: Intel UHD Graphics").set({"torch.version": "2.9.1+cu130"}),
    ),
]
