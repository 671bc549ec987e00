"""What is true of a machine once its driver works: the facts that driver steps declare as their effect."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.plan.context import Context

# Modules of the driver, those that use others first.
MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")


def working_effect(
    context: Context, version: Optional[str], flavour: Optional[str], cuda: Optional[str]
) -> dict[str, Any]:
    """The facts of a machine whose driver works: module loaded, library of the same version, NVML and nvidia-smi
    answering, every GPU bound to it. Only sources that this machine has are spoken of."""
    facts = context.facts
    effect = answering_effect(context, version, cuda)
    if context.os != "linux" or context.is_wsl:
        return effect
    gone = {*MODULES, *context.matrix.kernel_modules("nouveau")}
    modules = [module for module in facts.value("kernel.modules", []) if module not in gone]
    kernel = facts.value("system.kernel_release", "")
    effect.update(
        {
            "driver.module_loaded": True,
            "kernel.modules": [*MODULES, *modules],
            "kernel.nvidia_blacklisted_by": [],
            "kernel.log_events": [],
            "pci.gpus": [dict(entry, driver="nvidia") for entry in facts.value("pci.gpus", [])],
            "device.nodes": nodes_effect(context),
        }
    )
    if version is not None:
        effect["driver.module_version"] = version
        effect["driver.procfs_version"] = version
        effect["driver.libcuda"] = [
            {
                "path": "/usr/lib/libcuda.so.1",
                "real_path": f"/usr/lib/libcuda.so.{version}",
                "found_by": "ld.so.cache",
                "kind": "driver",
                "version": version,
            }
        ]
        effect["kernel.nvidia_module_files"] = [
            {
                "kernel": kernel,
                "path": f"/lib/modules/{kernel}/updates/nvidia.ko",
                "version": version,
                "flavour": flavour,
            }
        ]
        effect["kernel.dkms"] = (
            [{"version": version, "kernel": kernel, "arch": facts.value("system.arch", ""), "status": "installed"}]
            if facts.value("kernel.dkms")
            else facts.value("kernel.dkms", [])
        )
    if flavour is not None:
        effect["driver.module_flavour"] = flavour
    return effect


def answering_effect(context: Context, version: Optional[str], cuda: Optional[str] = None) -> dict[str, Any]:
    """NVML and nvidia-smi answer, with this version where it is known."""
    facts = context.facts
    effect: dict[str, Any] = {
        "driver.nvml_error": None,
        "driver.nvml_error_text": None,
        "driver.nvml_unresponsive": False,
        "driver.smi_failure": None,
        "driver.smi_failure_text": None,
        "driver.smi_exit": 0,
    }
    if version is not None:
        for name in ("nvml_version", "nvml_library_version", "smi_version", "smi_tool_version", "library_version"):
            effect[f"driver.{name}"] = version
        effect["driver.smi_library_version"] = None
        effect["driver.nvml_library"] = "libnvidia-ml.so.1"
        effect["driver.smi_path"] = facts.value("driver.smi_path", "/usr/bin/nvidia-smi")
    if cuda is not None:
        effect["driver.nvml_cuda"] = cuda
        effect["driver.smi_cuda"] = cuda
    effect.update(_gpus_effect(context))
    return effect


def _gpus_effect(context: Context) -> dict[str, Any]:
    """NVML lists what the PCI bus shows."""
    effect: dict[str, Any] = {}
    found = context.gpus
    if context.facts["gpu.count"].is_known or not found:
        return {}
    effect["gpu.count"] = len(found)
    for index, gpu in enumerate(found):
        effect[f"gpu.{index}.name"] = gpu.label
        effect[f"gpu.{index}.lost"] = False
        if gpu.pci_address:
            effect[f"gpu.{index}.pci_address"] = gpu.pci_address
        if gpu.pci_device_id:
            effect[f"gpu.{index}.pci_device_id"] = gpu.pci_device_id
        if gpu.compute_capability.is_known:
            effect[f"gpu.{index}.compute_capability"] = gpu.compute_capability.get()
    return effect


def nodes_effect(context: Context) -> list[dict[str, Any]]:
    """The device nodes as they are where everything works: there and usable."""
    nodes = [dict(node, usable=True) for node in context.facts.value("device.nodes", [])]
    have = {node.get("path") for node in nodes}
    count = max(1, len(context.gpus))
    wanted = ["/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{index}" for index in range(count))]
    for path in wanted:
        if path not in have:
            node = {"path": path, "mode": "666", "uid": 0, "gid": 0, "group": "root", "usable": True, "device": "195:0"}
            nodes.append(node)
    return nodes
