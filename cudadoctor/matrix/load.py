"""Finding the compatibility data: compiled JSON in an installed package, TOML (or JSON beside it) in a checkout.

Sections are read on demand: a check that never looks up a GPU by name never reads ``gpus.json``.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Optional

from .query import Matrix
from .tables import MatrixError

Section = Callable[[str], dict[str, Any]]

_HERE = os.path.dirname(os.path.abspath(__file__))
_COMPILED = "compiled"
# The compiled data of an editable install lies beside the TOML, not in the package, so that no wheel picks it up stale.
_BESIDE = ".compiled"
_INDEX = "index.json"

_loaded: Optional[Matrix] = None


def load_matrix(compat: Optional[str] = None) -> Matrix:
    """The compatibility matrix of this installation; read once a process.

    With ``compat``, a folder of TOML files is read instead, and not remembered.
    Raises MatrixError, here or at the first question that needs a section which is missing or broken.
    """
    global _loaded
    if compat is not None:
        return Matrix(_from_toml(compat))
    if _loaded is None:
        _loaded = Matrix(_find())
    return _loaded


def _find() -> Section:
    index = _package_bytes(_INDEX)
    if index is not None:
        return _from_json(index, _package_bytes)
    compat = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "compat")
    if os.path.isfile(os.path.join(compat, "meta.toml")):
        beside = os.path.join(compat, _BESIDE)
        index = _read(os.path.join(beside, _INDEX))
        if index is not None and _fresh(index, compat):
            return _from_json(index, lambda name: _read(os.path.join(beside, name)))
        return _from_toml(compat)
    raise MatrixError("The compatibility data is missing from this installation: install cudadoctor again.")


def _package_bytes(name: str) -> Optional[bytes]:
    """A file of the installed package, also where the package is a zip file."""
    path = os.path.join(_HERE, _COMPILED, name)
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
            return dict(_parsed(index, _INDEX).get("meta") or {})
        data = read(name + ".json")
        if data is None:
            raise MatrixError(f"The compatibility data lacks {name}.json: install cudadoctor again.")
        return _parsed(data, name + ".json")

    return section


def _parsed(data: bytes, name: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise MatrixError(f"The compatibility data is damaged ({name}): install cudadoctor again.")
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
