"""Texts that people paste, or that a run has left, as the facts of a machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable, Optional

from cudadoctor.cli._input import read_bytes
from cudadoctor.cli._words import InputError
from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.model import Facts
from cudadoctor.model.record import NamedTuple
from cudadoctor.reports import Recognised, read_report

# How files begin that are no texts: what people attach instead of pasting.
_NO_TEXTS = {
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"RIFF": "a picture",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "an archive",
    b"\x1f\x8b": "a compressed file",
    b"BZh": "a compressed file",
    b"\xfd7zXZ": "a compressed file",
    b"7z\xbc\xaf": "an archive",
    b"\x7fELF": "a program",
    b"MZ\x90\x00": "a program",
}
_OURS = re.compile(rb'\s*\{\s*"schema"\s*:\s*"cudadoctor\.(?:report|facts)/')


class Pasted(NamedTuple):
    """What was read of one or several texts, without names of people and hosts, serials and tokens. `facts` are those
    of the machine that they tell of."""

    facts: Facts
    recognised: tuple[Recognised, ...]
    notes: tuple[str, ...]

    def beside(self, facts: Facts) -> Facts:
        """`facts` of a machine with the error wordings of these texts, which are a log of a run on it. What else the
        log shows of the machine is left out: the machine itself was looked at."""
        return facts.updated({name: fact for name, fact in self.facts.items() if name.startswith("symptom.")})


def pasted_machine(
    files: Sequence[str],
    named: Optional[bool] = None,
    read: Callable[[str], bytes] = read_bytes,
    matrix: Callable[[], Matrix] = load_matrix,
) -> Pasted:
    """Reads files (`-`: standard input, once), or InputError. `named`: see `read_report`; `read` gives the content of a
    file, `matrix` the compatibility data."""
    if list(files).count("-") > 1:
        raise InputError("standard input (-) can be read once only")
    texts = [(_name(path), _text_of(path, read)) for path in files]
    try:
        return pasted(texts, matrix(), named)
    except MatrixError as error:
        raise InputError(str(error)) from None


def pasted(texts: Sequence[tuple[str, bytes | str]], matrix: Matrix, named: Optional[bool] = None) -> Pasted:
    """Reads (name, content) pairs."""
    from cudadoctor.system import Redactor

    found = read_report(texts, matrix, named=named, strict=False)
    redactor = Redactor.of_texts(content for _, content in texts)
    return Pasted(
        redactor.facts(found.facts),
        tuple(block._replace(text=redactor.text(block.text)) for block in found.recognised),
        tuple(redactor.text(note) for note in found.notes),
    )


def _name(path: str) -> str:
    """A short name for sources: the whole path would fill the line."""
    return "standard input" if path == "-" else re.split(r"[/\\]", path)[-1]


def _text_of(path: str, read: Callable[[str], bytes]) -> bytes:
    where = "standard input" if path == "-" else repr(path)
    data = read(path)
    for start, kind in _NO_TEXTS.items():
        if data.startswith(start):
            raise InputError(f"{where} is {kind}, and not a text; paste what the terminal shows into a file")
    if not data.strip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"):
        raise InputError(f"{where} is empty; expected what a program printed, or a whole bug report")
    if _OURS.match(data):
        raise InputError(f"{where} is a document of cudadoctor's own: give it with --facts")
    return data
