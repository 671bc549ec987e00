r"""Files below /proc, and the small ones of cgroups.

/proc/meminfo                  MemTotal:       65536000 kB
/proc/swaps                    /swapfile                               file		2097148		0		-2
/proc/self/cgroup              0::/system.slice/job.service        (v2)        4:memory:/docker/0123        (v1)
memory.max                     max        17179869184
memory.limit_in_bytes          9223372036854771712                 (v1's word for "none")
/proc/self/mountinfo           36 35 98:0 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k
/proc/1/environ                container=podman\0HOME=/root\0
/proc/self/limits              Max open files            1024                 1048576              files
/proc/devices                  511 nvidia-uvm
/proc/driver/nvidia/gpus/0000:01:00.0/information
                               Model: 		 NVIDIA A10G
                               GPU UUID: 	 GPU-11111111-0000-4000-8000-000000000000
                               Bus Location: 	 0000:01:00.0

Sizes are bytes everywhere in the results; the kernel's kB is 1024 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .errors import unlike
from .record import NamedTuple


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name ("MemTotal", "MemAvailable", "SwapTotal"); counters without a unit as they are.

    ParseError without MemTotal.
    """
    values: dict[str, int] = {}
    for line in text.splitlines():
        found = re.match(r"([\w()]{1,40}):\s{1,40}([0-9]{1,18})( kB)?\s*$", line[:200], re.ASCII)
        if found:
            values[found.group(1)] = int(found.group(2)) * (1024 if found.group(3) else 1)
    if "MemTotal" not in values:
        raise unlike("/proc/meminfo", text.strip())
    return values


class Swap(NamedTuple):
    """One swap area: "file" or "partition"; sizes in bytes. A compressed one in memory is named /dev/zram0."""

    name: str
    kind: str
    size: int
    used: int
    priority: int

    @property
    def is_zram(self) -> bool:
        return self.name.startswith("/dev/zram")


def parse_swaps(text: str) -> list[Swap]:
    """/proc/swaps; only its header means that there is no swap. ParseError when the header is missing."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("Filename"):
        raise unlike("/proc/swaps", text.strip())
    swaps: list[Swap] = []
    for line in lines[1:]:
        parts = line.rsplit(None, 4)
        if len(parts) == 5 and all(re.fullmatch(r"-?[0-9]{1,18}", part, re.ASCII) for part in parts[2:]):
            size, used, priority = (int(part) for part in parts[2:])
            swaps.append(Swap(_unescape(parts[0].strip()), parts[1], size * 1024, used * 1024, priority))
    return swaps


class CgroupPaths(NamedTuple):
    """Where this process sits: `unified` in the v2 tree (None without one), `controllers` in the v1 trees."""

    unified: str | None
    controllers: dict[str, str]


def parse_cgroup(text: str) -> CgroupPaths:
    """/proc/self/cgroup. ParseError when there is text but no line of that shape."""
    unified: str | None = None
    controllers: dict[str, str] = {}
    seen = False
    for line in text.splitlines():
        found = re.match(r"([0-9]{1,6}):([^:]{0,200}):(/.*)$", line[:4096], re.ASCII)
        if found is None:
            continue
        seen = True
        if found.group(2) == "":
            unified = found.group(3)
        for name in found.group(2).split(","):
            if name:
                controllers[name] = found.group(3)
    if not seen and text.strip():
        raise unlike("/proc/self/cgroup", text.strip())
    return CgroupPaths(unified, controllers)


def parse_cgroup_limit(text: str) -> int | None:
    """A memory limit in bytes, or None for no limit ("max", or v1's huge number). ParseError for anything else."""
    text = text.strip()
    if text in ("max", "-1"):
        return None
    if not re.fullmatch(r"[0-9]{1,20}", text, re.ASCII):
        raise unlike("a cgroup memory limit", text)
    value = int(text)
    # v1 writes the largest signed number, rounded down to pages of 4, 16 or 64 KiB.
    return None if value >= 1 << 62 else value


class Mount(NamedTuple):
    """One mount.

    `device` is "major:minor" (None from /proc/mounts); options of the mount and of the file system together.
    """

    mount_point: str
    filesystem: str
    source: str
    root: str
    device: str | None
    options: Sequence[str]

    def option(self, name: str) -> str | None:
        """The value of an option; "" for one without a value; None where it is not set."""
        for option in self.options:
            key, _, value = option.partition("=")
            if key == name:
                return value
        return None

    @property
    def size(self) -> int | None:
        """The size option of a tmpfs in bytes; None where there is none or it is a share of memory ("50%")."""
        found = re.fullmatch(r"([0-9]{1,18})([kKmMgGtT]?)", self.option("size") or "", re.ASCII)
        if found is None:
            return None
        return int(found.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[found.group(2).lower()]


def _unescape(text: str) -> str:
    # The kernel writes blank, tab, newline and backslash as \040 \011 \012 \134.
    return re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found.group(1), 8)), text)


