"""Checking compatibility data: that of the installation, or the TOML files of a folder."""

from __future__ import annotations

import os
from typing import NamedTuple, Optional

from cudadoctor.cli._program import homely
from cudadoctor.cli._words import InputError
from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.matrix.holdings import Data, data_of, holdings

Finding = tuple[Optional[str], str]


class Verified(NamedTuple):
    """What was checked, how many rows it has, and what is wrong with it: a file (None: of more than one) and a sentence
    that names the row. `note` is what else is to be said."""

    where: str
    rows: int
    findings: list[Finding]
    data: Optional[Data] = None
    note: str = ""


def verified(folder: Optional[str]) -> Verified:
    """Every fault; InputError where the data cannot even be read."""
    try:
        return _installation() if folder is None else _folder(folder)
    except MatrixError as error:
        raise InputError(str(error)) from None


def _installation() -> Verified:
    from cudadoctor.matrix.compile import SECTIONS
    from cudadoctor.matrix.invariants import violations

    matrix = load_matrix()
    for section in SECTIONS:
        matrix.raw(section)  # what cannot be read is no fault of a row
    try:
        findings = [_placed(text) for text in violations(matrix.raw)]
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise matrix.damaged("its layout", error) from None
    data = _data(matrix)
    note = ""
    if data.origin.reason is not None:
        note = f"The update in {homely(data.origin.path or '')} is not used: {data.origin.reason}."
    where = "the compatibility data of this installation" + (" with your update" if data.origin.updated else "")
    return Verified(where, _rows(matrix, findings), findings, data, note)


def _folder(folder: str) -> Verified:
    from cudadoctor.matrix.compile import check, load_toml
    from cudadoctor.matrix.invariants import violations

    if not os.path.isfile(os.path.join(folder, "meta.toml")):
        raise InputError(f"{folder!r} is no folder of compatibility data: it has no meta.toml")
    for name in _files(folder):
        path = os.path.join(folder, name + ".toml")
        try:
            load_toml(path)
        except OSError as error:
            raise InputError(f"cannot read {path!r}: {error.strerror or error}") from None
        except ValueError as error:
            raise InputError(f"{path!r} is not TOML: {error}") from None
        except ImportError:
            raise InputError("reading TOML needs the package tomli on this Python") from None
    findings = [_placed(text) for text in check(folder)]
    where = f"the compatibility data in {folder}"
    if findings:
        return Verified(where, 0, findings)
    matrix = load_matrix(folder)
    findings = [_placed(text) for text in violations(matrix.raw)]
    return Verified(where, _rows(matrix, findings), findings, _data(matrix))


def _files(folder: str) -> list[str]:
    from cudadoctor.matrix.compile import toml_files

    try:
        return toml_files(folder)
    except OSError as error:
        raise InputError(f"cannot read {error.filename or folder!r}: {error.strerror or error}") from None


def _placed(text: str) -> Finding:
    """A sentence such as "torch/2.6: release 2.6.0: ..." as its file and the rest."""
    from cudadoctor.matrix.schema import TABLES

    name, colon, rest = text.partition(": ")
    known = bool(colon) and name.partition("/")[0] in ("meta", *TABLES)
    return (f"{name}.toml", rest) if known else (None, text)


def _data(matrix: Matrix) -> Data:
    from datetime import date

    data = data_of(matrix, date.today().isoformat())
    path = data.origin.path
    return data if path is None else data._replace(origin=data.origin._replace(path=homely(path)))


def _rows(matrix: Matrix, findings: list[Finding]) -> int:
    return 0 if findings else sum(table.rows for table in holdings(matrix).tables)
