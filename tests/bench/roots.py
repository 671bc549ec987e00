"""A fake machine around an unmodified command: another /proc, /sys, /dev, /etc, laid over the real paths."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from .parts import clean_environ, missing_part

_ENTER = Path(__file__).with_name("enter_root.py")
_NOT_ALLOWED = 98


@dataclass(frozen=True)
class Link:
    """A symbolic link; the target need not exist."""

    target: str


@dataclass(frozen=True)
class Device:
    """A character device. Opening it fails where no driver has its number, as on a machine without GPU."""

    major: int
    minor: int
    mode: int = 0o666


@dataclass(frozen=True)
class Shm:
    """A real tmpfs of so many bytes, for dev/shm."""

    size: int


@dataclass(frozen=True)
class File:
    """A file with its own permissions."""

    content: Union[str, bytes]
    mode: int = 0o644


EMPTY: dict[str, object] = {}
"""An empty folder."""

Entry = Union[str, bytes, None, Link, Device, Shm, File, dict[str, object]]

# A bare machine without a GPU, whatever the real one is: no NVIDIA device or module, no container, no WSL.
BARE: dict[str, Entry] = {
    "/.dockerenv": None,
    "/run/.containerenv": None,
    "/run/systemd/container": None,
    "/sys/bus/pci/devices": EMPTY,
    "/sys/module/nvidia": None,
    "/sys/module/nvidia_uvm": None,
    "/sys/module/nouveau": None,
    "/proc/driver/nvidia": None,
    "/proc/modules": "ext4 1003520 1 - Live 0x0000000000000000\n",
    "/proc/1/environ": "HOME=/\0TERM=linux\0",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/etc/nv_tegra_release": None,
    "/dev/dxg": None,
    "/dev/nvidiactl": None,
    "/dev/nvidia0": None,
    "/dev/nvidia-uvm": None,
}


def pci_gpu(
    slot: str = "0000:01:00.0",
    device: str = "0x2204",
    *,
    driver: str | None = "nvidia",
    class_: str = "0x030000",
    vendor: str = "0x10de",
    speed: str = "16.0 GT/s PCIe",
    width: str = "16",
) -> dict[str, Entry]:
    """The /sys/bus/pci entries of one card. driver None: no driver is bound to it."""
    base = f"/sys/bus/pci/devices/{slot}"
    uevent = (
        (f"DRIVER={driver}\n" if driver else "")
        + f"PCI_CLASS={class_[2:].lstrip('0').upper()}\nPCI_ID={vendor[2:].upper()}:{device[2:].upper()}\n"
        + f"PCI_SLOT_NAME={slot}\n"
    )
    entries: dict[str, Entry] = {
        f"{base}/vendor": vendor + "\n",
        f"{base}/device": device + "\n",
        f"{base}/class": class_ + "\n",
        f"{base}/uevent": uevent,
        f"{base}/current_link_speed": speed + "\n",
        f"{base}/max_link_speed": "16.0 GT/s PCIe\n",
        f"{base}/current_link_width": width + "\n",
        f"{base}/max_link_width": "16\n",
    }
    if driver:
        entries[f"{base}/driver"] = Link(f"../../../../bus/pci/drivers/{driver}")
    return entries


def nvidia_module(version: str = "535.183.01", *, open_: bool = False) -> dict[str, Entry]:
    """A loaded NVIDIA kernel module and its device nodes."""
    if open_:
        text = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (builder@host)\n"
    else:
        text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Sun May 12 19:39:15 UTC 2024\n"
    taint = "OE" if open_ else "POE"
    return {
        "/proc/driver/nvidia/version": text + "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04) \n",
        "/proc/modules": (
            f"nvidia_uvm 1523712 0 - Live 0x0000000000000000 ({taint})\n"
            f"nvidia_modeset 1306624 0 - Live 0x0000000000000000 ({taint})\n"
            f"nvidia 56717312 2 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 ({taint})\n"
        ),
        "/sys/module/nvidia/version": version + "\n",
        "/sys/module/nvidia/initstate": "live\n",
        "/dev/nvidiactl": Device(195, 255),
        "/dev/nvidia0": Device(195, 0),
        "/dev/nvidia-uvm": Device(511, 0),
    }


def nouveau() -> dict[str, Entry]:
    """nouveau is loaded; give the card `driver="nouveau"` as well."""
    return {
        "/proc/modules": (
            "nouveau 2445312 4 - Live 0x0000000000000000\nmxm_wmi 16384 1 nouveau, Live 0x0000000000000000\n"
        ),
        "/sys/module/nouveau/initstate": "live\n",
    }


def _leaf(entry: Entry) -> dict[str, object]:
    if entry is None:
        return {"absent": True}
    if isinstance(entry, dict):
        return {"folder": True}
    if isinstance(entry, Link):
        return {"link": entry.target}
    if isinstance(entry, Device):
        return {"device": [entry.major, entry.minor], "mode": entry.mode}
    if isinstance(entry, Shm):
        return {"shm": entry.size}
    content, mode = (entry.content, entry.mode) if isinstance(entry, File) else (entry, 0o644)
    data = content.encode() if isinstance(content, str) else content
    return {"file": base64.b64encode(data).decode(), "mode": mode}


def specification(*machines: Mapping[str, Entry], bare: bool = True) -> dict[str, dict[str, object]]:
    """The machines laid over each other, the last first, over the bare machine (or the real one)."""
    merged: dict[str, Entry] = dict(BARE) if bare else {}
    for machine in machines:
        for path, entry in machine.items():
            path = "/" + path.strip("/")
            for other in list(merged):
                if path.startswith(other + "/"):  # below something that was absent: a folder with only this in it
                    merged[other] = EMPTY
                elif other.startswith(path + "/"):
                    del merged[other]
            merged[path] = entry
    return {path: _leaf(entry) for path, entry in merged.items()}


class FakeRoot:
    """Runs commands on a fake machine; see `fixtures.fake_root`."""

    def __init__(self, folder: Path, spec: Mapping[str, object]) -> None:
        self._file = folder / "machine.json"
        self._file.write_text(json.dumps(spec))

    def command(self, *arguments: str) -> list[str]:
        """The whole command line, for a test that starts it in its own way."""
        return [sys.executable, "-I", "-S", str(_ENTER), str(self._file), *arguments]

    def run(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        cwd: str | os.PathLike[str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command there. env: laid over a clean environment."""
        done = subprocess.run(
            self.command(*arguments),
            env=clean_environ(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd,
        )
        if done.returncode == _NOT_ALLOWED:
            missing_part("mount namespaces", f"Run as root or allow user namespaces ({done.stderr.strip()})")
        return done
