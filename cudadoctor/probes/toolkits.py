"""CUDA toolkits and the host compiler: for people who build extensions. A wheel of torch needs neither."""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.host_compiler import parse_host_compiler
from cudadoctor.parse.nvcc import parse_nvcc, parse_version_json, parse_version_txt, release_of_folder
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import names_in, paths
from cudadoctor.probes.patient import patient
from cudadoctor.probes.python_layout import CONDA
from cudadoctor.probes.site_packages import site_packages
from cudadoctor.system.port import ProgramResult, System

_FACTS = (
    "toolkit.nvcc_on_path",
    "toolkit.nvcc_on_path_version",
    "toolkit.found",
    "toolkit.cuda_home",
    "toolkit.host_compiler",
)

# nvcc --version takes 2 ms, a compiler's about as long; a wrapper on a slow disk more.
_TIMEOUT = 3.0

_DEBIAN = "/usr/lib/nvidia-cuda-toolkit"
_ARCH_LINUX = "/opt/cuda"


class _Place(NamedTuple):
    root: str
    found_by: str


def look(system: System) -> dict[str, Fact[Any]]:
    on_path = system.which("nvcc")
    # nvcc and the compiler are asked side by side, and the files meanwhile.
    nvcc = system.start([on_path.get(), "--version"], _TIMEOUT) if on_path.is_known else None
    compiler = _Compiler(system, on_path.get()) if on_path.is_known else None
    cuda_home = _cuda_home(system)
    version = _version_told(nvcc.result()) if nvcc is not None else on_path
    found = _toolkits(system, on_path, version)
    facts: dict[str, Fact[Any]] = {
        "toolkit.nvcc_on_path": on_path,
        "toolkit.nvcc_on_path_version": version,
        "toolkit.found": found,
        "toolkit.cuda_home": cuda_home,
    }
    elsewhere = next((entry["nvcc"] for entry in found.value or () if entry["nvcc"]), None)
    if compiler is None and elsewhere is not None:
        compiler = _Compiler(system, elsewhere)
    if compiler is not None:  # without an nvcc nobody calls a compiler for it
        facts["toolkit.host_compiler"] = compiler.result()
    return facts


def _version_told(answer: Fact[ProgramResult]) -> Fact[str]:
    if not answer.is_known:
        return unknown(answer.reason or "it is gone", answer.source)
    if answer.get().timed_out:
        return unknown(f"it did not answer within {_TIMEOUT:.0f} s", answer.source)
    return answer.map(lambda result: parse_nvcc(result.stdout).version)


# -- toolkits ---------------------------------------------------------------------------------------------------------


def _toolkits(system: System, on_path: Fact[str], version: Fact[str]) -> Fact[list[dict[str, Any]]]:
    p = system.once(paths)
    entries: list[dict[str, Any]] = []
    seen: set[str] = set()
    unreadable: Optional[Fact[Any]] = None
    places, hidden = _places(system, on_path)
    for place in places:
        status = system.status(place.root)
        if status.is_unknown:
            unreadable = unreadable or unknown(status.reason, place.root)
        if not status.is_known or status.get().kind != "directory":
            continue
        real = system.real_path(place.root)
        key = p.key(real.get() if real.is_known else place.root)
        if key in seen:
            continue
        nvcc = p.join(place.root, "bin", "nvcc.exe" if p.is_windows else "nvcc")
        has_nvcc = place.found_by == "PATH" or not system.status(nvcc).is_absent
        number = _version_by_files(system, place.root, p.name(key))
        if place.found_by == "PATH" and (number is None or version.is_known):
            number = version.value or number
        if not has_nvcc and (number is None or not _has_libraries(system, place.root)):
            continue  # what an uninstall or a package of compat libraries leaves behind
        seen.add(key)
        path = on_path.value if place.found_by == "PATH" else nvcc
        entries.append(
            {
                "root": place.root,
                "version": number,
                "nvcc": path if has_nvcc else None,
                "found_by": place.found_by,
            }
        )
    nothing = unreadable or hidden
    if nothing is not None and not entries:
        return unknown(nothing.reason, nothing.source)
    return known(entries, "PATH, CUDA_HOME and the usual folders")


