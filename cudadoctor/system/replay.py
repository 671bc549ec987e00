"""A recorded machine answers the port: `ReplaySystem(folder)`, or `ReplaySystem.of({...})` for one written in a test.

What the recording does not list is unknown ("not in the recording"), or absent where it says `"unlisted": "absent"`,
which machines written by hand do. These may be short, since one thing implies others:

- a listed file is a regular file that everybody may read; its folders exist and list it;
- a status with a `device` is a character device that everybody may use;
- links are followed, in the middle of a path too; `real_path` needs no entry then;
- `which` looks through PATH for a listed file or a listed program; a program whose argv begins with a bare name
  stands for that name in any folder;
- a disk holds everything below its path.

The last two lines of that list and the implied folders hold only where `unlisted` is absent: in a recording of a live
machine nobody asked for more than what is listed, and so nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar

from cudadoctor.model.fact import Fact, absent, known, unknown
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
from cudadoctor.system.recording import (
    NOT_RECORDED,
    SCHEMA,
    bytes_of,
    check_document,
    fact_of,
    is_absent,
    is_error,
    read_document,
    text_of,
)

T = TypeVar("T")

_LINK_LIMIT = 40  # as many as Linux follows

# Where programs are looked for when the machine has no PATH.
POSIX_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WINDOWS_PATH = "C:\\Windows\\System32;C:\\Windows"
WINDOWS_EXTENSIONS = ".COM;.EXE;.BAT;.CMD"


class ReplaySystem:
    """See the module. Raises `RecordingError` for a folder that holds no usable recording."""

    kind = "replay"

    def __init__(self, folder: str, asked_python: Optional[str] = None) -> None:
        self._begin(read_document(folder), asked_python)

    @classmethod
    def of(cls, document: Mapping[str, Any], asked_python: Optional[str] = None) -> ReplaySystem:
        """The machine that a document describes (the content of `machine.json`; `schema` may be left out)."""
        system = cls.__new__(cls)
        system._begin(check_document({"schema": SCHEMA, **document}, "machine"), asked_python)
        return system

    def _begin(self, document: Mapping[str, Any], asked_python: Optional[str]) -> None:
        self._document = document
        self._platform: str = document.get("platform", "linux")
        self._windows = self._platform == "windows"
        self._unlisted_is_absent = document.get("unlisted") == "absent"
        self._asked_python = asked_python if asked_python is not None else document.get("asked_python")
        self._sections: dict[str, dict[str, Any]] = {}
        self._tree: Optional[dict[str, dict[str, str]]] = None
        self._once: dict[Any, Any] = {}
        self._real: dict[str, Optional[str]] = {}

    # -- what the recording says ----------------------------------------------------------------------------------

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

    def _unlisted(self, source: str) -> Fact[Any]:
        return absent(source) if self._unlisted_is_absent else unknown(NOT_RECORDED, source)

    def _scalar(self, name: str, source: str, decode_entry: Callable[[Any], Any] = lambda value: value) -> Fact[Any]:
        if name in self._document:
            return fact_of(self._document[name], source, decode_entry)
        return unknown(NOT_RECORDED, source)

    def _key(self, path: str) -> str:
        """A path in the form in which it is looked up."""
        if self._windows:
            parts = [part for part in path.replace("/", "\\").split("\\") if part not in ("", ".")]
            return "\\".join(parts).lower()
        if not path.startswith("/"):
            folder = self._document.get("working_folder")
            path = f"{folder if isinstance(folder, str) else ''}/{path}"
        return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))

    def _section(self, name: str) -> dict[str, Any]:
        """A section whose keys are paths (or on Windows other names without case), by lookup keys.

        What is listed by a path that leads through a link is found by the path without it as well.
        """
        section = self._sections.get(name)
        if section is None:
            section = {self._key(path): entry for path, entry in self._document.get(name, {}).items()}
            self._sections[name] = section
            if not self._windows:
                direct = {self._through_links(key): entry for key, entry in section.items()}
                self._real.clear()  # more links may be known now
                for key, entry in direct.items():
                    section.setdefault(key, entry)
        return section

    def _through_links(self, key: str) -> str:
        """The key with the links in the middle of it followed, and itself not."""
        folder, name = self._split(key)
        real = self._resolve(folder) if folder else None
        return key if real is None or not name else self._join(real, name)

    def _split(self, key: str) -> tuple[str, str]:
        """Folder and name of a lookup key; the folder of the top is empty."""
        folder, _, name = key.rpartition("\\" if self._windows else "/")
        return (folder or ("" if self._windows or key == "/" else "/")), name

    def _join(self, folder: str, name: str) -> str:
        if self._windows:
            return f"{folder}\\{name}" if folder else name
        return f"{folder}{name}" if folder.endswith("/") else f"{folder}/{name}"

    def _resolve(self, key: str) -> Optional[str]:
        """The key with all links followed; None where they go in circles."""
        if not self._section("links") or self._windows:
            return self._without_dots(key)
        if key in self._real:
            return self._real[key]
        links = self._section("links")
        pending = [part for part in reversed(key.split("/")) if part]
        done = ""
        followed = 0
        result: Optional[str] = None
        while True:
            if not pending:
                result = done or "/"
                break
            part = pending.pop()
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            target = links.get(f"{done}/{part}")
            if not isinstance(target, str):
                done = f"{done}/{part}"
                continue
            followed += 1
            if followed > _LINK_LIMIT:
                break
            pending.extend(piece for piece in reversed(target.split("/")) if piece not in ("", "."))
            if target.startswith("/"):
                done = ""
        self._real[key] = result
        return result

    def _without_dots(self, key: str) -> str:
        separator = "\\" if self._windows else "/"
        if ".." not in key:
            return key
        kept: list[str] = []
        for part in key.split(separator):
            if part == "..":
                if kept and kept[-1]:
                    kept.pop()
            else:
                kept.append(part)
        return separator.join(kept) or separator

    def _find(self, section: str, path: str) -> tuple[Any, str]:
        """The entry of a path in a section (None: not listed) and the key with all links followed."""
        entries = self._section(section)
        key = self._key(path)
        if key in entries:
            return entries[key], key
        real = self._resolve(key)
        if real is None:
            return {"error": "too many symbolic links"}, key
        return entries.get(real), real

    def _implied(self) -> dict[str, dict[str, str]]:
        """The folders that listed paths imply: names by their lookup form."""
        if self._tree is None:
            self._tree = {}
            for path in self._listed_paths():
                self._imply(path)
                if not self._windows:
                    self._imply(self._through_links(self._key(path)))
        return self._tree

    def _listed_paths(self) -> Iterable[str]:
        for section in ("files", "binaries", "status", "links", "folders"):
            for path, entry in self._document.get(section, {}).items():
                if not is_absent(entry):
                    yield path
                    if section == "folders" and isinstance(entry, list):
                        for name in entry:
                            yield path.rstrip("/\\") + ("\\" if self._windows else "/") + name
        for program in self._document.get("programs", []):
            if not program.get("absent") and ("/" in program["argv"][0] or "\\" in program["argv"][0]):
                yield program["argv"][0]

    def _imply(self, path: str) -> None:
        assert self._tree is not None
        shown = path.replace("/", "\\") if self._windows else path
        key = self._key(path)
        name = [part for part in shown.split("\\" if self._windows else "/") if part not in ("", ".")]
        while name:
            folder, last = self._split(key)
            if not last:
                break
            names = self._tree.setdefault(folder, {})
            if last in names:
                break
            names[last] = name.pop()
            key = folder
            if not key:
                break

    # -- the machine ------------------------------------------------------------------------------------------------

    def machine(self) -> Fact[str]:
        return self._scalar("machine", sources.UNAME)

    def kernel_release(self) -> Fact[str]:
        return self._scalar("kernel_release", sources.UNAME)

    def libc(self) -> Fact[tuple[str, str]]:
        return self._scalar("libc", sources.C_LIBRARY, lambda entry: (entry[0], entry[1]))

    def today(self) -> Fact[str]:
        return self._scalar("today", sources.CLOCK)

    def working_folder(self) -> Fact[str]:
        return self._scalar("working_folder", sources.WORKING_FOLDER)

    def identity(self) -> Fact[Identity]:
        def read(entry: Any) -> Identity:
            admin = entry.get("is_admin", not self._windows and entry["uid"] == 0)
            return Identity(entry["uid"], entry["gid"], tuple(entry.get("groups", ())), admin)

        return self._scalar("identity", sources.USER, read)

    def limit(self, name: str) -> Fact[int]:
        source = sources.limit(name)
        entry = self._document.get("limits", {}).get(name)
        if entry is None:
            return self._unlisted(source)
        return absent(source) if entry == "unlimited" else fact_of(entry, source)

    def own_interpreter(self) -> Fact[Mapping[str, str]]:
        def read(entry: Any) -> Mapping[str, str]:
            prefix = entry.get("prefix", "")
            how = {"one_file": entry["one_file"]} if "one_file" in entry else {}
            return {
                **how,
                "executable": entry["executable"],
                "prefix": prefix,
                "base_prefix": entry.get("base_prefix", prefix),
                "version": entry.get("version", ""),
            }

        if "own_interpreter" not in self._document:
            return self._unlisted(sources.OWN_INTERPRETER)
        return self._scalar("own_interpreter", sources.OWN_INTERPRETER, read)

    def variable(self, name: str) -> Fact[str]:
        source = sources.variable(name)
        variables = self._document.get("variables", {})
        if name in variables:
            return fact_of(variables[name], source)
        if self._windows:
            for listed, entry in variables.items():
                if listed.upper() == name.upper():
                    return fact_of(entry, source)
        return self._unlisted(source)

    def variable_names(self) -> Fact[list[str]]:
        if "variable_names" in self._document:
            return self._scalar("variable_names", sources.ENVIRONMENT)
        if not self._unlisted_is_absent:
            return unknown(NOT_RECORDED, sources.ENVIRONMENT)
        variables = self._document.get("variables", {})
        return known(sorted(name for name, entry in variables.items() if isinstance(entry, str)), sources.ENVIRONMENT)

    # -- files ------------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Fact[bytes]:
        entry, real = self._find("files", path)
        if entry is not None:
            return fact_of(entry, path, lambda value: bytes_of(value)[:limit])
        if self._unlisted_is_absent and real in self._implied():
            return unknown("it is a folder", path)
        return self._unlisted(path)

    def read_text(self, path: str, limit: int = 1 << 20) -> Fact[str]:
        return self.read_bytes(path, limit).map(decode)

    def open_binary(self, path: str) -> Fact[RandomReader]:
        entry, _ = self._find("binaries", path)
        if entry is not None:
            return fact_of(entry, path, _RecordedReader)
        entry, _ = self._find("files", path)
        if entry is not None:
            return fact_of(entry, path, lambda value: _RecordedReader(None, bytes_of(value)))
        return self._unlisted(path)

    def list_folder(self, path: str) -> Fact[list[str]]:
        entry, real = self._find("folders", path)
        if isinstance(entry, list):
            names = set(entry)
            if self._unlisted_is_absent:
                names |= set(self._implied().get(real, {}).values())
            return known(sorted(names), path)
        if entry is not None:
            return fact_of(entry, path)
        if self._unlisted_is_absent and real in self._implied():
            return known(sorted(self._implied()[real].values()), path)
        return self._unlisted(path)

    def status(self, path: str) -> Fact[FileStatus]:
        entry, real = self._find("status", path)
        if entry is not None:
            return fact_of(entry, path, lambda value: _status(value, self._windows))
        for section in ("files", "binaries"):
            entry, _ = self._find(section, path)
            if is_absent(entry) or is_error(entry):
                return fact_of(entry, path)
            if entry is not None:
                size = entry["size"] if section == "binaries" else len(bytes_of(entry))
                return known(_status({"kind": "file", "size": size}, self._windows), path)
        entry, _ = self._find("folders", path)
        if is_absent(entry):
            return absent(path)
        if entry is not None or (self._unlisted_is_absent and (real in self._implied() or real == "/")):
            return known(_status({"kind": "directory"}, self._windows), path)
        if self._unlisted_is_absent:
            folder, name = self._split(real)
            # A name in a listed folder, or a program: something is there, and it is taken for a file.
            if name in self._implied().get(folder, {}) and not isinstance(self._section("links").get(real), str):
                mode = "0755" if self._is_program(real) else "0644"
                return known(_status({"kind": "file", "mode": mode}, self._windows), path)
        return self._unlisted(path)

    def _is_program(self, key: str) -> bool:
        """Whether a listed program is this file; `key` has no links left."""
        listed = (program["argv"][0] for program in self._document.get("programs", []))
        return any(self._resolve(self._key(path)) == key for path in listed)

    def link_target(self, path: str) -> Fact[str]:
        links = self._section("links")
        key = self._key(path)
        if key not in links and not self._windows:
            key = self._through_links(key)
        if key in links:
            return fact_of(links[key], path)
        if any(key in self._section(section) for section in ("files", "binaries", "folders")):
            return absent(path)
        return self._unlisted(path)

    def real_path(self, path: str) -> Fact[str]:
        entries = self._section("real_paths")
        key = self._key(path)
        if key in entries:
            return fact_of(entries[key], path)
        real = self._resolve(key)
        if real is None:
            return unknown("too many symbolic links", path)
        status = self.status(path)
        if status.is_known:
            return known(path if self._windows else real, path)
        return Fact(status.state, None, path, status.reason)

    def disk_usage(self, path: str) -> Fact[DiskUsage]:
        entry, real = self._find("disks", path)
        while entry is None and self._unlisted_is_absent:
            folder, name = self._split(real)
            if not name:
                break
            real = folder
            entry = self._section("disks").get(real)
        if entry is None:
            return self._unlisted(path)
        return fact_of(entry, path, lambda value: DiskUsage(value["total"], value["free"]))

    def group_name(self, gid: int) -> Fact[str]:
        source = sources.group(gid)
        entry = self._document.get("group_names", {}).get(str(gid))
        return self._unlisted(source) if entry is None else fact_of(entry, source)

    # -- programs ---------------------------------------------------------------------------------------------------

    def which(self, program: str) -> Fact[str]:
        source = sources.which(program)
        listed = self._document.get("which", {})
        if program in listed:
            return fact_of(listed[program], source)
        if not self._unlisted_is_absent:
            return unknown(NOT_RECORDED, source)
        separator = "\\" if self._windows else "/"
        bare = False
        for folder in self._search_path():
            for name in self._program_names(program):
                path = folder.rstrip("/\\") + separator + name
                status = self.status(path)
                if status.is_known and status.get().kind == "file":
                    return known(path, source)
        for entry in self._document.get("programs", []):
            bare = bare or (entry["argv"][0] in self._program_names(program) and not entry.get("absent"))
        if bare:
            folder = "C:\\Windows\\System32" if self._windows else "/usr/bin"
            return known(folder + separator + self._program_names(program)[-1], source)
        return absent(source)

    def _search_path(self) -> list[str]:
        path = self.variable("PATH")
        if path.is_known:
            return [folder for folder in path.get().split(";" if self._windows else ":") if folder]
        return WINDOWS_PATH.split(";") if self._windows else POSIX_PATH.split(":")

    def _program_names(self, program: str) -> list[str]:
        if not self._windows or "." in program:
            return [program]
        return [program + ending.lower() for ending in WINDOWS_EXTENSIONS.split(";")] + [program]

    def start(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> RunningProgram:
        return Ended(self.run(argv, timeout, environment))

    def run(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> Fact[ProgramResult]:
        source = sources.program(argv)
        wanted = list(argv)
        bare = [wanted[0].replace("\\", "/").rpartition("/")[2], *wanted[1:]] if wanted else wanted
        for candidate in (wanted, bare):
            for entry in self._document.get("programs", []):
                if entry["argv"] == candidate and entry.get("environment", {}) == dict(environment or {}):
                    return fact_of(entry, source, _program_result)
        return self._unlisted(source)

    # -- NVML -------------------------------------------------------------------------------------------------------

    def cached_libraries(self, names: Sequence[str]) -> Fact[dict[str, list[str]]]:
        listed = self._document.get("loader_cache", {})
        result: dict[str, list[str]] = {}
        for name in names:
            answer = fact_of(listed[name], sources.LOADER_CACHE) if name in listed else None
            if answer is None:
                if not self._unlisted_is_absent:
                    return unknown(NOT_RECORDED, sources.LOADER_CACHE)
                result[name] = []
            elif answer.is_known:
                result[name] = answer.get()
            else:
                return answer
        return known(result, sources.LOADER_CACHE)

    def nvml_library(self) -> Fact[str]:
        if "nvml_library" in self._document:
            return self._scalar("nvml_library", sources.LIBRARY_SEARCH)
        entry = self._document.get("nvml")
        if isinstance(entry, dict) and not is_absent(entry) and not is_error(entry):
            return known("nvml.dll" if self._windows else "libnvidia-ml.so.1", sources.LIBRARY_SEARCH)
        return self._unlisted(sources.LIBRARY_SEARCH)

    def start_nvml(self, library: str, timeout: float) -> RunningQuery:
        if "nvml" not in self._document:
            return Ended(self._unlisted(sources.NVML))
        return Ended(self._scalar("nvml", sources.NVML))

    # -- Windows ----------------------------------------------------------------------------------------------------

    def registry_value(self, key: str, name: str) -> Fact[Any]:
        source = sources.registry(key, name)
        values = self._section("registry").get(self._key(key))
        if is_absent(values) or is_error(values):
            return fact_of(values, source)
        for listed, entry in (values or {}).items():
            if listed.lower() == name.lower():
                return fact_of(entry, source)
        return self._unlisted(source)

    def registry_keys(self, key: str) -> Fact[list[str]]:
        source = sources.registry(key)
        entry = self._section("registry_keys").get(self._key(key))
        if entry is not None:
            return fact_of(entry, source)
        if not self._unlisted_is_absent:
            return unknown(NOT_RECORDED, source)
        start = self._key(key) + "\\"
        names: dict[str, str] = {}
        for listed in self._document.get("registry", {}):
            if self._key(listed).startswith(start):
                depth = len(start.split("\\")) - 1
                name = [part for part in listed.replace("/", "\\").split("\\") if part][depth]
                names.setdefault(name.lower(), name)
        if not names and self._section("registry").get(self._key(key)) is None:
            return absent(source)
        return known(sorted(names.values()), source)

    def windows_call(self, name: str) -> Fact[Mapping[str, Any]]:
        source = sources.windows_call(name)
        entry = self._document.get("windows_calls", {}).get(name)
        return self._unlisted(source) if entry is None else fact_of(entry, source)

    # -- the run ------------------------------------------------------------------------------------------------------

    def remaining(self) -> float:
        return 3600.0  # nothing is waited for

    def ask_folders(self, report: Callable[[str], None]) -> None:
        pass

    def leave_alone(self, folder: str) -> None:
        pass

    def is_silent(self, path: str) -> bool:
        return False

    def take_notes(self) -> Any:
        return None

    def add_notes(self, notes: Any) -> None:
        return None


class _RecordedReader:
    """The recorded pieces of a large file. A piece that is not in the recording raises `OSError`, like a bad disk."""

    def __init__(self, entry: Any, whole: Optional[bytes] = None) -> None:
        if whole is not None:
            self.size = len(whole)
            self._pieces = [(0, whole)]
            return
        self.size = entry["size"]
        from base64 import b64decode

        self._pieces = sorted((int(offset), b64decode(piece)) for offset, piece in entry.get("pieces", {}).items())

    def read_at(self, offset: int, length: int) -> bytes:
        end = min(offset + length, self.size)
        result = bytearray()
        for start, piece in self._pieces:
            position = offset + len(result)
            if position >= end:
                break
            if start <= position < start + len(piece):
                result += piece[position - start : end - start]
        if offset + len(result) < end:
            raise OSError(f"bytes {offset} to {end} are {NOT_RECORDED}")
        return bytes(result)


_KIND_DEFAULTS = {"directory": "0755", "character-device": "0666", "block-device": "0660"}


def _status(entry: Mapping[str, Any], windows: bool) -> FileStatus:
    device = entry.get("device")
    kind = entry.get("kind", "file" if device is None else "character-device")
    return FileStatus(
        kind=kind,
        mode=int(entry.get("mode", _KIND_DEFAULTS.get(kind, "0644")), 8),
        uid=entry.get("uid", 0),
        gid=entry.get("gid", 0),
        size=entry.get("size", 0),
        device=device,
        readable=entry.get("readable", True),
        writable=entry.get("writable", kind == "character-device" or windows),
    )


def _program_result(entry: Mapping[str, Any]) -> ProgramResult:
    timed_out = entry.get("timed_out", False)
    return ProgramResult(
        exit_status=entry.get("exit_status", None if timed_out else 0),
        stdout=text_of(entry.get("stdout", "")),
        stderr=text_of(entry.get("stderr", "")),
        timed_out=timed_out,
    )
