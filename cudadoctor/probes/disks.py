"""Room where packages and temporary files go, and what kind of disk the working folder lies on."""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.parse.procfs import Mount, mount_of, parse_mountinfo
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import home, paths
from cudadoctor.probes.patient import patient
from cudadoctor.system.port import System

_MOUNTS = "/proc/self/mountinfo"

_NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "pvfs2", "wekafs",
    "orangefs", "fuse.sshfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.juicefs", "fuse.rclone",
    "fuse.mergerfs", "9p", "drvfs",
)  # fmt: skip
_MEMORY = ("tmpfs", "ramfs")
_VIRTUAL = ("virtiofs", "vboxsf", "fuse.vmhgfs-fuse", "prl_fs")

# What virtual machines call their disks (/sys/block/sda/device/model and vendor).
_VIRTUAL_DISKS = ("virtual", "qemu", "vbox", "vmware", "msft", "google", "amazon elastic", "xen")


def look(system: System) -> dict[str, Fact[Any]]:
    facts = {**_environment(system), **_temporary(system), **_cache(system)}
    folder = system.working_folder()
    facts["disk.working_free"] = (
        system.disk_usage(folder.get()).map(lambda usage: usage.free)
        if folder.is_known
        else unknown(folder.reason or "there is none", folder.source)
    )
    if system.platform == "linux":
        facts.update(_working_folder(system))
    return facts


# -- room -------------------------------------------------------------------------------------------------------------


def _environment(system: System) -> dict[str, Fact[Any]]:
    chosen = patient(system).environment
    folder: Optional[str] = None
    if chosen.is_known and chosen.get().site_packages:
        folder = chosen.get().site_packages[0]
    if folder is None:
        nothing: Fact[Any] = unknown(chosen.reason or "no interpreter to look at was found", chosen.source)
        return {"disk.environment_free": nothing, "disk.environment_writable": nothing}
    status = system.status(folder)
    return {
        "disk.environment_free": system.disk_usage(folder).map(lambda usage: usage.free),
        "disk.environment_writable": status.map(lambda found: found.writable),
    }


def _temporary(system: System) -> dict[str, Fact[Any]]:
    """Where Python's tempfile, and so pip, puts its files: the first of its candidates that can be written."""
    for path in _temporary_folders(system):
        status = system.status(path)
        if status.is_known and status.get().kind == "directory" and status.get().writable:
            return {
                "disk.temporary_path": known(path, path),
                "disk.temporary_free": system.disk_usage(path).map(lambda usage: usage.free),
            }
    nothing: Fact[Any] = unknown("no folder for temporary files can be written", "$TMPDIR")
    return {"disk.temporary_path": nothing, "disk.temporary_free": nothing}


def _temporary_folders(system: System) -> list[str]:
    named = [system.variable(name).value for name in ("TMPDIR", "TEMP", "TMP")]
    if system.platform == "windows":
        usual = ["C:\\TEMP", "C:\\TMP", "\\TEMP", "\\TMP"]
        local = system.variable("LOCALAPPDATA").value
        if local:
            usual.insert(0, f"{local}\\Temp")
    else:
        usual = ["/tmp", "/var/tmp", "/usr/tmp"]
    return [path for path in [*named, *usual] if path]


def _cache(system: System) -> dict[str, Fact[Any]]:
    """Where pip keeps downloads, by its own rules: PIP_CACHE_DIR, else below the user's folder for caches. The room is
    that of the nearest folder above it that is there."""
    p = system.once(paths)
    own = home(system)
    folder = system.variable("PIP_CACHE_DIR").value
    if not folder and p.is_windows:
        local = system.variable("LOCALAPPDATA").value
        folder = p.join(local, "pip", "Cache") if local else None
    elif not folder and own:
        usual = p.join(own, "Library", "Caches") if system.platform == "darwin" else p.join(own, ".cache")
        folder = p.join(system.variable("XDG_CACHE_HOME").value or usual, "pip")
    if not folder:
        nothing: Fact[Any] = unknown("the user has no home", "$HOME")
        return {"disk.cache_path": nothing, "disk.cache_free": nothing}
    place = folder
    for _ in range(4):
        if not system.status(place).is_absent or not p.folder(place) or p.folder(place) == place:
            break
        place = p.folder(place)
    return {
        "disk.cache_path": known(folder, "pip's rules"),
        "disk.cache_free": system.disk_usage(place).map(lambda usage: usage.free),
    }


