r"""The format of a recorded machine: one `machine.json` in a folder, for people to read, write and compare.

    {
      "schema": "cudadoctor.recording/1",
      "unlisted": "absent",                               what is not written here is not there (else: unknown)
      "platform": "linux",
      "kernel_release": "6.8.0-45-generic",
      "variables": {"PATH": "/usr/bin", "CUDA_HOME": {"absent": true}},
      "files": {
        "/etc/os-release": ["ID=ubuntu", "VERSION_ID=\"22.04\""],            a list: lines
        "/sys/module/nvidia/version": "535.183.01\n",
        "/var/log/kern.log": {"error": "permission denied"},
        "/sys/firmware/efi/efivars/SecureBoot-8be4...": {"base64": "BgAAAAE="}
      },
      "links": {"/usr/local/cuda": "cuda-12.4"},
      "status": {"/dev/nvidia0": {"device": "195:0", "mode": "0660", "writable": false}},
      "programs": [{"argv": ["/usr/bin/nvidia-smi"], "exit_status": 9, "stdout": ["NVIDIA-SMI has failed ..."]}]
    }

Wherever an answer stands, `{"absent": true}` says that it is not there and `{"error": "reason"}` that it could not be
looked at. The other sections: `machine`, `libc` (name and version), `today`, `working_folder`, `asked_python`,
`identity`, `limits` (a number or "unlimited"), `own_interpreter`, `variable_names`, `binaries` (`size` and `pieces` by
offset, base64), `folders`, `real_paths`, `disks`, `group_names`, `which`, `loader_cache` (paths by library name),
`registry` (values by key and name), `registry_keys`, `windows_calls`, `nvml_library`, `nvml` (see `system/nvml.py`),
and `about`, a note for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from cudadoctor.model.fact import ABSENT, KNOWN, Fact, ParseError, absent, known, no_number, unknown

SCHEMA = "cudadoctor.recording/1"
FILE_NAME = "machine.json"

# A recording of a live machine is about 100 KiB; one with large libraries' pieces a few MiB.
SIZE_LIMIT = 64 << 20

NOT_RECORDED = "not in the recording"

# The type bits of a recorded file status are its `kind`.
STATUS_KINDS = ("file", "directory", "character-device", "block-device", "other")


class RecordingError(ParseError):
    """A recording that cannot be used; the message is one sentence with the file and what was expected."""


def entry_of(answer: Fact[Any], encode: Callable[[Any], Any] = lambda value: value) -> Any:
    """How an answer of the port stands in a recording."""
    if answer.state == KNOWN:
        return encode(answer.get())
    if answer.state == ABSENT:
        return {"absent": True}
    return {"error": answer.reason}


def fact_of(entry: Any, source: str, decode: Callable[[Any], Any] = lambda value: value) -> Fact[Any]:
    """The answer that stands in a recording."""
    if isinstance(entry, dict):
        if entry.get("absent") is True:
            return absent(source)
        if isinstance(entry.get("error"), str):
            return unknown(entry["error"], source)
    return known(decode(entry), source)


def is_absent(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("absent") is True


def is_error(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("error"), str)


def text_entry(text: str) -> Any:
    """A text as it stands in a recording: by lines where it has several."""
    return text.split("\n") if "\n" in text[:-1] else text


def text_of(entry: Any) -> str:
    return "\n".join(entry) if isinstance(entry, list) else str(entry)


def bytes_entry(data: bytes) -> Any:
    """Bytes as they stand in a recording: as text where they are UTF-8 without control characters of a binary file."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if (text or not data) and data.count(b"\0") * 8 <= len(data):
        return text_entry(text)
    from base64 import b64encode

    return {"base64": b64encode(data).decode("ascii")}


def bytes_of(entry: Any) -> bytes:
    if isinstance(entry, dict):
        from base64 import b64decode

        return b64decode(entry["base64"])
    return text_of(entry).encode("utf-8", "surrogatepass")


# -- checking what a person may have written ------------------------------------------------------------------------

_Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_lines(value: Any) -> bool:
    return isinstance(value, str) or _is_texts(value)


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    from base64 import b64decode

    try:
        b64decode(value, validate=True)
    except ValueError:
        return False
    return True


def _is_file(value: Any) -> bool:
    return _is_lines(value) or (isinstance(value, dict) and set(value) == {"base64"} and _is_base64(value["base64"]))


def _is_binary(value: Any) -> bool:
    if not (isinstance(value, dict) and set(value) <= {"size", "pieces"} and _is_number(value.get("size"))):
        return False
    pieces = value.get("pieces", {})
    return isinstance(pieces, dict) and all(
        offset.isascii() and offset.isdigit() and _is_base64(piece) for offset, piece in pieces.items()
    )


