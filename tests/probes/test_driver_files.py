from __future__ import annotations

from base64 import b64encode
from struct import pack
from typing import Any, Optional

import pytest

from cudadoctor.probes.driver_files import PROBE

from .tables import ABSENT, DENIED, Unknown, check, machine

LIB = "/usr/lib/x86_64-linux-gnu"
LARGE = {"size": 30_000_000}


def found(
    path: str, real_path: str, found_by: str, kind: str = "driver", version: Optional[str] = None
) -> dict[str, Any]:
    return {"path": path, "real_path": real_path, "found_by": found_by, "kind": kind, "version": version}


DRIVER: dict[str, Any] = {
    "links": {f"{LIB}/libcuda.so.1": "libcuda.so.535.183.01"},
    "status": {f"{LIB}/libcuda.so.535.183.01": LARGE},
}
BY_DEFAULT = found(f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.535.183.01", "default", version="535.183.01")


def with_driver(**sections: dict[str, Any]) -> dict[str, Any]:
    return {name: {**DRIVER.get(name, {}), **sections.get(name, {})} for name in {*DRIVER, *sections}}


CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("a driver in the loader's default folder", DRIVER, [BY_DEFAULT], "535.183.01"),
    (
        "the same by the loader's cache",
        with_driver(loader_cache={"libcuda.so.1": [f"{LIB}/libcuda.so.1"]}),
        [dict(BY_DEFAULT, found_by="ld.so.cache")],
        "535.183.01",
    ),
    (
        "the toolkit's stub on LD_LIBRARY_PATH comes before the driver",
        with_driver(
            variables={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs:/opt/none::relative"},
            links={"/usr/local/cuda/lib64/stubs/libcuda.so.1": "libcuda.so"},
            status={"/usr/local/cuda/lib64/stubs/libcuda.so": {"size": 40_000}},
        ),
        [
            found(
                "/usr/local/cuda/lib64/stubs/libcuda.so.1",
                "/usr/local/cuda/lib64/stubs/libcuda.so",
                "LD_LIBRARY_PATH",
                "stub",
            ),
            BY_DEFAULT,
        ],
        "535.183.01",
    ),
    (
        "a small library without a version, outside of a stubs folder: nothing convicts it of being a stub",
        {"status": {f"{LIB}/libcuda.so.1": {"size": 40_000}}},
        [found(f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.1", "default", "driver")],
        ABSENT,
    ),
    (
        "an image with a library for forward compatibility before the host's",
        with_driver(
            variables={"LD_LIBRARY_PATH": "/usr/local/cuda/compat"},
            links={"/usr/local/cuda/compat/libcuda.so.1": "libcuda.so.580.65.06"},
            status={"/usr/local/cuda/compat/libcuda.so.580.65.06": LARGE},
        ),
        [
            found(
                "/usr/local/cuda/compat/libcuda.so.1",
                "/usr/local/cuda/compat/libcuda.so.580.65.06",
                "LD_LIBRARY_PATH",
                "compat",
                "580.65.06",
            ),
            BY_DEFAULT,
        ],
        "535.183.01",
    ),
    (
        "WSL: Windows lends the library, and the loader's cache knows it",
        {
            "loader_cache": {"libcuda.so.1": ["/usr/lib/wsl/lib/libcuda.so.1"]},
            "status": {"/usr/lib/wsl/lib/libcuda.so.1": {"size": 168_000}},
        },
        [found("/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "wsl", "wsl")],
        ABSENT,
    ),
    (
        "WSL with a Linux driver in front",
        with_driver(status={"/usr/lib/wsl/lib/libcuda.so.1": {"size": 168_000}}),
        [BY_DEFAULT, found("/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "wsl", "wsl")],
        "535.183.01",
    ),
    (
        "an empty file that a container runtime left",
        {"status": {f"{LIB}/libcuda.so.1": {"size": 0}}},
        [found(f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.1", "default", "empty")],
        ABSENT,
    ),
    (
        "a link to a driver that is gone",
        {"links": {f"{LIB}/libcuda.so.1": "libcuda.so.535.183.01"}},
        [found(f"{LIB}/libcuda.so.1", "libcuda.so.535.183.01", "default", "dangling")],
        ABSENT,
    ),
    (
        "a Jetson, whose library has no driver number",
        {
            "machine": "aarch64",
            "links": {"/usr/lib/aarch64-linux-gnu/libcuda.so.1": "nvidia/libcuda.so.1.1"},
            "status": {"/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1": LARGE},
        },
        [
            found(
                "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
                "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1",
                "default",
            )
        ],
        ABSENT,
    ),
    (
        "only NVML's library was mounted: it tells the version",
        {
            "links": {f"{LIB}/libnvidia-ml.so.1": "libnvidia-ml.so.550.54.14"},
            "status": {f"{LIB}/libnvidia-ml.so.550.54.14": {"size": 2_000_000}},
        },
        [],
        "550.54.14",
    ),
    (
        "a cache entry whose file is gone is passed over, as the loader does",
        {"loader_cache": {"libcuda.so.1": ["/opt/gone/libcuda.so.1"]}},
        [],
        ABSENT,
    ),
    ("no driver", {}, [], ABSENT),
    ("the cache cannot be read", {"loader_cache": {"libcuda.so.1": DENIED}}, Unknown("denied"), Unknown("denied")),
    (
        "what the default folders hold stands, whatever the cache says",
        with_driver(loader_cache={"libcuda.so.1": DENIED}),
        [BY_DEFAULT],
        "535.183.01",
    ),
]


@pytest.mark.parametrize(("title", "sections", "libraries", "version"), CASES, ids=[case[0] for case in CASES])
def test_driver_files(title: str, sections: dict[str, Any], libraries: Any, version: Any) -> None:
    check(PROBE, machine(**sections), {"driver.libcuda": libraries, "driver.library_version": version})


def test_a_32_bit_library_in_a_folder_that_both_kinds_share_is_passed_over() -> None:
    elf32 = b64encode(b"\x7fELF\x01\x01\x01" + bytes(9) + pack("<HHI", 3, 3, 1) + bytes(40)).decode()
    system = machine(files={"/usr/lib/libcuda.so.1": {"base64": elf32}})
    check(PROBE, system, {"driver.libcuda": []})
