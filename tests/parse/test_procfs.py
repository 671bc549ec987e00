"""Files of /proc and of cgroups: the shapes beside their values, and the real ones of this machine where there are
any.
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cudadoctor.parse import procfs
from cudadoctor.parse.errors import ParseError


def real(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        pytest.skip(f"no {path} here: {error}")


def test_meminfo() -> None:
    text = (
        "MemTotal:       65536000 kB\nMemFree:         1024 kB\nSwapTotal:             0 kB\nHugePages_Total: 3\nbad\n"
    )
    assert procfs.parse_meminfo(text) == {
        "MemTotal": 65536000 * 1024,
        "MemFree": 1024 * 1024,
        "SwapTotal": 0,
        "HugePages_Total": 3,
    }


@pytest.mark.parametrize("text", ["", "MemFree: 1 kB\n", "MemTotal: lots\n", "MemTotal: 1 MB\n"])
def test_no_meminfo(text: str) -> None:
    with pytest.raises(ParseError, match="/proc/meminfo"):
        procfs.parse_meminfo(text)


def test_swaps() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/swapfile                               file\t\t2097148\t\t512\t\t-2\n"
        "/dev/zram0                              partition\t8388604\t\t0\t\t100\n"
        "/my\\040swap                              file\t\t1024\t\t0\t\t-3\n"
    )
    assert procfs.parse_swaps(text) == [
        procfs.Swap("/swapfile", "file", 2097148 * 1024, 512 * 1024, -2),
        procfs.Swap("/dev/zram0", "partition", 8388604 * 1024, 0, 100),
        procfs.Swap("/my swap", "file", 1024 * 1024, 0, -3),
    ]
    assert [one.is_zram for one in procfs.parse_swaps(text)] == [False, True, False]
    assert procfs.parse_swaps("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n") == []
    with pytest.raises(ParseError):
        procfs.parse_swaps("")


@pytest.mark.parametrize(
    ("text", "unified", "controllers"),
    [
        ("0::/system.slice/docker.service\n", "/system.slice/docker.service", {}),
        ("0::/\n", "/", {}),
        (
            "4:memory:/docker/0123\n3:cpu,cpuacct:/\n1:name=systemd:/init.scope\n0::/x\n",
            "/x",
            {"memory": "/docker/0123"},
        ),
        ("12:memory:/slurm/uid_1000/job_7/step_0\n", None, {"memory": "/slurm/uid_1000/job_7/step_0"}),
        ("0::/a:b\n", "/a:b", {}),
        ("", None, {}),
    ],
)
def test_cgroup(text: str, unified: str | None, controllers: dict[str, str]) -> None:
    paths = procfs.parse_cgroup(text)
    assert paths.unified == unified
    assert {name: paths.controllers.get(name) for name in controllers} == controllers


def test_cgroup_with_several_controllers_in_a_line() -> None:
    assert procfs.parse_cgroup("3:cpu,cpuacct:/a\n").controllers == {"cpu": "/a", "cpuacct": "/a"}
    with pytest.raises(ParseError):
        procfs.parse_cgroup("nothing of that kind")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("max\n", None),
        ("17179869184\n", 17179869184),
        ("0", 0),
        ("9223372036854771712\n", None),  # v1 with pages of 4 KiB
        ("9223372036854710272\n", None),  # v1 with pages of 64 KiB
        ("-1", None),
    ],
)
def test_cgroup_limit(text: str, limit: int | None) -> None:
    assert procfs.parse_cgroup_limit(text) == limit


@pytest.mark.parametrize("text", ["", "unlimited", "1.5", "12k", "1" * 21])
def test_no_cgroup_limit(text: str) -> None:
    with pytest.raises(ParseError):
        procfs.parse_cgroup_limit(text)


MOUNTINFO = """\
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
25 22 0:22 / /dev/shm rw,nosuid,nodev - tmpfs shm rw,size=65536k,inode64
30 22 0:40 / /data\\040set ro shared:3 master:1 - nfs4 nas:/data rw,vers=4.2
31 22 0:41 /sub /mnt/a rw - overlay overlay rw,lowerdir=/l
32 22 0:42 / /mnt/a rw - tmpfs tmpfs rw,size=2g
garbage
"""


def test_mountinfo() -> None:
    mounts = procfs.parse_mountinfo(MOUNTINFO)
    assert [(one.mount_point, one.filesystem, one.source, one.device) for one in mounts] == [
        ("/", "ext4", "/dev/nvme0n1p2", "259:2"),
        ("/dev/shm", "tmpfs", "shm", "0:22"),
        ("/data set", "nfs4", "nas:/data", "0:40"),
        ("/mnt/a", "overlay", "overlay", "0:41"),
        ("/mnt/a", "tmpfs", "tmpfs", "0:42"),
    ]
    assert mounts[1].option("nosuid") == "" and mounts[1].option("size") == "65536k" and mounts[1].option("ro") is None
    assert mounts[2].option("ro") == ""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/dev/shm", "/dev/shm"),
        ("/dev/shm/x", "/dev/shm"),
        ("/dev/shmx", "/"),
        ("/", "/"),
        ("/home/me", "/"),
        ("/data set/a/b", "/data set"),
    ],
)
def test_mount_of(path: str, mount: str) -> None:
    found = procfs.mount_of(procfs.parse_mountinfo(MOUNTINFO), path)
    assert found is not None and found.mount_point == mount


def test_a_later_mount_hides_an_earlier_one() -> None:
    found = procfs.mount_of(procfs.parse_mountinfo(MOUNTINFO), "/mnt/a/file")
    assert found is not None and found.filesystem == "tmpfs"
    assert procfs.mount_of([], "/") is None


@pytest.mark.parametrize(
    ("size", "number"),
    [
        ("65536k", 65536 << 10),
        ("64m", 64 << 20),
        ("2g", 2 << 30),
        ("1T", 1 << 40),
        ("1024", 1024),
        ("50%", None),
        ("", None),
    ],
)
def test_size_of_a_tmpfs(size: str, number: int | None) -> None:
    text = f"1 1 0:1 / /dev/shm rw - tmpfs shm rw,size={size}\n"
    assert procfs.parse_mountinfo(text)[0].size == number


def test_mounts() -> None:
    text = "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n/dev/sda1 / ext4 rw 0 0\nnone swap\n"
    assert [(one.mount_point, one.filesystem, one.size) for one in procfs.parse_mounts(text)] == [
        ("/dev/shm", "tmpfs", 64 << 20),
        ("/", "ext4", None),
    ]


def test_environ() -> None:
    data = b"container=podman\x00HOME=/root\x00EMPTY=\x00=odd\x00nothing\x00BAD=\xff\x00A=b=c\x00"
    assert procfs.parse_environ(data) == {
        "container": "podman",
        "HOME": "/root",
        "EMPTY": "",
        "BAD": "\ufffd",
        "A": "b=c",
    }


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max locked memory         8388608              unlimited            bytes
Max open files            1024                 1048576              files
Max address space         unlimited            unlimited            bytes
Max nice priority         0                    0
"""


