"""Builds the stand-in NVIDIA libraries with the system's C compiler and keeps them in the cache.

A *scenario* (tests/native/scenarios/*.txt) says which machine they play; fake_nvml.c describes its keys.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from .parts import CACHE, ROOT, missing_part

SOURCES = ROOT / "tests" / "native"
SCENARIOS = SOURCES / "scenarios"

_FLAGS = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type"]


def compiler() -> str:
    """The system's C compiler ($CC, cc or gcc)."""
    for name in (os.environ.get("CC"), "cc", "gcc"):
        found = shutil.which(name) if name else None
        if found:
            return found
    missing_part("a C compiler", "Debian: apt-get install gcc libc6-dev")


def implemented_names() -> set[str]:
    """The functions that fake_nvml.c really plays."""
    source = (SOURCES / "fake_nvml.c").read_text()
    return set(re.findall(r"^(?:Return|const char \*|NUMBER\(|PROCESSES\()\s*(nvml\w+)", source, re.MULTILINE))


def looked_up_names() -> set[str]:
    """Every function that nvidia-ml-py (the one installed, too) or nvidia-smi looks up in the library."""
    names = set((SOURCES / "nvml_names.txt").read_text().split())
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        return names
    return names | set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"', Path(pynvml.__file__).read_text()))


def missing_names(scenario: Path) -> list[str]:
    """The functions that the scenario's library lacks (its `missing = a,b` line)."""
    found = re.search(r"^missing\s*=\s*(.*)$", scenario.read_text(), re.MULTILINE)
    return sorted(name.strip() for name in found.group(1).split(",")) if found else []


def _stubs() -> str:
    return "".join(f"STUB({name})\n" for name in sorted(looked_up_names() - implemented_names()))


def _digest(*parts: str) -> str:
    digest = hashlib.sha256("\0".join(parts).encode())
    for source in sorted(SOURCES.glob("*.[ch]")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _built(name: str, key: str, file: str, command: list[str], extra: dict[str, str]) -> Path:
    """The folder in the cache that holds `file`; compiled there first where it is not yet.

    Built beside and renamed, so that tests in parallel never see half a library.
    """
    folder = CACHE / "native" / f"{name}-{key}"
    if (folder / file).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent))
    for path, text in extra.items():
        (work / path).write_text(text)
    done = subprocess.run(
        [*command, "-I", str(work), "-o", str(work / file)], cwd=work, capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        shutil.rmtree(work)
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    try:
        work.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(work)
    return folder


def nvml_folder(missing: list[str] | None = None) -> Path:
    """The folder of the stand-in libnvidia-ml.so.1; `missing` functions are not in its symbol table."""
    files = {"stubs.h": _stubs()}
    command = [compiler(), *_FLAGS, "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    if missing:
        files["symbols.map"] = f"{{ global: *; local: {'; '.join(missing)}; }};\n"
        command.append("-Wl,--version-script=symbols.map")
    command.append(str(SOURCES / "fake_nvml.c"))
    return _built("nvml", _digest(*files.values(), compiler()), "libnvidia-ml.so.1", command, files)


def cuda_folder() -> Path:
    """The folder of the stand-in libcuda.so.1."""
    command = [compiler(), *_FLAGS, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(SOURCES / "fake_cuda.c")]
    return _built("cuda", _digest(compiler()), "libcuda.so.1", command, {})


def _windows_compiler() -> str:
    gcc = shutil.which("x86_64-w64-mingw32-gcc")
    if not gcc:
        missing_part("a C compiler for Windows", "Debian: apt-get install gcc-mingw-w64-x86-64-win32")
    return gcc


def windows_nvml() -> Path:
    """The stand-in nvml.dll for Windows Python under wine."""
    files = {"stubs.h": _stubs()}
    command = [_windows_compiler(), *_FLAGS, "-shared", "-Wl,--export-all-symbols", str(SOURCES / "fake_nvml.c")]
    return _built("nvml-windows", _digest(*files.values()), "nvml.dll", command, files) / "nvml.dll"


def windows_program() -> Path:
    """A program for Windows that prints the file beside it (fake_program.c)."""
    command = [_windows_compiler(), *_FLAGS, str(SOURCES / "fake_program.c")]
    return _built("program-windows", _digest(), "program.exe", command, {}) / "program.exe"


def scenario_file(scenario: str | Path) -> Path:
    """A scenario by name ("two_gpus") or by path."""
    path = Path(scenario)
    if not path.is_absolute():
        path = SCENARIOS / f"{scenario}.txt"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in SCENARIOS.glob("*.txt")))
        raise ValueError(f"no scenario {scenario!r}; there are: {known}")
    return path


def environment(scenario: str | Path, *, libcuda: bool = True, log: Path | None = None) -> dict[str, str]:
    """What makes programs load the stand-ins: LD_LIBRARY_PATH, FAKE_NVML and, with `log`, FAKE_NVML_LOG."""
    path = scenario_file(scenario)
    folders = [nvml_folder(missing_names(path))] + ([cuda_folder()] if libcuda else [])
    env = {"LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)), "FAKE_NVML": str(path)}
    if log:
        env["FAKE_NVML_LOG"] = str(log)
    return env
