r"""Files below /proc, and the small ones of cgroups.

    /proc/meminfo            MemTotal:       65536000 kB
    /proc/swaps              /swapfile                               file\t\t2097148\t\t0\t\t-2
    /proc/self/cgroup        0::/system.slice/job.service       (v2)
                             4:memory:/docker/0123              (v1)
    memory.max               max, or 17179869184
    memory.limit_in_bytes    9223372036854771712: v1's way to say "none"
    /proc/self/mountinfo     36 35 98:0 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k
    /proc/1/environ          container=podman\0HOME=/root\0
    /proc/self/limits        Max open files            1024                 1048576              files
    /proc/devices            511 nvidia-uvm

/proc/driver/nvidia/gpus/0000:01:00.0/information:

    Model: \t\t NVIDIA A10G
    GPU UUID: \t GPU-11111111-0000-4000-8000-000000000000
    Bus Location: \t 0000:01:00.0

Sizes are bytes everywhere in the results; the kernel's kB is 1024 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudadoctor.model.record import NamedTuple

from .digits import is_digits
from .errors import unlike


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name ("MemTotal", "MemAvailable", "SwapTotal"); counters without a unit as they are.

    ParseError without MemTotal.
    """
    values: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and is_digits(words[0]) and (len(words) == 1 or words[1:] == ["kB"]):
            values[name] = int(words[0]) * (1024 if len(words) == 2 else 1)
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
        if len(parts) == 5 and is_digits(parts[2]) and is_digits(parts[3]) and is_digits(parts[4].lstrip("-"), 9):
            size, used = int(parts[2]) * 1024, int(parts[3]) * 1024
            priority = int(parts[4].lstrip("-")) * (-1 if parts[4].startswith("-") else 1)
            swaps.append(Swap(_unescape(parts[0].strip()), parts[1], size, used, priority))
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
        parts = line.split(":", 2)
        if len(parts) != 3 or not is_digits(parts[0], 6) or not parts[2].startswith("/"):
            continue
        seen = True
        if parts[1] == "":
            unified = parts[2]
        for name in parts[1].split(","):
            if name:
                controllers[name] = parts[2]
    if not seen and text.strip():
        raise unlike("/proc/self/cgroup", text.strip())
    return CgroupPaths(unified, controllers)


def parse_cgroup_limit(text: str) -> int | None:
    """A memory limit in bytes, or None for no limit ("max", or v1's huge number). ParseError for anything else."""
    text = text.strip()
    if text in ("max", "-1"):
        return None
    if not is_digits(text, 20):
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
        text = (self.option("size") or "").lower()
        shift = {"k": 10, "m": 20, "g": 30, "t": 40}.get(text[-1:], 0)
        number = text[:-1] if shift else text
        return int(number) << shift if is_digits(number) else None


def _unescape(text: str) -> str:
    # The kernel writes blank, tab, newline and backslash as \040 \011 \012 \134.
    if "\\" not in text:
        return text
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
        # The name may hold blanks, the three columns after it do not; a limit without a unit has two.
        words = line.split()
        at = next((n for n, word in enumerate(words) if word == "unlimited" or is_digits(word, 20)), 0)
        if not line.startswith("Max ") or at < 2 or len(words) not in (at + 2, at + 3):
            continue
        soft, hard, unit = words[at], words[at + 1], words[at + 2] if len(words) > at + 2 else ""
        if hard == "unlimited" or is_digits(hard, 20):
            limits[" ".join(words[:at])] = Limit(
                None if soft == "unlimited" else int(soft), None if hard == "unlimited" else int(hard), unit
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
        words = line.split()
        if len(words) == 2 and is_digits(words[0], 4):
            majors.setdefault(words[1], int(words[0]))
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
        minor=int(minor) if is_digits(minor, 6) else None,
        firmware=fields.get("GPU Firmware"),
        excluded=None if excluded is None else excluded == "Yes",
        bus_type=fields.get("Bus Type"),
    )
