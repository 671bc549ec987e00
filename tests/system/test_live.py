"""The live system on files and on the surroundings: nothing raises, absent is absent, unknown has its reason."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from cudadoctor.model.fact import Fact
from cudadoctor.system import live
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.port import System

from .apart import python

pytestmark = pytest.mark.skipif(os.name != "posix", reason="this is about POSIX")


@pytest.fixture
def system() -> LiveSystem:
    return LiveSystem(time.monotonic() + 30)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with one of everything that can stand in the way."""
    (tmp_path / "text").write_bytes(b"one\r\ntwo\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9 12.4\n")
    (tmp_path / "utf16").write_bytes("12.4".encode("utf-16"))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b").touch()
    (tmp_path / "folder" / "a").touch()
    (tmp_path / "link").symlink_to("text")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(tmp_path / "socket"))
    except OSError:  # the path is too long for a socket
        os.mkfifo(tmp_path / "socket")
    listening.close()
    return tmp_path


UNKNOWN_CIRCLE = ("unknown", "too many symbolic links")

# Question, path, what comes back: (state, value or reason).
QUESTIONS: list[tuple[str, str, tuple[str, Any]]] = [
    ("read_text", "text", ("known", "one\r\ntwo\n")),
    ("read_text", "latin", ("known", "caf\ufffd 12.4\n")),
    ("read_text", "utf16", ("known", "12.4")),
    ("read_text", "empty", ("known", "")),
    ("read_text", "link", ("known", "one\r\ntwo\n")),
    ("read_text", "nowhere", ("absent", "")),
    ("read_text", "text/below", ("absent", "")),
    ("read_text", "dangling", ("absent", "")),
    ("read_text", "circle", UNKNOWN_CIRCLE),
    ("read_text", "folder", ("unknown", "it is a folder")),
    ("read_text", "pipe", ("unknown", "it is not a regular file")),
    ("read_text", "socket", ("unknown", "it is not a regular file")),
    ("read_text", "n" * 300, ("unknown", "the name is too long")),
    ("read_text", "nul\0", ("unknown", "no such path can exist")),
    ("read_bytes", "latin", ("known", b"caf\xe9 12.4\n")),
    ("list_folder", "folder", ("known", ["a", "b"])),
    ("list_folder", "text", ("absent", "")),
    ("list_folder", "nowhere", ("absent", "")),
    ("list_folder", "circle", UNKNOWN_CIRCLE),
    ("link_target", "link", ("known", "text")),
    ("link_target", "dangling", ("known", "nowhere")),
    ("link_target", "text", ("absent", "")),
    ("link_target", "nowhere", ("absent", "")),
    ("real_path", "link", ("known", "{}/text")),
    ("real_path", "dangling", ("absent", "")),
    ("real_path", "circle", UNKNOWN_CIRCLE),
    ("status", "nowhere", ("absent", "")),
    ("status", "circle", UNKNOWN_CIRCLE),
    ("open_binary", "nowhere", ("absent", "")),
    ("open_binary", "pipe", ("unknown", "it is not a regular file")),
    ("disk_usage", "nowhere", ("absent", "")),
]


@pytest.mark.parametrize(("question", "name", "expected"), QUESTIONS)
def test_what_is_not_there_is_absent_and_what_cannot_be_read_has_a_reason(
    system: LiveSystem, files: Path, question: str, name: str, expected: tuple[str, Any]
) -> None:
    path = f"{files}/{name}"
    answer = getattr(system, question)(path)
    state, content = expected
    if isinstance(content, str):
        content = content.format(files)
    assert (answer.state, answer.value if answer.is_known else answer.reason) == (state, content)
    assert answer.source == path


def test_permission_denied(files: Path) -> None:
    code = """
import os, sys, time
from cudadoctor.system.live import LiveSystem
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
system = LiveSystem(time.monotonic() + 20)
closed, file = sys.argv[1:]
print([(a.state, a.reason) for a in (system.read_text(file), system.list_folder(closed), system.status(closed + "/x"))])
status = system.status(file).get()
print(status.readable, status.writable)
"""
    folder = Path("/tmp", f"cudadoctor-{os.getpid()}")  # where another user may look, too
    closed, file = folder / "closed", folder / "file"
    folder.mkdir()
    try:
        closed.mkdir()
        file.touch()
        closed.chmod(0)
        file.chmod(0)
        done = python(code, str(closed), str(file), cwd="/")
    finally:
        file.unlink()
        closed.rmdir()
        folder.rmdir()
    denied = ("unknown", "permission denied")
    assert done.stdout == f"{[denied] * 3}\nFalse False\n", done.stderr


