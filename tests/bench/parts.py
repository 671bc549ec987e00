"""Where the real parts lie, and what a test does that misses one.

A *real part* is something that a checkout does not hold: nvidia-smi, an interpreter, a compiler, wine, torch.
Without it a test is skipped and says how to get it; with CUDADOCTOR_TESTS_STRICT=1 it fails instead.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
"""The checkout."""

FLOOR = "3.9"
"""The oldest Python that must run the doctor."""

# Found once, at import: tests change HOME and the environment.
CACHE = Path(
    os.environ.get("CUDADOCTOR_TEST_PARTS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cudadoctor-test-parts"
)
"""What scripts/install_test_parts.sh fetched, and what the bench builds for itself."""

STRICT = os.environ.get("CUDADOCTOR_TESTS_STRICT", "") not in ("", "0")


def missing_part(name: str, remedy: str) -> NoReturn:
    """Ends the test: skipped with the remedy, or failed in strict mode."""
    message = f"real part missing: {name}. {remedy}"
    if STRICT:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def program(name: str, remedy: str) -> str:
    """The path of a program that the test cannot do without."""
    found = shutil.which(name)
    if not found:
        missing_part(name, remedy)
    return found


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at; all are held until the last is known, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


# Variables that change what Python, pip, uv, conda, the loader or the doctor itself do.
_PRIVATE = re.compile(
    r"""^(PIP_|UV_|PYTHON|VIRTUAL_ENV|CONDA|_CONDA|PYENV_VERSION$|LD_|CUDA|NVIDIA_|FAKE_|TORCH|PYTORCH
        |SLURM|KUBERNETES|NODE_NAME|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|WSL|CUDADOCTOR_
        |http_proxy|https_proxy|all_proxy|HTTP_PROXY|HTTPS_PROXY|ALL_PROXY)""",
    re.VERBOSE,
)


def clean_environ(*overlays: Mapping[str, str], **extra: str) -> dict[str, str]:
    """This process's environment without what changes the behaviour of Python, pip, the loader or the doctor.

    The overlays (such as what `fake_nvml` returns) are laid over it in order; PATH and LD_LIBRARY_PATH of
    several overlays are joined, the later one first.
    """
    env = {name: value for name, value in os.environ.items() if not _PRIVATE.match(name)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["CUDADOCTOR_DATA"] = "shipped"  # nor what the developer's own `cudadoctor matrix update` brought
    for overlay in (*overlays, extra):
        for name, value in overlay.items():
            if name in ("PATH", "LD_LIBRARY_PATH") and env.get(name):
                value = f"{value}{os.pathsep}{env[name]}"
            env[name] = value
    return env


def _version(python: str) -> tuple[str, str] | None:
    """("3.9", the interpreter's own path), or None where it does not run (a pyenv shim, say)."""
    code = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"
    try:
        done = subprocess.run(
            [python, "-I", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.split()
    return (lines[0], lines[1]) if done.returncode == 0 and len(lines) == 2 else None


def _with_venv(python: str) -> bool:
    """Can it make a virtual environment? (Debian's own Python cannot without python3-venv.)"""
    done = subprocess.run([python, "-I", "-c", "import venv, ensurepip"], capture_output=True, timeout=30)
    return done.returncode == 0


@functools.cache
def find_python(version: str) -> str | None:
    """An interpreter of this version ("3.9") that can make virtual environments, or None.

    Looked for in CUDADOCTOR_TEST_PYTHONS (paths, separated as in PATH), this process, PATH, pyenv's versions
    and what uv knows; nothing is downloaded.
    """
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return os.path.realpath(str(getattr(sys, "_base_executable", None) or sys.executable))
    candidates = [p for p in os.environ.get("CUDADOCTOR_TEST_PYTHONS", "").split(os.pathsep) if p]
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidates.append(os.path.join(folder, f"python{version}"))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates += [str(p / "bin" / "python") for p in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    for candidate in candidates:
        if os.path.exists(candidate) and "shims" not in Path(candidate).parts:
            found = _version(candidate)
            if found and found[0] == version and _with_venv(found[1]):
                return found[1]
    uv = find_uv()
    if uv:
        command = [uv, "python", "find", "--no-config", "--no-python-downloads", "--no-project", version]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
        if done.returncode == 0 and _with_venv(done.stdout.strip()):
            return done.stdout.strip()
    return None


@functools.cache
def patient_version() -> str:
    """The Python of a patient's environment where a test does not choose one: ours, if today's torch runs on it."""
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info >= (3, 10):
        return ours
    return next((v for v in ("3.11", "3.12", "3.10", "3.13") if find_python(v)), ours)


def pythons_at_hand(oldest: str = FLOOR) -> list[str]:
    """The versions, oldest first, of which an interpreter is at hand, from the floor up."""
    first = int(oldest.split(".")[1])
    return [v for v in (f"3.{minor}" for minor in range(first, first + 10)) if find_python(v)]


def find_uv() -> str | None:
    """The real uv: beside this interpreter, else on PATH."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")
