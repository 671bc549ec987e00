"""Facts of the other systems: Windows has no kernel modules, and Linux no page file. They are absent, not unknown."""

from __future__ import annotations

from typing import Any

from cudadoctor.model.fact import Fact, absent
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.system.port import System

_LINUX_ONLY = (
    "system.distribution",
    "system.distribution_like",
    "system.distribution_version",
    "system.wsl",
    "system.jetson",
    "system.container",
    "kernel.modules",
    "kernel.command_line",
    "kernel.nouveau_blacklisted_by",
    "kernel.nvidia_blacklisted_by",
    "kernel.secure_boot",
    "kernel.lockdown",
    "kernel.headers",
    "kernel.installed",
    "kernel.nvidia_module_files",
    "kernel.dkms",
    "kernel.log_events",
    "driver.module_loaded",
    "driver.module_version",
    "driver.procfs_version",
    "driver.module_flavour",
    "driver.library_version",
    "driver.libcuda",
    "driver.packages",
    "driver.fabric_manager",
    "device.nodes",
    "pci.gpus",
    "pci.other_display",
    "procfs.gpus",
    "memory.swap_devices",
    "memory.cgroup_limit",
    "memory.shm_size",
    "memory.shm_free",
)

_WINDOWS_ONLY = (
    "system.windows_build",
    "driver.windows_version",
    "memory.commit_limit",
    "memory.page_file",
    "windows.power_plan",
    "windows.power_plan_name",
    "windows.power_plan_personality",
    "windows.power_plans",
    "windows.power_overlay",
    "windows.battery",
    "windows.on_battery",
    "windows.hardware_scheduling",
    "windows.tdr_delay",
    "windows.tdr_level",
    "windows.vc_runtime",
    "windows.long_paths",
    "windows.gpus",
)


def look(system: System) -> dict[str, Fact[Any]]:
    source = f"{system.platform} has none"
    facts: dict[str, Fact[Any]] = {}
    if system.platform != "linux":
        facts.update((name, absent(source)) for name in _LINUX_ONLY)
    if system.platform != "windows":
        facts.update((name, absent(source)) for name in _WINDOWS_ONLY)
    return facts


PROBE = Probe("other_systems", EVERYWHERE, (*_LINUX_ONLY, *_WINDOWS_ONLY), look)
