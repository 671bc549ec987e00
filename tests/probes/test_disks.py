from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.disks import PROBE

from .tables import DENIED, Unknown, check, machine, windows

GIB = 1 << 30
HOME = "/home/user/proj"


def mounts(*lines: str) -> dict[str, Any]:
    return {"/proc/self/mountinfo": [*lines, ""]}


def root(filesystem: str, device: str = "259:2", source: str = "/dev/nvme0n1p2") -> str:
    return f"27 1 {device} / / rw,relatime - {filesystem} {source} rw"


def block(number: str, path: str) -> dict[str, str]:
    return {f"/sys/dev/block/{number}": f"../../devices/pci0000:00/0000:00:1d.0/{path}"}


CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    (
        "an NVMe drive",
        {"files": mounts(root("ext4")), "links": block("259:2", "nvme/nvme0/nvme0n1/nvme0n1p2")},
        "nvme",
        "ext4",
    ),
    (
        "a hard disk beside it, mounted where the work lies",
        {
            "files": {
                **mounts(root("ext4"), "30 27 8:1 / /home rw - xfs /dev/sda1 rw"),
                "/sys/block/sda/queue/rotational": "1\n",
            },
            "links": block("8:1", "ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1"),
        },
        "hdd",
        "xfs",
    ),
    (
        "a SATA solid-state disk",
        {
            "files": {**mounts(root("ext4", "8:1", "/dev/sda1")), "/sys/block/sda/queue/rotational": "0\n"},
            "links": block("8:1", "ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1"),
        },
        "ssd",
        "ext4",
    ),
    (
        "a virtio disk says rotational, whatever lies beneath",
        {
            "files": {**mounts(root("ext4", "254:1", "/dev/vda1")), "/sys/block/vda/queue/rotational": "1\n"},
            "links": block("254:1", "virtio0/block/vda/vda1"),
        },
        "virtual",
        "ext4",
    ),
    (
        "WSL's disk is Windows' file",
        {
            "files": {
                **mounts(root("ext4", "8:32", "/dev/sdc")),
                "/sys/block/sdc/device/model": "Virtual Disk\n",
                "/sys/block/sdc/queue/rotational": "1\n",
            },
            "links": block("8:32", "target0:0:0/0:0:0:2/block/sdc"),
        },
        "virtual",
        "ext4",
    ),
    (
        "LVM on an NVMe drive",
        {
            "files": {**mounts(root("xfs", "253:0", "/dev/mapper/vg-root")), "/sys/block/dm-0/slaves/nvme0n1p3": ""},
            "links": {"/sys/dev/block/253:0": "../../devices/virtual/block/dm-0"},
        },
        "nvme",
        "xfs",
    ),
    (
        "btrfs has a number of no device, and its source tells",
        {"files": mounts(root("btrfs", "0:31", "/dev/nvme0n1p2")), "status": {"/dev/nvme0n1p2": {"device": "259:2"}}},
        "nvme",
        "btrfs",
    ),
    ("NFS", {"files": mounts(root("ext4"), "30 27 0:50 / /home rw - nfs4 srv:/home rw")}, "network", "nfs4"),
    ("Lustre", {"files": mounts(root("ext4"), "30 27 0:50 / /home rw - lustre m@tcp:/fs rw")}, "network", "lustre"),
    ("a RAM disk", {"files": mounts(root("tmpfs", "0:22", "tmpfs"))}, "memory", "tmpfs"),
    ("a container's layers", {"files": mounts(root("overlay", "0:60", "overlay"))}, Unknown("overlay"), "overlay"),
    ("zfs", {"files": mounts(root("zfs", "0:40", "tank/home"))}, Unknown("zfs"), "zfs"),
    ("the mounts cannot be read", {"files": {"/proc/self/mountinfo": DENIED}}, Unknown("denied"), Unknown("denied")),
    ("no mounts are shown", {}, Unknown("not shown"), Unknown("not shown")),
    ("the working folder was deleted", {"working_folder": {"error": "it was deleted"}}, Unknown("deleted"), Unknown()),
]


@pytest.mark.parametrize(("title", "sections", "kind", "filesystem"), CASES, ids=[case[0] for case in CASES])
def test_disk_of_the_working_folder(title: str, sections: dict[str, Any], kind: Any, filesystem: Any) -> None:
    system = machine(**{"working_folder": HOME, **sections})
    check(PROBE, system, {"disk.kind": kind, "disk.filesystem": filesystem})


