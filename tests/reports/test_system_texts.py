"""What Linux, Windows, containers and torch's allocator print about the machine, and the facts that it becomes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.reports import read_report

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


# Text -> the facts that it must become, with None for what it says to be absent.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lsmod | grep nvidia": (
        "nvidia_uvm           4800000  2\nnvidia              56000000  90 nvidia_uvm,nvidia_modeset\n",
        {"driver.module_loaded": True, "kernel.modules": ["nvidia_uvm", "nvidia"]},
    ),
    "lsmod with nouveau": (
        "Module                  Size  Used by\nnouveau              2400000  4\n"
        "mxm_wmi                12288  1 nouveau\n",
        {"kernel.modules": ["nouveau", "mxm_wmi"]},
    ),
    "modinfo": (
        "filename:       /lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko.zst\nversion:        550.90.07\n"
        "license:        Dual MIT/GPL\nvermagic:       6.8.0-45-generic SMP preempt mod_unload modversions \n",
        {
            "kernel.nvidia_module_files": [
                {
                    "kernel": "6.8.0-45-generic",
                    "path": "/lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko.zst",
                    "version": "550.90.07",
                    "flavour": "open",
                }
            ]
        },
    ),
    "the banner of Windows' shell": (
        "Microsoft Windows [Version 10.0.19045.2728]\n",
        {"system.windows_build": 19045},
    ),
    "a prompt of PowerShell": ("PS C:\\demo> nvidia-smi.exe\n", {"system.os": "windows"}),
    "a path of Windows in a traceback": (
        '  File "C:\\demo\\train.py", line 9, in <module>\n',
        {"system.os": "windows"},
    ),
    "a path of Windows beside WSL": ("in WSL2\nPS C:\\demo> wsl\n", {}),
    "the first kernels of WSL 2": (
        "$ uname -r\n4.19.128-microsoft-standard\n",
        {"system.os": "linux", "system.wsl": 2, "system.kernel_release": "4.19.128-microsoft-standard"},
    ),
    "WSL 1": (
        "$ uname -r\n4.4.0-22621-Microsoft\n",
        {"system.os": "linux", "system.wsl": 1, "system.kernel_release": "4.4.0-22621-Microsoft"},
    ),
    "modinfo without a module": ("modinfo: ERROR: Module nvidia not found.\n", {"kernel.nvidia_module_files": []}),
    "lspci -nnk": (
        "41:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)\n"
        "\tSubsystem: Example Corp. Device [1043:0001]\n\tKernel modules: nvidiafb, nouveau\n",
        {"pci.gpus": [{"address": "0000:41:00.0", "device_id": "20f1", "class": "030200", "driver": None}]},
    ),
    "lspci -vv": (
        "41:00.0 VGA compatible controller: NVIDIA Corporation Device 2b85 (rev a1)\n"
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8\n"
        "\tKernel driver in use: vfio-pci\n",
        {
            "pci.gpus": [
                {
                    "address": "0000:41:00.0",
                    "device_id": "2b85",
                    "class": "030000",
                    "max_link_speed_gts": 32.0,
                    "max_link_width": 16,
                    "link_speed_gts": 2.5,
                    "link_width": 8,
                    "driver": "vfio-pci",
                }
            ]
        },
    ),
    "dkms": (
        "nvidia/550.90.07, 6.8.0-45-generic, x86_64: installed\nzfs/2.2, 6.8.0-45-generic, x86_64: installed\n",
        {
            "kernel.dkms": [
                {"version": "550.90.07", "kernel": "6.8.0-45-generic", "arch": "x86_64", "status": "installed"}
            ]
        },
    ),
    "Secure Boot on": ("SecureBoot enabled\n", {"kernel.secure_boot": True}),
    "Secure Boot off in shim": (
        "SecureBoot enabled\nSecureBoot validation is disabled in shim\n",
        {"kernel.secure_boot": False},
    ),
    "no Secure Boot": ("This system doesn't support Secure Boot\n", {"kernel.secure_boot": None}),
    "uname": (
        "Linux box 6.6.87.2-microsoft-standard-WSL2 #1 SMP PREEMPT_DYNAMIC Thu Jun 5 18:30:46 UTC 2025 x86_64 "
        "GNU/Linux\n",
        {
            "system.os": "linux",
            "system.kernel_release": "6.6.87.2-microsoft-standard-WSL2",
            "system.arch": "x86_64",
            "system.wsl": 2,
        },
    ),
    "os-release": (
        'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
        {
            "system.distribution": "debian",
            "system.distribution_version": "12",
            "system.distribution_name": "Debian GNU/Linux 12 (bookworm)",
        },
    ),
    "Jetson": (
        "# R36 (release), REVISION: 4.4, GCID: 1, BOARD: generic, EABI: aarch64\n",
        {"system.jetson": "R36.4.4"},
    ),
    "the loaded driver": (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build  (builder@box)\n",
        {"driver.procfs_version": "575.57.08", "driver.module_flavour": "open", "driver.module_loaded": True},
    ),
    "no driver's file": (
        "cat: /proc/driver/nvidia/version: No such file or directory\n",
        {"driver.procfs_version": None},
    ),
    "free -h in German": (
        "               gesamt       benutzt     frei      gemns.  Puffer/Cache verfügbar\n"
        "Speicher:       31Gi       4,5Gi        11Gi       200Mi        15Gi        26Gi\n"
        "Swap:          1,5Gi          0B       1,5Gi\n",
        {"memory.total": 31 * GIB, "memory.available": 26 * GIB, "memory.swap_total": 3 * GIB // 2},
    ),
    "free -m": (
        "$ free -m\n              total        used        free      shared  buff/cache   available\n"
        "Mem:          64000        8000       21000         300       33000       54000\n"
        "Swap:             0           0           0\n",
        {"memory.total": 64000 * MIB, "memory.available": 54000 * MIB, "memory.swap_total": 0},
    ),
    "meminfo": ("MemTotal:       32768000 kB\nSwapTotal:             0 kB\n", {"memory.total": 32768000 << 10}),
    "swapon": (
        "NAME       TYPE      SIZE USED PRIO\n/swapfile  file        4G   0B   -2\n",
        {"memory.swap_total": 4 * GIB, "memory.swap_devices": [{"path": "/swapfile", "kind": "file", "size": 4 * GIB}]},
    ),
    "df in Chinese": (
        "文件系统        大小  已用  可用 已用% 挂载点\nshm              64M   4M   60M    7% /dev/shm\n",
        {"memory.shm_size": 64 * MIB, "memory.shm_free": 60 * MIB},
    ),
    "ulimit of bash": (
        "max locked memory           (kbytes, -l) 65536\nopen files                          (-n) 4096\n"
        "virtual memory              (kbytes, -v) unlimited\n",
        {"limits.memlock": 64 * MIB, "limits.nofile": 4096, "limits.address_space": None},
    ),
    "ulimit of zsh": ("-n: file descriptors                512\n", {"limits.nofile": 512}),
    "device files": (
        "crw-rw---- 1 root video 195,   0 Feb  1 10:00 /dev/nvidia0\n"
        "crw-rw-rw- 1 root root 195, 255 Feb  1 10:00 /dev/nvidiactl\n",
        {
            "device.nodes": [
                {
                    "path": "/dev/nvidia0",
                    "mode": "660",
                    "uid": 0,
                    "gid": None,
                    "group": "video",
                    "usable": None,
                    "device": "195:0",
                },
                {
                    "path": "/dev/nvidiactl",
                    "mode": "666",
                    "uid": 0,
                    "gid": 0,
                    "group": "root",
                    "usable": True,
                    "device": "195:255",
                },
            ]
        },
    ),
    "no device files": ("ls: cannot access '/dev/nvidia*': No such file or directory\n", {"device.nodes": []}),
    "ldconfig": (
        "\tlibcudart.so.12 (libc6,x86-64) => /usr/local/cuda/lib64/libcudart.so.12\n",
        {"libraries.listed": [{"path": "/usr/local/cuda/lib64/libcudart.so.12", "soname": "libcudart.so.12"}]},
    ),
    "driver packages": (
        "ii  nvidia-driver-550   550.90.07-0ubuntu0.22.04.1  amd64  NVIDIA driver metapackage\n"
        "rc  nvidia-utils-470    470.256.02-0ubuntu0.22.04.1 amd64  NVIDIA driver support binaries\n"
        "ii  nvidia-container-toolkit 1.17.8-1 amd64 NVIDIA Container toolkit\n",
        {"driver.packages": [{"name": "nvidia-driver-550", "version": "550.90.07-0ubuntu0.22.04.1"}]},
    ),
    "fabric manager": (
        "* nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
        "     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled)\n"
        "     Active: failed (Result: exit-code) since Sun 2026-02-01 10:00:00 UTC\n",
        {"driver.fabric_manager": "stopped"},
    ),
    "variables": (
        'CUDA_VISIBLE_DEVICES=0,1\nexport PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"\nSECRET_CUDA_TOKEN=abc\n'
        "HOME=/home/demo\n$ NCCL_P2P_DISABLE=1 python train.py\n",
        {
            "env.CUDA_VISIBLE_DEVICES": "0,1",
            "env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            "env.NCCL_P2P_DISABLE": "1",
        },
    ),
    "powercfg in French": (
        "GUID du mode de gestion de l'alimentation : 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c  (Performances élevées)\n",
        {
            "windows.power_plan": "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c",
            "windows.power_plan_name": "Performances élevées",
        },
    ),
    "systeminfo in German": (
        "Betriebssystemversion:         10.0.22631 Nicht zutreffend Build 22631\n"
        "Gesamter physischer Speicher:                  16.200 MB\n"
        "Virtueller Arbeitsspeicher: Maximale Größe:    20.200 MB\n",
        {
            "system.windows_build": 22631,
            "memory.total": 16200 * MIB,
            "memory.commit_limit": 20200 * MIB,
            "memory.swap_total": 4000 * MIB,
        },
    ),
    "registry": (
        "    HwSchMode    REG_DWORD    0x1\n    PagingFiles    REG_MULTI_SZ    c:\\pagefile.sys 1024 4096\n",
        {
            "windows.hardware_scheduling": "off",
            "memory.page_file": [
                {"path": "c:\\pagefile.sys", "mode": "fixed", "initial": 1024 * MIB, "maximum": 4096 * MIB}
            ],
        },
    ),
    "a registry value that is not there": (
        'C:\\>reg query "HKLM\\SYSTEM" /v TdrDelay\n\n'
        "FEHLER: Der angegebene Registrierungsschlüssel wurde nicht gefunden.\n",
        {"windows.tdr_delay": None},
    ),
    "wmic": (
        "AdapterRAM  DriverVersion   Name\n4293918720  32.0.15.7652    NVIDIA GeForce RTX 4070\n",
        {
            "driver.windows_version": "576.52",
            "windows.gpus": [
                {
                    "name": "NVIDIA GeForce RTX 4070",
                    "driver_version": "576.52",
                    "vendor_id": "10de",
                    "device_id": None,
                }
            ],
        },
    ),
    "dxdiag": (
        "           Card name: NVIDIA GeForce RTX 4070\n      Driver Version: 32.0.15.7652\n"
        "   Hardware Scheduling: DriverSupportState:Stable Enabled:False\n           Vendor ID: 0x10DE\n",
        {"driver.windows_version": "576.52", "windows.hardware_scheduling": "off"},
    ),
    "wsl in Chinese": (
        "WSL 版本： 2.5.9.0\n内核版本： 6.6.87.2-1\nWindows 版本： 10.0.26100.4652\n",
        {"wsl.version": "2.5.9.0", "wsl.kernel_version": "6.6.87.2-1", "system.windows_build": 26100},
    ),
    "docker without a GPU": (
        "$ docker run --rm -it -v /data:/data pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime python train.py\n",
        {"container.image": "pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime", "container.gpus_requested": False},
    ),
    "docker with GPUs": (
        "docker run --gpus all --ipc=host --shm-size=8g \\\n   nvidia/cuda:12.8.0-base-ubuntu22.04 nvidia-smi\n",
        {"container.gpus_requested": True, "container.host_ipc": True, "container.shm_size": 8 * GIB},
    ),
    "Dockerfile": (
        "FROM nvidia/cuda:12.6.3-devel-ubuntu24.04\n",
        {"container.image": "nvidia/cuda:12.6.3-devel-ubuntu24.04"},
    ),
    "inside a container": ("root@0a1b2c3d4e5f:/workspace# python\n", {"system.container": "docker"}),
    "pod": (
        "    Limits:\n      cpu: 4\n      nvidia.com/gpu:  2\n",
        {"pod.gpu_limit": 2, "scheduler.kind": "kubernetes"},
    ),
    "pod without a GPU": ("    Limits:\n      cpu: 4\n      memory: 8Gi\n", {"pod.gpu_limit": 0}),
    "memory_summary": (
        "|                  PyTorch CUDA memory summary, device ID 1                 |\n"
        "|            CUDA OOMs: 2            |        cudaMalloc retries: 5         |\n"
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
        "| Allocated memory      |   5120 MiB |   6144 MiB |  40960 MiB |  35840 MiB |\n"
        "| GPU reserved memory   |   7168 MiB |   7168 MiB |   7168 MiB |      0 B   |\n"
        "| Non-releasable memory |   1024 MiB |   1100 MiB |  40000 MiB |  39000 MiB |\n",
        {
            "allocator.device": 1,
            "allocator.ooms": 2,
            "allocator.retries": 5,
            "allocator.allocated": 5120 * MIB,
            "allocator.allocated_peak": 6144 * MIB,
            "allocator.reserved": 7168 * MIB,
            "allocator.not_releasable": 1024 * MIB,
        },
    ),
    "full memory, torch 1": (
        "CUDA out of memory. Tried to allocate 30.00 MiB (GPU 2; 12.00 GiB total capacity; 9.00 GiB already allocated; "
        "16.00 MiB free; 10.00 GiB reserved in total by PyTorch)\n",
        {
            "oom.device": 2,
            "oom.tried": 30 * MIB,
            "oom.total": 12 * GIB,
            "oom.allocated": 9 * GIB,
            "oom.free": 16 * MIB,
            "oom.reserved": 10 * GIB,
        },
    ),
    "full memory, torch 2, wrapped": (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 24.00 GiB of which 1.00 GiB is\n"
        "free. Process 4711 has 8.00 GiB memory in use. Including non-PyTorch memory, this process has 15.00 "
        "GiB memory in\n"
        "use. Of the allocated memory 10.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch "
        "but unallocated.\n",
        {
            "oom.tried": 2 * GIB,
            "oom.total": 24 * GIB,
            "oom.free": GIB,
            "oom.others": 8 * GIB,
            "oom.process": 15 * GIB,
            "oom.allocated": 10 * GIB,
            "oom.reserved": 14 * GIB,
        },
    ),
    "torch's list of GPUs": (
        "The current PyTorch install supports CUDA capabilities sm_75 sm_86 compute_86.\n",
        {"torch.sass": ["sm_75", "sm_86"], "torch.ptx": ["compute_86"]},
    ),
    "an Xid": (
        "Feb 01 10:00:00 box kernel: NVRM: Xid (PCI:0000:41:00): 48, pid='<unknown>', name=<unknown>, DBE\n",
        {
            "kernel.log_events": [
                {
                    "kind": "xid",
                    "text": "NVRM: Xid (PCI:0000:41:00): 48, pid='<unknown>', name=<unknown>, DBE",
                    "bus_id": "0000:41:00.0",
                    "seconds": None,
                    "values": {"number": "48", "detail": "pid='<unknown>', name=<unknown>, DBE"},
                }
            ]
        },
    ),
}


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES)
def test_a_text_becomes_facts(matrix: Matrix, text: str, wanted: dict[str, Any]) -> None:
    facts = read_report([("r", "some prose\n\n" + text + "\nmore prose\n")], matrix).facts
    found = {
        name: None if facts[name].is_absent else facts[name].get() for name in wanted if not facts[name].is_unknown
    }
    assert found == wanted
    assert all(facts[name].source.startswith("line ") for name in wanted)


def test_values_of_other_variables_never_become_facts(matrix: Matrix) -> None:
    text = "AWS_SECRET_ACCESS_KEY=abc123\nHF_TOKEN=hf_abc\nCUDA_API_TOKEN=t0k\nHOME=/home/ann\nexport PASSWORD=x\n"
    facts = read_report([("r", text)], matrix).facts
    assert [name for name in facts if name.startswith("env.")] == []


ADVICE = (
    "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "export CUDA_VISIBLE_DEVICES=<your gpu>",
    "   docker run --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 ...",
    "the Secure Boot setting, is it enabled?",
    "free memory: a lot",
)


@pytest.mark.parametrize("line", ADVICE)
def test_advice_and_placeholders_are_no_facts(matrix: Matrix, line: str) -> None:
    facts = read_report([("r", line)], matrix).facts
    assert [name for name in facts if not name.startswith(("symptom.", "examination."))] == []


def test_texts_that_are_cut_and_mixed_never_fail(matrix: Matrix) -> None:
    generator = random.Random(4)
    lines = [line for text, _ in CASES.values() for line in text.splitlines()]
    for _ in range(60):
        generator.shuffle(lines)
        text = "\n".join(line[generator.randrange(3) : generator.randrange(1, 200)] for line in lines)
        assert read_report([("r", text)], matrix).facts["examination.kind"].is_known
