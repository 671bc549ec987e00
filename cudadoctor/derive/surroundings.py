"""Where the process runs: on the machine itself, in a container, in WSL, in a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

# Containers that share the host's kernel and see their own /dev and /lib.
_CONTAINERS = ("docker", "podman", "apptainer", "singularity", "kubernetes", "containerd", "lxc", "systemd-nspawn")


def in_container(case: Case) -> bool:
    """Whether the process surely runs in a container; a kind that is unknown or absent counts as no."""
    return case.value("system.container") in _CONTAINERS or case.value("system.container") == "container"


def in_wsl(case: Case) -> bool:
    return case.fact("system.wsl").is_known


def on_own_linux(case: Case) -> bool:
    """Whether kernel, modules and packages that are seen are those of a Linux machine of its own: no container, no
    WSL, no Jetson (whose driver is part of its system image)."""
    return (
        case.value("system.os") == "linux"
        and not in_container(case)
        and not in_wsl(case)
        and not case.fact("system.jetson").is_known
    )


def nvidia_nodes(case: Case) -> list[dict[str, Any]]:
    """The device nodes of GPUs: /dev/nvidia0, /dev/nvidia1, ... /dev/nvidiactl is not among them: NVIDIA's libraries
    create it as root, so it proves nothing."""
    return [
        node
        for node in case.value("device.nodes", [])
        if str(node.get("path", "")).startswith("/dev/nvidia") and str(node["path"])[len("/dev/nvidia") :].isdigit()
    ]


def driver_software(case: Case) -> bool:
    """Whether anything of a driver is installed: packages, libraries, nvidia-smi, or module files."""
    return bool(
        case.value("driver.packages")
        or case.fact("driver.library_version").is_known
        or case.fact("driver.smi_path").is_known
        or case.fact("driver.nvml_library").is_known
        or case.value("kernel.nvidia_module_files")
        or case.value("kernel.dkms")
    )