def _is_mode(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 6 and all(digit in "01234567" for digit in value)


def _record_of(required: Mapping[str, _Check], optional: Mapping[str, _Check]) -> _Check:
    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and all(name in value for name in required)
            and all((required.get(name) or optional.get(name) or _never)(item) for name, item in value.items())
        )

    return check


def _never(value: Any) -> bool:
    return False


def _is_plain(value: Any) -> bool:
    if value is None or isinstance(value, (str, int, float, bool)):
        return True
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return isinstance(value, dict) and all(_is_plain(item) for item in value.values())


def _is_registry_value(value: Any) -> bool:
    return _is_text(value) or _is_number(value) or _is_texts(value)


def _is_registry_key(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_absent(item) or is_error(item) or _is_registry_value(item) for item in value.values()
    )


_STATUS = _record_of(
    {},
    {
        "kind": lambda value: value in STATUS_KINDS,
        "mode": _is_mode,
        "uid": _is_number,
        "gid": _is_number,
        "size": _is_number,
        "device": _is_text,
        "readable": _is_flag,
        "writable": _is_flag,
    },
)
_IDENTITY = _record_of({"uid": _is_number, "gid": _is_number}, {"groups": _is_texts, "is_admin": _is_flag})
_DISK = _record_of({"total": _is_number, "free": _is_number}, {})
_PROGRAM = _record_of(
    {"argv": _is_texts},
    {
        "exit_status": lambda value: value is None or _is_number(value),
        "stdout": _is_lines,
        "stderr": _is_lines,
        "timed_out": _is_flag,
        "environment": lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
        "absent": _is_flag,
        "error": _is_text,
    },
)
_INTERPRETER = _record_of(
    {"executable": _is_text}, {"prefix": _is_text, "base_prefix": _is_text, "version": _is_text, "one_file": _is_text}
)


def _or_refused(check: _Check) -> _Check:
    """An answer of NVML's, or that and why there is none."""
    return lambda value: check(value) or is_absent(value) or _REFUSED(value)


def _is_list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


_REFUSED = _record_of({"code": _is_number, "error": _is_text}, {})
_NVML_SIZES = _record_of({"total": _is_number, "free": _is_number, "used": _is_number}, {})
_NVML_PROCESS = _record_of({"pid": _is_number}, {"memory": lambda value: value is None or _is_number(value)})
# What is neither text nor an object here is a number.
_NVML_GPU: dict[str, _Check] = {
    **{name: _or_refused(_is_text) for name in ("name", "compute_capability", "pci_bus_id", "pci_device_id")},
    "handle": _REFUSED,
    "memory": _or_refused(_NVML_SIZES),
    "remapped_rows": _or_refused(_record_of({"pending": _is_flag, "failure": _is_flag}, {})),
    "processes": _or_refused(_is_list_of(_NVML_PROCESS)),
}
_IS_NVML_NUMBER = _or_refused(_is_number)


def _is_nvml_gpu(value: Any) -> bool:
    return isinstance(value, dict) and all(_NVML_GPU.get(key, _IS_NVML_NUMBER)(item) for key, item in value.items())


_NVML = _record_of(
    {},
    {
        "init": lambda value: value == {"ok": True} or _REFUSED(value),
        "library_version": _or_refused(_is_text),
        "driver_version": _or_refused(_is_text),
        "cuda_driver_version": _IS_NVML_NUMBER,
        "count": _IS_NVML_NUMBER,
        "gpus": _is_list_of(_is_nvml_gpu),
        "unfinished": _is_text,
    },
)

# Sections that hold one answer: the check and the words for a message.
SCALARS: dict[str, tuple[_Check, str]] = {
    "machine": (_is_text, "a text"),
    "kernel_release": (_is_text, "a text"),
    "today": (_is_text, "a date as YYYY-MM-DD"),
    "working_folder": (_is_text, "a path"),
    "libc": (lambda value: _is_texts(value) and len(value) == 2, 'a name and a version, as ["glibc", "2.35"]'),
    "identity": (_IDENTITY, "an object with uid, gid, groups and is_admin"),
    "own_interpreter": (_INTERPRETER, "an object with executable, prefix, base_prefix and version"),
    "variable_names": (_is_texts, "a list of names"),
    "nvml_library": (_is_text, "a path"),
    "nvml": (_NVML, "an object with NVML's answers"),
}

