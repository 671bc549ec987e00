"""How this command was called, so that the commands which it prints can be pasted: `.venv/bin/cudadoctor` of an
environment that is not active is not found as `cudadoctor`."""

from __future__ import annotations

import os
import sys
from typing import Callable, Optional

from cudadoctor import bundle
from cudadoctor.system.home import home as own_home

NAME = "cudadoctor"


def program(words: Optional[list[str]] = None) -> str:
    """What calls cudadoctor again, quoted for the shell of this system. `words` are what `words_of_program` gave."""
    words = words_of_program() if words is None else words
    return NAME if words == [NAME] else _quoted(words)


def _none(path: str) -> bool:
    return False


def words_of_program(is_silent: Callable[[str], bool] = _none) -> list[str]:
    """The words that call cudadoctor again. Folders of PATH at which nobody answers (`is_silent`) are passed over, and
    what was called is named by its path where it is in none of the others."""
    called = sys.argv[0] if sys.argv else ""
    archive = bundle.archive()
    if archive is not None and (archive == called or _is_the_same(archive, called)):
        return _of_one_file(called, is_silent)
    if os.path.basename(called) == "__main__.py":
        return [homely(sys.executable or "python"), "-m", NAME]
    if os.path.basename(called).partition(".exe")[0] != NAME or not os.path.dirname(called):
        return [NAME]
    return [NAME] if _is_found(called, is_silent) else [homely(called)]


def _of_one_file(called: str, is_silent: Callable[[str], bool]) -> list[str]:
    """By its name alone where `/usr/bin/env python3` in its first line leads to this interpreter."""
    python = sys.executable or "python3"
    is_usual = _is_first_on_path(python, "python3", is_silent)
    if is_usual and os.name != "nt" and os.access(called, os.X_OK):
        return [homely(called if os.path.dirname(called) else os.path.join(os.curdir, called))]
    return ["python3" if is_usual else homely(python), homely(called)]


def _is_first_on_path(program: str, name: str, is_silent: Callable[[str], bool]) -> bool:
    """Whether `name` typed alone starts this very program: a link beside it is the same, one from elsewhere (into a
    virtual environment's base) is not."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = os.path.join(folder, name + (".exe" if os.name == "nt" else ""))
        if folder and not is_silent(folder) and os.access(candidate, os.X_OK):
            return _is_the_same(folder, os.path.dirname(program)) and _is_the_same(candidate, program)
    return False


def _is_the_same(file: str, other: str) -> bool:
    try:
        return os.path.samefile(file, other)
    except OSError:
        return False


def _is_found(called: str, is_silent: Callable[[str], bool]) -> bool:
    """Whether PATH leads to the very file when its name alone is typed."""
    name = os.path.basename(called)
    if os.name == "nt" and not name.endswith(".exe"):
        name += ".exe"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = os.path.join(folder, name)
        if folder and not is_silent(folder) and os.access(candidate, os.X_OK):
            # The first one wins, whether it is this one or another.
            return os.path.abspath(candidate) == os.path.abspath(os.path.join(os.path.dirname(called), name))
    return False


def homely(path: str) -> str:
    """The user's home as `~`: what is printed names no user."""
    home = own_home()
    return "~" + path[len(home) :] if len(home) > 1 and path.startswith(home + os.sep) else path


def _quoted(words: list[str]) -> str:
    from cudadoctor.model import ParseError
    from cudadoctor.plan.shell import POSIX, POWERSHELL, quote

    try:
        return quote(words, POWERSHELL if os.name == "nt" else POSIX, home=True)
    except ParseError:
        return NAME
