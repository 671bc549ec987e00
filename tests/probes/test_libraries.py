"""CUDA libraries in front of those of the wheels: LD_LIBRARY_PATH, LD_PRELOAD and on Windows PATH."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.probes.libraries import PROBE
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.replay import ReplaySystem

from .pythons import Sections, machine_with, windows_with
from .tables import DENIED, Unknown, check

LIB = "/usr/local/cuda/lib64"


def cuda_library(stem: str, version: str, folder: str = LIB) -> Sections:
    """libcudart.so -> libcudart.so.12 -> libcudart.so.12.4.127, as the toolkit installs them."""
    major = version.split(".")[0]
    return {
        "files": {f"{folder}/{stem}.so.{version}": "ELF"},
        "links": {f"{folder}/{stem}.so": f"{stem}.so.{major}", f"{folder}/{stem}.so.{major}": f"{stem}.so.{version}"},
    }


def entry(soname: str, file: str, version: Any, folder: str = LIB) -> dict[str, Any]:
    return {"directory": folder, "soname": soname, "file": file, "version": version}


CASES: list[tuple[str, ReplaySystem, list[str], Any]] = [
    ("LD_LIBRARY_PATH is not set", machine_with(), [], []),
    ("LD_LIBRARY_PATH is empty", machine_with(LD_LIBRARY_PATH=""), [], []),
    (
        "a toolkit's folder: one entry a library, with the version of the file behind the links",
        machine_with(
            cuda_library("libcudart", "12.4.127"),
            cuda_library("libcublasLt", "12.4.5.8"),
            cuda_library("libnvJitLink", "12.4.127"),
            {"files": {f"{LIB}/libz.so.1": "", f"{LIB}/cmake": ""}},
            LD_LIBRARY_PATH=LIB,
        ),
        [LIB],
        [
            entry("libcublasLt.so.12", "libcublasLt.so.12.4.5.8", "12.4.5.8"),
            entry("libcudart.so.12", "libcudart.so.12.4.127", "12.4.127"),
            entry("libnvJitLink.so.12", "libnvJitLink.so.12.4.127", "12.4.127"),
        ],
    ),
    (
        "cuDNN with its parts, of a wheel: the names tell the major version alone",
        machine_with(
            {"files": {"/opt/cudnn/libcudnn.so.9": "", "/opt/cudnn/libcudnn_graph.so.9": ""}},
            LD_LIBRARY_PATH="/opt/cudnn",
        ),
        ["/opt/cudnn"],
        [
            entry("libcudnn.so.9", "libcudnn.so.9", None, "/opt/cudnn"),
            entry("libcudnn_graph.so.9", "libcudnn_graph.so.9", None, "/opt/cudnn"),
        ],
    ),
    (
        "two majors side by side",
        machine_with(cuda_library("libcudart", "11.0.221"), cuda_library("libcudart", "12.4.127"), LD_LIBRARY_PATH=LIB),
        [LIB],
        [
            entry("libcudart.so.11", "libcudart.so.11.0.221", "11.0.221"),
            entry("libcudart.so.12", "libcudart.so.12.4.127", "12.4.127"),
        ],
    ),
    (
        "the toolkit's stub of libcuda",
        machine_with({"files": {f"{LIB}/stubs/libcuda.so": ""}}, LD_LIBRARY_PATH=f"{LIB}/stubs"),
        [f"{LIB}/stubs"],
        [entry("libcuda.so", "libcuda.so", None, f"{LIB}/stubs")],
    ),
    (
        "a dangling link is reported by its name",
        machine_with({"links": {f"{LIB}/libcuda.so.1": "libcuda.so.535.1"}, "folders": {LIB: []}}, LD_LIBRARY_PATH=LIB),
        [LIB],
        [entry("libcuda.so.1", "libcuda.so.1", None)],
    ),
    (
        "folders that are gone, empty entries and repetitions",
        machine_with(cuda_library("libnccl", "2.27.5"), LD_LIBRARY_PATH=f":/gone:{LIB}::{LIB}"),
        ["/gone", LIB],
        [entry("libnccl.so.2", "libnccl.so.2.27.5", "2.27.5")],
    ),
    (
        "a folder that may not be listed may hold anything",
        machine_with({"folders": {"/root/lib": DENIED}}, LD_LIBRARY_PATH="/root/lib"),
        ["/root/lib"],
        Unknown("permission denied"),
    ),
    (
        "what is found beside such a folder is there all the same",
        machine_with(
            cuda_library("libnccl", "2.27.5"), {"folders": {"/root/lib": DENIED}}, LD_LIBRARY_PATH=f"/root/lib:{LIB}"
        ),
        ["/root/lib", LIB],
        [entry("libnccl.so.2", "libnccl.so.2.27.5", "2.27.5")],
    ),
    (
        "names that only begin alike",
        machine_with(
            {"files": {"/l/libcudart_static.a": "", "/l/libcublasXt.so.1": "", "/l/libcurl.so.4": ""}},
            LD_LIBRARY_PATH="/l",
        ),
        ["/l"],
        [],
    ),
    (
        "Windows: folders of PATH with CUDA's libraries, the system's own left out",
        windows_with(
            {"files": {"C:\\CUDA\\bin\\cudart64_12.dll": "", "C:\\Git\\git.exe": ""}},
            {"files": {"C:\\Windows\\System32\\cudart64_9.dll": ""}},
            PATH="C:\\Windows\\System32;C:\\Git;C:\\CUDA\\bin",
        ),
        ["C:\\CUDA\\bin"],
        [entry("cudart64_12.dll", "cudart64_12.dll", None, "C:\\CUDA\\bin")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "folders", "found"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_libraries_on_the_search_path(system: ReplaySystem, folders: list[str], found: Any) -> None:
    check(PROBE, system, {"libraries.search_path": folders, "libraries.on_search_path": found})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/usr/lib/libjemalloc.so.2", ["/usr/lib/libjemalloc.so.2"]),
        ("a.so:b.so c.so", ["a.so", "b.so", "c.so"]),
        ("", []),
    ],
)
def test_what_is_preloaded(value: str, expected: list[str]) -> None:
    check(PROBE, machine_with(LD_PRELOAD=value), {"libraries.preloaded": expected})


def test_nothing_is_preloaded_where_the_variable_is_not_set() -> None:
    check(PROBE, machine_with(), {"libraries.preloaded": []})


def test_an_environment_that_was_not_recorded_is_unknown() -> None:
    unrecorded = Unknown("not in the recording")
    check(
        PROBE,
        ReplaySystem.of({}),
        {
            "libraries.search_path": unrecorded,
            "libraries.on_search_path": unrecorded,
            "libraries.preloaded": unrecorded,
        },
    )


def test_a_real_folder_of_64000_files(tmp_path: Path) -> None:
    for number in range(64_000):
        (tmp_path / f"libcustom{number}.so").touch()
    (tmp_path / "libcudnn.so.9.1.0").touch()
    (tmp_path / "libcudnn.so.9").symlink_to("libcudnn.so.9.1.0")
    system = LiveSystem(time.monotonic() + 30)
    system._environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    found = [entry("libcudnn.so.9", "libcudnn.so.9.1.0", "9.1.0", str(tmp_path))]
    check(PROBE, system, {"libraries.on_search_path": found})  # type: ignore[arg-type]
