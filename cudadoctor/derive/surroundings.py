"""Where the process runs: on the machine itself, in a container, in WSL, in a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

# Nodes of a Jetson's GPU, which is on the chip and on no PCI bus.
_JETSON_NODES = ("/dev/nvgpu", "/dev/nvhost-", "/dev/nvmap")


def in_container(case: Case) -> bool:
    """Whether the process surely runs in a container; a kind that is unknown or absent counts as no."""
    return case.fact("system.container").is_known


def in_wsl(case: Case) -> bool:
    return case.fact("system.wsl").is_known


def on_jetson(case: Case) -> bool:
    """Whether this is a Jetson, also where a container hides the release file: kernel and device nodes show through,
    and nvidia-smi calls its GPU by the driver's name ("Orin (nvgpu)")."""
    return (
        case.fact("system.jetson").is_known
        or str(case.value("system.kernel_release", "")).endswith("-tegra")
        or bool(jetson_nodes(case))
        or any("(nvgpu)" in str(entry.get("name")) for entry in case.value("smi.gpus", []))
    )


def in_job(case: Case) -> bool:
    """Whether the process surely runs in a job of a scheduler."""
    return bool(case.value("scheduler.in_job", False))


def on_own_linux(case: Case) -> bool:
    """Whether kernel, modules and packages that are seen are those of a Linux machine of its own: no container, no
    WSL, no Jetson (whose driver is part of its system image)."""
    return case.value("system.os") == "linux" and not in_container(case) and not in_wsl(case) and not on_jetson(case)


def in_report(case: Case) -> bool:
    """Whether the facts are what somebody pasted: what the text does not say is not known, not even the system."""
    return bool(case.value("examination.kind") == "report")


def built_for_rocm(case: Case) -> bool:
    """Whether torch is a build for AMD's GPUs: of those, it says that CUDA is available."""
    return case.fact("torch.hip").is_known or "+rocm" in str(case.value("torch.version") or "")


def maybe_own_linux(case: Case) -> bool:
    """`on_own_linux`, or a report that says nothing against it."""
    if in_report(case) and case.fact("system.os").is_unknown:
        return not in_container(case) and not in_wsl(case) and not on_jetson(case)
    return on_own_linux(case)


def nvidia_nodes(case: Case) -> list[dict[str, Any]]:
    """The device nodes of GPUs: /dev/nvidia0, /dev/nvidia1, ... /dev/nvidiactl is not among them: NVIDIA's libraries
    create it as root, so it proves nothing."""
    return [
        node
        for node in case.value("device.nodes", [])
        if str(node.get("path", "")).startswith("/dev/nvidia") and str(node["path"])[len("/dev/nvidia") :].isdigit()
    ]


def jetson_nodes(case: Case) -> list[dict[str, Any]]:
    """The device nodes of a Jetson's GPU."""
    return [node for node in case.value("device.nodes", []) if str(node.get("path", "")).startswith(_JETSON_NODES)]


def driver_software(case: Case) -> bool:
    """Whether anything of a driver is installed: packages, libraries, nvidia-smi, or module files."""
    return bool(
        case.value("driver.packages")
        or case.fact("driver.windows_version").is_known
        or case.fact("driver.library_version").is_known
        or case.fact("driver.smi_path").is_known
        or case.fact("driver.nvml_library").is_known
        or case.value("kernel.nvidia_module_files")
        or case.value("kernel.dkms")
    )
