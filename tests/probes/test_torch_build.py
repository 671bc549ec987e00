"""The torch that an import would take: its build, its GPU code, its copies, and which libraries it would miss."""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Sequence
from typing import Any, Optional

import pytest
from bench.parts import clean_environ
from bench.wheels import elf, fatbin, torch_wheel

from cudadoctor.probes.torch_build import PROBE
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.replay import ReplaySystem

from .pythons import (
    Sections,
    conda,
    debian,
    machine_with,
    package,
    site_of,
    torch,
    venv,
    windows_venv,
    windows_with,
)
from .tables import ABSENT, DENIED, Unknown, check

VENV = "/home/me/proj/.venv"
SITE = site_of(VENV)
LIB = f"{SITE}/torch/lib"
ENV = "/home/me/miniconda3/envs/train"
ENV_SITE = site_of(ENV, "3.11")
DEBIAN_SITE = "/usr/lib/python3/dist-packages"

INFO = f"{SITE}/torch-2.9.1+cu126.dist-info"
USER_SITE = "/home/me/.local/lib/python3.12/site-packages"

CU126 = torch(SITE, "2.9.1+cu126", "12.6")


def in_venv(*parts: Sections, **variables: str) -> ReplaySystem:
    return machine_with(debian(), venv(VENV), *parts, VIRTUAL_ENV=VENV, **variables)


def binary(path: str, data: bytes) -> Sections:
    return {"files": {path: {"base64": base64.b64encode(data).decode()}}}


def kernels(name: str, *archs: str, folder: str = LIB, times: int = 3) -> Sections:
    return binary(f"{folder}/{name}", elf({".nv_fatbin": fatbin(archs) * times}))


def needs(*needed: str, runpath: Optional[str] = None, rpath: Optional[str] = None) -> bytes:
    """A shared library that needs these, as the loader reads it: program headers, a dynamic table, its strings."""
    words = [*needed, *([runpath] if runpath else []), *([rpath] if rpath else [])]
    strings = b"\0" + b"".join(word.encode() + b"\0" for word in words)
    place = {word: strings.index(b"\0" + word.encode() + b"\0") + 1 for word in words}
    base = 64 + 2 * 56
    tags = [(1, place[name]) for name in needed]
    tags += [(29, place[runpath])] if runpath else []
    tags += [(15, place[rpath])] if rpath else []
    size = (len(tags) + 3) * 16
    tags += [(5, base + size), (10, len(strings)), (0, 0)]
    table = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    total = base + size + len(strings)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, total, total, 4096)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, base, base, base, size, size, 8)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    return header + load + dynamic + table + strings


# -- which build ------------------------------------------------------------------------------------------------------

