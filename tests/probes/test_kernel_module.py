from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.kernel_module import PROBE

from .tables import ABSENT, DENIED, Unknown, check, machine

PROPRIETARY = [
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Thu Jan  1 00:00:00 UTC 2024",
    "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)",
]
OPEN = [
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)",
    "GCC version:  gcc version 13.3.0",
]
MODULES = [
    "nvidia_uvm 4694016 2 - Live 0x0000000000000000 (POE)",
    "nvidia 56717312 66 nvidia_uvm, Live 0x0000000000000000 (POE)",
    "video 73728 0 - Live 0x0000000000000000",
]
INFORMATION = [
    "Model: \t\t NVIDIA GeForce RTX 3090",
    "GPU UUID: \t GPU-11111111-0000-4000-8000-000000000000",
    "Bus Location: \t 0000:01:00.0",
    "Device Minor: \t 0",
    "GPU Firmware: \t 535.183.01",
    "GPU Excluded:\t No",
]

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "the proprietary module",
        {
            "files": {
                "/proc/modules": MODULES,
                "/sys/module/nvidia/version": "535.183.01\n",
                "/proc/driver/nvidia/version": PROPRIETARY,
                "/proc/driver/nvidia/gpus/0000:01:00.0/information": INFORMATION,
            }
        },
        {
            "kernel.modules": ["nvidia_uvm", "nvidia", "video"],
            "driver.module_loaded": True,
            "driver.module_version": "535.183.01",
            "driver.procfs_version": "535.183.01",
            "driver.module_flavour": "proprietary",
            "procfs.gpus": [
                {
                    "address": "0000:01:00.0",
                    "model": "NVIDIA GeForce RTX 3090",
                    "minor": 0,
                    "firmware": "535.183.01",
                    "excluded": False,
                }
            ],
        },
    ),
    (
        "the open module",
        {
            "files": {
                "/proc/modules": "nvidia 14405632 2 - Live 0x0000000000000000 (OE)\n",
                "/sys/module/nvidia/version": "580.95.05\n",
                "/proc/driver/nvidia/version": OPEN,
            }
        },
        {"driver.module_version": "580.95.05", "driver.module_flavour": "open", "procfs.gpus": ABSENT},
    ),
    (
        "no module of NVIDIA's",
        {"files": {"/proc/modules": "nouveau 2445312 4 - Live 0x0000000000000000\n"}},
        {
            "kernel.modules": ["nouveau"],
            "driver.module_loaded": False,
            "driver.module_version": ABSENT,
            "driver.procfs_version": ABSENT,
            "driver.module_flavour": ABSENT,
            "procfs.gpus": ABSENT,
        },
    ),
    (
        "a kernel that was built without modules",
        {"folders": {"/sys/module": ["kernel", "tcp_cubic"]}},
        {
            "kernel.modules": Unknown("does not list"),
            "driver.module_loaded": False,
            "driver.module_version": ABSENT,
            "driver.module_flavour": ABSENT,
        },
    ),
    (
        "a sandbox that shows neither modules nor /sys",
        {},
        {
            "kernel.modules": Unknown("does not list"),
            "driver.module_loaded": Unknown("neither"),
            "driver.module_version": Unknown("neither"),
            "driver.module_flavour": Unknown("neither"),
            "driver.procfs_version": ABSENT,
        },
    ),
    (
        "no right to read the list, and /sys shows the module",
        {"files": {"/proc/modules": DENIED, "/sys/module/nvidia/version": "535.183.01\n"}},
        {
            "kernel.modules": Unknown("permission denied"),
            "driver.module_loaded": True,
            "driver.module_version": "535.183.01",
        },
    ),
    (
        "a container without /sys: the module's own licence mark tells the flavour",
        {"files": {"/proc/modules": MODULES}},
        {
            "driver.module_loaded": True,
            "driver.module_version": Unknown("/sys does not show its version"),
            "driver.module_flavour": "proprietary",
        },
    ),
    (
        "a version that is none",
        {"files": {"/proc/modules": MODULES, "/sys/module/nvidia/version": "unreadable\n"}},
        {"driver.module_version": Unknown("not a driver version")},
    ),
    (
        "a card whose file cannot be read is a card all the same",
        {"files": {"/proc/driver/nvidia/gpus/0000:01:00.0/information": DENIED}},
        {
            "procfs.gpus": [
                {"address": "0000:01:00.0", "model": None, "minor": None, "firmware": None, "excluded": None}
            ],
        },
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_kernel_module(title: str, sections: dict[str, Any], expected: dict[str, Any]) -> None:
    check(PROBE, machine(**sections), expected)


def test_no_uuid_is_kept() -> None:
    files = {"/proc/driver/nvidia/gpus/0000:01:00.0/information": INFORMATION}
    facts = check(PROBE, machine(files=files), {})
    assert "GPU-" not in str(facts)
