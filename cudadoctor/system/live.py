"""This machine answers the port.

No method raises for what the machine says: what is not there is absent (ENOENT, ENOTDIR), and what could not be looked
at (permission, bad disk, links in circles, not a regular file) is unknown, with the reason in words. Names and paths
are taken from the environment as it was when the system was made; it works without PATH, HOME or a working folder.

Some calls can hang in the kernel (a dead network file system, an unreachable directory service): whoever must not
hang runs the caller in a `worker`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar

from cudadoctor import bundle
from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.parse.decode import decode
from cudadoctor.system import sources
from cudadoctor.system.port import (
    DiskUsage,
    Ended,
    FileStatus,
    Identity,
    ProgramResult,
    RandomReader,
    RunningProgram,
    RunningQuery,
    System,
)

T = TypeVar("T")

# Variables that name folders at which something is looked for, one or several, and files.
_FOLDER_VARIABLES = (
    "HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_ROOT", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "TMPDIR",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "PYTHONUSERBASE", "PYTHONHOME", "PIP_CACHE_DIR", "HF_HOME",
    "TORCH_HOME", "TRITON_CACHE_DIR", "UV_CACHE_DIR", "CUDADOCTOR_DATA",
)  # fmt: skip
_LIST_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "XDG_CONFIG_DIRS")
_FILE_VARIABLES = ("PIP_CONFIG_FILE", "UV_CONFIG_FILE", "CONDARC", "CONDA_EXE")

# More names than a folder that we ask about ever holds; a listing that is cut would say "not there" wrongly, so it
# is unknown instead.
FOLDER_LIMIT = 200_000

# A desktop's cache of the loader takes about 150 KiB.
CACHE_LIMIT = 16 << 20

POSIX_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WINDOWS_EXTENSIONS = (".com", ".exe", ".bat", ".cmd")

_REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.EIO: "the device reports a read error",
    errno.ELOOP: "too many symbolic links",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EISDIR: "it is a folder",
    errno.ENXIO: "nothing answers there",
    errno.ENODEV: "nothing answers there",
    errno.ESTALE: "the network file system has lost it",
    errno.ETIMEDOUT: "it did not answer in time",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
}
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)


def reason_of(error: OSError) -> str:
    """Why something could not be looked at, in words."""
    known_reason = _REASONS.get(error.errno or 0)
    return known_reason or (error.strerror or str(error) or type(error).__name__).lower()


def _failed(error: Exception, source: str) -> Fact[Any]:
    if isinstance(error, OSError):
        return absent(source) if error.errno in _NOT_THERE else unknown(reason_of(error), source)
    return unknown("no such path can exist", source)  # ValueError: a NUL, or letters that the system cannot name


def _platform() -> str:
    if sys.platform == "win32":
        return "windows"
    return "darwin" if sys.platform == "darwin" else "linux"


class LiveSystem:
    """See the module. `deadline` is the end of the whole run by `time.monotonic()`."""

    kind = "live"

    def __init__(self, deadline: float, asked_python: Optional[str] = None) -> None:
        self._deadline = deadline
        self._asked_python = asked_python
        self._environment: dict[str, str] = dict(os.environ)
        self._once: dict[Any, Any] = {}
        self._platform = _platform()
        self._silent: list[str] = []

    @property
    def platform(self) -> str:
        return self._platform

    @property
    def asked_python(self) -> Optional[str]:
        return self._asked_python

    def once(self, question: Callable[[System], T]) -> T:
        if question not in self._once:
            self._once[question] = question(self)
        answer: T = self._once[question]
        return answer

    # -- the system -------------------------------------------------------------------------------------------------

    def machine(self) -> Fact[str]:
        if self._platform == "windows":
            # A 32-bit process sees its own architecture in the second one.
            for name in ("PROCESSOR_ARCHITEW6432", "PROCESSOR_ARCHITECTURE"):
                if self._environment.get(name):
                    return known(self._environment[name], sources.UNAME)
            return unknown("Windows does not say it", sources.UNAME)
        return known(os.uname().machine, sources.UNAME)

    def kernel_release(self) -> Fact[str]:
        if self._platform == "windows":
            system: Any = sys
            version = system.getwindowsversion()
            return known(f"{version.major}.{version.minor}.{version.build}", sources.UNAME)
        return known(os.uname().release, sources.UNAME)

    def libc(self) -> Fact[tuple[str, str]]:
        if self._platform != "linux":
            return absent(sources.C_LIBRARY)
        try:
            name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        except (OSError, ValueError):
            name, version = "", ""
        if name == "glibc" and version:
            return known((name, version), sources.C_LIBRARY)
        loaders = self.list_folder("/lib")
        if loaders.is_known and any(entry.startswith("ld-musl-") for entry in loaders.get()):
            return known(("musl", ""), sources.C_LIBRARY)
        return unknown("the C library does not say which it is", sources.C_LIBRARY)

    def today(self) -> Fact[str]:
        return known(time.strftime("%Y-%m-%d"), sources.CLOCK)

    def identity(self) -> Fact[Identity]:
        if self._platform == "windows":
            from cudadoctor.system import windows

            return windows.identity()
        try:
            numbers = os.getgroups()
        except OSError as error:
            return _failed(error, sources.USER)
        if os.getgid() not in numbers:
            numbers.append(os.getgid())
        names = []
        for number in sorted(numbers):
            name = self.group_name(number)
            names.append(name.get() if name.is_known else str(number))
        return known(Identity(os.getuid(), os.getgid(), tuple(names), os.geteuid() == 0), sources.USER)

    def limit(self, name: str) -> Fact[int]:
        source = sources.limit(name)
        if self._platform == "windows":
            return absent(source)
        import resource

        number = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK, "as": resource.RLIMIT_AS}[name]
        try:
            soft, _ = resource.getrlimit(number)
        except (OSError, ValueError) as error:
            return unknown(str(error).lower(), source)
        return absent(source) if soft == resource.RLIM_INFINITY or soft < 0 else known(soft, source)

    def variable(self, name: str) -> Fact[str]:
        source = sources.variable(name)
        value = self._environment.get(name.upper() if self._platform == "windows" else name)
        return absent(source) if value is None else known(value, source)

    def variable_names(self) -> Fact[list[str]]:
        return known(sorted(self._environment), sources.ENVIRONMENT)

    def working_folder(self) -> Fact[str]:
        try:
            return known(os.getcwd(), sources.WORKING_FOLDER)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return unknown("it was deleted", sources.WORKING_FOLDER)
            return _failed(error, sources.WORKING_FOLDER)

    def own_interpreter(self) -> Fact[Mapping[str, str]]:
        if not sys.executable:
            return unknown("Python does not know its own path", sources.OWN_INTERPRETER)
        own = {
            "executable": sys.executable,
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "version": ".".join(str(part) for part in sys.version_info[:3]),
        }
        if bundle.archive() is not None:
            own["one_file"] = "yes"
        return known(own, sources.OWN_INTERPRETER)

    # -- folders that may be dead -----------------------------------------------------------------------------------

    def ask_folders(self, report: Callable[[str], None]) -> None:
        """Asks for the status of each folder that the environment names, and says before which one that is. On a dead
        network file system it does not return from there."""
        for folder in self._named_folders():
            if not self.is_silent(folder):
                report(folder)
                with contextlib.suppress(OSError, ValueError):
                    os.stat(folder)

    def leave_alone(self, folder: str) -> None:
        """From now on nothing is asked at this folder and below it, or on its whole mount: no answer came."""
        self._silent.append(_mount_of(folder.rstrip("/")))

    def _named_folders(self) -> list[str]:
        value = self._environment.get
        found = [value(name, "") for name in _FOLDER_VARIABLES]
        found += [os.path.dirname(value(name, "")) for name in _FILE_VARIABLES]
        for name in _LIST_VARIABLES:
            found += value(name, "").split(os.pathsep)
        if self._asked_python:
            found += [self._asked_python, os.path.dirname(self._asked_python)]
        with contextlib.suppress(OSError):
            found.append(os.getcwd())
        return [folder for folder in dict.fromkeys(found) if os.path.isabs(folder)]

    def is_silent(self, path: str) -> bool:
        """Whether it was left alone."""
        for folder in self._silent:
            if path.startswith(folder) and path[len(folder) : len(folder) + 1] in ("", "/"):
                return True
        return False

    def _check_answers(self, path: str) -> None:
        if self._silent and self.is_silent(path):
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    # -- files ------------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Fact[bytes]:
        try:
            self._check_answers(path)
            descriptor = _open_regular(path)
        except (OSError, ValueError) as error:
            return _failed(error, path)
        try:
            data = bytearray()
            while len(data) < limit:
                piece = os.read(descriptor, min(1 << 16, limit - len(data)))
                if not piece:
                    break
                data += piece
            return known(bytes(data), path)
        except OSError as error:
            return _failed(error, path)
        finally:
            os.close(descriptor)

    def read_text(self, path: str, limit: int = 1 << 20) -> Fact[str]:
        return self.read_bytes(path, limit).map(decode)

    def open_binary(self, path: str) -> Fact[RandomReader]:
        try:
            self._check_answers(path)
            descriptor = _open_regular(path)
        except (OSError, ValueError) as error:
            return _failed(error, path)
        return known(_FileReader(descriptor), path)

    def list_folder(self, path: str) -> Fact[list[str]]:
        try:
            self._check_answers(path)
            names = []
            with os.scandir(path) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if len(names) > FOLDER_LIMIT:
                        return unknown(f"it holds more than {FOLDER_LIMIT} names", path)
        except (OSError, ValueError) as error:
            return _failed(error, path)
        names.sort()
        return known(names, path)

    def status(self, path: str) -> Fact[FileStatus]:
        try:
            self._check_answers(path)
            found = os.stat(path)
        except (OSError, ValueError) as error:
            return _failed(error, path)
        mode = found.st_mode
        kind, device = "other", None
        if stat.S_ISREG(mode):
            kind = "file"
        elif stat.S_ISDIR(mode):
            kind = "directory"
        elif stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            kind = "character-device" if stat.S_ISCHR(mode) else "block-device"
            device = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
        effective = os.access in os.supports_effective_ids
        return known(
            FileStatus(
                kind=kind,
                mode=stat.S_IMODE(mode),
                uid=found.st_uid,
                gid=found.st_gid,
                size=found.st_size,
                device=device,
                readable=os.access(path, os.R_OK, effective_ids=effective),
                writable=os.access(path, os.W_OK, effective_ids=effective),
            ),
            path,
        )

    def link_target(self, path: str) -> Fact[str]:
        try:
            self._check_answers(path)
            return known(os.readlink(path), path)
        except OSError as error:
            if error.errno == errno.EINVAL:  # something else than a link
                return absent(path)
            return _failed(error, path)
        except ValueError as error:
            return _failed(error, path)

    def real_path(self, path: str) -> Fact[str]:
        try:
            self._check_answers(path)
            os.stat(path)
            return known(os.path.realpath(path), path)
        except (OSError, ValueError) as error:
            return _failed(error, path)

    def disk_usage(self, path: str) -> Fact[DiskUsage]:
        try:
            self._check_answers(path)
            if self._platform == "windows":
                import shutil

                usage = shutil.disk_usage(path)
                return known(DiskUsage(usage.total, usage.free), path)
            room = os.statvfs(path)
            return known(DiskUsage(room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize), path)
        except (OSError, ValueError) as error:
            return _failed(error, path)

    def group_name(self, gid: int) -> Fact[str]:
        source = sources.group(gid)
        if self._platform == "windows":
            return absent(source)
        # Most groups stand in the file; asking the directory service for them would open its socket.
        local = self._local_groups().get(gid)
        if local is not None:
            return known(local, source)
        try:
            import grp

            return known(grp.getgrgid(gid).gr_name, source)
        except KeyError:
            return absent(source)
        except (OSError, OverflowError) as error:
            return unknown(str(error).lower(), source)

    def _local_groups(self) -> dict[int, str]:
        if "groups" not in self._once:
            names: dict[int, str] = {}
            text = self.read_text("/etc/group")
            for line in (text.get() if text.is_known else "").splitlines():
                parts = line.split(":")
                if len(parts) == 4 and parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 11:
                    names.setdefault(int(parts[2]), parts[0])
            self._once["groups"] = names
        found: dict[int, str] = self._once["groups"]
        return found

    # -- programs ---------------------------------------------------------------------------------------------------

    def which(self, program: str) -> Fact[str]:
        source = sources.which(program)
        names = [program]
        if self._platform == "windows" and "." not in program:
            names = [program + ending for ending in WINDOWS_EXTENSIONS]
        silent = ""
        for folder in self._search_path():
            if self.is_silent(folder):
                silent = silent or folder
                continue
            for name in names:
                path = os.path.join(folder, name)
                if _is_program(path):
                    return known(path, source)
        return unknown(f"{silent} did not answer in time", source) if silent else absent(source)

    def _search_path(self) -> list[str]:
        # A relative entry means something else in each folder: no program of whoever owns the folder is run for it.
        path = self._environment.get("PATH")
        if path is None and self._platform != "windows":
            path = POSIX_PATH
        folders = [folder for folder in (path or "").split(os.pathsep) if os.path.isabs(folder)]
        if self._platform == "windows":
            root = self._environment.get("SYSTEMROOT", "C:\\Windows")
            folders += [os.path.join(root, "System32"), root]
        return folders

    def start(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> RunningProgram:
        from cudadoctor.system import programs

        source = sources.program(argv)
        path = argv[0]
        if not os.path.isabs(path):
            found = self.which(path)
            if not found.is_known:
                return Ended(Fact(found.state, None, source, found.reason))
            path = found.get()
        variables = {name: value for name, value in self._environment.items() if name != "LANGUAGE"}
        variables["LC_ALL"] = "C"
        variables.update(environment or {})
        limit = min(time.monotonic() + timeout, self._deadline)
        return programs.start([path, *argv[1:]], variables, limit, source)

    def run(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> Fact[ProgramResult]:
        return self.start(argv, timeout, environment).result()

    # -- NVML -------------------------------------------------------------------------------------------------------

    def cached_libraries(self, names: Sequence[str]) -> Fact[dict[str, list[str]]]:
        if self._platform != "linux":
            return absent(sources.LOADER_CACHE)
        data = self.read_bytes(sources.LOADER_CACHE, CACHE_LIMIT)
        if not data.is_known:
            return Fact(data.state, None, data.source, data.reason)
        if not any(name.encode("utf-8", "surrogateescape") in data.get() for name in names):
            return known({name: [] for name in names}, data.source)
        from cudadoctor.parse.ld_so_cache import parse_ld_so_cache

        machine = {"arm64": "aarch64"}.get(os.uname().machine, os.uname().machine)
        try:
            listed = parse_ld_so_cache(data.get(), names)
        except ParseError as error:
            return unknown(str(error), data.source)
        return known(
            {
                name: [found.path for found in listed.get(name, ()) if found.machine in (None, machine)]
                for name in names
            },
            data.source,
        )

    def nvml_library(self) -> Fact[str]:
        from cudadoctor.system import nvml

        return nvml.find_library(self)

    def start_nvml(self, library: str, timeout: float) -> RunningQuery:
        return _NvmlQuery(library, min(time.monotonic() + timeout, self._deadline))

    # -- Windows ----------------------------------------------------------------------------------------------------

    def registry_value(self, key: str, name: str) -> Fact[Any]:
        if self._platform != "windows":
            return absent(sources.registry(key, name))
        from cudadoctor.system import windows

        return windows.registry_value(key, name)

    def registry_keys(self, key: str) -> Fact[list[str]]:
        if self._platform != "windows":
            return absent(sources.registry(key))
        from cudadoctor.system import windows

        return windows.registry_keys(key)

    def windows_call(self, name: str) -> Fact[Mapping[str, Any]]:
        if self._platform != "windows":
            return absent(sources.windows_call(name))
        from cudadoctor.system import windows

        return windows.call(name)

    # -- the run ----------------------------------------------------------------------------------------------------

    def remaining(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def take_notes(self) -> Any:
        return None

    def add_notes(self, notes: Any) -> None:
        return None


def _mount_of(folder: str) -> str:
    """The mount on which a folder is by its name; itself where that is the root, or nobody says."""
    best = "/"
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file.read(8 << 20).splitlines():
                fields = line.split(b" ", 5)
                place = os.fsdecode(fields[4].replace(b"\\040", b" ")) if len(fields) == 6 else ""
                if len(place) > len(best) and (folder + "/").startswith(place + "/"):
                    best = place
    except OSError:
        pass
    return folder if best == "/" else best


def _open_regular(path: str) -> int:
    """A descriptor of a regular file. Anything else could block or do something when it is read."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    kind = os.stat(path).st_mode
    if not stat.S_ISREG(kind):
        raise OSError(errno.EISDIR if stat.S_ISDIR(kind) else 0, "it is not a regular file")
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0))


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


