from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.identity import PROBE

from .tables import ABSENT, DENIED, KERNEL, Unknown, check, machine, windows

UBUNTU = [
    'PRETTY_NAME="Ubuntu 24.04.3 LTS"',
    'NAME="Ubuntu"',
    'VERSION_ID="24.04"',
    "ID=ubuntu",
    "ID_LIKE=debian",
]
JETSON_MODEL = "NVIDIA Jetson Orin Nano Engineering Reference Developer Kit\0"

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "Ubuntu",
        {"files": {"/etc/os-release": UBUNTU}},
        {
            "system.os": "linux",
            "system.arch": "x86_64",
            "system.kernel_release": KERNEL,
            "system.distribution": "ubuntu",
            "system.distribution_like": ["debian"],
            "system.distribution_version": "24.04",
            "system.distribution_name": "Ubuntu 24.04.3 LTS",
            "system.libc": "glibc",
            "system.glibc": "2.39",
            "system.wsl": ABSENT,
            "system.jetson": ABSENT,
            "system.is_admin": False,
            "system.groups": ["user", "video"],
        },
    ),
    (
        "Arch has no version and is like nothing else",
        {"files": {"/etc/os-release": ["ID=arch", 'PRETTY_NAME="Arch Linux"']}},
        {
            "system.distribution": "arch",
            "system.distribution_like": ABSENT,
            "system.distribution_version": ABSENT,
        },
    ),
    (
        "os-release lies in its other place",
        {"files": {"/usr/lib/os-release": ["ID=fedora"]}},
        {"system.distribution": "fedora"},
    ),
    ("no os-release", {}, {"system.distribution": ABSENT, "system.distribution_name": ABSENT}),
    ("os-release cannot be read", {"files": {"/etc/os-release": DENIED}}, {"system.distribution": Unknown("denied")}),
    ("musl", {"libc": ["musl", ""]}, {"system.libc": "musl", "system.glibc": ABSENT}),
    ("nobody knows the C library", {"libc": DENIED}, {"system.libc": Unknown(), "system.glibc": Unknown()}),
    ("root", {"identity": {"uid": 0, "gid": 0, "groups": ["root"]}}, {"system.is_admin": True}),
    ("a 32-bit system", {"machine": "i686"}, {"system.arch": "x86"}),
    ("an ARM server", {"machine": "aarch64"}, {"system.arch": "aarch64"}),
    # -- WSL
    (
        "WSL 2",
        {"kernel_release": "5.15.133.1-microsoft-standard-WSL2"},
        {"system.wsl": 2},
    ),
    ("WSL 1", {"kernel_release": "4.4.0-19041-Microsoft"}, {"system.wsl": 1}),
    (
        "WSL 2 with a kernel of the user's own",
        {"kernel_release": "6.6.30-mine", "files": {"/proc/sys/fs/binfmt_misc/WSLInterop": "enabled\n"}},
        {"system.wsl": 2},
    ),
    (
        "/dev/dxg alone is a virtual machine of Hyper-V",
        {"status": {"/dev/dxg": {"device": "10:125"}}},
        {"system.wsl": ABSENT},
    ),
    ("nobody knows the kernel", {"kernel_release": DENIED}, {"system.wsl": Unknown("denied")}),
    # -- Jetson
    (
        "a Jetson",
        {
            "machine": "aarch64",
            "kernel_release": "5.15.148-tegra",
            "files": {"/etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 00000000, BOARD: generic\n"},
        },
        {"system.jetson": "R36.4.3"},
    ),
    (
        "a container on a Jetson",
        {"machine": "aarch64", "files": {"/proc/device-tree/model": JETSON_MODEL}},
        {"system.jetson": Unknown("this is a Jetson")},
    ),
    (
        "another ARM board",
        {"machine": "aarch64", "files": {"/proc/device-tree/model": "Raspberry Pi 5 Model B\0"}},
        {"system.jetson": ABSENT},
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_identity(title: str, sections: dict[str, Any], expected: dict[str, Any]) -> None:
    check(PROBE, machine(**sections), expected)


def test_windows_says_its_build_and_edition() -> None:
    system = windows(windows_calls={"version": {"build": 26100, "edition": "Windows 11 Pro"}})
    expected = {
        "system.os": "windows",
        "system.arch": "x86_64",
        "system.windows_build": 26100,
        "system.distribution_name": "Windows 11 Pro",
    }
    facts = check(PROBE, system, expected)
    assert "system.wsl" not in facts


def test_windows_without_an_edition() -> None:
    system = windows(windows_calls={"version": {"build": 26100, "edition": None}})
    check(PROBE, system, {"system.windows_build": 26100, "system.distribution_name": Unknown("edition")})