VENV: dict[str, Any] = {
    "files": {f"{HOME}/.venv/pyvenv.cfg": ["home = /usr/bin", "version = 3.12.3"]},
    "status": {
        f"{HOME}/.venv/bin/python": {"mode": "0755"},
        f"{HOME}/.venv/lib/python3.12/site-packages": {"kind": "directory", "writable": True},
    },
    "variables": {"VIRTUAL_ENV": f"{HOME}/.venv"},
}


def test_room_where_the_packages_lie() -> None:
    system = machine(working_folder=HOME, disks={"/": {"total": 500 * GIB, "free": 20 * GIB}}, **VENV)
    check(PROBE, system, {"disk.environment_free": 20 * GIB, "disk.environment_writable": True})


def test_an_environment_that_is_read_only() -> None:
    site = f"{HOME}/.venv/lib/python3.12/site-packages"
    status = {**VENV["status"], site: {"kind": "directory", "writable": False}}
    system = machine(working_folder=HOME, disks={"/": DENIED}, **{**VENV, "status": status})
    check(PROBE, system, {"disk.environment_free": Unknown("denied"), "disk.environment_writable": False})


def test_no_python_at_all() -> None:
    expected = {"disk.environment_free": Unknown(), "disk.environment_writable": Unknown()}
    check(PROBE, machine(working_folder=HOME), expected)


FOLDER = {"kind": "directory", "mode": "1777", "writable": True}
LOCKED = {"kind": "directory", "mode": "0755", "writable": False}

TEMPORARY: list[tuple[str, dict[str, Any], Any]] = [
    ("the usual one", {"status": {"/tmp": FOLDER}}, "/tmp"),
    ("TMPDIR first", {"variables": {"TMPDIR": "/scratch"}, "status": {"/tmp": FOLDER, "/scratch": FOLDER}}, "/scratch"),
    ("a TMPDIR that is not there", {"variables": {"TMPDIR": "/gone"}, "status": {"/tmp": FOLDER}}, "/tmp"),
    ("a TMPDIR that is locked", {"variables": {"TMPDIR": "/x"}, "status": {"/x": LOCKED, "/tmp": FOLDER}}, "/tmp"),
    ("/tmp is locked", {"status": {"/tmp": LOCKED, "/var/tmp": FOLDER}}, "/var/tmp"),
    ("nothing can be written", {"status": {"/tmp": LOCKED}}, Unknown("can be written")),
]


@pytest.mark.parametrize(("title", "sections", "path"), TEMPORARY, ids=[case[0] for case in TEMPORARY])
def test_temporary_folder(title: str, sections: dict[str, Any], path: Any) -> None:
    disks = {"/": {"total": 10 * GIB, "free": 3 * GIB}}
    expected = {"disk.temporary_path": path, "disk.temporary_free": path if isinstance(path, Unknown) else 3 * GIB}
    check(PROBE, machine(working_folder=HOME, disks=disks, **sections), expected)


def test_windows_says_its_temporary_folder() -> None:
    temp = "C:\\Users\\user\\AppData\\Local\\Temp"
    system = windows(
        variables={"TEMP": temp},
        folders={temp: []},
        disks={"C:": {"total": 500 * GIB, "free": 100 * GIB}},
    )
    facts = check(PROBE, system, {"disk.temporary_path": temp, "disk.temporary_free": 100 * GIB})
    assert "disk.kind" not in facts


CACHES: list[tuple[str, dict[str, str], str]] = [
    ("the usual one", {"HOME": "/home/me"}, "/home/me/.cache/pip"),
    ("XDG's", {"HOME": "/home/me", "XDG_CACHE_HOME": "/scratch/me"}, "/scratch/me/pip"),
    ("the one that pip is told", {"HOME": "/home/me", "PIP_CACHE_DIR": "/scratch/pip"}, "/scratch/pip"),
]


@pytest.mark.parametrize(("title", "variables", "path"), CACHES, ids=[case[0] for case in CACHES])
def test_where_pip_keeps_what_it_downloads(title: str, variables: dict[str, str], path: str) -> None:
    """The folder itself may not be there yet: the room is that of the disk on which it will be."""
    disks = {"/home": {"total": 10 * GIB, "free": GIB}, "/scratch": {"total": 900 * GIB, "free": 700 * GIB}}
    folders: dict[str, list[str]] = {"/home": ["me"], "/home/me": [], "/scratch": []}
    system = machine(working_folder="/home/me", variables=variables, disks=disks, folders=folders)
    free = GIB if path.startswith("/home") else 700 * GIB
    check(PROBE, system, {"disk.cache_path": path, "disk.cache_free": free, "disk.working_free": GIB})


def test_no_home_to_keep_downloads_in() -> None:
    check(PROBE, machine(working_folder="/"), {"disk.cache_path": Unknown("home"), "disk.cache_free": Unknown()})
