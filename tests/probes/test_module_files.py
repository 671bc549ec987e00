from __future__ import annotations

from base64 import b64encode
from struct import pack
from typing import Any, Optional

import pytest

from cudadoctor.probes.module_files import PROBE

from .tables import ABSENT, DENIED, KERNEL, Unknown, check, machine

OLD = "6.8.0-45-generic"
TREE = "/var/lib/dkms/nvidia"


def module(version: str, licence: str) -> dict[str, Any]:
    """An uncompressed kernel module: an ELF file with no more than a .modinfo section."""
    info = f"license={licence}\0version={version}\0vermagic={KERNEL} SMP\0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    names_at, info_at = 64, 64 + len(names)
    table_at = info_at + len(info)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table_at, 0, 64, 0, 0, 64, 3, 2)

    def row(name: int, at: int, size: int) -> bytes:
        return pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0)

    table = row(0, 0, 0) + row(1, info_at, len(info)) + row(10, names_at, len(names))
    return {"base64": b64encode(header + names + info + table).decode()}


def file(kernel: str, path: str, version: Optional[str] = None, flavour: Optional[str] = None) -> dict[str, Any]:
    return {"kernel": kernel, "path": f"/lib/modules/{kernel}/{path}", "version": version, "flavour": flavour}


def dkms(version: str, kernel: Optional[str], status: str) -> dict[str, Any]:
    return {"version": version, "kernel": kernel, "arch": "x86_64" if kernel else None, "status": status}


def built(version: str, kernel: str, installed: bool) -> dict[str, Any]:
    """DKMS' tree for one version and kernel."""
    sections: dict[str, Any] = {
        "files": {f"{TREE}/{version}/{kernel}/x86_64/module/nvidia.ko.zst": ""},
        "links": {f"{TREE}/{version}/source": f"/usr/src/nvidia-{version}"},
    }
    if installed:
        sections["links"][f"{TREE}/kernel-{kernel}-x86_64"] = f"{version}/{kernel}/x86_64"
    return sections


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        for section, entries in part.items():
            whole.setdefault(section, {}).update(entries)
    return whole


CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    (
        "Ubuntu with DKMS: built and installed; the compressed module's version is DKMS' word",
        joined(
            built("535.183.01", KERNEL, installed=True),
            {"files": {f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.zst": ""}},
        ),
        [dkms("535.183.01", KERNEL, "installed")],
        [file(KERNEL, "updates/dkms/nvidia.ko.zst", "535.183.01")],
    ),
    (
        "after a kernel update: only for the old kernel",
        joined(
            built("535.183.01", OLD, installed=True),
            {
                "files": {f"/lib/modules/{OLD}/updates/dkms/nvidia.ko.zst": ""},
                "folders": {f"/lib/modules/{KERNEL}": ["kernel"]},
            },
        ),
        [dkms("535.183.01", OLD, "installed")],
        [file(OLD, "updates/dkms/nvidia.ko.zst", "535.183.01")],
    ),
    (
        "built, and not installed",
        built("535.183.01", KERNEL, installed=False),
        [dkms("535.183.01", KERNEL, "built")],
        [],
    ),
    (
        "added, and never built",
        {"links": {f"{TREE}/580.95.05/source": "/usr/src/nvidia-580.95.05"}},
        [dkms("580.95.05", None, "added")],
        [],
    ),
    (
        "the build for the running kernel failed",
        joined(
            built("470.256.02", OLD, installed=True),
            {
                "files": {
                    f"{TREE}/470.256.02/build/make.log": [
                        f"DKMS make.log for nvidia-470.256.02 for kernel {KERNEL} (x86_64)",
                        "error: implicit declaration of function",
                    ]
                }
            },
        ),
        [dkms("470.256.02", OLD, "installed"), dkms("470.256.02", KERNEL, "failed")],
        [],
    ),
    (
        "two versions, of which one is installed",
        joined(built("535.183.01", KERNEL, installed=False), built("550.54.14", KERNEL, installed=True)),
        [dkms("535.183.01", KERNEL, "built"), dkms("550.54.14", KERNEL, "installed")],
        [],
    ),
    (
        "Debian's names; modules of others are passed over",
        {
            "links": {
                "/var/lib/dkms/nvidia-current/535.261.03/source": "/usr/src/nvidia-current-535.261.03",
                "/var/lib/dkms/nvidia-fs/2.20.5/source": "/usr/src/nvidia-fs-2.20.5",
                "/var/lib/dkms/v4l2loopback/0.12.7/source": "/usr/src/v4l2loopback-0.12.7",
            },
            "files": {
                f"/lib/modules/{KERNEL}/updates/dkms/nvidia-current.ko": module("535.261.03", "NVIDIA"),
                f"/lib/modules/{KERNEL}/updates/dkms/nvidia-current-drm.ko": "",
                f"/lib/modules/{KERNEL}/updates/dkms/nvidia-fs.ko": "",
            },
        },
        [dkms("535.261.03", None, "added")],
        [file(KERNEL, "updates/dkms/nvidia-current.ko", "535.261.03", "proprietary")],
    ),
    (
        "the open module tells its flavour by its licence",
        {"files": {f"/lib/modules/{KERNEL}/extra/nvidia.ko": module("580.95.05", "Dual MIT/GPL")}},
        ABSENT,
        [file(KERNEL, "extra/nvidia.ko", "580.95.05", "open")],
    ),
    (
        "Ubuntu's signed modules, Fedora's akmods, SUSE's",
        {
            "files": {
                f"/lib/modules/{KERNEL}/kernel/nvidia-535/nvidia.ko": "",
                f"/lib/modules/{KERNEL}/extra/nvidia/nvidia.ko.xz": "",
                f"/lib/modules/{KERNEL}/updates/nvidia.ko.zst": "",
            }
        },
        ABSENT,
        [
            file(KERNEL, "updates/nvidia.ko.zst"),
            file(KERNEL, "extra/nvidia/nvidia.ko.xz"),
            file(KERNEL, "kernel/nvidia-535/nvidia.ko"),
        ],
    ),
    (
        "a link for weak updates that leads nowhere is no module",
        {"links": {f"/lib/modules/{KERNEL}/weak-updates/nvidia.ko": "/lib/modules/gone/extra/nvidia.ko"}},
        ABSENT,
        [],
    ),
    ("no driver was ever installed", {"folders": {f"/lib/modules/{KERNEL}": ["kernel"]}}, ABSENT, []),
    ("no right", {"folders": {"/var/lib/dkms": DENIED, "/lib/modules": DENIED}}, Unknown("denied"), Unknown("denied")),
]


@pytest.mark.parametrize(("title", "sections", "entries", "files"), CASES, ids=[case[0] for case in CASES])
def test_module_files(title: str, sections: dict[str, Any], entries: Any, files: Any) -> None:
    check(PROBE, machine(**sections), {"kernel.dkms": entries, "kernel.nvidia_module_files": files})


def test_nixos_keeps_its_modules_elsewhere() -> None:
    root = "/run/booted-system/kernel-modules/lib/modules"
    system = machine(files={f"{root}/{KERNEL}/kernel/drivers/video/nvidia.ko": module("580.95.05", "Dual MIT/GPL")})
    facts = check(PROBE, system, {})
    assert [entry["version"] for entry in facts["kernel.nvidia_module_files"].get()] == ["580.95.05"]