# Sections that map keys to answers.
MAPS: dict[str, tuple[_Check, str]] = {
    "variables": (_is_text, "a text"),
    "files": (_is_file, 'a text, a list of lines or {"base64": "..."}'),
    "binaries": (_is_binary, 'an object with size and pieces ({"0": "base64 ..."})'),
    "folders": (_is_texts, "a list of names"),
    "status": (_STATUS, "an object with kind, mode (octal text), uid, gid, size, device, readable and writable"),
    "links": (_is_text, "the path that the link holds"),
    "real_paths": (_is_text, "a path"),
    "disks": (_DISK, "an object with total and free (bytes)"),
    "group_names": (_is_text, "a name"),
    "limits": (lambda value: _is_number(value) or value == "unlimited", 'a number or "unlimited"'),
    "which": (_is_text, "a path"),
    "loader_cache": (_is_texts, "a list of paths"),
    "registry": (_is_registry_key, "an object that maps value names to texts, whole numbers or lists of texts"),
    "registry_keys": (_is_texts, "a list of names"),
    "windows_calls": (lambda value: isinstance(value, dict) and _is_plain(value), "an object"),
}

PLATFORMS = ("linux", "windows", "darwin")

_TOP: dict[str, tuple[_Check, str]] = {
    "schema": (_is_text, f"{SCHEMA!r}"),
    "about": (_is_lines, "a text or a list of lines"),
    "platform": (lambda value: value in PLATFORMS, "linux, windows or darwin"),
    "unlisted": (lambda value: value in ("absent", "unknown"), '"absent" or "unknown"'),
    "asked_python": (_is_text, "a path"),
    "programs": (lambda value: isinstance(value, list), "a list of objects with argv, exit_status, stdout and stderr"),
}


def check_document(document: Any, where: str) -> dict[str, Any]:
    """The document, if it is a recording; else RecordingError, which names the file `where` and the place in it."""
    if not isinstance(document, dict):
        raise RecordingError(f"{where}: a recording is a JSON object, not a {_type_name(document)}")
    schema = document.get("schema")
    if schema != SCHEMA:
        found = "there is none" if schema is None else f"it is {_shown(schema)}"
        raise RecordingError(f"{where}: 'schema' must be {SCHEMA!r}; {found}")
    for name, value in document.items():
        if name in _TOP:
            check, expected = _TOP[name]
            if not check(value):
                raise RecordingError(f"{where}: {name!r} must be {expected}, not {_shown(value)}")
        elif name in SCALARS:
            check, expected = SCALARS[name]
            if not (is_absent(value) or is_error(value) or check(value)):
                raise RecordingError(f"{where}: {name!r} must be {expected}, not {_shown(value)}")
        elif name in MAPS:
            check, expected = MAPS[name]
            if not isinstance(value, dict):
                raise RecordingError(f"{where}: {name!r} must be an object, not a {_type_name(value)}")
            for key, entry in value.items():
                if not (is_absent(entry) or is_error(entry) or check(entry)):
                    raise RecordingError(f"{where}: {name!r}, {key!r} must be {expected}, not {_shown(entry)}")
        else:
            raise RecordingError(f"{where}: {name!r} is no part of a recording; known are {_listed()}")
    for number, entry in enumerate(document.get("programs", []), 1):
        if not _PROGRAM(entry) or not entry["argv"]:
            raise RecordingError(
                f"{where}: entry {number} of 'programs' must be an object with argv (a list of texts), exit_status, "
                f"stdout and stderr, not {_shown(entry)}"
            )
    return document


def _listed() -> str:
    return ", ".join(sorted({*_TOP, *SCALARS, *MAPS}))


def _shown(value: Any) -> str:
    import json

    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError):
        text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return names.get(type(value), type(value).__name__)


def read_document(folder: str) -> dict[str, Any]:
    """Reads and checks `machine.json` of a folder, or raises RecordingError."""
    import json
    import os

    where = os.path.join(folder, FILE_NAME)
    if not os.path.isdir(folder):
        state = "is a file" if os.path.exists(folder) else "does not exist"
        raise RecordingError(f"{folder}: a recording is a folder with a {FILE_NAME} in it; this {state}")
    try:
        with open(where, "rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise RecordingError(f"{folder}: there is no {FILE_NAME} in this folder, so it is no recording") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RecordingError(f"{where}: the recording cannot be read ({reason})") from None
    if len(data) > SIZE_LIMIT:
        raise RecordingError(f"{where}: the recording is larger than {SIZE_LIMIT >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RecordingError(f"{where}: a recording is JSON in UTF-8, and this is not UTF-8") from None
    try:
        document = json.loads(text, object_pairs_hook=_no_doubles, parse_constant=no_number)
    except _Doubled as error:
        raise RecordingError(f"{where}: the key {error.args[0]!r} stands twice in one object") from None
    except RecursionError:
        raise RecordingError(f"{where}: the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise RecordingError(f"{where}, line {error.lineno}: broken JSON ({error.msg.lower()})") from None
    except ValueError:
        raise RecordingError(f"{where}: a number in it is none that JSON has, or a huge one") from None
    return check_document(document, where)


class _Doubled(Exception):
    pass


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Doubled(name)
            seen.add(name)
    return result
