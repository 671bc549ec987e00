"""What a check asks for itself beside the machine's facts, and waits for no dead path: whether the user has data of
their own, what calls cudadoctor again, what is in a file."""

from __future__ import annotations

import errno
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from cudadoctor.matrix import Matrix
    from cudadoctor.probes.examine import Examination
    from cudadoctor.system import System

# Questions that an examination answers beside its own.
_DATA, _WORDS = "the user's data", "PATH"

# So long a file is waited for that was there a moment ago.
_FILE_SECONDS = 0.5


def _owner_of_data(system: System) -> list[Any]:
    """Whether the user has data of their own: the owner of its list, and why not where nobody knows."""
    from cudadoctor.parse.data_folder import INDEX, UPDATE_FOLDER, data_folder
    from cudadoctor.system.home import home

    folder = data_folder(os.environ, sys.platform, home(), os.path)
    if folder is None:
        return [-1, ""]
    found = system.status(os.path.join(folder, UPDATE_FOLDER, INDEX))
    return [found.get().uid if found.is_known else -1, found.reason]


def _words_of_program(system: System) -> list[str]:
    from cudadoctor.cli._program import words_of_program

    return words_of_program(system.is_silent)


QUESTIONS = {_DATA: _owner_of_data, _WORDS: _words_of_program}


def matrix_in_time(examination: Examination, until: float) -> Matrix:
    """The compatibility data, with the user's own where it could be read by `until` (monotonic). Raises MatrixError."""
    from cudadoctor.matrix import load_matrix

    return load_matrix(files=_UserFiles(lambda: examination.answer(_DATA), until))


def program_in_time(examination: Examination) -> str:
    """What calls cudadoctor again."""
    from cudadoctor.cli._program import program, words_of_program

    return program(examination.answer(_WORDS) or words_of_program(lambda path: True))


class _UserFiles:
    """The user's own data as `load_matrix` reads it. Whether there is any has been asked already; what there is, which
    few people have, is read by processes of its own."""

    def __init__(self, owner: Callable[[], Any], until: float) -> None:
        self._owner = owner
        self._until = until

    def home(self) -> str:
        from cudadoctor.system.home import home

        return home()

    def owner(self, path: str) -> int:
        from cudadoctor.system.bounded import NO_ANSWER

        answer = self._owner()
        if answer is None:
            raise TimeoutError(errno.ETIMEDOUT, NO_ANSWER)
        owner, reason = answer
        if reason:
            raise OSError(0, reason)
        if owner < 0:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return int(owner)

    def kind(self, path: str) -> str:
        from cudadoctor.system.bounded import ask

        def look() -> str:
            return "folder" if os.path.isdir(path) else "other" if os.path.exists(path) else "none"

        kind: str = ask(look, self._limit())
        return kind

    def read(self, path: str, limit: int) -> bytes:
        from cudadoctor.system.bounded import read_file

        return read_file(path, limit, self._limit())

    def _limit(self) -> float:
        return min(self._until, time.monotonic() + _FILE_SECONDS)


def read_in_time(path: str, limit: int, until: float) -> bytes:
    """At most `limit` bytes of a file or of standard input (`-`). Raises OSError, TimeoutError among them."""
    from cudadoctor.cli._input import read_now
    from cudadoctor.system import bounded
    from cudadoctor.system.worker import CAN_FORK

    if not CAN_FORK:
        return read_now(path, limit)
    if path == "-":
        return bounded.read_stream(sys.stdin.fileno(), limit, until)
    if not bounded.is_ours(path):
        return bounded.read_file(path, limit, until)
    with open(path, "rb", buffering=0) as file:
        return bounded.read_stream(file.fileno(), limit, until)
