from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.memory import PROBE

from .tables import ABSENT, DENIED, Unknown, check, machine, windows

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

MEMINFO = [
    "MemTotal:       65536000 kB",
    "MemFree:        22020096 kB",
    "MemAvailable:   56623104 kB",
    "SwapTotal:       2097148 kB",
    "HugePages_Total:       0",
]
SWAPS = [
    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority",
    "/swap.img                               file\t\t2097148\t\t0\t\t-2",
    "/dev/zram0                              partition\t8388604\t\t0\t\t100",
]
NO_LIMIT = "9223372036854771712\n"

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "memory, a swap file and a compressed one",
        {"files": {"/proc/meminfo": MEMINFO, "/proc/swaps": SWAPS}, "disks": {"/dev/shm": {"total": 100, "free": 90}}},
        {
            "memory.total": 65536000 * KIB,
            "memory.available": 56623104 * KIB,
            "memory.swap_total": (2097148 + 8388604) * KIB,
            "memory.swap_devices": [
                {"path": "/swap.img", "kind": "file", "size": 2097148 * KIB},
                {"path": "/dev/zram0", "kind": "zram", "size": 8388604 * KIB},
            ],
            "memory.shm_size": 100,
            "memory.shm_free": 90,
        },
    ),
    (
        "no swap is zero, not unknown",
        {"files": {"/proc/swaps": SWAPS[:1]}},
        {"memory.swap_total": 0, "memory.swap_devices": []},
    ),
    (
        "a sandbox without /proc/swaps",
        {"files": {"/proc/meminfo": MEMINFO}},
        {"memory.swap_total": 2097148 * KIB, "memory.swap_devices": ABSENT, "memory.shm_size": ABSENT},
    ),
    (
        "nothing can be read",
        {"files": {"/proc/meminfo": DENIED, "/proc/swaps": DENIED}, "disks": {"/dev/shm": DENIED}},
        {
            "memory.total": Unknown("denied"),
            "memory.swap_total": Unknown("denied"),
            "memory.swap_devices": Unknown("denied"),
            "memory.shm_size": Unknown("denied"),
        },
    ),
    (
        "an old kernel without MemAvailable",
        {"files": {"/proc/meminfo": ["MemTotal: 1024 kB"]}},
        {"memory.total": MIB, "memory.available": Unknown("MemAvailable")},
    ),
    # -- control groups
    (
        "version 2, no limit anywhere",
        {
            "files": {
                "/proc/self/cgroup": "0::/user.slice/session.scope\n",
                "/sys/fs/cgroup/user.slice/session.scope/memory.max": "max\n",
                "/sys/fs/cgroup/user.slice/memory.max": "max\n",
            }
        },
        {"memory.cgroup_limit": ABSENT},
    ),
    (
        "version 2: the tightest limit on the way up counts",
        {
            "files": {
                "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_42\n",
                "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_42/memory.max": "max\n",
                "/sys/fs/cgroup/system.slice/slurmstepd.scope/memory.max": "17179869184\n",
                "/sys/fs/cgroup/system.slice/memory.max": "34359738368\n",
            }
        },
        {"memory.cgroup_limit": 16 * GIB},
    ),
    (
        "version 2 in a container: its own group is the root",
        {"files": {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "8589934592\n"}},
        {"memory.cgroup_limit": 8 * GIB},
    ),
    (
        "version 1: a huge number is no limit",
        {
            "files": {
                "/proc/self/cgroup": ["4:memory:/user", "0::/"],
                "/sys/fs/cgroup/memory/user/memory.limit_in_bytes": NO_LIMIT,
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT,
            }
        },
        {"memory.cgroup_limit": ABSENT},
    ),
    (
        "version 1 in a container that shows the host's path",
        {
            "files": {
                "/proc/self/cgroup": "4:memory:/docker/0123\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
            }
        },
        {"memory.cgroup_limit": 2 * GIB},
    ),
    (
        "the limit cannot be read",
        {"files": {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": DENIED}},
        {"memory.cgroup_limit": Unknown("denied")},
    ),
    (
        "the control groups are not mounted",
        {"files": {"/proc/self/cgroup": "0::/\n"}},
        {"memory.cgroup_limit": Unknown("not mounted")},
    ),
    ("a kernel without control groups", {}, {"memory.cgroup_limit": ABSENT}),
    # -- limits
    (
        "limits of the user",
        {"limits": {"nofile": 1024, "memlock": 8 * MIB, "as": "unlimited"}},
        {"limits.nofile": 1024, "limits.memlock": 8 * MIB, "limits.address_space": ABSENT},
    ),
    ("limits that are not known", {"limits": {"nofile": DENIED}}, {"limits.nofile": Unknown("denied")}),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_linux(title: str, sections: dict[str, Any], expected: dict[str, Any]) -> None:
    check(PROBE, machine(**sections), expected)


PAGING = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management"


def page_file(path: str, mode: str, initial: Any = None, maximum: Any = None) -> dict[str, Any]:
    return {"path": path, "mode": mode, "initial": initial, "maximum": maximum}


PAGE_FILES: list[tuple[str, dict[str, Any], Any]] = [
    (
        "Windows manages the size",
        {"PagingFiles": ["c:\\pagefile.sys 0 0"]},
        [page_file("c:\\pagefile.sys", "system-managed")],
    ),
    (
        "Windows chooses drive and size",
        {"PagingFiles": ["?:\\pagefile.sys"], "ExistingPageFiles": ["\\??\\C:\\pagefile.sys"]},
        [page_file("C:\\pagefile.sys", "system-managed")],
    ),
    (
        "Windows chooses the drive, and does not say which",
        {"PagingFiles": ["?:\\pagefile.sys"]},
        [page_file("?:\\pagefile.sys", "system-managed")],
    ),
    (
        "a fixed size",
        {"PagingFiles": ["C:\\pagefile.sys 1024 2048"]},
        [page_file("C:\\pagefile.sys", "fixed", 1024 * MIB, 2048 * MIB)],
    ),
    (
        "two files",
        {"PagingFiles": ["C:\\pagefile.sys 16 16", "D:\\pagefile.sys 0 0"]},
        [page_file("C:\\pagefile.sys", "fixed", 16 * MIB, 16 * MIB), page_file("D:\\pagefile.sys", "system-managed")],
    ),
    ("switched off", {"PagingFiles": []}, []),
    (
        "one text instead of a list",
        {"PagingFiles": "C:\\pagefile.sys 27 77"},
        [page_file("C:\\pagefile.sys", "fixed", 27 * MIB, 77 * MIB)],
    ),
    ("no such value", {}, []),
    ("no right", {"PagingFiles": DENIED}, Unknown("denied")),
]


@pytest.mark.parametrize(("title", "values", "expected"), PAGE_FILES, ids=[case[0] for case in PAGE_FILES])
def test_windows_page_files(title: str, values: dict[str, Any], expected: Any) -> None:
    check(PROBE, windows(registry={PAGING: values}), {"memory.page_file": expected})


def test_windows_memory() -> None:
    memory = {"total": 16 * GIB, "available": 9 * GIB, "commit_limit": 18 * GIB, "commit_available": 7 * GIB}
    expected = {
        "memory.total": 16 * GIB,
        "memory.available": 9 * GIB,
        "memory.commit_limit": 18 * GIB,
        "memory.swap_total": 2 * GIB,
    }
    check(PROBE, windows(windows_calls={"memory": memory}), expected)


def test_windows_does_not_answer() -> None:
    system = windows(windows_calls={"memory": {"error": "GlobalMemoryStatusEx failed"}})
    check(PROBE, system, {"memory.total": Unknown("failed"), "memory.commit_limit": Unknown("failed")})
