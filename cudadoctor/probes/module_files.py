"""nvidia modules on disk, for every installed kernel, and what DKMS made of them.

DKMS is read from its tree, which needs no root and no program:

    /var/lib/dkms/nvidia/535.183.01/source -> /usr/src/nvidia-535.183.01                      added
    /var/lib/dkms/nvidia/535.183.01/6.8.0-79-generic/x86_64/module/nvidia.ko.zst              built
    /var/lib/dkms/nvidia/kernel-6.8.0-79-generic-x86_64 -> 535.183.01/6.8.0-79-generic/x86_64 installed
    /var/lib/dkms/nvidia/535.183.01/build/make.log                                            the last build failed
"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.probes.kernel import MODULES
from cudadoctor.system.port import System

DKMS = "/var/lib/dkms"

# NixOS has no /lib/modules; this is the running kernel's.
_NIXOS_MODULES = "/run/booted-system/kernel-modules/lib/modules"

# nvidia.ko.zst; Debian has nvidia-current.ko and nvidia-tesla-470.ko. Not nvidia-drm.ko, nvidia-uvm.ko, ...
_NAME = r"nvidia(?:-current|-tesla|-legacy|-open|-srv|-server)*(?:-[0-9]{3}(?:xx)?)?(?:-open)?"
_FILE = _NAME + r"\.ko(\.xz|\.zst|\.gz)?"

# Below /lib/modules/RELEASE: DKMS of Debian and Ubuntu; akmods, DKMS and packages of Red Hat's; SUSE's; Arch's;
# NVIDIA's own installer; Gentoo's.
_FOLDERS = (
    "updates/dkms",
    "updates",
    "extra",
    "extra/drivers/video",
    "extra/drivers/video/nvidia",
    "extramodules",
    "weak-updates",
    "weak-updates/nvidia",
    "weak-updates/updates",
    "kernel/drivers/video",
    "kernel/drivers/video/nvidia",
    "video",
)


def look(system: System) -> dict[str, Fact[Any]]:
    entries = _dkms(system)
    return {"kernel.dkms": entries, "kernel.nvidia_module_files": _files(system, entries)}


# -- files ------------------------------------------------------------------------------------------------------------


def _files(system: System, dkms: Fact[list[dict[str, Any]]]) -> Fact[list[dict[str, Any]]]:
    root = MODULES
    kernels = system.list_folder(root)
    if kernels.is_absent:
        nixos = system.list_folder(_NIXOS_MODULES)
        if nixos.is_known:
            root, kernels = _NIXOS_MODULES, nixos
    if kernels.is_unknown:
        return unknown(kernels.reason, root)
    # A compressed module does not show its version; DKMS knows what it installed.
    installed = {entry["kernel"]: entry["version"] for entry in dkms.value or () if entry["status"] == "installed"}
    found: list[dict[str, Any]] = []
    unread: Optional[Fact[Any]] = None
    for kernel in kernels.value or ():
        for folder in _folders(system, f"{root}/{kernel}"):
            listing = system.list_folder(folder)
            if listing.is_unknown:
                unread = listing
            for name in listing.value or ():
                matched = re.fullmatch(_FILE, name) if name.startswith("nvidia") else None
                if matched and system.status(f"{folder}/{name}").is_known:
                    version, flavour = _embedded(system, f"{folder}/{name}") if not matched.group(1) else (None, None)
                    found.append(
                        {
                            "kernel": kernel,
                            "path": f"{folder}/{name}",
                            "version": version or (installed.get(kernel) if folder.endswith("/dkms") else None),
                            "flavour": flavour,
                        }
                    )
    if unread is not None and not found:
        return unknown(unread.reason, unread.source)
    return known(found, root)


def _folders(system: System, root: str) -> list[str]:
    folders = [f"{root}/{folder}" for folder in _FOLDERS]
    # extra/nvidia-580xx of akmods, kernel/nvidia-535 of Ubuntu's signed modules.
    for parent in ("extra", "kernel"):
        names = system.list_folder(f"{root}/{parent}").value or ()
        folders += [f"{root}/{parent}/{name}" for name in names if name.startswith("nvidia") and ".ko" not in name]
    return folders


def _embedded(system: System, path: str) -> tuple[Optional[str], Optional[str]]:
    """Version and flavour out of the module itself, where it is not compressed."""
    from cudadoctor.parse.elf import section
    from cudadoctor.parse.kernel import OPEN, PROPRIETARY
    from cudadoctor.parse.versions import is_plain

    reader = system.open_binary(path)
    if not reader.is_known:
        return None, None
    try:
        info = section(reader.get(), ".modinfo")
        data = reader.get().read_at(info.offset, min(info.size, 1 << 16)) if info else b""
    except (OSError, ParseError):
        return None, None
    fields: dict[bytes, bytes] = {}
    for entry in data.split(b"\0"):
        key, sign, value = entry.partition(b"=")
        if sign:
            fields.setdefault(key, value)
    version = fields.get(b"version", b"").decode("ascii", "replace")
    licence = fields.get(b"license")
    flavour = None if licence is None else PROPRIETARY if licence == b"NVIDIA" else OPEN
    return version if is_plain(version) else None, flavour


# -- DKMS -------------------------------------------------------------------------------------------------------------


class _Build(NamedTuple):
    version: str
    kernel: str
    arch: str


def _dkms(system: System) -> Fact[list[dict[str, Any]]]:
    listing = system.list_folder(DKMS)
    if not listing.is_known:
        return absent(DKMS) if listing.is_absent else unknown(listing.reason, DKMS)
    entries: list[dict[str, Any]] = []
    for module in listing.get():
        if not module.startswith("nvidia") or not re.fullmatch(_NAME, module):
            continue
        names = system.list_folder(f"{DKMS}/{module}")
        if names.is_unknown:
            return unknown(names.reason, names.source)
        installed = _installed(system, f"{DKMS}/{module}", names.value or [])
        for version in names.value or ():
            if not version.startswith("kernel-") and version[:1].isdigit():
                entries += _of_version(system, f"{DKMS}/{module}/{version}", version, installed)
    return known(entries, DKMS)


def _installed(system: System, folder: str, names: list[str]) -> set[_Build]:
    found: set[_Build] = set()
    for name in names:
        if name.startswith("kernel-"):
            parts = (system.link_target(f"{folder}/{name}").value or "").rstrip("/").split("/")
            if len(parts) >= 3:
                found.add(_Build(*parts[-3:]))
    return found


def _of_version(system: System, folder: str, version: str, installed: set[_Build]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for kernel in system.list_folder(folder).value or ():
        if kernel in ("source", "build"):
            continue
        for arch in system.list_folder(f"{folder}/{kernel}").value or ():
            if system.status(f"{folder}/{kernel}/{arch}/module").is_known:
                status = "installed" if _Build(version, kernel, arch) in installed else "built"
                entries.append({"version": version, "kernel": kernel, "arch": arch, "status": status})
    # A build that succeeds takes its folder away; the log says for which kernel the last one failed.
    log = system.read_text(f"{folder}/build/make.log", 2000)
    failed = re.search(r"for kernel (\S{1,120}) \(([\w-]{1,30})\)", log.get()) if log.is_known else None
    if failed and not any(entry["kernel"] == failed.group(1) for entry in entries):
        kernel, arch = failed.groups()
        entries.append({"version": version, "kernel": kernel, "arch": arch, "status": "failed"})
    return entries or [{"version": version, "kernel": None, "arch": None, "status": "added"}]


PROBE = Probe("module_files", (LINUX,), ("kernel.nvidia_module_files", "kernel.dkms"), look)
