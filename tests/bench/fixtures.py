"""pytest plugin: the fixtures of the test bench. Each says what it gives; none needs a GPU or the network."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Callable, Optional, Protocol, Union

import pytest

from . import native, parts, roots, venvs
from .dead_paths import dead_mount
from .index import WheelIndex
from .parts import CACHE, missing_part
from .venvs import Venv
from .wheels import Wheel
from .windows import WindowsPython

ERAS = ("470", "525", "535", "550")
"""The driver generations of which the real nvidia-smi is at hand."""

_INSTALL = "scripts/install_test_parts.sh {} fetches it"


class FakeNvml(Protocol):
    def __call__(
        self, scenario: str = ..., *, text: Optional[str] = ..., libcuda: bool = ..., log: Optional[Path] = ...
    ) -> dict[str, str]: ...


@pytest.fixture
def fake_nvml(tmp_path: Path) -> FakeNvml:
    """The stand-in libnvidia-ml.so.1 and libcuda.so.1, playing a scenario.

    `fake_nvml("two_gpus")` returns the variables that make any program load them. text="count = 3\\n..." plays lines
    of the test's own, on top of the scenario if one is named; libcuda=False leaves libcuda out; log=PATH notes
    every call. Lay the result over an environment with `parts.clean_environ`.
    """

    def environment(
        scenario: str = "", *, text: str | None = None, libcuda: bool = True, log: Path | None = None
    ) -> dict[str, str]:
        file: Path | str = scenario
        if text is not None:
            base = native.scenario_file(scenario).read_text() if scenario else ""
            number = len(list(tmp_path.glob("scenario*.txt")))
            file = tmp_path / f"scenario{number}.txt"
            file.write_text(base + "\n" + text)
        return native.environment(file, libcuda=libcuda, log=log)

    return environment


@pytest.fixture
def fake_cuda() -> Callable[..., dict[str, str]]:
    """The stand-in libcuda.so.1 alone: `fake_cuda(driver=12040, init=803, count=0)` returns the variables.

    driver: what cuDriverGetVersion says; init: what cuInit answers (0 success); count: number of devices.
    """

    def environment(driver: int = 12040, init: int = 0, count: int = 1) -> dict[str, str]:
        return {
            "LD_LIBRARY_PATH": str(native.cuda_folder()),
            "FAKE_CUDA_DRIVER": str(driver),
            "FAKE_CUDA_INIT": str(init),
            "FAKE_CUDA_COUNT": str(count),
        }

    return environment


def _nvidia(file: str, era: str = "535") -> str:
    folder = CACHE / "nvidia" / era / Path(file).parent
    if not (folder / Path(file).name).exists():
        missing_part(f"nvidia-smi {era}", _INSTALL.format("nvidia-smi"))
    return str(folder)


@pytest.fixture
def real_nvidia_smi() -> Iterator[Callable[[str], str]]:
    """`real_nvidia_smi("535")`: a folder for PATH that holds the real nvidia-smi of that driver generation only."""
    with _no_device_node_left():
        yield functools.partial(_nvidia, "bin/nvidia-smi")


@pytest.fixture
def real_nvidia_libraries() -> Iterator[Callable[[str], str]]:
    """`real_nvidia_libraries("535")`: a folder for LD_LIBRARY_PATH with NVIDIA's own libnvidia-ml and libcuda.

    Without a driver nvmlInit answers 9 and cuInit 100. As root these libraries make /dev/nvidiactl; it is removed
    again after the test.
    """
    with _no_device_node_left():
        yield functools.partial(_nvidia, "lib/libnvidia-ml.so.1")


class _no_device_node_left:
    """NVIDIA's own parts make /dev/nvidiactl when root runs them; a machine without the driver is left without."""

    def __enter__(self) -> None:
        self._there = os.path.exists("/dev/nvidiactl") or os.path.exists("/proc/driver/nvidia")

    def __exit__(self, *_: object) -> None:
        if not self._there and os.path.exists("/dev/nvidiactl"):
            os.unlink("/dev/nvidiactl")


@pytest.fixture(scope="session")
def real_python() -> Callable[[str], str]:
    """`real_python("3.9")`: the path of an interpreter of that version that can make virtual environments."""

    def path(version: str) -> str:
        found = parts.find_python(version)
        if not found:
            missing_part(f"Python {version}", f"uv python install {version}, or put python{version} on PATH")
        return found

    return path


@pytest.fixture(scope="session")
def real_uv() -> str:
    """The path of the real uv."""
    found = parts.find_uv()
    if not found:
        missing_part("uv", "pip install uv (it is in the test extra)")
    return found


