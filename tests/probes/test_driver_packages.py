from __future__ import annotations

from typing import Any, Optional

import pytest

from cudadoctor.probes.driver_packages import PROBE

from .tables import ABSENT, DENIED, Unknown, check, machine

CARD = {
    "/sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n",
    "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:01:00.0/device": "0x2684\n",
}
DPKG = "/var/lib/dpkg/info"


def package(name: str, version: Optional[str] = None) -> dict[str, Any]:
    return {"name": name, "version": version}


def debian(*names: str) -> dict[str, Any]:
    return {"files": CARD, "folders": {DPKG: [*names]}}


PACKAGES: list[tuple[str, dict[str, Any], Any]] = [
    (
        "Ubuntu's packages, others passed over",
        debian(
            "bash.md5sums",
            "libnvidia-compute-535:amd64.list",
            "libnvidia-compute-535:amd64.md5sums",
            "linux-modules-nvidia-535-generic.md5sums",
            "nvidia-container-toolkit.md5sums",
            "nvidia-cuda-toolkit.md5sums",
            "nvidia-dkms-535.md5sums",
            "nvidia-driver-535-open.md5sums",
            "nvidia-settings.md5sums",
            "nvidia-utils-535.md5sums",
        ),
        [
            package("libnvidia-compute-535"),
            package("linux-modules-nvidia-535-generic"),
            package("nvidia-dkms-535"),
            package("nvidia-driver-535-open"),
            package("nvidia-utils-535"),
        ],
    ),
    (
        "Debian's packages",
        debian("libcuda1:amd64.md5sums", "nvidia-driver.md5sums", "nvidia-kernel-dkms.md5sums", "nvidia-smi.md5sums"),
        [package("libcuda1"), package("nvidia-driver"), package("nvidia-kernel-dkms"), package("nvidia-smi")],
    ),
    (
        "NVIDIA's own repository",
        debian("cuda-drivers-580.md5sums", "cuda-toolkit-13-0.md5sums", "nvidia-open-580.md5sums"),
        [package("cuda-drivers-580"), package("nvidia-open-580")],
    ),
    (
        "a package that was removed keeps its list alone",
        debian("nvidia-driver-470.list", "nvidia-driver-470.postrm"),
        [],
    ),
    (
        "Arch",
        {
            "files": CARD,
            "folders": {
                "/var/lib/pacman/local": [
                    "ALPM_DB_VERSION",
                    "linux-6.17.5.arch1-1",
                    "nvidia-open-610.43.02-3",
                    "nvidia-utils-610.43.02-3",
                ]
            },
        },
        [package("nvidia-open", "610.43.02"), package("nvidia-utils", "610.43.02")],
    ),
    (
        "Fedora with akmods",
        {
            "files": CARD,
            "folders": {
                "/var/lib/rpm": ["rpmdb.sqlite"],
                "/usr/src/akmods": ["nvidia-kmod-580.95.05-1.fc42.src.rpm", "nvidia-kmod.latest"],
            },
        },
        [package("akmod-nvidia", "580.95.05")],
    ),
    ("RPM's list is not read", {"files": CARD, "folders": {"/var/lib/rpm": ["rpmdb.sqlite"]}}, Unknown("RPM")),
    ("nobody knows the package manager", {"files": CARD}, Unknown("could not be told")),
    ("no right", {"files": CARD, "folders": {DPKG: DENIED}}, Unknown("permission denied")),
    (
        "nothing of NVIDIA is here: thousands of names are not read for that",
        {"folders": {"/sys/bus/pci/devices": [], DPKG: ["nvidia-smi.md5sums"]}},
        Unknown("not looked for"),
    ),
    (
        "WSL has no card on the bus",
        {
            "folders": {"/sys/bus/pci/devices": [], DPKG: ["nvidia-driver-535.md5sums"]},
            "files": {"/usr/lib/wsl/lib/libcuda.so.1": "x"},
        },
        [package("nvidia-driver-535")],
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), PACKAGES, ids=[case[0] for case in PACKAGES])
def test_packages(title: str, sections: dict[str, Any], expected: Any) -> None:
    check(PROBE, machine(**sections), {"driver.packages": expected})


UNIT = {"/usr/lib/systemd/system/nvidia-fabricmanager.service": "[Unit]\n"}


def systemctl(answer: str, status: int) -> list[dict[str, Any]]:
    argv = ["systemctl", "is-active", "nvidia-fabricmanager.service"]
    return [{"argv": argv, "exit_status": status, "stdout": answer}]


SERVICE: list[tuple[str, dict[str, Any], Any]] = [
    ("it runs", {"files": UNIT, "programs": systemctl("active\n", 0)}, "running"),
    ("it failed", {"files": UNIT, "programs": systemctl("failed\n", 3)}, "stopped"),
    ("it was not started", {"files": UNIT, "programs": systemctl("inactive\n", 3)}, "stopped"),
    ("a container without systemd", {"files": UNIT, "programs": systemctl("", 1)}, Unknown("systemd")),
    ("no systemctl", {"files": UNIT}, Unknown("systemctl")),
    (
        "systemd does not answer",
        {
            "files": UNIT,
            "programs": [{"argv": ["systemctl", "is-active", "nvidia-fabricmanager.service"], "timed_out": True}],
        },
        Unknown("timed out"),
    ),
    ("not installed", {}, ABSENT),
]


@pytest.mark.parametrize(("title", "sections", "expected"), SERVICE, ids=[case[0] for case in SERVICE])
def test_fabric_manager(title: str, sections: dict[str, Any], expected: Any) -> None:
    check(PROBE, machine(**sections), {"driver.fabric_manager": expected})
