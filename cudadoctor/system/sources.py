"""How an answer of the port names where it came from; the same words live and in a replay, so that facts are equal."""

from __future__ import annotations

from collections.abc import Sequence

UNAME = "uname"
C_LIBRARY = "C library"
CLOCK = "clock"
USER = "user ids"
NVML = "nvml"
LIBRARY_SEARCH = "library search"
LOADER_CACHE = "/etc/ld.so.cache"
OWN_INTERPRETER = "cudadoctor's interpreter"
WORKING_FOLDER = "working folder"
ENVIRONMENT = "environment"

_LIMITS = {"nofile": "ulimit -n", "memlock": "ulimit -l", "as": "ulimit -v"}


def variable(name: str) -> str:
    return "$" + name


def limit(name: str) -> str:
    return _LIMITS.get(name, f"limit {name}")


def group(gid: int) -> str:
    return f"group {gid}"


def which(program: str) -> str:
    return f"PATH ({program})"


def program(argv: Sequence[str]) -> str:
    """The command line as a person would type it; parts with blanks in double quotes (this is for reading only)."""
    return " ".join(f'"{part}"' if part == "" or " " in part else part for part in argv)


def registry(key: str, name: str = "") -> str:
    return f"{key}\\{name}" if name else key


def windows_call(name: str) -> str:
    return f"Windows ({name})"