# -- the working folder's disk ---------------------------------------------------------------------------------------


def _working_folder(system: System) -> dict[str, Fact[Any]]:
    folder = system.working_folder()
    mounts = system.read_text(_MOUNTS).map(parse_mountinfo)
    if not folder.is_known or not mounts.is_known:
        failed: Fact[Any] = folder if not folder.is_known else mounts
        nothing: Fact[Any] = unknown(failed.reason or "the mounts are not shown", failed.source)
        return {"disk.kind": nothing, "disk.filesystem": nothing}
    mount = mount_of(mounts.get(), folder.get())
    if mount is None:
        nothing = unknown("no mount holds the working folder", _MOUNTS)
        return {"disk.kind": nothing, "disk.filesystem": nothing}
    return {"disk.kind": _kind(system, mount), "disk.filesystem": known(mount.filesystem, _MOUNTS)}


def _kind(system: System, mount: Mount) -> Fact[str]:
    for kind, filesystems in (("network", _NETWORK), ("memory", _MEMORY), ("virtual", _VIRTUAL)):
        if mount.filesystem in filesystems:
            return known(kind, _MOUNTS)
    device = _device_folder(system, mount)
    if device is None:
        return unknown(f"{mount.filesystem} does not say on which disk it lies", _MOUNTS)
    return _kind_of_device(system, device, depth=0)


def _device_folder(system: System, mount: Mount) -> Optional[str]:
    """The disk's folder in /sys/block (or of a device that is made of others), by number, else by the name of the
    source: btrfs gives its mounts numbers of no device."""
    number = mount.device or ""
    if number and not number.startswith("0:"):
        target = system.link_target(f"/sys/dev/block/{number}")
        if target.is_known:
            # ../../devices/pci0000:00/.../nvme/nvme0/nvme0n1/nvme0n1p2: a partition's folder lies in its disk's.
            parts = target.get().split("/")
            if "block" in parts:
                return "/sys/block/" + parts[parts.index("block") + 1]
            return "/sys/block/" + _disk_of(parts[-1])
    if mount.source.startswith("/dev/"):
        real = system.real_path(mount.source)
        return "/sys/block/" + _disk_of((real.value or mount.source).rpartition("/")[2])
    return None


def _disk_of(name: str) -> str:
    found = re.fullmatch(r"((?:nvme\d+n\d+|mmcblk\d+|md\d+|loop\d+|nbd\d+))p\d+|([a-z]+)\d+", name, re.ASCII)
    if found is None or name.startswith(("dm-", "md", "loop")):
        return name
    return found.group(1) or found.group(2)


def _kind_of_device(system: System, folder: str, depth: int) -> Fact[str]:
    name = folder.rpartition("/")[2]
    if name.startswith("nvme"):
        return known("nvme", folder)
    if name.startswith(("vd", "xvd", "pmem", "ram")):
        # A virtual disk says "rotational" whatever lies beneath it.
        return known("virtual", folder)
    if name.startswith("zram"):
        return known("memory", folder)
    parts = system.list_folder(f"{folder}/slaves").value
    if parts and depth < 4:
        kinds = [_kind_of_device(system, f"/sys/block/{_disk_of(part)}", depth + 1) for part in parts]
        if all(kind.is_known for kind in kinds):
            # As slow as its slowest part.
            found = {kind.get() for kind in kinds}
            return known(next(kind for kind in ("hdd", "virtual", "ssd", "nvme", "memory") if kind in found), folder)
        return unknown("not all parts of the volume could be told", folder)
    for file in ("device/model", "device/vendor"):
        text = (system.read_text(f"{folder}/{file}", 200).value or "").lower()
        if any(word in text for word in _VIRTUAL_DISKS):
            return known("virtual", f"{folder}/{file}")
    rotational = system.read_text(f"{folder}/queue/rotational", 16)
    if rotational.is_known and rotational.get().strip() in ("0", "1"):
        return known("hdd" if rotational.get().strip() == "1" else "ssd", rotational.source)
    return unknown(rotational.reason or "the kernel does not say what the disk is", rotational.source)


PROBE = Probe(
    "disks",
    EVERYWHERE,
    (
        "disk.environment_free",
        "disk.environment_writable",
        "disk.temporary_free",
        "disk.temporary_path",
        "disk.cache_free",
        "disk.cache_path",
        "disk.working_free",
        "disk.kind",
        "disk.filesystem",
    ),
    look,
)
