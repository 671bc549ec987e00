"""Finding the compatibility data: compiled JSON in an installed package, TOML (or JSON beside it) in a checkout.

Sections are read on demand: a check that never looks up a GPU by name never reads ``gpus.json``.

What `cudadoctor matrix update` has fetched lies in the user's data folder and goes before the sections that it covers,
as long as it was made on top of the very data that is shipped: a newer cudadoctor with newer data wins. Whatever is
odd about it, the shipped data serves, and the matrix's origin says why.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Optional, Protocol

from ..parse import data_folder as places
from ..parse.data_folder import DATA_VARIABLE as DATA_VARIABLE
from ..parse.data_folder import INDEX as INDEX
from ..parse.data_folder import UPDATE_FOLDER as UPDATE_FOLDER
from ..parse.data_folder import ruled_out as ruled_out
from .query import Matrix
from .sections import REMOVE_IT, SHIPPED, Origin
from .tables import MatrixError

Section = Callable[[str], dict[str, Any]]

_HERE = os.path.dirname(os.path.abspath(__file__))
_COMPILED = "compiled"
# The compiled data of an editable install lies beside the TOML, not in the package, so that no wheel picks it up stale.
_BESIDE = ".compiled"

# What an update consists of. Nothing else is ever taken from there: the other sections hold commands and addresses.
UPDATED_SECTIONS = ("torch", "driver_branches", "cuda_toolkits")
UPDATE_FORMAT = "cudadoctor.matrix-update/1"
# Bytes of one file of an update. The largest today is a twentieth of it.
_LARGEST = 8 << 20

_loaded: Optional[Matrix] = None


class UserFiles(Protocol):
    """The files below the user's data folder. All but `home` raise OSError, TimeoutError where nothing answers."""

    def home(self) -> str:
        """The user's home; empty: nobody knows it."""

    def owner(self, path: str) -> int:
        """The user to whom a file belongs."""

    def kind(self, path: str) -> str:
        """folder, other, or none: nothing is there."""

    def read(self, path: str, limit: int) -> bytes:
        """At most `limit` bytes of a file."""


class _Direct:
    """They are looked at here and now."""

    def home(self) -> str:
        return os.path.expanduser("~")

    def owner(self, path: str) -> int:
        return os.stat(path).st_uid

    def kind(self, path: str) -> str:
        return "folder" if os.path.isdir(path) else "other" if os.path.exists(path) else "none"

    def read(self, path: str, limit: int) -> bytes:
        with open(path, "rb") as file:
            return file.read(limit)


DIRECT = _Direct()


def load_matrix(compat: Optional[str] = None, files: UserFiles = DIRECT) -> Matrix:
    """The compatibility matrix of this installation; read once a process.

    With ``compat``, a folder of TOML files is read instead, and not remembered. ``files`` reads the user's own data,
    for who must not wait for a dead home.
    Raises MatrixError, here or at the first question that needs a section which is missing or broken.
    """
    global _loaded
    if compat is not None:
        return Matrix(_from_toml(compat), Origin("files", path=compat))
    if _loaded is None:
        _loaded = _with_update(_find(), files)
    return _loaded


def load_shipped() -> Matrix:
    """The data that came with this cudadoctor, whatever was fetched since. Raises MatrixError as `load_matrix` does."""
    return Matrix(_find())


def data_folder(files: UserFiles = DIRECT) -> Optional[str]:
    """The user's data folder of cudadoctor, there or not. None: CUDADOCTOR_DATA rules it out, or there is no home."""
    return places.data_folder(os.environ, sys.platform, files.home(), os.path)


def _with_update(shipped: Section, files: UserFiles) -> Matrix:
    """The shipped data with the user's update over it, where there is one that fits."""
    folder = data_folder(files)
    if folder is None:
        return Matrix(shipped)
    named = folder
    folder = os.path.join(folder, UPDATE_FOLDER)
    index = os.path.join(folder, INDEX)
    try:
        owner = files.owner(index)
    except (FileNotFoundError, NotADirectoryError) as error:
        return Matrix(shipped, _without(named, error, files))
    except (OSError, ValueError) as error:
        return Matrix(shipped, SHIPPED._replace(path=folder, reason=f"it cannot be read ({_why(error)})"))
    try:
        # Under sudo with the user's home kept, root must not take what somebody else can write.
        if hasattr(os, "geteuid") and owner not in (os.geteuid(), 0):
            raise _NotTaken("it belongs to another user")
        section, updated = _update(folder, shipped, files)
    except _NotTaken as error:
        return Matrix(shipped, SHIPPED._replace(path=folder, reason=str(error)))
    return Matrix(section, Origin("updated", updated, folder))


def _without(folder: str, error: OSError, files: UserFiles) -> Origin:
    """Of data without an update: also that what CUDADOCTOR_DATA names cannot hold one, or only from elsewhere."""
    named = os.environ.get(DATA_VARIABLE)
    # The usual case, no update yet, asks the file system nothing more. Windows has one error for both.
    if named is None or (os.path.isabs(named) and isinstance(error, FileNotFoundError) and os.name != "nt"):
        return SHIPPED
    try:
        kind = files.kind(folder)
    except OSError as failure:
        return SHIPPED._replace(path=folder, reason=f"it cannot be read ({_why(failure)})")
    if kind == "folder" or (kind == "none" and os.path.isabs(named)):
        return SHIPPED
    why = "it names no folder" + ("" if kind == "other" else " that is there, seen from the working folder")
    return SHIPPED._replace(path=folder, reason=f"{DATA_VARIABLE} is ignored: {why}")