BUILDS: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "a wheel of the cu126 index",
        in_venv(CU126, {"files": {f"{INFO}/WHEEL": "Tag: cp312-cp312-manylinux_2_28_x86_64\n"}}),
        {
            "version": "2.9.1+cu126",
            "metadata_version": "2.9.1+cu126",
            "cuda": "12.6",
            "hip": ABSENT,
            "path": f"{SITE}/torch",
            "copies": [f"{SITE}/torch"],
            "origin": "pip",
            "platform_tag": "manylinux_2_28_x86_64",
        },
    ),
    (
        "a wheel of the default index: its metadata has no +cu128, its version.py has",
        in_venv(torch(SITE, "2.9.1+cu128", "12.8", metadata="2.9.1")),
        {"version": "2.9.1+cu128", "metadata_version": "2.9.1", "cuda": "12.8"},
    ),
    (
        "a CPU build: no CUDA, no GPU code, and both are certain",
        in_venv(torch(SITE, "2.9.1+cpu")),
        {"version": "2.9.1+cpu", "cuda": ABSENT, "hip": ABSENT, "sass": [], "ptx": []},
    ),
    (
        "a ROCm build",
        in_venv(
            package(SITE, "torch", "2.9.1+rocm6.4"),
            {"files": {f"{SITE}/torch/version.py": "__version__ = '2.9.1+rocm6.4'\ncuda = None\nhip = '6.4.43484'\n"}},
        ),
        {"cuda": ABSENT, "hip": "6.4.43484", "sass": []},
    ),
    (
        "no torch",
        in_venv(),
        {"version": ABSENT, "path": ABSENT, "cuda": ABSENT, "copies": [], "sass": ABSENT, "missing_libraries": ABSENT},
    ),
    (
        "no Python",
        machine_with(),
        {"version": ABSENT, "copies": ABSENT},
    ),
    (
        "site-packages may not be listed: torch may well be there",
        in_venv({"folders": {SITE: DENIED}, "status": {SITE: {"kind": "directory"}}}),
        {"version": Unknown("permission denied"), "cuda": Unknown("permission denied"),
         "metadata_version": Unknown("permission denied")},
    ),
    (
        "version.py may not be read",
        in_venv(CU126, {"files": {f"{SITE}/torch/version.py": DENIED}}),
        {"version": Unknown("permission denied"), "copies": Unknown("permission denied"),
         "metadata_version": "2.9.1+cu126"},
    ),
    (
        "a version.py that is none",
        in_venv(CU126, {"files": {f"{SITE}/torch/version.py": "<<<<<<< HEAD\n"}}),
        {"version": Unknown("torch/version.py"), "cuda": Unknown("torch/version.py"), "path": f"{SITE}/torch"},
    ),
    (
        "a half-removed torch, which an import takes all the same",
        in_venv({"files": {f"{SITE}/torch/__init__.py": ""}}),
        {"version": Unknown("no version.py"), "path": f"{SITE}/torch", "metadata_version": ABSENT},
    ),
    (
        "metadata without a package: nothing can be imported",
        in_venv(package(SITE, "torch", "2.9.1")),
        {"version": ABSENT, "metadata_version": "2.9.1", "copies": []},
    ),
    (
        "a folder of data called torch is no package",
        in_venv({"folders": {f"{SITE}/torch": ["weights.bin"]}}),
        {"version": ABSENT, "copies": []},
    ),
    (
        "a second copy in front, by PYTHONPATH",
        in_venv(CU126, torch("/opt/site", "2.6.0+cpu"), PYTHONPATH="/opt/site"),
        {
            "version": "2.6.0+cpu",
            "metadata_version": "2.6.0+cpu",
            "path": "/opt/site/torch",
            "copies": ["/opt/site/torch", f"{SITE}/torch"],
            "cuda": ABSENT,
        },
    ),
    (
        "the user's own folder stands in front of the system's",
        machine_with(
            debian(), torch(DEBIAN_SITE, "1.13.1"), torch(USER_SITE, "2.9.1+cu128", "12.8")
        ),
        {
            "version": "2.9.1+cu128",
            "copies": [f"{USER_SITE}/torch", f"{DEBIAN_SITE}/torch"],
        },
    ),
    (
        "Debian's torch",
        machine_with(debian(), package(DEBIAN_SITE, "torch", "1.13.1", installer=None),
                     {"files": {f"{DEBIAN_SITE}/torch/version.py": "__version__ = '1.13.1'\ncuda = None\n"}}),
        {"origin": "system", "version": "1.13.1", "cuda": ABSENT},
    ),
    (
        "uv installs what pip installs",
        in_venv(torch(SITE, "2.9.1+cu126", "12.6"), {"files": {f"{SITE}/torch-2.9.1+cu126.dist-info/INSTALLER": "uv"}}),
        {"origin": "pip"},
    ),
    (
        "conda's torch",
        machine_with(
            conda(ENV, "3.11.9", "pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0", "cudnn-9.1.0.70-h0_0"),
            torch(ENV_SITE, "2.5.1", "12.4"),
            {"files": {f"{ENV_SITE}/torch-2.5.1.dist-info/INSTALLER": "conda\n"}},
            CONDA_PREFIX=ENV,
        ),
        {"origin": "conda", "cuda": "12.4", "cudnn": "9.1.0.70"},
    ),
    (
        "conda's torch of the pytorch channel has no INSTALLER",
        machine_with(
            conda(ENV, "3.11.9", "pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0"),
            package(ENV_SITE, "torch", "2.5.1", installer=None),
            {"files": {f"{ENV_SITE}/torch/version.py": "__version__ = '2.5.1'\ncuda = '12.4'\n"}},
            CONDA_PREFIX=ENV,
        ),
        {"origin": "conda"},
    ),
    (
        "pip's torch over conda's",
        machine_with(
            conda(ENV, "3.11.9", "pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0"), torch(ENV_SITE, "2.9.1+cu128", "12.8"),
            CONDA_PREFIX=ENV,
        ),
        {"origin": "pip", "version": "2.9.1+cu128"},
    ),
    (
        "built here and installed from its folder",
        in_venv(
            CU126,
            {"files": {f"{INFO}/direct_url.json": '{"url": "file:///home/me/pytorch", "dir_info": {}}'}},
        ),
        {"origin": "source"},
    ),
    (
        "a source tree that setup.py develop put on the path",
        in_venv(
            {"files": {f"{SITE}/easy-install.pth": "/src/pytorch\n", f"{SITE}/torch.egg-link": "/src/pytorch\n"}},
            {"files": {"/src/pytorch/torch/version.py": "__version__ = '2.10.0a0+git1234567'\ncuda = '12.8'\n"}},
        ),
        {"origin": "source", "version": "2.10.0a0+git1234567", "path": "/src/pytorch/torch", "cuda": "12.8"},
    ),
    (
        "a source tree that pip install -e put on the path",
        in_venv(
            package(SITE, "torch", "2.10.0a0+git1"),
            {"files": {
                f"{SITE}/__editable___torch_2_10_finder.py": "MAPPING = {'tools': '/src/t', 'torch': '/src/torch'}\n",
                "/src/torch/version.py": "__version__ = '2.10.0a0+git1'\ncuda = '12.8'\n",
            }},
        ),
        {"path": "/src/torch", "version": "2.10.0a0+git1", "copies": ["/src/torch"]},
    ),
    (
        "cuDNN of the wheels beside torch",
        in_venv(CU126, package(SITE, "nvidia-cudnn-cu12", "9.10.2.21")),
        {"cudnn": "9.10.2.21"},
    ),
    ("no cuDNN of the wheels", in_venv(CU126), {"cudnn": ABSENT}),
]  # fmt: skip