def parse_mountinfo(text: str) -> list[Mount]:
    """/proc/self/mountinfo, in order (a later mount on the same point hides the earlier).

    Other lines are passed over.
    """
    mounts: list[Mount] = []
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if not dash or len(fields) < 6 or len(rest) < 2:
            continue
        options = fields[5].split(",") + (rest[2].split(",") if len(rest) > 2 else [])
        mounts.append(
            Mount(_unescape(fields[4]), rest[0], _unescape(rest[1]), _unescape(fields[3]), fields[2], tuple(options))
        )
    return mounts


def parse_mounts(text: str) -> list[Mount]:
    """/proc/mounts (or /etc/mtab), in order. Other lines are passed over."""
    mounts: list[Mount] = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[1].startswith("/"):
            options = tuple(fields[3].split(","))
            mounts.append(Mount(_unescape(fields[1]), fields[2], _unescape(fields[0]), "/", None, options))
    return mounts


def mount_of(mounts: Sequence[Mount], path: str) -> Mount | None:
    """The mount that a path (absolute, without links) lies on: the longest mount point, the last one of equals."""
    best: Mount | None = None
    for mount in mounts:
        point = mount.mount_point.rstrip("/")
        if (path == point or path.startswith(point + "/")) and (
            best is None or len(point) >= len(best.mount_point.rstrip("/"))
        ):
            best = mount
    return best


def parse_environ(data: bytes) -> dict[str, str]:
    """/proc/PID/environ: NUL-separated NAME=value. Never fails; bytes that are not UTF-8 are replaced."""
    pairs = (entry.partition(b"=") for entry in data.split(b"\x00"))
    return {k.decode("utf-8", "replace"): v.decode("utf-8", "replace") for k, sign, v in pairs if k and sign}


class Limit(NamedTuple):
    """A resource limit; None is "unlimited". `unit` as printed: "bytes", "files", "processes", "us", ""."""

    soft: int | None
    hard: int | None
    unit: str


def parse_limits(text: str) -> dict[str, Limit]:
    """/proc/self/limits by the kernel's names ("Max open files", "Max locked memory").

    ParseError when none is in it.
    """
    limits: dict[str, Limit] = {}
    for line in text.splitlines():
        found = re.match(
            r"(Max [a-z -]{3,24}?)\s{2,40}(unlimited|[0-9]{1,20})\s{1,40}(unlimited|[0-9]{1,20})"
            r"(?:\s{1,40}([a-z]{1,20}))?\s*$",
            line[:200],
            re.ASCII,
        )
        if found:
            name, soft, hard, unit = found.groups()
            limits[name] = Limit(
                None if soft == "unlimited" else int(soft), None if hard == "unlimited" else int(hard), unit or ""
            )
    if not limits:
        raise unlike("/proc/self/limits", text.strip())
    return limits


def parse_devices(text: str) -> dict[str, int]:
    """/proc/devices: major numbers of the character devices by driver name ("nvidia-uvm": 511). Never fails."""
    majors: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith("Block devices"):
            break
        found = re.fullmatch(r"\s{0,4}([0-9]{1,4}) (\S{1,80})", line, re.ASCII)
        if found:
            majors.setdefault(found.group(2), int(found.group(1)))
    return majors


class GpuInformation(NamedTuple):
    """/proc/driver/nvidia/gpus/*/information. Fields that the file has not, or only as "Unknown" or "??", are None."""

    model: str | None
    uuid: str | None
    bus_location: str | None
    minor: int | None
    firmware: str | None
    excluded: bool | None
    bus_type: str | None


def parse_gpu_information(text: str) -> GpuInformation:
    """One `information` file. ParseError when it has neither a model nor a bus location."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        value = value.strip()
        if colon and value and not value.startswith(("Unknown", "??", "N/A")):
            fields.setdefault(key.strip(), value)
    if "Model" not in fields and "Bus Location" not in fields:
        raise unlike("/proc/driver/nvidia/gpus/*/information", text.strip())
    minor = fields.get("Device Minor", "")
    excluded = fields.get("GPU Excluded", fields.get("Blacklisted"))
    return GpuInformation(
        model=fields.get("Model"),
        uuid=fields.get("GPU UUID"),
        bus_location=fields.get("Bus Location"),
        minor=int(minor) if re.fullmatch(r"[0-9]{1,6}", minor, re.ASCII) else None,
        firmware=fields.get("GPU Firmware"),
        excluded=None if excluded is None else excluded == "Yes",
        bus_type=fields.get("Bus Type"),
    )
