"""Another system answers, and every answer is kept: `RecordingSystem(live)`, then `write(folder)`.

Only what the probes asked is recorded, redacted (see `redact`), as one `machine.json` that `replay` reads. A replay of
it gives the facts that the recorded run gave, after redaction.

Probes run in processes of their own: `take_notes` there and `add_notes` here bring the answers together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar

from cudadoctor.model.fact import Fact
from cudadoctor.parse.decode import decode
from cudadoctor.system.port import (
    DiskUsage,
    FileStatus,
    Identity,
    ProgramResult,
    RandomReader,
    RunningProgram,
    RunningQuery,
    System,
)
from cudadoctor.system.recording import FILE_NAME, SCHEMA, RecordingError, bytes_entry, entry_of, text_entry
from cudadoctor.system.redact import Redactor

T = TypeVar("T")


class RecordingSystem:
    """See the module."""

    def __init__(self, inner: System) -> None:
        self._inner = inner
        # (section, key, answer) in the order in which they came; marshal takes them.
        self._notes: list[tuple[str, Any, Any]] = []
        self._taken = 0
        self._once: dict[Any, Any] = {}

    def _note(self, section: str, key: Any, answer: Any) -> None:
        self._notes.append((section, key, answer))

    def _keep(
        self, section: str, key: Any, answer: Fact[T], encode: Callable[[T], Any] = lambda value: value
    ) -> Fact[T]:
        self._note(section, key, entry_of(answer, encode))
        return answer

    # -- the machine ------------------------------------------------------------------------------------------------

    @property
    def platform(self) -> str:
        return self._inner.platform

    @property
    def kind(self) -> str:
        return self._inner.kind

    @property
    def asked_python(self) -> Optional[str]:
        return self._inner.asked_python

    def once(self, question: Callable[[System], T]) -> T:
        if question not in self._once:
            self._once[question] = question(self)
        answer: T = self._once[question]
        return answer

    def machine(self) -> Fact[str]:
        return self._keep("machine", None, self._inner.machine())

    def kernel_release(self) -> Fact[str]:
        return self._keep("kernel_release", None, self._inner.kernel_release())

    def libc(self) -> Fact[tuple[str, str]]:
        return self._keep("libc", None, self._inner.libc(), list)

    def today(self) -> Fact[str]:
        return self._keep("today", None, self._inner.today())

    def working_folder(self) -> Fact[str]:
        return self._keep("working_folder", None, self._inner.working_folder())

    def identity(self) -> Fact[Identity]:
        def encode(identity: Identity) -> Any:
            return {
                "uid": identity.uid,
                "gid": identity.gid,
                "groups": list(identity.groups),
                "is_admin": identity.is_admin,
            }

        return self._keep("identity", None, self._inner.identity(), encode)

    def limit(self, name: str) -> Fact[int]:
        answer = self._inner.limit(name)
        self._note("limits", name, "unlimited" if answer.is_absent else entry_of(answer))
        return answer

    def own_interpreter(self) -> Fact[Mapping[str, str]]:
        return self._keep("own_interpreter", None, self._inner.own_interpreter(), dict)

    def variable(self, name: str) -> Fact[str]:
        return self._keep("variables", name, self._inner.variable(name))

    def variable_names(self) -> Fact[list[str]]:
        return self._keep("variable_names", None, self._inner.variable_names())

    # -- files ------------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Fact[bytes]:
        answer = self._inner.read_bytes(path, limit)
        self._note("files", path, answer.value if answer.is_known else entry_of(answer))
        return answer

    def read_text(self, path: str, limit: int = 1 << 20) -> Fact[str]:
        return self.read_bytes(path, limit).map(decode)

    def open_binary(self, path: str) -> Fact[RandomReader]:
        answer = self._inner.open_binary(path)
        if not answer.is_known:
            self._note("binaries", path, entry_of(answer))
            return answer
        self._note("binaries", path, answer.get().size)
        return answer.map(lambda reader: _RecordingReader(reader, path, self._note))

    def list_folder(self, path: str) -> Fact[list[str]]:
        return self._keep("folders", path, self._inner.list_folder(path))

    def status(self, path: str) -> Fact[FileStatus]:
        return self._keep("status", path, self._inner.status(path), status_entry)

    def link_target(self, path: str) -> Fact[str]:
        return self._keep("links", path, self._inner.link_target(path))

    def real_path(self, path: str) -> Fact[str]:
        return self._keep("real_paths", path, self._inner.real_path(path))

    def disk_usage(self, path: str) -> Fact[DiskUsage]:
        return self._keep("disks", path, self._inner.disk_usage(path), lambda usage: dict(usage._asdict()))

    def group_name(self, gid: int) -> Fact[str]:
        return self._keep("group_names", str(gid), self._inner.group_name(gid))

    # -- programs and NVML ------------------------------------------------------------------------------------------

    def which(self, program: str) -> Fact[str]:
        return self._keep("which", program, self._inner.which(program))

    def start(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> RunningProgram:
        return _Recorded(
            self._inner.start(argv, timeout, environment),
            lambda answer: self._note_program(list(argv), dict(environment or {}), answer),
        )

    def run(
        self, argv: Sequence[str], timeout: float, environment: Optional[Mapping[str, str]] = None
    ) -> Fact[ProgramResult]:
        return self.start(argv, timeout, environment).result()

    def _note_program(self, argv: list[str], environment: dict[str, str], answer: Fact[ProgramResult]) -> None:
        def encode(result: ProgramResult) -> dict[str, Any]:
            entry: dict[str, Any] = {"exit_status": result.exit_status}
            for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
                if text:
                    entry[name] = text_entry(text)
            if result.timed_out:
                entry["timed_out"] = True
            return entry

        entry = {"argv": argv, **entry_of(answer, encode)}
        if environment:
            entry["environment"] = environment
        self._note("programs", None, entry)

    def cached_libraries(self, names: Sequence[str]) -> Fact[dict[str, list[str]]]:
        answer = self._inner.cached_libraries(names)
        for name in names:
            self._keep("loader_cache", name, answer, lambda found, name=name: found[name])  # type: ignore[misc]
        return answer

    def nvml_library(self) -> Fact[str]:
        return self._keep("nvml_library", None, self._inner.nvml_library())

    def start_nvml(self, library: str, timeout: float) -> RunningQuery:
        return _Recorded(
            self._inner.start_nvml(library, timeout), lambda answer: self._note("nvml", None, entry_of(answer))
        )

    # -- Windows ----------------------------------------------------------------------------------------------------

    def registry_value(self, key: str, name: str) -> Fact[Any]:
        answer = self._inner.registry_value(key, name)
        self._note("registry", key, {name: entry_of(answer)})
        return answer

    def registry_keys(self, key: str) -> Fact[list[str]]:
        return self._keep("registry_keys", key, self._inner.registry_keys(key))

    def windows_call(self, name: str) -> Fact[Mapping[str, Any]]:
        return self._keep("windows_calls", name, self._inner.windows_call(name), dict)

    # -- the run ----------------------------------------------------------------------------------------------------

    def remaining(self) -> float:
        return self._inner.remaining()

    def ask_folders(self, report: Callable[[str], None]) -> None:
        self._inner.ask_folders(report)

    def leave_alone(self, folder: str) -> None:
        self._inner.leave_alone(folder)

    def is_silent(self, path: str) -> bool:
        return self._inner.is_silent(path)

    def take_notes(self) -> Any:
        notes = self._notes[self._taken :]
        self._taken = len(self._notes)
        return notes

    def add_notes(self, notes: Any) -> None:
        self._notes.extend(tuple(note) for note in notes or ())
        self._taken = len(self._notes)

    # -- the recording ----------------------------------------------------------------------------------------------

    def document(self, redactor: Optional[Redactor] = None) -> dict[str, Any]:
        """What `machine.json` holds, redacted."""
        redactor = redactor or Redactor.of_this_machine()
        document: dict[str, Any] = {"schema": SCHEMA, "platform": self.platform}
        if self.asked_python is not None:
            document["asked_python"] = self.asked_python
        contents: dict[str, bytes] = {}
        pieces: dict[str, dict[int, bytes]] = {}
        for section, key, answer in self._notes:
            if section == "files" and isinstance(answer, bytes):
                if len(answer) >= len(contents.get(key, b"")):  # the longest of several reads
                    contents[key] = answer
            elif section == "binaries" and isinstance(answer, int):
                document.setdefault(section, {})[key] = {"size": answer, "pieces": {}}
                pieces.setdefault(key, {})
            elif section == "pieces":
                path, offset = key
                if len(answer) > len(pieces[path].get(offset, b"")):
                    pieces[path][offset] = answer
            elif section == "programs":
                programs = document.setdefault("programs", [])
                if answer not in programs:
                    programs.append(answer)
            elif section == "registry":
                document.setdefault(section, {}).setdefault(key, {}).update(answer)
            elif key is None:
                document[section] = answer
            else:
                document.setdefault(section, {})[key] = answer
        for path, content in contents.items():
            document.setdefault("files", {})[path] = bytes_entry(redactor.content(path, content))
        document = redactor.document(document)
        for path, found in pieces.items():
            entry = document["binaries"][redactor.path(path)]
            if isinstance(entry, dict) and "pieces" in entry:
                entry["pieces"] = {str(offset): _base64(redactor.piece(data)) for offset, data in _joined(found)}
        return document

    def write(self, folder: str, redactor: Optional[Redactor] = None) -> str:
        """Writes the recording into a new or empty folder and gives the path of its file. Raises RecordingError where
        the folder is in use or cannot be written; then nothing is left behind."""
        import json

        text = json.dumps(self.document(redactor), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:  # names that are no UTF-8
            data = json.dumps(json.loads(text), indent=1, sort_keys=True).encode("ascii") + b"\n"
        check_target(folder)
        made = False
        try:
            if not os.path.isdir(folder):
                os.makedirs(folder)
                made = True
            path = os.path.join(folder, FILE_NAME)
            _write_whole(path, data)
            return path
        except OSError as error:
            if made:
                _remove_empty(folder)
            reason = (error.strerror or str(error)).lower()
            raise RecordingError(f"{folder}: the recording cannot be written ({reason})") from None


def check_target(folder: str) -> None:
    """Raises RecordingError where a recording would not be written because something is there already."""
    if not os.path.exists(folder):
        return
    if not os.path.isdir(folder):
        raise RecordingError(f"{folder}: a recording needs a folder, and this is a file")
    try:
        taken = bool(os.listdir(folder))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RecordingError(f"{folder}: this folder cannot be looked into ({reason})") from None
    if taken:
        raise RecordingError(f"{folder}: this folder is not empty; a recording goes into a new or empty one")


def _write_whole(path: str, data: bytes) -> None:
    """The whole file or none."""
    unfinished = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode("ascii")


def _joined(pieces: Mapping[int, bytes]) -> list[tuple[int, bytes]]:
    """Pieces by offset; those that touch or overlap become one."""
    joined: list[tuple[int, bytes]] = []
    for offset, data in sorted(pieces.items()):
        if joined:
            start, before = joined[-1]
            if offset <= start + len(before):
                joined[-1] = (start, before + data[max(0, start + len(before) - offset) :])
                continue
        joined.append((offset, data))
    return joined


def status_entry(status: FileStatus) -> dict[str, Any]:
    """How a file status stands in a recording."""
    entry: dict[str, Any] = {
        "kind": status.kind,
        "mode": f"{status.mode:04o}",
        "uid": status.uid,
        "gid": status.gid,
        "size": status.size,
        "readable": status.readable,
        "writable": status.writable,
    }
    if status.device is not None:
        entry["device"] = status.device
    return entry


class _RecordingReader:
    """Notes each piece that is read."""

    def __init__(self, inner: RandomReader, path: str, note: Callable[[str, Any, Any], None]) -> None:
        self._inner = inner
        self._path = path
        self._note = note
        self.size = inner.size

    def read_at(self, offset: int, length: int) -> bytes:
        data = self._inner.read_at(offset, length)
        self._note("pieces", (self._path, offset), data)
        return data


class _Recorded:
    """Notes the answer when it is there."""

    def __init__(self, inner: Any, note: Callable[[Fact[Any]], None]) -> None:
        self._inner = inner
        self._note = note
        self._answer: Optional[Fact[Any]] = None

    def advance(self) -> None:
        self._inner.advance()

    def result(self, within: Optional[float] = None) -> Fact[Any]:
        if self._answer is None:
            self._answer = self._inner.result() if within is None else self._inner.result(within)
            self._note(self._answer)
        return self._answer