def named(expected: dict[str, Any]) -> dict[str, Any]:
    return {f"torch.{name}": value for name, value in expected.items()}


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in BUILDS], ids=[row[0] for row in BUILDS])
def test_which_build_of_torch_it_is(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, named(expected))


# -- GPU code ---------------------------------------------------------------------------------------------------------

TEXT = b"\0sm_75 sm_80 sm_86 compute_90\0"

GPU_CODE: list[tuple[str, ReplaySystem, Any, Any]] = [
    (
        "of the library with the kernels",
        in_venv(CU126, kernels("libtorch_cuda.so", "50", "60", "70", "75", "80", "86", "90")),
        ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
        [],
    ),
    (
        "with PTX",
        in_venv(CU126, kernels("libtorch_cuda.so", "80", "90", "ptx90")),
        ["sm_80", "sm_90"],
        ["compute_90"],
    ),
    (
        "1.8 to 1.13: the kernels have a library of their own",
        in_venv(CU126, binary(f"{LIB}/libtorch_cuda.so", elf({})), kernels("libtorch_cuda_cu.so", "70", "80")),
        ["sm_70", "sm_80"],
        [],
    ),
    (
        "conda keeps the libraries in its own lib",
        machine_with(
            conda(ENV), torch(ENV_SITE, "2.6.0", "12.6"), kernels("libtorch_cuda.so", "80", "90", folder=f"{ENV}/lib"),
            CONDA_PREFIX=ENV,
        ),
        ["sm_80", "sm_90"],
        [],
    ),
    (
        "where the library tells nothing, the list that torch carries as text",
        in_venv(
            CU126,
            binary(f"{LIB}/libtorch_cuda.so", elf({})),
            binary(f"{LIB}/libtorch_python.so", elf({".rodata": TEXT})),
        ),
        ["sm_75", "sm_80", "sm_86"],
        ["compute_90"],
    ),
    (
        "neither",
        in_venv(CU126, binary(f"{LIB}/libtorch_cuda.so", elf({}))),
        Unknown("embeds no GPU code"),
        Unknown("embeds no GPU code"),
    ),
    ("the library is gone", in_venv(CU126), Unknown("was not found"), Unknown("was not found")),
    (
        "the library may not be read",
        in_venv(CU126, {"files": {f"{LIB}/libtorch_cuda.so": DENIED}}),
        Unknown("permission denied"),
        Unknown("permission denied"),
    ),
    (
        "the library is damaged",
        in_venv(CU126, binary(f"{LIB}/libtorch_cuda.so", b"\x7fELF" + bytes(10))),
        Unknown("ELF"),
        Unknown("ELF"),
    ),
    (
        "a CPU build is not searched for GPU code",
        in_venv(torch(SITE, "2.9.1+cpu"), kernels("libtorch_cuda.so", "90")),
        [],
        [],
    ),
    (
        "a DLL without GPU code",
        windows_with(
            windows_venv("C:\\v"),
            torch("C:\\v\\Lib\\site-packages", "2.9.1+cu126", "12.6"),
            {"files": {"C:\\v\\Lib\\site-packages\\torch\\lib\\torch_cuda.dll": "MZ"}},
            VIRTUAL_ENV="C:\\v",
        ),
        Unknown("Windows library"),
        Unknown("Windows library"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "sass", "ptx"), [row[1:] for row in GPU_CODE], ids=[row[0] for row in GPU_CODE])
def test_for_which_gpus_torch_has_code(system: ReplaySystem, sass: Any, ptx: Any) -> None:
    check(PROBE, system, {"torch.sass": sass, "torch.ptx": ptx})


# -- libraries --------------------------------------------------------------------------------------------------------

SYSTEM_LIBRARIES: Sections = {
    "files": {f"/usr/lib/x86_64-linux-gnu/{name}": "" for name in ("libstdc++.so.6", "libgcc_s.so.1")}
}
GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2")


def libraries(cpu: Sequence[str] = (), cuda: Sequence[str] = (), runpath: Optional[str] = None) -> Sections:
    cpu_library = binary(
        f"{LIB}/libtorch_cpu.so", needs("libc10.so", "libstdc++.so.6", *GLIBC, *cpu, runpath="$ORIGIN")
    )
    cuda_library = binary(f"{LIB}/libtorch_cuda.so", needs("libtorch_cpu.so", "libcuda.so.1", *cuda, runpath=runpath))
    return {
        "files": {
            **SYSTEM_LIBRARIES["files"],
            **cpu_library["files"],
            **cuda_library["files"],
            f"{LIB}/libc10.so": "",
        }
    }


def file(path: str) -> Sections:
    return {"files": {path: ""}}


CUBLAS = libraries(cuda=["libcublas.so.12"], runpath="$ORIGIN/../../nvidia/cublas/lib:$ORIGIN")

MISSING: list[tuple[str, ReplaySystem, Any]] = [
    ("nothing; glibc and the driver's libcuda do not count", in_venv(CU126, libraries()), []),
    ("a library of the nvidia packages is gone", in_venv(CU126, CUBLAS), ["libcublas.so.12"]),
    (
        "found by RUNPATH, from the library's own folder",
        in_venv(CU126, CUBLAS, file(f"{SITE}/nvidia/cublas/lib/libcublas.so.12")),
        [],
    ),
    (
        "found in an nvidia package that RUNPATH does not name: torch loads from all of them",
        in_venv(CU126, CUBLAS, file(f"{SITE}/nvidia/cu13/lib/libcublas.so.12")),
        [],
    ),
    (
        "found by RPATH, the older way",
        in_venv(
            CU126,
            libraries(),
            binary(f"{LIB}/libtorch_cuda.so", needs("libcudart.so.12", rpath="${ORIGIN}/../../cuda")),
            file(f"{SITE}/cuda/libcudart.so.12"),
        ),
        [],
    ),
    (
        "found by LD_LIBRARY_PATH",
        in_venv(CU126, CUBLAS, file("/opt/cuda/lib/libcublas.so.12"), LD_LIBRARY_PATH="/opt/cuda/lib"),
        [],
    ),
    (
        "found by the loader's cache",
        in_venv(CU126, CUBLAS, {"loader_cache": {"libcublas.so.12": ["/opt/cuda/lib/libcublas.so.12"]}}),
        [],
    ),
    (
        "another major version does not serve",
        in_venv(CU126, CUBLAS, file(f"{SITE}/nvidia/cublas/lib/libcublas.so.13")),
        ["libcublas.so.12"],
    ),
    (
        "libstdc++ of a conda environment",
        machine_with(
            conda(ENV),
            torch(ENV_SITE, "2.6.0+cpu"),
            binary(f"{ENV_SITE}/torch/lib/libtorch_cpu.so", needs("libstdc++.so.6")),
            file(f"{ENV}/lib/libstdc++.so.6"),
            CONDA_PREFIX=ENV,
        ),
        [],
    ),
    (
        "libstdc++ is nowhere (a system whose libraries lie elsewhere)",
        in_venv(torch(SITE, "2.9.1+cpu"), binary(f"{LIB}/libtorch_cpu.so", needs("libstdc++.so.6"))),
        ["libstdc++.so.6"],
    ),
    (
        "libtorch_cuda is gone: libtorch asks for it",
        in_venv(CU126, binary(f"{LIB}/libtorch.so", needs("libtorch_cuda.so"))),
        ["libtorch_cuda.so"],
    ),
    (
        "the loader's cache may not be read",
        in_venv(CU126, CUBLAS, {"loader_cache": {"libcublas.so.12": DENIED}}),
        Unknown("permission denied"),
    ),
    (
        "a folder of RUNPATH may not be listed",
        in_venv(CU126, CUBLAS, {"folders": {f"{SITE}/nvidia/cublas/lib": DENIED}}),
        Unknown("permission denied"),
    ),
    ("torch's own libraries are not there", in_venv(CU126), Unknown("were not found")),
    (
        "a library that is none",
        in_venv(CU126, binary(f"{LIB}/libtorch_cpu.so", b"not a library")),
        Unknown("ELF"),
    ),
    (
        "Windows",
        windows_with(
            windows_venv("C:\\v"), torch("C:\\v\\Lib\\site-packages", "2.9.1+cu126", "12.6"), VIRTUAL_ENV="C:\\v"
        ),
        Unknown("Linux only"),
    ),
]


@pytest.mark.parametrize(("system", "missing"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
def test_which_libraries_torch_would_miss(system: ReplaySystem, missing: Any) -> None:
    check(PROBE, system, {"torch.missing_libraries": missing})


# -- real ones --------------------------------------------------------------------------------------------------------


def look_live(python: str) -> dict[str, Any]:
    system = LiveSystem(time.monotonic() + 30, python)
    system._environment = clean_environ()
    return dict(check(PROBE, system, {}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variant", "archs"),
    [
        ("cu126", ["50", "60", "70", "75", "80", "86", "90"]),
        ("cu130", ["75", "80", "86", "90", "100", "120", "ptx120"]),
    ],
)
def test_a_wheel_in_a_real_venv_is_read_and_not_imported(variant: str, archs: list[str], venv_with: Any) -> None:
    """Importing it would raise."""
    patient = venv_with(torch_wheel("2.9.1", variant, archs=archs, local=False))
    facts = look_live(patient.python)
    assert facts["torch.version"].get() == f"2.9.1+{variant}"
    assert facts["torch.metadata_version"].get() == "2.9.1"
    assert (facts["torch.version"].get(), facts["torch.cuda"].get()) == patient.torch_build()
    assert facts["torch.sass"].get() == [f"sm_{arch}" for arch in archs if not arch.startswith("ptx")]
    assert facts["torch.ptx"].get() == [f"compute_{arch[3:]}" for arch in archs if arch.startswith("ptx")]
    assert facts["torch.platform_tag"].get() == "manylinux_2_28_x86_64"


def test_the_real_torch_says_the_same_of_itself(real_torch_venv: Any) -> None:
    facts = look_live(real_torch_venv.python)
    code = (
        "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda, torch.version.hip,"
        "torch.cuda.get_arch_list(), torch.__path__[0]]))"
    )
    done = real_torch_venv.run("-c", code)
    version, cuda, hip, archs, path = json.loads(done.stdout.splitlines()[-1])
    assert facts["torch.version"].get() == version
    assert facts["torch.cuda"].value == cuda
    assert facts["torch.hip"].value == hip
    assert facts["torch.sass"].get() == archs
    assert facts["torch.path"].get() == path
    assert facts["torch.missing_libraries"].get() == []
    assert facts["torch.origin"].get() == "pip"
