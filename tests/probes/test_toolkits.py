"""CUDA toolkits, their versions, CUDA_HOME and the compiler that nvcc calls."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cudadoctor.probes.toolkits import PROBE
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.replay import ReplaySystem

from .pythons import SCRIPT, Sections, conda, machine_with, merged, package, site_of, venv, windows_with
from .tables import ABSENT, DENIED, Unknown, check

ENV = "/home/me/miniconda3/envs/train"
VENV = "/home/me/proj/.venv"
SITE = site_of(VENV)


def nvcc_says(version: str, argv: str = "nvcc") -> Sections:
    release = ".".join(version.split(".")[:2])
    text = f"nvcc: a compiler driver\nCuda compilation tools, release {release}, V{version}\n"
    return {"programs": [{"argv": [argv, "--version"], "stdout": text}]}


def gcc_says(version: str, argv: str = "gcc") -> dict[str, Any]:
    return {"argv": [argv, "--version"], "stdout": f"gcc (Debian {version}-1) {version}\nCopyright ...\n"}


def toolkit(root: str, version_json: str = "", version_txt: str = "", nvcc: bool = True) -> Sections:
    """A toolkit's folder as NVIDIA's installer leaves it."""
    files: dict[str, Any] = {f"{root}/lib64/libcudart.so": ""}
    if nvcc:
        files[f"{root}/bin/nvcc"] = "ELF"
    if version_json:
        files[f"{root}/version.json"] = '{"cuda": {"name": "CUDA SDK", "version": "%s"}}' % version_json  # noqa: UP031
    if version_txt:
        files[f"{root}/version.txt"] = f"CUDA Version {version_txt}\n"
    return {"files": files}


def entry(root: str, version: Any, found_by: str, nvcc: bool = True) -> dict[str, Any]:
    return {
        "root": root,
        "version": version,
        "nvcc": f"{root}/bin/nvcc" if nvcc else None,
        "found_by": found_by,
    }


NONE_AT_ALL = {
    "toolkit.nvcc_on_path": ABSENT,
    "toolkit.nvcc_on_path_version": ABSENT,
    "toolkit.found": [],
    "toolkit.cuda_home": ABSENT,
}

CASES: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    ("none, which is how most machines are", machine_with(), NONE_AT_ALL),
    (
        "on PATH, found once though /usr/local/cuda leads to it too",
        machine_with(
            toolkit("/usr/local/cuda-12.4", "12.4.1"),
            {"links": {"/usr/local/cuda": "cuda-12.4"}},
            nvcc_says("12.4.131", "/usr/local/cuda/bin/nvcc"),
            PATH="/usr/local/cuda/bin:/usr/bin",
        ),
        {
            "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc",
            "toolkit.nvcc_on_path_version": "12.4.131",
            "toolkit.found": [
                {**entry("/usr/local/cuda-12.4", "12.4.131", "PATH"), "nvcc": "/usr/local/cuda/bin/nvcc"}
            ],
        },
    ),
    (
        "several in /usr/local, the newest first, none on PATH",
        machine_with(
            toolkit("/usr/local/cuda-9.2", version_txt="9.2.148"),
            toolkit("/usr/local/cuda-12.4", "12.4.1"),
            toolkit("/usr/local/cuda-13.0"),
            {"links": {"/usr/local/cuda": "/etc/alternatives/cuda", "/etc/alternatives/cuda": "/usr/local/cuda-12.4"}},
        ),
        {
            "toolkit.nvcc_on_path": ABSENT,
            "toolkit.found": [
                entry("/usr/local/cuda-13.0", "13.0", "usr-local"),
                entry("/usr/local/cuda-12.4", "12.4.1", "usr-local"),
                entry("/usr/local/cuda-9.2", "9.2.148", "usr-local"),
            ],
        },
    ),
    (
        "a container's runtime has the libraries without nvcc",
        machine_with(toolkit("/usr/local/cuda-12.4", "12.4.1", nvcc=False)),
        {"toolkit.found": [entry("/usr/local/cuda-12.4", "12.4.1", "usr-local", nvcc=False)]},
    ),
    (
        "what an uninstall or a compat package leaves is no toolkit",
        machine_with({"folders": {"/usr/local/cuda-12.4/compat": ["libcuda.so.1"]}}),
        {"toolkit.found": []},
    ),
    (
        "Debian's own: a script on PATH, the toolkit behind it, with a compiler of its own choice",
        machine_with(
            {
                "files": {
                    "/usr/bin/nvcc": "#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc \"$@\"\n",
                    "/usr/lib/nvidia-cuda-toolkit/bin/nvcc": "ELF",
                    "/usr/lib/nvidia-cuda-toolkit/bin/gcc": "ELF",
                },
                "programs": [
                    *nvcc_says("12.0.140", "/usr/bin/nvcc")["programs"],
                    gcc_says("12.2.0", "/usr/lib/nvidia-cuda-toolkit/bin/gcc"),
                    gcc_says("14.2.0", "/usr/bin/gcc"),
                ],
            }
        ),
        {
            "toolkit.found": [{**entry("/usr/lib/nvidia-cuda-toolkit", "12.0.140", "PATH"), "nvcc": "/usr/bin/nvcc"}],
            "toolkit.host_compiler": {
                "name": "gcc",
                "version": "12.2.0",
                "path": "/usr/lib/nvidia-cuda-toolkit/bin/gcc",
            },
        },
    ),
    (
        "conda's",
        machine_with(
            conda(ENV, "3.11.9", "cuda-nvcc-12.4.131-0"), {"files": {f"{ENV}/bin/nvcc": "ELF"}}, CONDA_PREFIX=ENV
        ),
        {"toolkit.found": [entry(ENV, "12.4.131", "conda")]},
    ),
    (
        "PyPI's, of CUDA 12 and of CUDA 13",
        machine_with(
            venv(VENV),
            package(SITE, "nvidia-cuda-nvcc-cu12", "12.8.93"),
            {"files": {f"{SITE}/nvidia/cuda_nvcc/bin/nvcc": "ELF", f"{SITE}/nvidia/cublas/lib/libcublas.so.12": ""}},
            VIRTUAL_ENV=VENV,
        ),
        {"toolkit.found": [entry(f"{SITE}/nvidia/cuda_nvcc", "12.8.93", "pypi")]},
    ),
    (
        "Arch Linux's",
        machine_with(toolkit("/opt/cuda", "13.0.1")),
        {"toolkit.found": [entry("/opt/cuda", "13.0.1", "distribution")]},
    ),
    (
        "CUDA_HOME names another one than PATH",
        machine_with(
            toolkit("/usr/local/cuda-12.4", "12.4.1"),
            toolkit("/sw/cuda/11.8", "11.8.0"),
            nvcc_says("12.4.131", "/usr/local/cuda-12.4/bin/nvcc"),
            PATH="/usr/local/cuda-12.4/bin",
            CUDA_HOME="/sw/cuda/11.8",
        ),
        {
            "toolkit.found": [
                entry("/usr/local/cuda-12.4", "12.4.131", "PATH"),
                entry("/sw/cuda/11.8", "11.8.0", "CUDA_HOME"),
            ],
            "toolkit.cuda_home": {"variable": "CUDA_HOME", "path": "/sw/cuda/11.8", "exists": True, "has_nvcc": True},
        },
    ),
    (
        "CUDA_HOME names nothing",
        machine_with(CUDA_HOME="/usr/local/cuda-11.8"),
        {
            "toolkit.found": [],
            "toolkit.cuda_home": {
                "variable": "CUDA_HOME",
                "path": "/usr/local/cuda-11.8",
                "exists": False,
                "has_nvcc": False,
            },
        },
    ),
    (
        "CUDA_HOME is empty, CUDA_PATH counts; its toolkit has no nvcc",
        machine_with(
            toolkit("/usr/local/cuda-12.4", "12.4.1", nvcc=False), CUDA_HOME="", CUDA_PATH="/usr/local/cuda-12.4"
        ),
        {
            "toolkit.cuda_home": {
                "variable": "CUDA_PATH",
                "path": "/usr/local/cuda-12.4",
                "exists": True,
                "has_nvcc": False,
            }
        },
    ),
    (
        "nvcc says nothing that can be read; the files still tell",
        machine_with(
            toolkit("/usr/local/cuda-12.4", "12.4.1"),
            {"programs": [{"argv": ["/usr/local/cuda-12.4/bin/nvcc", "--version"], "stdout": "?"}]},
            PATH="/usr/local/cuda-12.4/bin",
        ),
        {
            "toolkit.nvcc_on_path_version": Unknown("nvcc"),
            "toolkit.found": [entry("/usr/local/cuda-12.4", "12.4.1", "PATH")],
        },
    ),
    (
        "nvcc hangs",
        machine_with(
            toolkit("/usr/local/cuda-12.4"),
            {"programs": [{"argv": ["/usr/local/cuda-12.4/bin/nvcc", "--version"], "timed_out": True}]},
            PATH="/usr/local/cuda-12.4/bin",
        ),
        {
            "toolkit.nvcc_on_path_version": Unknown("did not answer"),
            "toolkit.found": [entry("/usr/local/cuda-12.4", "12.4", "PATH")],
        },
    ),
    (
        "/usr/local may not be listed",
        machine_with({"folders": {"/usr/local": DENIED}}),
        {"toolkit.found": Unknown("permission denied")},
    ),
    (
        "Windows",
        windows_with(
            {
                "files": {
                    "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\bin\\nvcc.exe": "MZ",
                    "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.8\\bin\\nvcc.exe": "MZ",
                }
            },
            CUDA_PATH="C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4",
        ),
        {
            "toolkit.found": [
                {
                    "root": "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4",
                    "version": "12.4",
                    "nvcc": "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\bin\\nvcc.exe",
                    "found_by": "CUDA_PATH",
                },
                {
                    "root": "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.8",
                    "version": "11.8",
                    "nvcc": "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.8\\bin\\nvcc.exe",
                    "found_by": "program-files",
                },
            ],
            "toolkit.host_compiler": Unknown("developer's prompt"),
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_toolkits_that_are_found(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, expected)


def compiling(*programs: dict[str, Any], files: Sections = {}, **variables: str) -> ReplaySystem:  # noqa: B006
    on_path = nvcc_says("12.4.131", "/usr/bin/nvcc")["programs"]
    return machine_with(
        merged(files, {"files": {"/usr/bin/nvcc": "ELF"}}, {"programs": [*on_path, *programs]}), **variables
    )


CLANG = {"argv": ["/opt/l/clang++", "--version"], "stdout": "clang version 17.0.6\n"}


def compiler(name: str, version: str, path: str) -> dict[str, str]:
    return {"name": name, "version": version, "path": path}


COMPILERS: list[tuple[str, ReplaySystem, Any]] = [
    ("gcc on PATH", compiling(gcc_says("13.3.0", "/usr/bin/gcc")), compiler("gcc", "13.3.0", "/usr/bin/gcc")),
    ("g++ alone", compiling(gcc_says("11.4.0", "/usr/bin/g++")), compiler("gcc", "11.4.0", "/usr/bin/g++")),
    ("NVCC_CCBIN", compiling(CLANG, NVCC_CCBIN="/opt/l/clang++"), compiler("clang", "17.0.6", "/opt/l/clang++")),
    (
        "NVCC_CCBIN names a folder",
        compiling(gcc_says("9.5.0", "/opt/gcc9/bin/gcc"), NVCC_CCBIN="/opt/gcc9/bin"),
        compiler("gcc", "9.5.0", "/opt/gcc9/bin/gcc"),
    ),
    (
        "flags that nvcc adds by itself",
        compiling(gcc_says("12.3.0", "/usr/bin/gcc-12"), NVCC_PREPEND_FLAGS="-O2 -ccbin gcc-12"),
        compiler("gcc", "12.3.0", "/usr/bin/gcc-12"),
    ),
    ("no compiler", compiling(), ABSENT),
    ("one that hangs", compiling({"argv": ["/usr/bin/gcc", "--version"], "timed_out": True}), Unknown("in time")),
    ("one unheard of", compiling({"argv": ["/usr/bin/gcc", "--version"], "stdout": "hi\n"}), Unknown("compiler")),
]  # fmt: skip


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in COMPILERS], ids=[row[0] for row in COMPILERS])
def test_the_compiler_that_nvcc_calls(system: ReplaySystem, expected: Any) -> None:
    check(PROBE, system, {"toolkit.host_compiler": expected})


def test_no_compiler_is_asked_where_there_is_no_toolkit() -> None:
    facts = check(PROBE, machine_with({"files": {"/usr/bin/gcc": SCRIPT}}), NONE_AT_ALL)
    assert "toolkit.host_compiler" not in facts


def test_a_real_program_called_nvcc_is_asked_for_its_version(fake_program: Any) -> None:
    folder = fake_program("nvcc", stdout="Cuda compilation tools, release 11.8, V11.8.89\n")
    system = LiveSystem(time.monotonic() + 30)
    system._environment = {"PATH": str(folder)}
    facts = check(PROBE, system, {})  # type: ignore[arg-type]
    assert facts["toolkit.nvcc_on_path"].get() == f"{folder}/nvcc"
    assert facts["toolkit.nvcc_on_path_version"].get() == "11.8.89"
    assert facts["toolkit.host_compiler"].is_absent
