"""Which libraries torch's own libraries need and where they would be found: DT_NEEDED against the folders, no further.

The order of the loader does not matter for the question whether a library is there at all, so every folder that torch
or the loader looks in counts: those of RPATH and RUNPATH, torch/lib, the nvidia packages beside torch (torch loads from
them itself), LD_LIBRARY_PATH, the environment's lib, the loader's cache and its default folders.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.parse.elf import read_dynamic
from cudadoctor.parse.errors import ParseError
from cudadoctor.probes.paths import names_in, paths
from cudadoctor.probes.patient import patient
from cudadoctor.system.port import System

# libtorch.so holds nothing but its needs: a build with CUDA names libtorch_cuda.so there.
_CPU_LIBRARIES = ("libtorch.so", "libtorch_cpu.so")
_CUDA_LIBRARIES = ("libtorch_cuda.so", "libc10_cuda.so")

# The driver's own libraries come with the driver, not with torch; other facts tell about them.
_OF_DRIVER = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")

# Parts of glibc and its loader: where a Python runs, they are.
_OF_GLIBC = (
    "ld-linux",
    "ld64.so",
    "libBrokenLocale.so",
    "libanl.so",
    "libc.so",
    "libdl.so",
    "libm.so",
    "libmvec.so",
    "libnsl.so",
    "libpthread.so",
    "libresolv.so",
    "librt.so",
    "libutil.so",
)

_MULTIARCH = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}


def library_folders(system: System, torch: str) -> list[str]:
    """Where torch's own libraries lie: torch/lib; conda keeps them in its lib, Debian in the system's."""
    p = system.once(paths)
    folders = [p.join(torch, "lib")]
    chosen = system.once(patient).environment
    if chosen.is_known and not p.is_windows:
        folders.append(p.join(chosen.get().prefix, "lib"))
        machine = system.machine()
        if chosen.get().prefix == "/usr" and machine.is_known and machine.get() in _MULTIARCH:
            folders.append(f"/usr/lib/{_MULTIARCH[machine.get()]}")
    return folders


def missing_libraries(system: System, torch: str, has_cuda: bool) -> Fact[list[str]]:
    """Names that libtorch, libtorch_cpu, libtorch_cuda and libc10_cuda need and that are in none of the folders."""
    if system.platform != "linux":
        return unknown("this is read on Linux only", torch)
    p = system.once(paths)
    needed: dict[str, list[str]] = {}
    sources: list[str] = []
    homes = library_folders(system, torch)
    for name in _CPU_LIBRARIES + (_CUDA_LIBRARIES if has_cuda else ()):
        for folder in homes:
            opened = system.open_binary(p.join(folder, name))
            if not opened.is_absent:
                break
        if opened.is_absent:
            continue  # the builds with split libraries have no libtorch_cuda.so worth reading
        if opened.is_unknown:
            return unknown(opened.reason, opened.source)
        try:
            dynamic = read_dynamic(opened.get(), with_glibc=False)
        except (ParseError, OSError) as error:
            return unknown(str(error), opened.source)
        sources.append(opened.source)
        real = system.real_path(opened.source)
        origin = p.folder(real.get() if real.is_known else opened.source)
        own = [
            p.plain(entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
            for entry in (dynamic.runpath or dynamic.rpath or "").split(":")
            if entry
        ]
        for library in dynamic.needed:
            if not library.startswith(_OF_DRIVER + _OF_GLIBC):
                needed.setdefault(library, []).extend([p.folder(opened.source), origin, *own])
    if not sources:
        return unknown("torch's own libraries were not found", homes[0])
    return _search(system, torch, needed, p.folder(sources[0]))


def _search(system: System, torch: str, needed: dict[str, list[str]], source: str) -> Fact[list[str]]:
    beside = _folders_beside(system, torch)
    missing: list[str] = []
    unreadable: Optional[Fact[list[str]]] = None
    for library, own in needed.items():
        found = False
        for folder in dict.fromkeys([*own, *beside]):
            names = names_in(system, folder)
            if names.is_known and library in names.get():
                found = True
                break
            if names.is_unknown:
                unreadable = unreadable or names
        if not found:
            missing.append(library)
    if missing:
        left = _not_in_loader_folders(system, missing)
        if left.is_unknown:
            return left
        missing = left.get()
    if missing and unreadable is not None:
        return unknown(unreadable.reason, unreadable.source)
    return known(missing, source)


def _folders_beside(system: System, torch: str) -> list[str]:
    """The nvidia packages beside torch, LD_LIBRARY_PATH, and the lib of the environment and of its interpreter."""
    p = system.once(paths)
    folders: list[str] = []
    nvidia = p.join(p.folder(torch), "nvidia")
    packages = names_in(system, nvidia)
    folders += [p.join(nvidia, name, "lib") for name in packages.value or () if not name.startswith("_")]
    variable = system.variable("LD_LIBRARY_PATH")
    folders += [entry for entry in (variable.value or "").split(":") if p.is_absolute(entry)]
    chosen = system.once(patient).environment
    if chosen.is_known:
        prefixes = (chosen.get().prefix, chosen.get().base)
        folders += [p.join(prefix, "lib") for prefix in prefixes if prefix]
    return folders


def _not_in_loader_folders(system: System, libraries: list[str]) -> Fact[list[str]]:
    """Those of `libraries` that neither the default folders nor the loader's cache have."""
    p = system.once(paths)
    machine = system.machine().value or ""
    folders = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"]
    if machine in _MULTIARCH:
        folders = [f"/usr/lib/{_MULTIARCH[machine]}", f"/lib/{_MULTIARCH[machine]}", *folders]
    left = []
    for library in libraries:
        if not any(system.status(p.join(folder, library)).is_known for folder in folders):
            left.append(library)
    if not left:
        return known([], "default library folders")
    cached = system.cached_libraries(left)
    if cached.is_unknown:
        return unknown(cached.reason, cached.source)
    if cached.is_absent:
        return known(left, "default library folders")
    return known([library for library in left if not cached.get()[library]], cached.source)
