"""Memory, swap or page files, the control group's limit, shared memory and the user's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.parse.procfs import (
    CgroupPaths,
    parse_cgroup,
    parse_cgroup_limit,
    parse_meminfo,
    parse_swaps,
)
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.system.port import System

if TYPE_CHECKING:
    from cudadoctor.parse.windows import PageFile

_MEMINFO = "/proc/meminfo"
_SWAPS = "/proc/swaps"
_CGROUP = "/proc/self/cgroup"
_CGROUP_ROOT = "/sys/fs/cgroup"
_SHM = "/dev/shm"

_PAGING = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management"

MIB = 1 << 20


def look(system: System) -> dict[str, Fact[Any]]:
    if system.platform == "linux":
        facts = _linux(system)
    elif system.platform == "windows":
        facts = _windows(system)
    else:
        facts = {}
    for name, limit in (("nofile", "nofile"), ("memlock", "memlock"), ("address_space", "as")):
        facts[f"limits.{name}"] = system.limit(limit)
    return facts


# -- Linux ------------------------------------------------------------------------------------------------------------


def _linux(system: System) -> dict[str, Fact[Any]]:
    meminfo = system.read_text(_MEMINFO).map(parse_meminfo)
    swaps = system.read_text(_SWAPS).map(parse_swaps)
    shm = system.disk_usage(_SHM)

    def amount(name: str) -> Fact[Any]:
        if meminfo.is_known and name not in meminfo.get():
            return unknown(f"there is no {name} in it", _MEMINFO)
        return meminfo.map(lambda values: values[name])

    total = swaps.map(lambda areas: sum(area.size for area in areas))
    return {
        "memory.total": amount("MemTotal"),
        "memory.available": amount("MemAvailable"),
        # Some sandboxes show no /proc/swaps.
        "memory.swap_total": total if total.is_known else amount("SwapTotal"),
        "memory.swap_devices": swaps.map(
            lambda areas: [
                {"path": area.name, "kind": "zram" if area.is_zram else area.kind, "size": area.size} for area in areas
            ]
        ),
        "memory.cgroup_limit": _cgroup_limit(system),
        "memory.shm_size": shm.map(lambda usage: usage.total),
        "memory.shm_free": shm.map(lambda usage: usage.free),
    }


def _cgroup_limit(system: System) -> Fact[int]:
    """The tightest limit of the group and the groups above it."""
    groups = system.read_text(_CGROUP).map(parse_cgroup)
    if not groups.is_known:
        return absent(_CGROUP) if groups.is_absent else unknown(groups.reason, _CGROUP)
    if not system.list_folder(_CGROUP_ROOT).value:
        return unknown("the control groups are not mounted", _CGROUP_ROOT)
    lowest: Optional[Fact[int]] = None
    unread: Optional[Fact[Any]] = None
    for path in _limit_files(groups.get()):
        limit = system.read_text(path, 64).map(parse_cgroup_limit)
        if limit.is_unknown:
            unread = limit
        value = limit.value
        if value is not None and (lowest is None or value < lowest.get()):
            lowest = known(value, path)
    if lowest is not None:
        return lowest
    return unknown(unread.reason, unread.source) if unread is not None else absent(_CGROUP_ROOT)


def _limit_files(groups: CgroupPaths) -> list[str]:
    if "memory" in groups.controllers:
        root, name, group = f"{_CGROUP_ROOT}/memory", "memory.limit_in_bytes", groups.controllers["memory"]
    elif groups.unified is not None:
        root, name, group = _CGROUP_ROOT, "memory.max", groups.unified
    else:
        return []
    # In a container the path may be the host's, and what is mounted is the container's own group: the root then.
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return ["/".join([root, *parts[:depth], name]) for depth in range(len(parts), -1, -1)]


# -- Windows ----------------------------------------------------------------------------------------------------------


def _windows(system: System) -> dict[str, Fact[Any]]:
    memory = system.windows_call("memory")
    return {
        "memory.total": memory.map(lambda answer: answer["total"]),
        "memory.available": memory.map(lambda answer: answer["available"]),
        "memory.commit_limit": memory.map(lambda answer: answer["commit_limit"]),
        "memory.swap_total": memory.map(lambda answer: max(0, answer["commit_limit"] - answer["total"])),
        "memory.page_file": _page_files(system),
    }


def _page_files(system: System) -> Fact[list[dict[str, Any]]]:
    from cudadoctor.parse.windows import parse_paging_files

    configured = system.registry_value(_PAGING, "PagingFiles")
    if configured.is_absent:
        return known([], configured.source)
    files = configured.map(lambda value: [_page_file(file) for file in parse_paging_files(_lines(value))])
    if not files.is_known or not any(entry["path"].startswith("?") for entry in files.get()):
        return files
    # "?:\pagefile.sys": Windows chooses the drive. What it chose stands in another value.
    existing = system.registry_value(_PAGING, "ExistingPageFiles")
    paths = [line.replace("\\??\\", "") for line in _lines(existing.value)] if existing.is_known else []
    chosen: list[dict[str, Any]] = []
    for entry in files.get():
        if entry["path"].startswith("?") and paths:
            chosen += [dict(entry, path=path) for path in paths]
        else:
            chosen.append(entry)
    return known(chosen, configured.source)


def _lines(value: Any) -> list[str]:
    lines = value if isinstance(value, list) else [value]
    return [line for line in lines if isinstance(line, str) and line.strip()]


def _page_file(file: PageFile) -> dict[str, Any]:
    initial, maximum = (None if mib is None else mib * MIB for mib in (file.initial_mib, file.maximum_mib))
    mode = "system-managed" if file.system_managed else "fixed"
    return {"path": file.path, "mode": mode, "initial": initial, "maximum": maximum}


PROBE = Probe(
    "memory",
    EVERYWHERE,
    (
        "memory.total",
        "memory.available",
        "memory.swap_total",
        "memory.swap_devices",
        "memory.cgroup_limit",
        "memory.shm_size",
        "memory.shm_free",
        "memory.commit_limit",
        "memory.page_file",
        "limits.nofile",
        "limits.memlock",
        "limits.address_space",
    ),
    look,
)