def test_limits() -> None:
    assert procfs.parse_limits(LIMITS) == {
        "Max cpu time": procfs.Limit(None, None, "seconds"),
        "Max locked memory": procfs.Limit(8388608, None, "bytes"),
        "Max open files": procfs.Limit(1024, 1048576, "files"),
        "Max address space": procfs.Limit(None, None, "bytes"),
        "Max nice priority": procfs.Limit(0, 0, ""),
    }
    with pytest.raises(ParseError):
        procfs.parse_limits("Limit  Soft Limit  Hard Limit  Units\n")


def test_devices() -> None:
    text = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n\nBlock devices:\n259 blkext\n"
    assert procfs.parse_devices(text) == {"mem": 1, "nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 511}


INFORMATION = """\
Model: \t\t NVIDIA A10G
IRQ:   \t\t 42
GPU UUID: \t GPU-11111111-0000-4000-8000-000000000000
Video BIOS: \t ??.??.??.??.??
Bus Type: \t PCIe
DMA Size: \t 47 bits
Bus Location: \t 0000:01:00.0
Device Minor: \t 0
GPU Firmware: \t 535.129.03
GPU Excluded:\t No
"""


def test_gpu_information() -> None:
    assert procfs.parse_gpu_information(INFORMATION) == procfs.GpuInformation(
        model="NVIDIA A10G",
        uuid="GPU-11111111-0000-4000-8000-000000000000",
        bus_location="0000:01:00.0",
        minor=0,
        firmware="535.129.03",
        excluded=False,
        bus_type="PCIe",
    )


def test_gpu_information_before_first_use_and_of_old_drivers() -> None:
    text = (
        "Model: \t\t Unknown\nBus Location: \t 0000:01:00.0\nGPU UUID: \t GPU-????????-????\n"
        "Blacklisted:\t Yes\nDevice Minor: \t x\n"
    )
    information = procfs.parse_gpu_information(text)
    assert (information.model, information.excluded, information.minor) == (None, True, None)
    assert information.bus_location == "0000:01:00.0"
    with pytest.raises(ParseError):
        procfs.parse_gpu_information("IRQ: 1\n")


# The real files of the machine that runs the tests.


def test_real_meminfo() -> None:
    memory = procfs.parse_meminfo(real("/proc/meminfo"))
    assert memory["MemTotal"] > memory["MemFree"] > 0


def test_real_swaps_add_up() -> None:
    swaps = procfs.parse_swaps(real("/proc/swaps"))
    assert sum(one.size for one in swaps) == procfs.parse_meminfo(real("/proc/meminfo"))["SwapTotal"]


def test_real_limits() -> None:
    limit = procfs.parse_limits(real("/proc/self/limits"))["Max open files"]
    expected = [None if n == resource.RLIM_INFINITY else n for n in resource.getrlimit(resource.RLIMIT_NOFILE)]
    assert [limit.soft, limit.hard] == expected


def test_real_mounts_agree() -> None:
    long, short = procfs.parse_mountinfo(real("/proc/self/mountinfo")), procfs.parse_mounts(real("/proc/self/mounts"))
    assert [(one.mount_point, one.filesystem) for one in long] == [(one.mount_point, one.filesystem) for one in short]
    assert procfs.mount_of(long, "/") is not None


def test_real_cgroup() -> None:
    paths = procfs.parse_cgroup(real("/proc/self/cgroup"))
    assert paths.unified is not None or paths.controllers