@pytest.fixture(scope="session")
def real_nvcc() -> str:
    """The path of NVIDIA's own nvcc, of a release that knows sm_120."""
    found = next(iter(sorted((CACHE / "nvcc").glob("nvidia/*/bin/nvcc"))), None)
    if found is None or not (CACHE / "nvcc" / "ready").exists():
        missing_part("nvcc", _INSTALL.format("nvcc"))
    return str(found)


@pytest.fixture(scope="session")
def real_torch_venv() -> Venv:
    """A virtual environment with the CPU build of the real torch. Shared: change nothing in it."""
    root = CACHE / "torch"
    if not (root / "ready").exists():
        missing_part("torch (CPU build)", _INSTALL.format("torch"))
    return Venv(root)


@pytest.fixture
def wheel_index(tmp_path: Path) -> Iterator[WheelIndex]:
    """An empty package index on loopback; see `index.WheelIndex`."""
    folder = tmp_path / "index"
    folder.mkdir()
    index = WheelIndex(folder)
    yield index
    index.close()


@pytest.fixture
def venv_with(tmp_path: Path) -> Callable[..., Venv]:
    """`venv_with(torch_wheel("2.9.1", "cpu"), python="3.12", pip=True)`: a virtual environment with these wheels.

    python: the version, by default one that today's torch runs on; pip: with the real pip, as the interpreter
    bundles it.
    """

    def make(*wheels: Wheel, python: str | None = None, pip: bool = False, name: str = "") -> Venv:
        number = len(list(tmp_path.glob("venv*")))
        return venvs.make(tmp_path / (name or f"venv{number}"), *wheels, python=python, pip=pip)

    return make


@pytest.fixture
def fake_root(tmp_path: Path) -> Callable[..., roots.FakeRoot]:
    """A fake machine: `fake_root(pci_gpu(), nvidia_module("535.183.01"), {"/proc/swaps": "..."}).run([...])`.

    Each argument maps real paths to a file's content, None (absent), EMPTY (an empty folder), Link, Device, File or
    Shm (see `roots`); later ones go before earlier ones, over a bare machine without a GPU (bare=False: over the
    real one).
    """
    count = iter(range(1000))

    def machine(*machines: Mapping[str, roots.Entry], bare: bool = True) -> roots.FakeRoot:
        folder = tmp_path / f"root{next(count)}"
        folder.mkdir()
        return roots.FakeRoot(folder, roots.specification(*machines, bare=bare))

    return machine


@pytest.fixture
def windows_python(tmp_path: Path) -> Iterator[WindowsPython]:
    """The real Python for Windows under wine; see `windows.WindowsPython`."""
    python = WindowsPython(tmp_path)
    yield python
    python.close()


class FakeProgram(Protocol):
    def __call__(
        self,
        name: str,
        script: str | None = ...,
        *,
        stdout: Union[str, bytes] = ...,
        stderr: Union[str, bytes] = ...,
        exit: int = ...,
        sleep: float = ...,
    ) -> str: ...


@pytest.fixture
def fake_program(tmp_path: Path) -> FakeProgram:
    """`fake_program("nvidia-smi", stdout="...", exit=9)` writes a program and returns its folder, for PATH.

    All programs of a test share the folder. script: a shell script instead; sleep: seconds before it answers.
    The folder holds nothing else, so with PATH set to it alone, every other program is missing.
    """
    folder = tmp_path / "programs"

    def write(
        name: str,
        script: str | None = None,
        *,
        stdout: str | bytes = "",
        stderr: str | bytes = "",
        exit: int = 0,
        sleep: float = 0,
    ) -> str:
        folder.mkdir(exist_ok=True)
        if script is None:
            lines = [f"exec {shutil.which('sleep')} {sleep}"] if sleep and sleep > 60 else []
            lines += [f"{shutil.which('sleep')} {sleep}"] if sleep and not lines else []
            for stream, text in ((1, stdout), (2, stderr)):
                file = folder / f".{name}.{stream}"
                file.write_bytes(text.encode() if isinstance(text, str) else text)
                lines.append(f"{shutil.which('cat')} {shlex.quote(str(file))} >&{stream}")
            script = "\n".join([*lines, f"exit {exit}"])
        if not script.startswith("#!"):
            script = f"#!/bin/sh\n{script}\n"
        path = folder / name
        path.write_text(script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return str(folder)

    return write


@pytest.fixture(scope="session")
def doctor() -> list[str]:
    """The command line of the doctor under test: this interpreter's `-m cudadoctor`."""
    return [sys.executable, "-m", "cudadoctor"]


@pytest.fixture(scope="module")
def dead_path() -> Iterator[Path]:
    """A folder below which every access stalls until the process ends, as on a network mount whose server is gone."""
    with dead_mount() as folder:
        yield folder


@pytest.fixture(scope="module")
def deaf_path() -> Iterator[Path]:
    """The same, where a process that looks there cannot even be killed (uninterruptible sleep)."""
    with dead_mount(deaf=True) as folder:
        yield folder
