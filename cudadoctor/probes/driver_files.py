"""The driver's user-space library: which libcuda.so.1 the loader finds, and which version that is.

The loader looks into the folders of LD_LIBRARY_PATH, then into its cache, then into its default folders. Not all that
is named libcuda.so.1 is a driver's: the toolkit has a stub to link against, images bring libraries for forward
compatibility, and a container runtime that fails leaves empty files or links that lead nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.system.port import System

CUDA = "libcuda.so.1"
NVML = "libnvidia-ml.so.1"

WSL = "/usr/lib/wsl/lib"

DRIVER = "driver"
STUB = "stub"
COMPAT = "compat"
EMPTY = "empty"
DANGLING = "dangling"


def look(system: System) -> dict[str, Fact[Any]]:
    found = system.once(cuda_libraries)
    return {"driver.libcuda": found, "driver.library_version": system.once(library_version)}


def cuda_libraries(system: System) -> Fact[list[dict[str, Any]]]:
    """`driver.libcuda`; for `system.once`."""
    return _libraries(system, CUDA)


def library_version(system: System) -> Fact[str]:
    """`driver.library_version`; for `system.once`."""
    version = _first_version(system.once(cuda_libraries))
    # An image without the `compute` capability has NVML's library only.
    return _first_version(_libraries(system, NVML)) if version.is_absent else version


def _first_version(libraries: Fact[list[dict[str, Any]]]) -> Fact[str]:
    for entry in libraries.value or ():
        if entry["kind"] == DRIVER and entry["version"]:
            return known(entry["version"], entry["real_path"])
    if libraries.is_unknown:
        return unknown(libraries.reason, libraries.source)
    return absent(f"{CUDA}, {NVML}")


def _libraries(system: System, soname: str) -> Fact[list[dict[str, Any]]]:
    """All files of this name in the loader's order, each once."""
    libraries: list[dict[str, Any]] = []
    seen: set[str] = set()
    unread: Optional[Fact[Any]] = None
    for path, found_by in _candidates(system, soname):
        if isinstance(found_by, Fact):
            unread = found_by
            continue
        status = system.status(path)
        if status.is_unknown:
            unread = status
        elif status.is_absent:
            target = system.link_target(path)
            if target.is_known and path not in seen:
                seen.add(path)
                libraries.append(_entry(path, target.get(), found_by, DANGLING, None))
        elif status.get().kind == "file":
            real = system.real_path(path)
            real_path = real.get() if real.is_known else path
            if real_path not in seen and not _is_of_another_machine(system, real_path):
                seen.add(real_path)
                version = _version_of(real_path)
                kind = _kind(path, real_path, status.get().size)
                libraries.append(_entry(path, real_path, found_by, kind, version))
    if unread is not None and not libraries:
        return unknown(unread.reason, unread.source)
    return known(libraries, "library search")


def _entry(path: str, real_path: str, found_by: str, kind: str, version: Optional[str]) -> dict[str, Any]:
    return {"path": path, "real_path": real_path, "found_by": found_by, "kind": kind, "version": version}


def _candidates(system: System, soname: str) -> Iterator[tuple[str, Any]]:
    """Paths with what names them; in the place of that, an unknown fact where something could not be read."""
    variable = system.variable("LD_LIBRARY_PATH")
    if variable.is_unknown:
        yield "", variable
    for folder in (variable.value or "").replace(";", ":").split(":"):
        if folder.startswith("/"):
            yield f"{folder.rstrip('/')}/{soname}", "LD_LIBRARY_PATH"
    cached = system.cached_libraries([soname])
    if cached.is_unknown:
        yield "", cached
    for path in (cached.value or {}).get(soname, ()):
        yield path, "wsl" if path.startswith(WSL) else "ld.so.cache"
    for folder in _default_folders(system):
        yield f"{folder}/{soname}", "default"
    yield f"{WSL}/{soname}", "wsl"


def _machine(system: System) -> Optional[str]:
    return {"arm64": "aarch64", "AMD64": "x86_64"}.get(system.machine().value or "", system.machine().value)


def _default_folders(system: System) -> list[str]:
    triplet = f"{_machine(system)}-linux-gnu"
    return [
        f"/lib/{triplet}",
        f"/usr/lib/{triplet}",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
        "/run/opengl-driver/lib",  # where NixOS' own packages look
    ]


def _is_of_another_machine(system: System, path: str) -> bool:
    """Whether this surely is a library of another architecture (a 32-bit one), which the loader passes over."""
    from cudadoctor.parse.elf import read_elf

    machine = _machine(system)
    reader = system.open_binary(path)
    if machine is None or not reader.is_known:
        return False
    try:
        return read_elf(reader.get()).machine != machine
    except (OSError, ParseError):
        return False


def _version_of(path: str) -> Optional[str]:
    """libcuda.so.535.183.01 -> 535.183.01."""
    from cudadoctor.parse.versions import is_driver_version

    version = path.rpartition("/")[2].partition(".so.")[2]
    return version if len(version.partition(".")[0]) >= 3 and is_driver_version(version) else None


def _kind(path: str, real_path: str, size: int) -> str:
    if size == 0:
        return EMPTY
    parts = [*path.split("/"), *real_path.split("/")]
    if "stubs" in parts:
        return STUB
    if "wsl" in parts:
        return "wsl"
    if any(part == "compat" or part.startswith("cuda-compat") for part in parts):
        return COMPAT
    # A stub that was copied elsewhere cannot be told from a small library of another maker; only the folder convicts.
    return DRIVER


PROBE = Probe("driver_files", (LINUX,), ("driver.libcuda", "driver.library_version"), look)
