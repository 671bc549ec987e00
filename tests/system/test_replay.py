"""A recorded machine answers as it is written, and a bad recording is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.model.fact import Fact, ParseError
from cudadoctor.system.port import DiskUsage, FileStatus, Identity, ProgramResult
from cudadoctor.system.recording import MAPS, SCALARS, RecordingError
from cudadoctor.system.replay import ReplaySystem

# -- a Linux machine written by hand --------------------------------------------------------------------------------

BY_HAND: dict[str, Any] = {
    "unlisted": "absent",
    "kernel_release": "6.8.0-45-generic",
    "machine": "x86_64",
    "libc": ["glibc", "2.35"],
    "today": "2026-11-30",
    "working_folder": "/home/user",
    "identity": {"uid": 1000, "gid": 1000, "groups": ["user", "video"]},
    "limits": {"nofile": 1024, "memlock": "unlimited"},
    "variables": {"PATH": "/usr/local/cuda/bin:/usr/bin", "CUDA_HOME": "", "LD_PRELOAD": {"absent": True}},
    "files": {
        "/proc/modules": "nvidia 56717312 66 - Live 0x0000000000000000 (POE)\n",
        "/etc/os-release": ["ID=ubuntu", 'VERSION_ID="22.04"', ""],
        "/var/log/kern.log": {"error": "permission denied"},
        "/etc/nvidia": {"absent": True},
        "/sys/firmware/efi/efivars/SecureBoot-8be4": {"base64": "BgAAAAE="},
        "/usr/local/cuda-12.4/version.json": "{}",
        "/usr/lib/libcuda.so.535.183.01": "\x7fELF",
        "/usr/bin/python3.10": "",
        "notes.txt": "beside the working folder",
    },
    "links": {
        "/usr/local/cuda": "/etc/alternatives/cuda",
        "/etc/alternatives/cuda": "/usr/local/cuda-12.4",
        "/usr/lib/libcuda.so.1": "libcuda.so.535.183.01",
        "/usr/lib/dangling.so": "gone.so",
        "/usr/bin/python3": "python3.10",
        "/circle": "/circle",
    },
    "status": {
        "/dev/nvidia0": {"device": "195:0"},
        "/dev/nvidiactl": {"device": "195:255", "mode": "0660", "gid": 44, "readable": False, "writable": False},
        "/opt": {"kind": "directory", "mode": "0700", "readable": False},
    },
    "binaries": {"/usr/lib/large.so": {"size": 1000, "pieces": {"0": "AAEC", "3": "AwQF", "998": "/v8="}}},
    "disks": {"/": {"total": 100, "free": 40}, "/data": {"total": 1000, "free": 1}},
    "group_names": {"44": "video"},
    "loader_cache": {"libcuda.so.1": ["/usr/lib/libcuda.so.1"]},
    "programs": [
        {"argv": ["nvidia-smi"], "exit_status": 9, "stdout": ["has failed", ""]},
        {"argv": ["/usr/local/cuda/bin/nvcc", "--version"], "stdout": "release 12.4"},
        {"argv": ["dmesg"], "timed_out": True, "stderr": "slow"},
        {"argv": ["/usr/bin/gcc", "--version"], "absent": True},
        {"argv": ["env-test"], "environment": {"A": "1"}, "stdout": "with A"},
    ],
    "own_interpreter": {"executable": "/usr/bin/python3", "prefix": "/usr", "version": "3.10.12"},
    "nvml": {"init": {"code": 9, "error": "Driver Not Loaded"}},
}

KNOWN, ABSENT = "known", "absent"

NOT_THERE = (ABSENT, None)


def regular(size: int, mode: int = 0o644) -> FileStatus:
    return FileStatus("file", mode, 0, 0, size, None, True, False)


FOLDER = FileStatus("directory", 0o755, 0, 0, 0, None, True, False)

# Question, its arguments, (state, value) or (unknown, reason).
ANSWERS: list[tuple[str, tuple[Any, ...], tuple[str, Any]]] = [
    ("kernel_release", (), (KNOWN, "6.8.0-45-generic")),
    ("machine", (), (KNOWN, "x86_64")),
    ("libc", (), (KNOWN, ("glibc", "2.35"))),
    ("today", (), (KNOWN, "2026-11-30")),
    ("working_folder", (), (KNOWN, "/home/user")),
    ("identity", (), (KNOWN, Identity(1000, 1000, ("user", "video"), False))),
    ("limit", ("nofile",), (KNOWN, 1024)),
    ("limit", ("memlock",), NOT_THERE),
    ("limit", ("as",), NOT_THERE),
    ("variable", ("CUDA_HOME",), (KNOWN, "")),
    ("variable", ("LD_PRELOAD",), NOT_THERE),
    ("variable", ("CUDA_PATH",), NOT_THERE),
    ("variable_names", (), (KNOWN, ["CUDA_HOME", "PATH"])),
    (
        "own_interpreter",
        (),
        (KNOWN, {"executable": "/usr/bin/python3", "prefix": "/usr", "base_prefix": "/usr", "version": "3.10.12"}),
    ),
    # files
    ("read_text", ("/proc/modules",), (KNOWN, "nvidia 56717312 66 - Live 0x0000000000000000 (POE)\n")),
    ("read_text", ("/etc/os-release",), (KNOWN, 'ID=ubuntu\nVERSION_ID="22.04"\n')),
    ("read_text", ("/proc/modules", 6), (KNOWN, "nvidia")),
    ("read_bytes", ("/sys/firmware/efi/efivars/SecureBoot-8be4",), (KNOWN, b"\x06\x00\x00\x00\x01")),
    ("read_text", ("/var/log/kern.log",), ("unknown", "permission denied")),
    ("read_text", ("/etc/nvidia",), NOT_THERE),
    ("read_text", ("/etc/never-heard-of",), NOT_THERE),
    ("read_text", ("/proc",), ("unknown", "it is a folder")),
    ("read_text", ("/usr/local/cuda/version.json",), (KNOWN, "{}")),
    ("read_text", ("/usr/local/cuda/../cuda/./version.json",), (KNOWN, "{}")),
    ("read_text", ("/circle",), ("unknown", "too many symbolic links")),
    ("read_text", ("notes.txt",), (KNOWN, "beside the working folder")),
    ("read_text", ("/home/user/notes.txt",), (KNOWN, "beside the working folder")),
    # folders, as listed files imply them
    ("list_folder", ("/usr/local",), (KNOWN, ["cuda", "cuda-12.4"])),
    ("list_folder", ("/usr/local/cuda/",), (KNOWN, ["bin", "version.json"])),
    ("list_folder", ("/dev",), (KNOWN, ["nvidia0", "nvidiactl"])),
    ("list_folder", ("/sys/module/nvidia",), NOT_THERE),
    ("list_folder", ("/etc",), (KNOWN, ["alternatives", "os-release"])),
    # links
    ("link_target", ("/usr/lib/libcuda.so.1",), (KNOWN, "libcuda.so.535.183.01")),
    ("link_target", ("/proc/modules",), NOT_THERE),
    ("link_target", ("/nowhere",), NOT_THERE),
    ("real_path", ("/usr/local/cuda/version.json",), (KNOWN, "/usr/local/cuda-12.4/version.json")),
    ("real_path", ("/usr/lib/libcuda.so.1",), (KNOWN, "/usr/lib/libcuda.so.535.183.01")),
    ("real_path", ("/usr/lib/dangling.so",), NOT_THERE),
    ("real_path", ("/circle",), ("unknown", "too many symbolic links")),
    # status
    ("status", ("/proc/modules",), (KNOWN, regular(51))),
    ("status", ("/usr/lib/libcuda.so.1",), (KNOWN, regular(4))),
    ("status", ("/usr/lib/large.so",), (KNOWN, regular(1000))),
    ("status", ("/usr/lib/dangling.so",), NOT_THERE),
    ("status", ("/usr/local/cuda",), (KNOWN, FOLDER)),
    ("status", ("/",), (KNOWN, FOLDER)),
    ("status", ("/var/log/kern.log",), ("unknown", "permission denied")),
    ("status", ("/dev/nvidia0",), (KNOWN, FileStatus("character-device", 0o666, 0, 0, 0, "195:0", True, True))),
    ("status", ("/dev/nvidiactl",), (KNOWN, FileStatus("character-device", 0o660, 0, 44, 0, "195:255", False, False))),
    ("status", ("/opt",), (KNOWN, FileStatus("directory", 0o700, 0, 0, 0, None, False, False))),
    ("status", ("/usr/local/cuda/bin/nvcc",), (KNOWN, regular(0, 0o755))),
    ("disk_usage", ("/tmp/deep/down",), (KNOWN, DiskUsage(100, 40))),
    ("disk_usage", ("/data/sets",), (KNOWN, DiskUsage(1000, 1))),
    ("group_name", (44,), (KNOWN, "video")),
    ("group_name", (45,), NOT_THERE),
    ("cached_libraries", (["libcuda.so.1"],), (KNOWN, {"libcuda.so.1": ["/usr/lib/libcuda.so.1"]})),
    ("cached_libraries", (["libx.so"],), (KNOWN, {"libx.so": []})),
    # programs
    ("which", ("nvcc",), (KNOWN, "/usr/local/cuda/bin/nvcc")),
    ("which", ("python3",), (KNOWN, "/usr/bin/python3")),
    ("which", ("nvidia-smi",), (KNOWN, "/usr/bin/nvidia-smi")),
    ("which", ("gcc",), NOT_THERE),
    ("which", ("docker",), NOT_THERE),
    ("run", (["/usr/bin/nvidia-smi"], 1), (KNOWN, ProgramResult(9, "has failed\n", "", False))),
    ("run", (["nvidia-smi"], 1), (KNOWN, ProgramResult(9, "has failed\n", "", False))),
    ("run", (["nvidia-smi", "-L"], 1), NOT_THERE),
    ("run", (["/usr/local/cuda/bin/nvcc", "--version"], 1), (KNOWN, ProgramResult(0, "release 12.4", "", False))),
    ("run", (["/bin/dmesg"], 1), (KNOWN, ProgramResult(None, "", "slow", True))),
    ("run", (["/usr/bin/gcc", "--version"], 1), NOT_THERE),
    ("run", (["env-test"], 1), NOT_THERE),
    ("run", (["env-test"], 1, {"A": "1"}), (KNOWN, ProgramResult(0, "with A", "", False))),
    # NVML
    ("nvml_library", (), (KNOWN, "libnvidia-ml.so.1")),
    # not Windows
    ("registry_value", ("HKLM\\SYSTEM", "x"), NOT_THERE),
    ("registry_keys", ("HKLM\\SYSTEM",), NOT_THERE),
    ("windows_call", ("memory",), NOT_THERE),
]


@pytest.mark.parametrize(("question", "arguments", "expected"), ANSWERS)
def test_a_machine_written_by_hand(question: str, arguments: tuple[Any, ...], expected: tuple[str, Any]) -> None:
    answer: Fact[Any] = getattr(ReplaySystem.of(BY_HAND), question)(*arguments)
    assert (answer.state, answer.reason if answer.is_unknown else answer.value) == expected


def test_pieces_of_a_binary_file() -> None:
    reader = ReplaySystem.of(BY_HAND).open_binary("/usr/lib/large.so").get()
    assert reader.size == 1000
    assert reader.read_at(0, 6) == bytes(range(6))  # two pieces that touch
    assert reader.read_at(4, 2) == b"\x04\x05"
    assert reader.read_at(998, 50) == b"\xfe\xff"
    assert reader.read_at(2000, 5) == b""
    for offset, length in ((4, 10), (500, 1), (990, 10)):
        with pytest.raises(OSError, match="not in the recording"):
            reader.read_at(offset, length)
    small = ReplaySystem.of(BY_HAND).open_binary("/usr/lib/libcuda.so.1").get()
    assert (small.size, small.read_at(1, 3)) == (4, b"ELF")


def test_what_a_recording_does_not_list_is_unknown() -> None:
    document = {**BY_HAND, "unlisted": "unknown"}
    system = ReplaySystem.of(document)
    answers: list[Fact[Any]] = [
        system.read_text("/etc/never-heard-of"),
        system.list_folder("/usr/local"),  # its names are not all listed
        system.list_folder("/nowhere"),
        system.status("/nowhere"),
        system.link_target("/nowhere"),
        system.real_path("/nowhere"),
        system.disk_usage("/tmp"),
        system.variable("CUDA_PATH"),
        system.variable_names(),
        system.limit("as"),
        system.which("nvcc"),
        system.run(["nvidia-smi", "-L"], 1),
        system.group_name(45),
        system.cached_libraries(["libcuda.so.1", "libx.so"]),
        system.registry_value("HKLM\\SYSTEM", "x"),
        system.registry_keys("HKLM\\SYSTEM"),
        system.windows_call("memory"),
        ReplaySystem.of({}).machine(),
        ReplaySystem.of({}).nvml_library(),
        ReplaySystem.of({}).start_nvml("", 1).result(),
        ReplaySystem.of({}).own_interpreter(),
    ]
    assert {(answer.state, answer.reason) for answer in answers} == {("unknown", "not in the recording")}
    assert all(answer.source for answer in answers)
    # What is listed is as known as ever.
    assert system.status("/proc/modules").get().kind == "file"
    assert system.real_path("/usr/local/cuda/version.json").get() == "/usr/local/cuda-12.4/version.json"


def test_the_interpreter_that_was_asked_for() -> None:
    recorded = {"asked_python": "/opt/venv/bin/python"}
    assert ReplaySystem.of({}).asked_python is None
    assert ReplaySystem.of(recorded).asked_python == "/opt/venv/bin/python"
    assert ReplaySystem.of(recorded, "/usr/bin/python3").asked_python == "/usr/bin/python3"


# -- a Windows machine on whatever runs this test -------------------------------------------------------------------

WINDOWS = {
    "unlisted": "absent",
    "platform": "windows",
    "variables": {"Path": "C:\\Windows\\system32;C:\\Program Files\\CUDA\\bin", "windir": "C:\\Windows"},
    "files": {"C:\\Windows\\System32\\nvml.dll": "", "C:\\Program Files\\CUDA\\version.json": "{}"},
    "programs": [{"argv": ["C:\\Windows\\System32\\nvidia-smi.exe"], "stdout": "table"}, {"argv": ["powercfg"]}],
    "registry": {
        "HKLM\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers": {"HwSchMode": 2, "TdrDelay": {"absent": True}},
        "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36}\\0000": {"DriverDesc": "NVIDIA GeForce RTX 4090"},
        "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36}\\0001": {"DriverDesc": "Intel UHD"},
        "HKLM\\SYSTEM\\Locked": {"error": "access is denied"},
    },
    "windows_calls": {"memory": {"total": 1 << 34, "commit_limit": 1 << 35}},
    "identity": {"uid": -1, "gid": -1, "is_admin": True},
}

CONTROL = "hklm/system/currentcontrolset/control"

WINDOWS_ANSWERS: list[tuple[str, tuple[Any, ...], tuple[str, Any]]] = [
    ("variable", ("PATH",), (KNOWN, "C:\\Windows\\system32;C:\\Program Files\\CUDA\\bin")),
    ("read_text", ("c:/program files/cuda/VERSION.JSON",), (KNOWN, "{}")),
    ("list_folder", ("C:\\",), (KNOWN, ["Program Files", "Windows"])),
    ("list_folder", ("C:\\windows\\SYSTEM32\\",), (KNOWN, ["nvidia-smi.exe", "nvml.dll"])),
    ("status", ("C:\\Windows",), (KNOWN, FOLDER._replace(writable=True))),
    ("real_path", ("C:\\Windows\\System32\\nvml.dll",), (KNOWN, "C:\\Windows\\System32\\nvml.dll")),
    ("which", ("nvidia-smi",), (KNOWN, "C:\\Windows\\system32\\nvidia-smi.exe")),
    ("which", ("nvcc",), NOT_THERE),
    ("which", ("powercfg",), (KNOWN, "C:\\Windows\\System32\\powercfg")),
    ("run", (["C:\\Windows\\System32\\powercfg"], 1), (KNOWN, ProgramResult(0, "", "", False))),
    ("registry_value", (f"{CONTROL}\\GraphicsDrivers", "hwschmode"), (KNOWN, 2)),
    ("registry_value", (f"{CONTROL}\\GraphicsDrivers", "TdrDelay"), NOT_THERE),
    ("registry_value", (f"{CONTROL}\\GraphicsDrivers", "TdrLevel"), NOT_THERE),
    ("registry_value", ("HKLM\\SYSTEM\\Locked", "x"), ("unknown", "access is denied")),
    ("registry_keys", (f"{CONTROL}\\Class\\{{4D36}}",), (KNOWN, ["0000", "0001"])),
    ("registry_keys", (f"{CONTROL}\\GraphicsDrivers",), (KNOWN, [])),
    ("registry_keys", ("HKLM\\SOFTWARE",), NOT_THERE),
    ("windows_call", ("memory",), (KNOWN, {"total": 1 << 34, "commit_limit": 1 << 35})),
    ("windows_call", ("power_scheme",), NOT_THERE),
    ("identity", (), (KNOWN, Identity(-1, -1, (), True))),
]


@pytest.mark.parametrize(("question", "arguments", "expected"), WINDOWS_ANSWERS)
def test_a_windows_machine(question: str, arguments: tuple[Any, ...], expected: tuple[str, Any]) -> None:
    answer: Fact[Any] = getattr(ReplaySystem.of(WINDOWS), question)(*arguments)
    assert (answer.state, answer.reason if answer.is_unknown else answer.value) == expected


# -- bad recordings -------------------------------------------------------------------------------------------------

SCHEMA = '"schema": "cudadoctor.recording/1"'

# What machine.json holds, the sentence that people get ({} stands for its path).
BAD_FILES = [
    ("", "{}, line 1: broken JSON (expecting value)"),
    ('{\n "a": 1\n "b": 2\n}', "{}, line 3: broken JSON ("),
    ("[1]", "{}: a recording is a JSON object, not a list"),
    ("null", "{}: a recording is a JSON object, not a null"),
    ("{}", "{}: 'schema' must be 'cudadoctor.recording/1'; there is none"),
    ('{"schema": "cudadoctor.facts/1"}', "{}: 'schema' must be 'cudadoctor.recording/1'; it is \"cudadoctor.facts/1\""),
    ("{" + SCHEMA + ', "plattform": 1}', "{}: 'plattform' is no part of a recording; known are about, "),
    ("{" + SCHEMA + ', "platform": "dos"}', "{}: 'platform' must be linux, windows or darwin, not \"dos\""),
    ("{" + SCHEMA + ', "unlisted": "gone"}', '{}: \'unlisted\' must be "absent" or "unknown", not "gone"'),
    ("{" + SCHEMA + ', "files": []}', "{}: 'files' must be an object, not a list"),
    ("{" + SCHEMA + ', "nvml": {"count": "two"}}', "{}: 'nvml' must be an object with NVML's answers, not "),
    ("{" + SCHEMA + ', "nvml": {"gpus": [{"memory": {}}]}}', "{}: 'nvml' must be an object with NVML's answers, not "),
    ("{" + SCHEMA + ', "nvml": {"init": {"code": 9}}}', "{}: 'nvml' must be an object with NVML's answers, not "),
    ("{" + SCHEMA + ', "files": {"/a": 5}}', "{}: 'files', '/a' must be a text, a list of lines or "),
    ("{" + SCHEMA + ', "files": {"/a": {"base64": "%"}}}', "{}: 'files', '/a' must be a text, a list of lines or "),
    ("{" + SCHEMA + ', "files": {"/a": {"absent": false}}}', "{}: 'files', '/a' must be a text, a list of lines or "),
    ("{" + SCHEMA + ', "files": {"/a": "", "/a": ""}}', "{}: the key '/a' stands twice in one object"),
    ("{" + SCHEMA + ', "status": {"/dev/nvidia0": {"mode": 438}}}', "{}: 'status', '/dev/nvidia0' must be an object "),
    ("{" + SCHEMA + ', "status": {"/d": {"mode": "0o666"}}}', "{}: 'status', '/d' must be an object with kind, mode ("),
    ("{" + SCHEMA + ', "identity": {"uid": true}}', "{}: 'identity' must be an object with uid, gid, groups and is_ad"),
    ("{" + SCHEMA + ', "libc": "glibc"}', '{}: \'libc\' must be a name and a version, as ["glibc", "2.35"], not '),
    ("{" + SCHEMA + ', "programs": {}}', "{}: 'programs' must be a list of objects with argv, "),
    ("{" + SCHEMA + ', "programs": [{"argv": "ls"}]}', "{}: entry 1 of 'programs' must be an object with argv (a list"),
    ("{" + SCHEMA + ', "programs": [{"argv": []}]}', "{}: entry 1 of 'programs' must be an object with argv (a list "),
    ("{" + SCHEMA + ', "limits": {"nofile": "many"}}', "{}: 'limits', 'nofile' must be a number or \"unlimited\", not"),
    ("{" + SCHEMA + ', "disks": {"/": {"total": 1}}}', "{}: 'disks', '/' must be an object with total and free (byte"),
    ("{" + SCHEMA + ', "nvml": 7}', "{}: 'nvml' must be an object with NVML's answers, not 7"),
    ("[" * 100_000, "{}: the JSON is nested too deeply"),
    ("{" + SCHEMA + ', "limits": {"nofile": NaN}}', "{}: a number in it is none that JSON has, or a huge one"),
    (b"\xff\xfe\x00", "{}: a recording is JSON in UTF-8, and this is not UTF-8"),
    (b"\x1f\x8b\x08", "{}: a recording is JSON in UTF-8, and this is not UTF-8"),
]


@pytest.mark.parametrize(("content", "message"), BAD_FILES, ids=[str(message)[:60] for _, message in BAD_FILES])
def test_a_bad_file_is_refused_in_one_sentence(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RecordingError) as caught:
        ReplaySystem(str(tmp_path))
    assert str(caught.value).startswith(message.replace("{}", str(path), 1))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ParseError)


def test_a_bad_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "machine.json").mkdir(parents=True)
    cases = {
        str(tmp_path / "nowhere"): "a recording is a folder with a machine.json in it; this does not exist",
        str(tmp_path / "file"): "a recording is a folder with a machine.json in it; this is a file",
        str(tmp_path): "there is no machine.json in this folder, so it is no recording",
    }
    for folder, message in cases.items():
        with pytest.raises(RecordingError) as caught:
            ReplaySystem(folder)
        assert str(caught.value) == f"{folder}: {message}"
    with pytest.raises(RecordingError, match="the recording cannot be read"):
        ReplaySystem(str(tmp_path / "folder"))


@pytest.mark.parametrize("section", [*SCALARS, *MAPS])
def test_any_answer_may_be_absent_or_an_error(section: str) -> None:
    for answer in ({"absent": True}, {"error": "nobody knows"}):
        document = {section: {"some key": answer} if section in MAPS else answer}
        assert ReplaySystem.of(document).platform == "linux"


def test_a_file_with_a_mark_and_a_note_is_fine(tmp_path: Path) -> None:
    document = {"schema": "cudadoctor.recording/1", "about": ["made by hand", "for a test"], "machine": "aarch64"}
    (tmp_path / "machine.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(document).encode())
    assert ReplaySystem(str(tmp_path)).machine() == Fact("known", "aarch64", "uname")