def _places(system: System, on_path: Fact[str]) -> tuple[list[_Place], Optional[Fact[Any]]]:
    """Where a toolkit may be, most wanted first, and what could not be listed."""
    p = system.once(paths)
    places: list[_Place] = []
    if on_path.is_known:
        real = system.real_path(on_path.get())
        nvcc = _target_of_script(system, real.get() if real.is_known else on_path.get())
        places.append(_Place(p.folder(p.folder(nvcc)), "PATH"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        variable = system.variable(name)
        if variable.is_known and p.is_absolute(variable.get()):
            places.append(_Place(variable.get(), name))
    if p.is_windows:
        programs = system.variable("PROGRAMFILES").value or "C:\\Program Files"
        parent, found_by = p.join(programs, "NVIDIA GPU Computing Toolkit", "CUDA"), "program-files"
    else:
        parent, found_by = "/usr/local", "usr-local"
    names = names_in(system, parent)
    # `cuda` itself is a link to one of the others and comes last.
    numbered = [name for name in names.value or () if release_of_folder(name) or re.fullmatch(r"cuda-[0-9]+", name)]
    numbered.sort(key=_numbers, reverse=True)
    places += [_Place(p.join(parent, name), found_by) for name in numbered]
    if "cuda" in (names.value or ()) and not p.is_windows:
        places.append(_Place(p.join(parent, "cuda"), found_by))
    chosen = system.once(patient).environment
    if chosen.is_known and chosen.get().kind == CONDA:
        prefix = chosen.get().prefix
        places.append(_Place(p.join(prefix, "Library") if p.is_windows else prefix, "conda"))
    for folder in chosen.get().site_packages if chosen.is_known else ():
        inside = names_in(system, folder)
        if inside.is_known and "nvidia" in inside.get():
            nvidia = p.join(folder, "nvidia")
            packages = names_in(system, nvidia).value or ()
            wanted = [name for name in packages if name == "cuda_nvcc" or re.fullmatch(r"cu[0-9]+", name)]
            places += [_Place(p.join(nvidia, name), "pypi") for name in wanted]
    if system.platform == "linux":
        places += [_Place(_DEBIAN, "distribution"), _Place(_ARCH_LINUX, "distribution")]
    return places, unknown(names.reason, parent) if names.is_unknown else None


def _numbers(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]+", name)]


def _target_of_script(system: System, path: str) -> str:
    """Debian's /usr/bin/nvcc and many clusters' are a script of one `exec`: the toolkit is where that leads."""
    head = system.read_bytes(path, 2)
    if not head.is_known or head.get() != b"#!":
        return path
    text = system.read_text(path, 4096)
    found = re.search(r"^\s*exec\s+\"?(/[^\s\"$]+/nvcc)\"?(?:\s|$)", text.value or "", re.MULTILINE)
    if not found:
        return path
    real = system.real_path(found.group(1))
    return real.get() if real.is_known else path


def _version_by_files(system: System, root: str, name: str) -> Optional[str]:
    p = system.once(paths)
    for file, parse in (("version.json", parse_version_json), ("version.txt", parse_version_txt)):
        read = system.read_text(p.join(root, file), 1 << 16).map(parse)
        if read.is_known:
            return read.get().version
    release = release_of_folder(name)
    if release is not None:
        return release
    return _version_by_packages(system, root)


def _version_by_packages(system: System, root: str) -> Optional[str]:
    """Of a toolkit that conda or pip installed: the version of the package with nvcc."""
    installed = site_packages(system)
    chosen = system.once(patient).environment
    if not installed.is_known or not chosen.is_known:
        return None
    p = system.once(paths)
    if p.is_inside(root, chosen.get().prefix) and "cuda-nvcc" in installed.get().conda:
        return installed.get().conda["cuda-nvcc"][0].version
    for name, copies in installed.get().distributions.items():
        if name.startswith("nvidia-cuda-nvcc") and p.is_inside(root, copies[0].folder):
            return copies[0].version
    return None


def _has_libraries(system: System, root: str) -> bool:
    p = system.once(paths)
    return any(not system.status(p.join(root, name)).is_absent for name in ("lib64", "lib", "include"))


# -- CUDA_HOME and the compiler ---------------------------------------------------------------------------------------


def _cuda_home(system: System) -> Fact[dict[str, Any]]:
    p = system.once(paths)
    variable = system.variable("CUDA_HOME")
    name = "CUDA_HOME"
    if variable.is_absent or not variable.value:
        if variable.is_unknown:
            return variable.map(lambda value: {})
        variable, name = system.variable("CUDA_PATH"), "CUDA_PATH"
    if not variable.is_known:
        return Fact(variable.state, None, variable.source, variable.reason)
    path = variable.get()
    if not path:
        return absent(variable.source)
    status = system.status(path)
    if status.is_unknown:
        return unknown(status.reason, path)
    nvcc = system.status(p.join(path, "bin", "nvcc.exe" if p.is_windows else "nvcc"))
    if nvcc.is_unknown:
        return unknown(nvcc.reason, nvcc.source)
    exists = status.is_known and status.get().kind == "directory"
    return known({"variable": name, "path": path, "exists": exists, "has_nvcc": nvcc.is_known}, variable.source)


class _Compiler:
    """The compiler that nvcc calls, being asked for its version: the one that nvcc is told to call, else gcc beside
    nvcc (Debian's way), else gcc on PATH."""

    def __init__(self, system: System, nvcc: str) -> None:
        p = system.once(paths)
        self._is_windows = p.is_windows
        self._path = _path_of_compiler(system, nvcc)
        if self._path.is_known:
            argv = [self._path.get()] if p.is_windows else [self._path.get(), "--version"]
            self._running = system.start(argv, _TIMEOUT)

    def result(self) -> Fact[dict[str, Any]]:
        if not self._path.is_known:
            return Fact(self._path.state, None, self._path.source, self._path.reason)
        path = self._path.get()
        answer = self._running.result()
        if not answer.is_known or answer.get().timed_out:
            return unknown(answer.reason or "it did not answer in time", answer.source)

        def read(result: ProgramResult) -> dict[str, Any]:
            compiler = parse_host_compiler(result.stderr if self._is_windows else result.stdout)
            return {"name": compiler.family, "version": compiler.version, "path": path}

        return answer.map(read)


def _path_of_compiler(system: System, nvcc: str) -> Fact[str]:
    p = system.once(paths)
    told = _told_compiler(system)
    if told is not None:
        found = known(told, "$NVCC_CCBIN") if p.is_absolute(told) else system.which(told)
        status = system.status(found.get()) if found.is_known else None
        if status is not None and status.is_known and status.get().kind == "directory":
            return known(p.join(found.get(), "gcc"), found.source)
        return found
    if p.is_windows:
        found = system.which("cl")
        return unknown("cl is on PATH only in a developer's prompt", found.source) if found.is_absent else found
    real = system.real_path(nvcc)
    beside = p.join(p.folder(_target_of_script(system, real.value or nvcc)), "gcc")
    if system.status(beside).is_known:
        return known(beside, beside)
    found = system.which("gcc")
    return system.which("g++") if found.is_absent else found


def _told_compiler(system: System) -> Optional[str]:
    for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"):
        flags = system.variable(name).value or ""
        found = re.search(r"(?:^|\s)(?:-ccbin|--compiler-bindir)[=\s]+[\"']?([^\s\"']+)", flags)
        if found:
            return found.group(1)
    return system.variable("NVCC_CCBIN").value or None


PROBE = Probe("toolkits", EVERYWHERE, _FACTS, look)
