"""CUDA libraries that stand in front of those of the wheels: LD_LIBRARY_PATH (on Windows PATH) and LD_PRELOAD."""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import Paths, names_in, paths
from cudadoctor.system.port import System

_FACTS = ("libraries.search_path", "libraries.on_search_path", "libraries.preloaded")

_STEMS = (
    "libcublas",
    "libcublasLt",
    "libcuda",
    "libcudart",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcupti",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libcusparseLt",
    "libnccl",
    "libnvJitLink",
    "libnvToolsExt",
    "libnvidia-ml",
    "libnvinfer",
    "libnvrtc",
    "libnvshmem_host",
)
_STARTS = ("libcu", "libnccl.", "libnv")

# cudart64_12.dll, cudnn64_9.dll, nvrtc64_120_0.dll
_DLL = (
    r"(?:cublas|cublasLt|cudart|cudnn|cudnn_\w+|cufft|curand|cusolver|cusparse|nvJitLink|nvrtc|nvinfer)"
    r"(?:32|64)?_([0-9_]+)\.dll"
)


def look(system: System) -> dict[str, Fact[Any]]:
    p = system.once(paths)
    preload = system.variable("LD_PRELOAD")
    facts: dict[str, Fact[Any]] = {
        "libraries.preloaded": known([], preload.source)
        if preload.is_absent
        else preload.map(lambda value: value.replace(":", " ").split())
    }
    variable = system.variable("PATH" if p.is_windows else "LD_LIBRARY_PATH")
    if variable.is_unknown:
        facts["libraries.search_path"] = facts["libraries.on_search_path"] = variable
        return facts
    folders = list(dict.fromkeys(p.split_list(variable.value or "")))
    found: list[dict[str, Any]] = []
    unreadable: Optional[Fact[Any]] = None
    for folder in folders:
        if p.is_windows and _is_of_windows(folder):
            continue
        names = names_in(system, folder)
        if names.is_unknown:
            unreadable = unreadable or unknown(names.reason, folder)
        elif names.is_known:
            found += _dlls(folder, names.get()) if p.is_windows else _libraries(system, p, folder, names.get())
    if p.is_windows:
        folders = list(dict.fromkeys(entry["directory"] for entry in found))
    facts["libraries.search_path"] = known(folders, variable.source)
    # What was found is there; that nothing was found says little where a folder could not be listed.
    facts["libraries.on_search_path"] = unreadable if unreadable and not found else known(found, variable.source)
    return facts


def _libraries(system: System, p: Paths, folder: str, names: list[str]) -> list[dict[str, Any]]:
    """One entry a library: libcudart.so, libcudart.so.12 and libcudart.so.12.4.127 are one."""
    # libcudnn.so.9 and its parts libcudnn_graph.so.9, ... Compiled here, since few machines come here.
    library = re.compile(r"(" + "|".join(_STEMS) + r"|libcudnn_\w+|libnvrtc-builtins)\.so((?:\.[0-9]+)*)")
    by_stem: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        if name.startswith(_STARTS):
            match = library.fullmatch(name)
            if match:
                by_stem.setdefault(match.group(1), []).append((name, match.group(2)[1:]))
    entries = []
    for spellings in by_stem.values():
        # The shortest name with a number is the one that programs ask the loader for.
        spellings.sort(key=lambda spelling: (not spelling[1], len(spelling[1])))
        covered: set[str] = set()
        for name, number in spellings:
            if name in covered or (not number and covered):
                continue
            real = system.real_path(p.join(folder, name))
            file = p.name(real.get()) if real.is_known else name
            covered |= {name, file}
            match = library.fullmatch(file)
            version = match.group(2)[1:] if match else ""
            entries.append(
                {"directory": folder, "soname": name, "file": file, "version": version if "." in version else None}
            )
    return entries


def _dlls(folder: str, names: list[str]) -> list[dict[str, Any]]:
    """Windows puts the number into the name: cudart64_110.dll, cudart64_12.dll. A file tells no more."""
    return [
        {"directory": folder, "soname": name, "file": name, "version": None}
        for name in names
        if name[:2].lower() in ("cu", "nv") and re.fullmatch(_DLL, name, re.I)
    ]


def _is_of_windows(folder: str) -> bool:
    """System32 and its kin: thousands of files, and of NVIDIA's only the driver's."""
    return re.match(r"(?:[a-z]:\\windows|%systemroot%)(?:\\|$)", folder, re.I) is not None


PROBE = Probe("libraries", EVERYWHERE, _FACTS, look)
