"""The lines of snapshots: files, folders of them, standard input."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Union, cast

from cudadoctor.cli._words import InputError
from cudadoctor.fleet.lines import MOST_LETTERS, documents
from cudadoctor.fleet.model import Place, Snapshot, Unreadable
from cudadoctor.fleet.snapshot import Reader

# What in a folder is taken for snapshots: jobs leave other files there, too.
ENDINGS = (".json", ".ndjson", ".jsonl")
_PACKED = ".gz"


def read_snapshots(paths: Sequence[str], reader: Reader) -> Iterator[Union[Snapshot, Unreadable]]:
    """All snapshots of the files, folders and `-`, one at a time. What is there and cannot be read is given as
    Unreadable; a path that does not exist is a mistake of who typed it (InputError)."""
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise InputError(f"there is no file or folder {path!r}")
    for path in paths:
        if path == "-":
            if sys.stdin is None:
                raise InputError("cannot read standard input: it is closed")
            yield from _snapshots("standard input", sys.stdin.buffer, 0.0, reader)
        elif os.path.isdir(path):
            for file in _files(path):
                yield from _file(file, reader)
        else:
            yield from _file(path, reader)


def _files(folder: str) -> list[str]:
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            os.path.join(where, name)
            for name in files
            if name.removesuffix(_PACKED).endswith(ENDINGS) and not name.startswith(".")
        ]
    return sorted(path for path in found if os.path.isfile(path))


def _file(path: str, reader: Reader) -> Iterator[Union[Snapshot, Unreadable]]:
    try:
        with open(path, "rb") as file:
            written = os.fstat(file.fileno()).st_mtime
            if file.peek(2)[:2] == _GZIP:
                yield from _unpacked(path, file, written, reader)
            else:
                yield from _snapshots(path, file, written, reader)
    except OSError as error:
        yield Unreadable(Place(path, 1), f"cannot be read: {error.strerror or error}", "", 1)


# How what gzip has packed begins.
_GZIP = b"\x1f\x8b"


def _unpacked(path: str, file: BinaryIO, written: float, reader: Reader) -> Iterator[Union[Snapshot, Unreadable]]:
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _snapshots(path, cast(BinaryIO, unpacked), written, reader)
    except (EOFError, zlib.error) as error:
        yield Unreadable(Place(path, 1), f"cannot be unpacked: {error}", "", 1)


def _snapshots(name: str, stream: BinaryIO, written: float, reader: Reader) -> Iterator[Union[Snapshot, Unreadable]]:
    empty = True
    for found in documents(name, _lines(stream)):
        empty = False
        if isinstance(found, Unreadable):
            yield found
        else:
            yield from reader.snapshots(found, written)
    if empty:
        yield Unreadable(Place(name, 1), "it is empty", "", 1)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of a text in whatever encoding of Unicode (PowerShell writes UTF-16). No line is longer than
    MOST_LETTERS and a little: the rest of a longer one is passed over."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    encoding = json.detect_encoding(buffered.peek(4)[:4])
    text = io.TextIOWrapper(buffered, "utf-8" if encoding == "utf-8-sig" else encoding, "replace")
    try:
        while True:
            line = text.readline(MOST_LETTERS + 1)
            if not line:
                return
            yield line
            while len(line) > MOST_LETTERS and not line.endswith("\n"):
                line = text.readline(MOST_LETTERS + 1)
                if not line:
                    return
    finally:
        text.detach()  # the stream is not ours to close
