r"""What redaction takes out of a text, and what it leaves alone."""

from __future__ import annotations

import pytest

from cudadoctor.model.fact import Facts, absent, known, unknown
from cudadoctor.system.redact import Redactor

# Alice Smith's laptop, a Mac's user, and a cluster where homes lie elsewhere.
ALICE = Redactor(["alice", "asmith"], "/home/alice", ["alice-laptop", "alice-laptop.example.org"])
CLUSTER = Redactor(["mmuster"], "/gpfs/people/mmuster", ["gpu017"])
WINDOWS = Redactor(["Jane Doe"], "C:\\Users\\Jane Doe", ["DESKTOP-4F2K9A"])
MAX = Redactor(["max"], "/home/max", ["max"])
ROOT = Redactor(["root"], "/root", ["ubuntu"])
TORCH = Redactor(["torch"], "/home/torch", ["cuda"])

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
ZERO = "GPU-00000000-0000-0000-0000-00000000000"

# Whose machine, the text before and after.
TEXTS: list[tuple[Redactor, str, str]] = [
    # people
    (ALICE, "/home/alice/proj/.venv/bin/python", "/home/user/proj/.venv/bin/python"),
    (ALICE, "/home/alice", "/home/user"),
    (ALICE, "PATH=/home/alice/bin:/usr/bin:/home/alice", "PATH=/home/user/bin:/usr/bin:/home/user"),
    (ALICE, "/home/bob/venv", "/home/other/venv"),
    (ALICE, "/home/alicesmith/venv", "/home/other/venv"),
    (ALICE, "/scratch/alice/venv", "/scratch/user/venv"),
    (ALICE, "/scratch/alice-env/lib", "/scratch/user-env/lib"),
    (ALICE, "/scratch/malice/lib", "/scratch/malice/lib"),
    (ALICE, "/data/asmith", "/data/user"),
    (ALICE, "/Users/alice/miniconda3", "/Users/user/miniconda3"),
    (ALICE, "/usr/lib/alice/x", "/usr/lib/alice/x"),  # no home lies in a system folder
    (ALICE, 'File "/mnt/alice/train.py", line 3', 'File "/mnt/user/train.py", line 3'),
    (CLUSTER, "/gpfs/people/mmuster/env", "/home/user/env"),
    (CLUSTER, "/gpfs/people/mmuster", "/home/user"),
    (CLUSTER, "/lustre/mmuster/env:/gpfs/people/mmuster/lib", "/lustre/user/env:/home/user/lib"),
    (WINDOWS, "C:\\Users\\Jane Doe\\AppData\\Local\\Temp", "C:\\Users\\user\\AppData\\Local\\Temp"),
    (WINDOWS, "c:/users/jane doe/venv", "c:/users/user/venv"),
    (WINDOWS, "D:\\Users\\Bob\\x;C:\\Windows", "D:\\Users\\other\\x;C:\\Windows"),
    (WINDOWS, "C:\\Users\\Public\\x", "C:\\Users\\Public\\x"),
    (MAX, "/home/max/a", "/home/user/a"),
    (MAX, "max\n", "max\n"),  # memory.max of a control group says so
    (MAX, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.max"),
    (MAX, "/sys/bus/pci/devices/0000:01:00.0/max_link_speed", "/sys/bus/pci/devices/0000:01:00.0/max_link_speed"),
    (MAX, "/opt/max_toolkit", "/opt/max_toolkit"),
    (ROOT, "/root/.pyenv/versions/3.11.7", "/root/.pyenv/versions/3.11.7"),
    (ROOT, "/home/linuxbrew/.linuxbrew/bin", "/home/linuxbrew/.linuxbrew/bin"),
    (ROOT, "Linux version 6.8 (buildd@lcy02) ubuntu", "Linux version 6.8 (buildd@lcy02) ubuntu"),
    (TORCH, "/data/torch/lib", "/data/torch/lib"),
    (TORCH, "/home/torch/venv/site-packages/torch/lib", "/home/user/venv/site-packages/torch/lib"),
    # hosts
    (ALICE, "running on alice-laptop now", "running on host now"),
    (ALICE, "alice-laptop.example.org", "host"),
    (CLUSTER, "Mar 10 09:15:02 gpu017 kernel: NVRM: Xid", "Mar 10 09:15:02 host kernel: NVRM: Xid"),
    (CLUSTER, "Mar  1 09:15:02 other9 kernel: x", "Mar  1 09:15:02 host kernel: x"),
    (CLUSTER, "2026-03-10T09:15:02+01:00 gpu099 kernel: x", "2026-03-10T09:15:02+01:00 host kernel: x"),
    (CLUSTER, "[    5.123456] nvidia: loading", "[    5.123456] nvidia: loading"),
    # devices
    (ALICE, UUID, ZERO + "1"),
    (ALICE, "GPU 0: NVIDIA A10 (UUID: " + UUID + ")", "GPU 0: NVIDIA A10 (UUID: " + ZERO + "1)"),
    (ALICE, "GPU-8932f937", "GPU-00000002"),
    (ALICE, "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0", "MIG-" + ZERO + "1/1/0"),
    (ALICE, "Serial Number: 1321220012345", "Serial Number: redacted"),
    (ALICE, "link/ether 52:54:00:12:34:56 brd", "link/ether 00:00:00:00:00:00 brd"),
    (ALICE, "00000000:3B:00.0 0000:01:00.0", "00000000:3B:00.0 0000:01:00.0"),
    (ALICE, "381b4222-f694-41f0-9685-ff5bb260df2e", "381b4222-f694-41f0-9685-ff5bb260df2e"),  # a power plan
    # credentials
    (ALICE, "https://me:secret@example.org/simple", "https://example.org/simple"),
    (ALICE, "git+https://ghp_0123456789abcdefghij@github.com/a/b", "git+https://github.com/a/b"),
    (ALICE, "https://example.org/simple?token=abc&x=1", "https://example.org/simple?token=redacted&x=1"),
    (ALICE, "Authorization hf_abcdefghijklmnopqrst", "Authorization redacted"),
    (ALICE, "https://download.pytorch.org/whl/cu126", "https://download.pytorch.org/whl/cu126"),
    # addresses, and version numbers that look like them
    (ALICE, "http://10.0.0.5:3128/", "http://192.0.2.1:3128/"),
    (ALICE, "10.1.2.3:/export /data nfs rw,addr=10.1.2.3", "192.0.2.1:/export /data nfs rw,addr=192.0.2.1"),
    (ALICE, "http://[fe80::1]:8080", "http://192.0.2.1:8080"),
    (ALICE, "nvidia-cublas-cu12 12.4.5.8", "nvidia-cublas-cu12 12.4.5.8"),
    (ALICE, "12.535.261.03", "12.535.261.03"),
    (ALICE, "cudnn 9.1.0.70: ok", "cudnn 9.1.0.70: ok"),
]  # fmt: skip


@pytest.mark.parametrize(("redactor", "before", "after"), TEXTS, ids=[before[:50] for _, before, _ in TEXTS])
def test_texts(redactor: Redactor, before: str, after: str) -> None:
    assert redactor.text(before) == after
    assert redactor.text(after) == after  # what is redacted may be redacted again


def test_the_same_device_keeps_its_number_and_others_get_their_own() -> None:
    redactor = Redactor()
    one, two = "GPU-11111111-2222-3333-4444-555555555555", "GPU-99999999-2222-3333-4444-555555555555"
    assert redactor.text(f"{one},{two}") == f"{ZERO}1,{ZERO}2"
    assert redactor.text(two.upper()) == f"{ZERO}2"


# Variable, value before and after.
VARIABLES = [
    ("HF_TOKEN", "hf_x", "redacted"),
    ("AWS_SECRET_ACCESS_KEY", "x", "redacted"),
    ("PIP_INDEX_URL", "https://u:p@example.org/simple", "https://example.org/simple"),
    ("USER", "alice", "user"),
    ("HOME", "/home/alice", "/home/user"),
    ("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22", "192.0.2.1 50000 192.0.2.1 22"),
    ("CUDA_VISIBLE_DEVICES", "0,1", "0,1"),
    ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64:/home/alice/lib", "/usr/local/cuda/lib64:/home/user/lib"),
]


@pytest.mark.parametrize(("name", "before", "after"), VARIABLES)
def test_variables(name: str, before: str, after: str) -> None:
    assert Redactor(["alice"], "/home/alice").variable(name, before) == after


def test_a_recording() -> None:
    document = {
        "schema": "cudadoctor.recording/1",
        "kernel_release": "6.8.0-45-generic",
        "identity": {"uid": 1000, "gid": 1000, "groups": ["alice", "video"], "is_admin": False},
        "variables": {"HOME": "/home/alice", "WANDB_API_KEY": "abc", "CUDA_HOME": {"absent": True}},
        "files": {
            "/home/alice/.config/pip/pip.conf": ["[global]", "index-url = https://u:p@example.org/simple", ""],
            "/proc/self/mountinfo": "40 30 0:50 / /data rw - nfs4 filer7.example.org:/vol/data rw\n",
            "/sys/fs/cgroup/memory.max": "max\n",
            "/boot/bytes": {"base64": "AAAA"},
        },
        "folders": {"/home": ["alice", "bob"], "/home/alice": ["proj"], "/scratch": ["alice", "torch"]},
        "links": {"/home/alice/env": "../../scratch/alice/env"},
        "real_paths": {"/home/alice/env": "/scratch/alice/env"},
        "status": {"/home/alice": {"kind": "directory"}},
        "which": {"python": "/home/alice/bin/python"},
        "programs": [{"argv": ["/home/alice/bin/python", "-V"], "stdout": "Python 3.12.1", "exit_status": 0}],
        "own_interpreter": {"executable": "/home/alice/bin/python"},
        "nvml": {"gpus": [{"name": "NVIDIA A10"}]},
    }
    assert Redactor(["alice"], "/home/alice", ["alice-laptop"]).document(document) == {
        "schema": "cudadoctor.recording/1",
        "kernel_release": "6.8.0-45-generic",
        "identity": {"uid": 1000, "gid": 1000, "groups": ["user", "video"], "is_admin": False},
        "variables": {"HOME": "/home/user", "WANDB_API_KEY": "redacted", "CUDA_HOME": {"absent": True}},
        "files": {
            "/home/user/.config/pip/pip.conf": ["[global]", "index-url = https://example.org/simple", ""],
            "/proc/self/mountinfo": "40 30 0:50 / /data rw - nfs4 server:/vol/data rw\n",
            "/sys/fs/cgroup/memory.max": "max\n",
            "/boot/bytes": {"base64": "AAAA"},
        },
        "folders": {"/home": ["other", "user"], "/home/user": ["proj"], "/scratch": ["torch", "user"]},
        "links": {"/home/user/env": "../../scratch/user/env"},
        "real_paths": {"/home/user/env": "/scratch/user/env"},
        "status": {"/home/user": {"kind": "directory"}},
        "which": {"python": "/home/user/bin/python"},
        "programs": [{"argv": ["/home/user/bin/python", "-V"], "stdout": "Python 3.12.1", "exit_status": 0}],
        "own_interpreter": {"executable": "/home/user/bin/python"},
        "nvml": {"gpus": [{"name": "NVIDIA A10"}]},
    }


def test_facts() -> None:
    facts = Facts(
        {
            "python.prefix": known("/home/alice/venv", "/home/alice/venv/pyvenv.cfg"),
            "system.groups": known(["alice", "video"], "user ids"),
            "env.CUDA_HOME": absent("$CUDA_HOME"),
            "kernel.log_events": known([{"kind": "xid", "line": "Mar 10 09:15:02 pc9 kernel: NVRM: Xid"}], "dmesg"),
            "disk.kind": unknown("/home/alice: permission denied", "/home/alice"),
            "scheduler.node": known("gpu017", "$SLURMD_NODENAME"),
        }
    )
    redacted = Redactor(["alice"], "/home/alice", ["gpu017"]).facts(facts)
    assert redacted == Facts(
        {
            "python.prefix": known("/home/user/venv", "/home/user/venv/pyvenv.cfg"),
            "system.groups": known(["user", "video"], "user ids"),
            "env.CUDA_HOME": absent("$CUDA_HOME"),
            "kernel.log_events": known([{"kind": "xid", "line": "Mar 10 09:15:02 host kernel: NVRM: Xid"}], "dmesg"),
            "disk.kind": unknown("/home/user: permission denied", "/home/user"),
            "scheduler.node": known("gpu017", "$SLURMD_NODENAME"),
        }
    )


def test_another_process_variables_are_dropped_but_for_the_kind_of_container() -> None:
    before = b"container=podman\0HF_TOKEN=hf_secret\0PATH=/usr/bin\0"
    after = Redactor().content("/proc/1/environ", before)
    assert after == b"container=podman\0HF_TOKEN=redacted\0PATH=redacted\0"
    assert Redactor().content("/etc/os-release", before) == before


def test_programs_in_nvidia_smis_list_lose_their_names() -> None:
    rows = [
        "|   0  NVIDIA A10                     On  | 00000000:01:00.0 Off |                    0 |",
        "|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |",
        "|    0   N/A  N/A      4242      C   .../envs/secret-project/bin/python3        69000MiB |",
        "|    0      1742      G   /usr/lib/xorg/Xorg                            57MiB |",
        "|    1   N/A  N/A      9121    C+G   C:\\Windows\\explorer.exe                       N/A      |",
        "|  No running processes found                                                           |",
    ]
    document = {"programs": [{"argv": ["/usr/bin/nvidia-smi"], "stdout": rows}]}
    assert Redactor().document(document)["programs"][0]["stdout"] == [
        rows[0],
        rows[1],
        "|    0   N/A  N/A      4242      C   program                                    69000MiB |",
        "|    0      1742      G   program                                       57MiB |",
        "|    1   N/A  N/A      9121    C+G   program                                       N/A      |",
        rows[5],
    ]


def test_names_in_binary_files_keep_their_length() -> None:
    redactor = Redactor(["alice"], "/home/alice")
    assert redactor.piece(b"\0/home/alice/build/x.cpp\0") == b"\0/home/uuuuu/build/x.cpp\0"
    assert redactor.piece(b"malice/") == b"malice/"


def test_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/gpfs/people/mmuster")
    monkeypatch.setenv("USER", "mmuster")
    monkeypatch.setenv("SUDO_USER", "erika")
    monkeypatch.setenv("HOSTNAME", "gpu017.cluster.example")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    monkeypatch.delenv("NODE_NAME", raising=False)
    redactor = Redactor.of_this_machine()
    assert redactor.text("gpu017: /gpfs/people/mmuster/x /scratch/erika/y") == "host: /home/user/x /scratch/user/y"
    monkeypatch.setenv("SLURMD_NODENAME", "gpu017")
    assert Redactor.of_this_machine().text("gpu017: ok") == "gpu017: ok"  # the scheduler has named it already
