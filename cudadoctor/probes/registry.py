"""The probes in the order in which they run: what cannot hang first (/proc, /sys), the environment and PATH later.

`device` must stay the first, since NVIDIA's libraries create device nodes when root loads them. `driver` asks NVML
and nvidia-smi, in processes of their own, while the others run. A name here is a module of `cudadoctor.probes` with
a `PROBE`; it is imported when it runs.
"""

from __future__ import annotations

PROBES: tuple[str, ...] = (
    "device",
    "driver",
    "other_systems",
    "kernel_module",
    "pci",
    "kernel",
    "identity",
    "memory",
    "environment",
    "scheduler",
    "container",
    "module_files",
    "driver_files",
    "driver_packages",
    "windows",
    "disks",
    "kernel_log",
    "interpreter",
    "packages",
    "torch_build",
    "pip_settings",
    "libraries",
    "toolkits",
)
