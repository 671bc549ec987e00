"""The one port to the machine. Whatever reads files, runs programs, calls NVML or asks the system goes through here.

Three implementations answer it: `live` (this machine), `replay` (a recorded machine in a folder) and `record` (live,
and everything that was answered is kept). Each answer is a `Fact` with its source: known, absent (not there) or
unknown (could not look, or the recording has no such answer). No method raises for what the machine says.

Paths are texts of the examined machine's system, never `pathlib` objects: a Windows machine is replayed on Linux.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from cudadoctor.model.fact import Fact
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # nobody asks at run time whether something is one, and each takes long to define

T = TypeVar("T")


class FileStatus(NamedTuple):
    """What `stat` says of a path, links followed. `size` is in bytes."""

    kind: str  # file, directory, character-device, block-device, other
    mode: int  # permission bits alone (0o666)
    uid: int
    gid: int
    size: int
    device: Optional[str]  # major:minor of a device node
    readable: bool  # by the user who asks
    writable: bool


class DiskUsage(NamedTuple):
    """Room of the file system under a path, in bytes; `free` is what the asking user may use."""

    total: int
    free: int


class ProgramResult(NamedTuple):
    """How a program ended. `exit_status` is None when it was stopped at its deadline; texts are decoded, never lost."""

    exit_status: Optional[int]
    stdout: str
    stderr: str
    timed_out: bool


class Identity(NamedTuple):
    """The user who asks, without a name: ids, names (else numbers) of the groups, root or administrator."""

    uid: int
    gid: int
    groups: tuple[str, ...]
    is_admin: bool


class RandomReader(Protocol):
    """Reads pieces of a large binary file."""

    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes there, fewer at the end of the file. Raises `OSError` when the piece cannot be read."""


class RunningProgram(Protocol):
    """A program that was started and goes on beside us."""

    def advance(self) -> None:
        """Takes what it has written so far, since it waits while nobody reads much output. Never waits itself."""

    def result(self, within: Optional[float] = None) -> Fact[ProgramResult]:
        """Waits until it ends, its deadline passes or `within` seconds from now are over; then it is stopped. Absent:
        there is no such program."""


class RunningQuery(Protocol):
    """A question that is answered in a process of its own, which can be abandoned when a driver hangs."""

    def result(self) -> Fact[Any]:
        """Waits for the answer or the deadline; a hang is unknown, with a reason that begins with `timed out`."""


class Ended:
    """A program or a question whose answer is there already."""

    def __init__(self, answer: Fact[Any]) -> None:
        self._answer = answer

    def advance(self) -> None:
        pass

    def result(self, within: Optional[float] = None) -> Fact[Any]:
        return self._answer


class System(Protocol):
    """See the module. `platform` is linux, windows or darwin; `kind` is live or replay."""

    @property
    def platform(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def asked_python(self) -> Optional[str]:
        """The interpreter that the person asked to look at (`--python`), or None."""

    def once(self, question: Callable[[System], T]) -> T:
        """The answer to a question that several probes ask (which interpreter is the patient's?), worked out once."""

    def machine(self) -> Fact[str]:
        """Processor architecture as the system calls it (x86_64, AMD64, aarch64, arm64)."""

    def kernel_release(self) -> Fact[str]: ...

    def libc(self) -> Fact[tuple[str, str]]:
        """Name and version of the C library: ("glibc", "2.36") or ("musl", "")."""

    def today(self) -> Fact[str]: ...

    def identity(self) -> Fact[Identity]: ...

    def limit(self, name: str) -> Fact[int]:
        """Soft resource limit `nofile`, `memlock` or `as`; absent: unlimited."""

    def variable(self, name: str) -> Fact[str]:
        """An environment variable; absent: not set (an empty one is known and empty)."""

    def variable_names(self) -> Fact[list[str]]: ...

    def working_folder(self) -> Fact[str]: ...

    def own_interpreter(self) -> Fact[Mapping[str, str]]:
        """The interpreter that runs cudadoctor: executable, prefix, base_prefix, version; and `one_file` where
        cudadoctor is one file that any interpreter runs, and not installed for this one."""

    def read_text(self, path: str, limit: int = 1 << 20) -> Fact[str]:
        """A text file, decoded without loss of ASCII; at most `limit` bytes of it."""

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Fact[bytes]: ...

    def open_binary(self, path: str) -> Fact[RandomReader]: ...

    def list_folder(self, path: str) -> Fact[list[str]]:
        """Names in a folder, sorted."""

    def status(self, path: str) -> Fact[FileStatus]: ...

    def link_target(self, path: str) -> Fact[str]:
        """What the symbolic link says, unresolved; absent: no such path or no link."""

    def real_path(self, path: str) -> Fact[str]:
        """The path with all links resolved; absent: it leads nowhere."""

    def disk_usage(self, path: str) -> Fact[DiskUsage]: ...

    def group_name(self, gid: int) -> Fact[str]: ...

    def which(self, program: str) -> Fact[str]:
        """Where PATH finds a program (Windows: with its endings); absent: nowhere. Without PATH, the system's own
        folders; entries of PATH that are no absolute path are passed over."""

    def start(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> RunningProgram:
        """Starts a program with no input, in the C locale. `timeout` is in seconds and never reaches past the run's
        deadline; `environment` adds to ours."""

    def run(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> Fact[ProgramResult]:
        """`start(...).result()`."""

    def cached_libraries(self, names: Sequence[str]) -> Fact[dict[str, list[str]]]:
        """Paths that the loader's cache (`/etc/ld.so.cache`) has for these library names and this machine's
        architecture, in the loader's order; an empty list: none. Absent: there is no cache, as with musl."""

    def nvml_library(self) -> Fact[str]:
        """Path of the NVML library that the loader would find; absent: there is none, and no use in asking NVML."""

    def start_nvml(self, library: str, timeout: float) -> RunningQuery:
        """Asks NVML everything at once through nvidia-ml-py, in a process of its own; see `system.nvml` for the shape
        of the answer. `library` is what `nvml_library` gave."""

    def registry_value(self, key: str, name: str) -> Fact[Any]:
        """A value of the Windows registry (`HKLM\\SYSTEM\\...`): text, int or list of texts; absent: not there."""

    def registry_keys(self, key: str) -> Fact[list[str]]:
        """Names of the keys under a key of the Windows registry."""

    def windows_call(self, name: str) -> Fact[Mapping[str, Any]]:
        """A Windows call by name: `memory` (GlobalMemoryStatusEx, bytes), `power_scheme` (the active scheme's GUID,
        name and personality), `power_overlay`, `power_status` (battery), `version` (build, edition)."""

    def remaining(self) -> float:
        """Seconds until the run's deadline."""

    def ask_folders(self, report: Callable[[str], None]) -> None:
        """Asks each folder that the environment names whether it answers; `report` is told which one comes next."""

    def leave_alone(self, folder: str) -> None:
        """From now on all at and below a folder is unknown: it did not answer in time."""

    def is_silent(self, path: str) -> bool:
        """Whether a path is one of those."""

    def take_notes(self) -> Any:
        """What a recording system was answered since the last call, as plain data; None for the others. Probes run in
        processes of their own, and their notes travel back with their facts."""

    def add_notes(self, notes: Any) -> None:
        """Takes what `take_notes` gave in another process."""