class _FileReader:
    """Reads pieces of a file that stays open as long as the reader lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            piece = self._piece(offset + len(data), min(length - len(data), 1 << 20))
            if not piece:
                break
            data += piece
        return bytes(data)

    def _piece(self, offset: int, length: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, length, offset)
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        return os.read(self._descriptor, length)

    def __del__(self) -> None:
        os.close(self._descriptor)


class _NvmlQuery:
    """NVML asked in a process of its own; what it had said before it hung or died counts."""

    def __init__(self, library: str, limit: float) -> None:
        from cudadoctor.system import nvml
        from cudadoctor.system.worker import Task, Worker, die_with_parent

        def ask(report: Callable[[Any], None]) -> Any:
            die_with_parent()
            return nvml.ask(report, library)

        self._worker = Worker([Task("nvml", ask, 1e9)], limit)
        self._answer: Optional[Fact[Any]] = None

    def result(self) -> Fact[Any]:
        if self._answer is None:
            finished = self._worker.next()
            self._worker.close()
            assert finished is not None
            if finished.value is None:
                self._answer = unknown(finished.failure, sources.NVML)
            else:
                # A hang or a crash in the middle: the answers up to there, and why there are no more.
                answer = dict(finished.value, unfinished=finished.failure) if finished.failure else finished.value
                self._answer = known(answer, sources.NVML)
        return self._answer
