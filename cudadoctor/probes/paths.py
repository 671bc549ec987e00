"""Paths of the examined machine, by the rules of its own system: a Windows machine is replayed on Linux."""

from __future__ import annotations

from typing import Any

from cudadoctor.model.fact import Fact
from cudadoctor.system.port import System

WINDOWS = "windows"


class Paths:
    """What `os.path` offers, for the system that is looked at. Pure: nothing here touches a disk."""

    def __init__(self, is_windows: bool) -> None:
        module: Any
        if is_windows:
            import ntpath as module
        else:
            import posixpath as module
        self._module = module
        self.is_windows = is_windows
        self.list_separator = ";" if is_windows else ":"

    def join(self, folder: str, *parts: str) -> str:
        return str(self._module.join(folder, *parts))

    def folder(self, path: str) -> str:
        """The folder that holds `path`."""
        return str(self._module.dirname(path))

    def name(self, path: str) -> str:
        """The last part of `path`, an ending slash not counted."""
        return str(self._module.basename(path.rstrip("/\\") if self.is_windows else path.rstrip("/")))

    def plain(self, path: str) -> str:
        """Without `.`, `..` and doubled slashes."""
        return str(self._module.normpath(path))

    def is_absolute(self, path: str) -> bool:
        return bool(self._module.isabs(path))

    def key(self, path: str) -> str:
        """Equal for two spellings of one path (links are not followed)."""
        return str(self._module.normcase(self.plain(path)))

    def is_inside(self, path: str, folder: str) -> bool:
        """Whether `path` is `folder` or lies in it."""
        path, folder = self.key(path), self.key(folder)
        separator = "\\" if self.is_windows else "/"
        return path == folder or path.startswith(folder.rstrip(separator) + separator)

    def split_list(self, value: str) -> list[str]:
        """The folders of a PATH-like variable, empty ones left out."""
        return [part for part in value.split(self.list_separator) if part]


def paths(system: System) -> Paths:
    """For `system.once(paths)`."""
    return Paths(system.platform == WINDOWS)


def _listings(system: System) -> dict[str, Fact[list[str]]]:
    return {}


def names_in(system: System, folder: str) -> Fact[list[str]]:
    """`system.list_folder(folder)`, asked once for a folder however many probes want it."""
    listings = system.once(_listings)
    if folder not in listings:
        listings[folder] = system.list_folder(folder)
    return listings[folder]


def is_folder(system: System, path: str) -> bool:
    """Whether a folder is there for sure: one that cannot be looked at is not."""
    status = system.status(path)
    return status.is_known and status.get().kind == "directory"


def home(system: System) -> str:
    """The user's home folder by the environment; empty where it does not say."""
    variable = system.variable("USERPROFILE" if system.platform == WINDOWS else "HOME")
    return variable.get() if variable.is_known else ""