class _NotTaken(Exception):
    """Why the user's update is not taken: half a sentence."""


def _update(folder: str, shipped: Section, user_files: UserFiles) -> tuple[Section, str]:
    """The sections of an update over the shipped ones, and when it was fetched. Every file is verified at once: a check
    shall not rest on half of it."""
    import zlib

    index = _json(os.path.join(folder, INDEX), user_files)
    if index.get("format") != UPDATE_FORMAT:
        raise _NotTaken("its layout is one that this cudadoctor does not read")
    meta = shipped("meta")
    if index.get("schema") != meta.get("schema"):
        raise _NotTaken("its tables are laid out for another cudadoctor")
    if index.get("based_on") != meta.get("revision"):
        raise _NotTaken(
            f"it was made on top of data {index.get('based_on')}, and this cudadoctor brings {meta.get('revision')}"
        )
    updated, revision, place, files = (index.get(key) for key in ("updated", "revision", "folder", "files"))
    if not (isinstance(updated, str) and isinstance(revision, str) and isinstance(place, str)):
        raise _NotTaken("its index is damaged")
    if not isinstance(files, dict) or sorted(files) != sorted(UPDATED_SECTIONS) or not place.isalnum():
        raise _NotTaken("its index is damaged")
    texts: dict[str, bytes] = {}
    for name, entry in files.items():
        data = _limited(os.path.join(folder, place, name + ".json"), user_files)
        if not isinstance(entry, dict) or (len(data), zlib.crc32(data)) != (entry.get("size"), entry.get("crc32")):
            raise _NotTaken(f"{name}.json is damaged")
        texts[name] = data
    own_meta = {**meta, "revision": revision, "checked": max(str(meta.get("checked")), updated[:10])}

    def section(name: str) -> dict[str, Any]:
        if name == "meta":
            return own_meta
        return _parsed(texts[name], name + ".json", REMOVE_IT) if name in texts else shipped(name)

    return section, updated


def _json(path: str, files: UserFiles) -> dict[str, Any]:
    try:
        found = json.loads(_limited(path, files))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _NotTaken("its index is damaged")
    return found


def _limited(path: str, files: UserFiles) -> bytes:
    try:
        data = files.read(path, _LARGEST + 1)
    except FileNotFoundError:
        raise _NotTaken(f"{os.path.basename(path)} is missing") from None
    except (OSError, ValueError) as error:
        raise _NotTaken(f"{os.path.basename(path)} cannot be read ({_why(error)})") from None
    if len(data) > _LARGEST:
        raise _NotTaken(f"{os.path.basename(path)} is too large")
    return data


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _find() -> Section:
    compat = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "compat")
    # Before the package's own: in a checkout that would be left from some build, and nothing says how old it is.
    if os.path.isfile(os.path.join(compat, "meta.toml")):
        beside = os.path.join(compat, _BESIDE)
        index = _read(os.path.join(beside, INDEX))
        if index is not None and _fresh(index, compat):
            return _from_json(index, lambda name: _read(os.path.join(beside, name)))
        return _from_toml(compat)
    index = _package_bytes(INDEX)
    if index is not None:
        return _from_json(index, _package_bytes)
    raise MatrixError("The compatibility data is missing from this installation: install cudadoctor again.")


def _package_bytes(name: str) -> Optional[bytes]:
    """A file of the installed package, also where the package is a zip file."""
    path = os.path.join(os.path.dirname(__file__), _COMPILED, name)  # as the loader knows it: "./cudadoctor.pyz/..."
    get_data = getattr(getattr(__spec__, "loader", None), "get_data", None)
    if get_data is None:
        return _read(path)
    try:
        data: bytes = get_data(path)
    except OSError:
        return None
    return data


def _read(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _fresh(index: bytes, compat: str) -> bool:
    """Whether the compiled data was made from the TOML as it lies there now."""
    from .compile import stamp

    try:
        recorded = json.loads(index).get("stamp")
        return bool(recorded == [list(entry) for entry in stamp(compat)])
    except (ValueError, AttributeError, OSError):
        return False


def _from_json(index: bytes, read: Callable[[str], Optional[bytes]]) -> Section:
    def section(name: str) -> dict[str, Any]:
        if name == "meta":
            return dict(_parsed(index, INDEX).get("meta") or {})
        data = read(name + ".json")
        if data is None:
            raise MatrixError(f"The compatibility data lacks {name}.json: install cudadoctor again.")
        return _parsed(data, name + ".json")

    return section


def _parsed(data: bytes, name: str, cure: str = "install cudadoctor again") -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MatrixError(f"The compatibility data is damaged ({name}): {cure}.")
    return found


def _from_toml(compat: str) -> Section:
    def section(name: str) -> dict[str, Any]:
        try:
            from . import compile as compiling

            return compiling.section(compat, name)
        except ImportError:
            raise MatrixError(
                "Reading the compatibility data from TOML needs the package tomli on this Python."
            ) from None
        except (OSError, ValueError, KeyError) as error:
            raise MatrixError(f"The compatibility data in compat/{name} cannot be read: {error}.") from None

    return section