# What the kernel may say and what people read.
REASONS = [
    (errno.EIO, "the device reports a read error"),
    (errno.ESTALE, "the network file system has lost it"),
    (errno.EMFILE, "too many open files"),
    (errno.ENODEV, "nothing answers there"),
    (errno.ECONNREFUSED, "connection refused"),
]


@pytest.mark.parametrize(("number", "words"), REASONS)
def test_errors_in_words(
    system: LiveSystem, files: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(live.os, "read", fail)
    answer = system.read_text(f"{files}/text")
    monkeypatch.undo()
    assert (answer.state, answer.reason) == ("unknown", words)


def test_no_more_than_the_limit_is_read(system: LiveSystem, files: Path) -> None:
    assert system.read_bytes(f"{files}/large", 10) == Fact("known", b"x" * 10, f"{files}/large")
    assert len(system.read_bytes(f"{files}/large", 70_000).get()) == 70_000


def test_files_of_proc_say_that_they_are_empty_and_are_not(system: LiveSystem) -> None:
    if not os.path.exists("/proc/version"):
        pytest.skip("no /proc here")
    assert system.status("/proc/version").get().size == 0
    assert system.read_text("/proc/version").get().startswith("Linux")


def test_a_large_folder_is_listed_whole_and_one_beyond_the_limit_is_unknown(
    system: LiveSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(64_000):
        os.close(os.open(f"{tmp_path}/module{number}.py", os.O_CREAT))
    assert len(system.list_folder(str(tmp_path)).get()) == 64_000
    monkeypatch.setattr(live, "FOLDER_LIMIT", 1000)
    answer = system.list_folder(str(tmp_path))
    assert (answer.state, answer.reason) == ("unknown", "it holds more than 1000 names")


def test_status(system: LiveSystem, files: Path) -> None:
    (files / "text").chmod(0o640)
    found = system.status(f"{files}/link").get()
    assert (found.kind, found.mode, found.size, found.device) == ("file", 0o640, 9, None)
    assert (found.uid, found.gid) == (os.getuid(), (files / "text").stat().st_gid)
    assert (found.readable, found.writable) == (True, True)
    assert system.status(str(files)).get().kind == "directory"
    assert system.status(f"{files}/pipe").get().kind == "other"
    null = system.status("/dev/null").get()
    assert (null.kind, null.mode, null.readable, null.writable) == ("character-device", 0o666, True, True)
    number = os.stat("/dev/null").st_rdev
    assert null.device == f"{os.major(number)}:{os.minor(number)}"
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_pieces_of_a_binary_file(system: LiveSystem, files: Path) -> None:
    (files / "binary").write_bytes(bytes(range(256)) * 10)
    reader = system.open_binary(f"{files}/binary").get()
    assert reader.size == 2560
    assert reader.read_at(254, 4) == b"\xfe\xff\x00\x01"
    assert reader.read_at(2558, 100) == b"\xfe\xff"
    assert reader.read_at(9999, 1) == b""


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    system = LiveSystem(time.monotonic() + 5)
    assert system.variable("CUDA_HOME") == Fact("known", "/usr/local/cuda", "$CUDA_HOME")
    assert system.variable("CUDA_VISIBLE_DEVICES") == Fact("known", "", "$CUDA_VISIBLE_DEVICES")
    assert system.variable("CUDA_PATH") == Fact("absent", None, "$CUDA_PATH")
    assert {"CUDA_HOME", "CUDA_VISIBLE_DEVICES"} <= set(system.variable_names().get())


def test_the_system_itself(system: LiveSystem) -> None:
    assert system.machine().get() == os.uname().machine
    assert system.kernel_release().get() == os.uname().release
    assert system.today().get() == time.strftime("%Y-%m-%d")
    assert system.working_folder().get() == os.getcwd()
    own = system.own_interpreter().get()
    assert own["executable"] == sys.executable and own["version"] == ".".join(map(str, sys.version_info[:3]))
    who = system.identity().get()
    assert (who.uid, who.gid, who.is_admin) == (os.getuid(), os.getgid(), os.geteuid() == 0)
    assert system.disk_usage("/").get().total >= system.disk_usage("/").get().free > 0
    assert system.kind == "live" and system.asked_python is None
    if sys.platform == "linux":
        assert system.libc().get()[0] in ("glibc", "musl")


def test_limits(system: LiveSystem) -> None:
    resource = pytest.importorskip("resource")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected = Fact("absent", None, "ulimit -n") if soft == resource.RLIM_INFINITY else Fact("known", soft, "ulimit -n")
    assert system.limit("nofile") == expected
    done = python(
        "import resource, time; from cudadoctor.system.live import LiveSystem\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]))\n"
        "print(LiveSystem(time.monotonic()).limit('memlock').value)"
    )
    assert done.stdout == "4096\n"


def test_windows_things_are_absent_elsewhere(system: LiveSystem) -> None:
    answers = (
        system.registry_value("HKLM\\SYSTEM", "x"),
        system.registry_keys("HKLM"),
        system.windows_call("memory"),
    )
    assert [answer.state for answer in answers] == ["absent"] * 3


def test_a_question_is_worked_out_once(system: LiveSystem) -> None:
    asked: list[str] = []

    def question(asked_system: System) -> list[str]:
        asked.append(asked_system.platform)
        return asked

    assert system.once(question) is system.once(question)
    assert len(asked) == 1


EVERYTHING = """
import json, os, sys, time
from cudadoctor.system.live import LiveSystem
{before}
s = LiveSystem(time.monotonic() + 20)
answers = {{
    "which": s.which("sh"), "none": s.which("no-such-program"), "folder": s.working_folder(),
    "text": s.read_text("/etc/passwd"),
    "relative": s.read_text("no-such-file"), "run": s.run(["sh", "-c", "echo $LC_ALL; pwd"], 10),
    "library": s.nvml_library(), "identity": s.identity(), "libc": s.libc(), "home": s.variable("HOME"),
}}
print(json.dumps({{name: [a.state, repr(a.value), a.reason] for name, a in answers.items()}}))
"""


def surroundings(before: str = "", **environment: str) -> dict[str, list[str]]:
    done = python(EVERYTHING.format(before=before), environment=environment)
    assert done.returncode == 0, done.stderr
    answers: dict[str, list[str]] = json.loads(done.stdout)
    return answers


HOSTILE: list[tuple[str, Callable[[], dict[str, list[str]]]]] = [
    ("no variables at all", lambda: surroundings()),
    ("no PATH", lambda: surroundings(HOME="/root")),
    ("a PATH that leads nowhere", lambda: surroundings(PATH="/nonexistent:relative::.:/etc/passwd", LC_ALL="C")),
    ("a deleted working folder", lambda: surroundings(DELETE, PATH="/usr/bin:/bin", HOME="/proc/nothing")),
    ("closed standard input", lambda: surroundings("os.close(0)", PATH="/usr/bin:/bin")),
]

DELETE = "folder = '/tmp/cudadoctor-gone-%d' % os.getpid(); os.mkdir(folder); os.chdir(folder); os.rmdir(folder)"


@pytest.mark.parametrize(("name", "ask"), HOSTILE, ids=[name for name, _ in HOSTILE])
def test_hostile_surroundings(name: str, ask: Callable[[], dict[str, list[str]]]) -> None:
    answers = ask()
    assert answers["none"][0] == "absent"
    assert answers["text"][0] == "known"
    assert answers["relative"][0] == "absent"
    assert answers["identity"][0] == "known"
    if name == "a PATH that leads nowhere":
        assert answers["which"][0] == answers["run"][0] == "absent"
    else:
        assert answers["which"][0] == answers["run"][0] == "known"
        assert "stdout='C\\n" in answers["run"][1]
    if name == "a deleted working folder":
        assert answers["folder"] == ["unknown", "None", "it was deleted"]


def test_programs_are_never_taken_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho taken in\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in (".", "", ":/usr/bin", "./", "/usr/bin:."):
        monkeypatch.setenv("PATH", path)
        assert LiveSystem(time.monotonic() + 5).which("nvidia-smi").is_absent
    monkeypatch.setenv("PATH", str(tmp_path))
    assert LiveSystem(time.monotonic() + 5).which("nvidia-smi").get() == str(program)


def test_which_passes_over_what_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "nvcc").mkdir()
    (tmp_path / "two" / "nvcc").write_text("not executable")
    (tmp_path / "three" / "nvcc").write_text("#!/bin/sh\n")
    (tmp_path / "three" / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", ":".join(str(tmp_path / name) for name in ("one", "two", "three")))
    assert LiveSystem(time.monotonic() + 5).which("nvcc") == Fact(
        "known", str(tmp_path / "three" / "nvcc"), "PATH (nvcc)"
    )
