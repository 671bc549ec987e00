from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.kernel import PROBE

from .tables import ABSENT, DENIED, KERNEL, Unknown, check, machine

SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ON = {"base64": "BgAAAAE="}  # 06 00 00 00 01
OFF = {"base64": "BgAAAAA="}

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # -- parameters
    (
        "only parameters that matter are kept",
        {
            "files": {
                "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=0 ro quiet nvidia-drm.modeset=1 intel_iommu=on "
                "modprobe.blacklist=nouveau,nova_core modprobe.blacklist=pcspkr pci=realloc -- nvidia.for=init\n"
            }
        },
        {
            "kernel.command_line": [
                "nvidia-drm.modeset=1",
                "intel_iommu=on",
                "modprobe.blacklist=nouveau,nova_core",
                "pci=realloc",
            ],
            "kernel.nouveau_blacklisted_by": ["modprobe.blacklist=nouveau,nova_core"],
            "kernel.nvidia_blacklisted_by": [],
        },
    ),
    (
        "nouveau switched off by its own parameter",
        {"files": {"/proc/cmdline": "ro nouveau.modeset=0\n"}},
        {"kernel.nouveau_blacklisted_by": ["nouveau.modeset=0"]},
    ),
    (
        "no kernel mode setting at all",
        {"files": {"/proc/cmdline": "ro nomodeset\n"}},
        {"kernel.command_line": ["nomodeset"], "kernel.nouveau_blacklisted_by": ["nomodeset"]},
    ),
    (
        "nvidia is kept away, too",
        {"files": {"/proc/cmdline": "ro module_blacklist=nvidia\n"}},
        {"kernel.nvidia_blacklisted_by": ["module_blacklist=nvidia"], "kernel.nouveau_blacklisted_by": []},
    ),
    # -- files
    (
        "what Ubuntu's driver package brings",
        {
            "files": {
                "/proc/cmdline": "ro\n",
                "/usr/lib/modprobe.d/nvidia-graphics-drivers.conf": [
                    "# kept away so that the driver can have the card",
                    "blacklist nouveau",
                    "alias nouveau off",
                ],
                "/etc/modprobe.d/blacklist.conf": ["blacklist pcspkr"],
            }
        },
        {
            "kernel.nouveau_blacklisted_by": ["/usr/lib/modprobe.d/nvidia-graphics-drivers.conf"],
            "kernel.nvidia_blacklisted_by": [],
        },
    ),
    (
        "a file in /etc hides the package's of the same name",
        {
            "files": {
                "/proc/cmdline": "ro\n",
                "/etc/modprobe.d/nvidia.conf": ["# emptied by the administrator"],
                "/usr/lib/modprobe.d/nvidia.conf": ["blacklist nouveau"],
            }
        },
        {"kernel.nouveau_blacklisted_by": []},
    ),
    (
        "/lib is /usr/lib: one file, one line",
        {
            "files": {"/proc/cmdline": "ro\n", "/usr/lib/modprobe.d/n.conf": ["install nouveau /bin/false"]},
            "links": {"/lib": "usr/lib"},
        },
        {"kernel.nouveau_blacklisted_by": ["/usr/lib/modprobe.d/n.conf"]},
    ),
    (
        "options nouveau modeset=0; a comment is no blacklist; other endings are not read",
        {
            "files": {
                "/proc/cmdline": "ro\n",
                "/etc/modprobe.d/a.conf": ["options nouveau modeset=0"],
                "/etc/modprobe.d/b.conf": ["# blacklist nouveau"],
                "/etc/modprobe.d/c.conf.bak": ["blacklist nouveau"],
            }
        },
        {"kernel.nouveau_blacklisted_by": ["/etc/modprobe.d/a.conf"]},
    ),
    (
        "a laptop that was told to use its Intel graphics",
        {
            "files": {
                "/proc/cmdline": "ro\n",
                "/usr/lib/modprobe.d/blacklist-nvidia.conf": ["blacklist nvidia", "alias nvidia off"],
            }
        },
        {"kernel.nvidia_blacklisted_by": ["/usr/lib/modprobe.d/blacklist-nvidia.conf"]},
    ),
    (
        "a file that cannot be read could blacklist it",
        {"files": {"/proc/cmdline": "ro\n", "/etc/modprobe.d/a.conf": DENIED}},
        {"kernel.nouveau_blacklisted_by": Unknown("permission denied")},
    ),
    (
        "what was found stands, whatever else cannot be read",
        {"files": {"/proc/cmdline": "nouveau.modeset=0", "/etc/modprobe.d/a.conf": DENIED}},
        {
            "kernel.nouveau_blacklisted_by": ["nouveau.modeset=0"],
            "kernel.nvidia_blacklisted_by": Unknown("permission denied"),
        },
    ),
    # -- Secure Boot
    ("Secure Boot on", {"files": {SECURE_BOOT: ON}}, {"kernel.secure_boot": True}),
    ("Secure Boot off", {"files": {SECURE_BOOT: OFF}}, {"kernel.secure_boot": False}),
    ("a BIOS of old", {"folders": {"/sys/firmware": ["acpi", "dmi", "memmap"]}}, {"kernel.secure_boot": ABSENT}),
    (
        "UEFI without the variable has no Secure Boot",
        {"folders": {"/sys/firmware/efi/efivars": ["BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c"]}},
        {"kernel.secure_boot": False},
    ),
    (
        "the variables are not mounted",
        {"folders": {"/sys/firmware/efi/efivars": []}},
        {"kernel.secure_boot": Unknown("not mounted")},
    ),
    ("no right to read it", {"files": {SECURE_BOOT: DENIED}}, {"kernel.secure_boot": Unknown("permission denied")}),
    (
        "a value that is none",
        {"files": {SECURE_BOOT: {"base64": "BgAAAAc="}}},
        {"kernel.secure_boot": Unknown("EFI variable")},
    ),
    (
        "a container engine hides the firmware",
        {"folders": {"/sys/firmware": []}},
        {"kernel.secure_boot": Unknown("empty")},
    ),
    ("no /sys", {}, {"kernel.secure_boot": Unknown("not there"), "kernel.lockdown": Unknown("not mounted")}),
    # -- lockdown, headers, kernels
    (
        "lockdown follows Secure Boot",
        {"files": {"/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}},
        {"kernel.lockdown": "integrity"},
    ),
    (
        "a kernel without lockdown",
        {"folders": {"/sys/kernel/security": ["apparmor", "lsm"]}},
        {"kernel.lockdown": ABSENT},
    ),
    (
        "headers are there for the running kernel and an older one",
        {
            "links": {f"/lib/modules/{KERNEL}/build": f"/usr/src/linux-headers-{KERNEL}"},
            "folders": {
                f"/usr/src/linux-headers-{KERNEL}": ["Makefile"],
                "/lib/modules/6.8.0-45-generic": ["kernel"],
            },
        },
        {"kernel.headers": True, "kernel.installed": ["6.8.0-45-generic", KERNEL]},
    ),
    (
        "the headers' package is gone, its link is not",
        {
            "links": {f"/lib/modules/{KERNEL}/build": f"/usr/src/linux-headers-{KERNEL}"},
            "folders": {f"/lib/modules/{KERNEL}": ["kernel"]},
        },
        {"kernel.headers": False},
    ),
    ("a container without /lib/modules", {}, {"kernel.headers": False, "kernel.installed": ABSENT}),
    ("nobody knows the kernel", {"kernel_release": DENIED}, {"kernel.headers": Unknown("permission denied")}),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_kernel(title: str, sections: dict[str, Any], expected: dict[str, Any]) -> None:
    check(PROBE, machine(**sections), expected)
