"""Which packages that matter to CUDA are installed, from where, for what; nothing of them is run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from bench.parts import clean_environ
from bench.wheels import companion_wheel, tiny_wheel, torch_wheel

from cudadoctor.parse.cuda_packages import NAMES, matters
from cudadoctor.probes.packages import PROBE
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.replay import ReplaySystem

from .pythons import (
    Sections,
    conda,
    debian,
    machine_with,
    merged,
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
ENV = "/home/me/miniconda3/envs/train"
ENV_SITE = site_of(ENV, "3.11")


def in_venv(*parts: Sections, version: str = "3.12.3", **variables: str) -> ReplaySystem:
    return machine_with(venv(VENV, version), *parts, VIRTUAL_ENV=VENV, **variables)


def in_conda(*parts: Sections, meta: tuple[str, ...] = ()) -> ReplaySystem:
    return machine_with(conda(ENV, "3.11.9", *meta), *parts, CONDA_PREFIX=ENV)


def names(*folders: str, site: str = SITE) -> Sections:
    return {"folders": {site: list(folders)}}


def file(path: str, text: Any, site: str = SITE) -> Sections:
    return {"files": {f"{site}/{path}": text}}


LINUX_X86 = 'platform_system == "Linux" and platform_machine == "x86_64"'

CASES: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "an empty environment: looked, and not there",
        in_venv(),
        {
            "package.torch.version": ABSENT,
            "package.vllm.version": ABSENT,
            "packages.duplicates": [],
            "packages.leftovers": [],
        },
    ),
    (
        "names and versions come from the folders' names, however they are spelt",
        in_venv(
            names(
                "torch-2.9.1+cu126.dist-info",
                "nvidia_cudnn_cu12-9.10.2.21.dist-info",
                "Flash_Attn-2.8.3.dist-info",
                "cupy_cuda12x-13.6.0.dist-info",
                "bitsandbytes-0.48.1-py3.12.egg-info",
                "requests-2.32.0.dist-info",
            )
        ),
        {
            "package.torch.version": "2.9.1+cu126",
            "package.torch.location": SITE,
            "package.nvidia-cudnn-cu12.version": "9.10.2.21",
            "package.flash-attn.version": "2.8.3",
            "package.cupy-cuda12x.version": "13.6.0",
            "package.bitsandbytes.version": "0.48.1",
            "package.xformers.version": ABSENT,
        },
    ),
    (
        "built by setup.py into an egg",
        in_venv(
            names("flash_attn-2.5.8-py3.12-linux-x86_64.egg", "easy-install.pth"),
            file(
                "flash_attn-2.5.8-py3.12-linux-x86_64.egg/EGG-INFO/PKG-INFO",
                ["Name: flash-attn", "Version: 2.5.8", "Requires-Dist: torch", "Requires-Dist: einops"],
            ),
        ),
        {"package.flash-attn.version": "2.5.8", "package.flash-attn.requires": ["torch"]},
    ),
    (
        "the metadata of a distribution's package has its requirements in a file of their own",
        in_venv(
            names("torchvision-0.14.1.egg-info"),
            file("torchvision-0.14.1.egg-info/PKG-INFO", ["Name: torchvision", "Version: 0.14.1", "", "Text"]),
            file(
                "torchvision-0.14.1.egg-info/requires.txt",
                ["numpy", "torch==1.13.1", "", '[:platform_system == "Windows"]', "triton", "", "[dev]", "apex"],
            ),
        ),
        {"package.torchvision.requires": ["torch==1.13.1"]},
    ),
    (
        "who installed it",
        in_venv(
            package(SITE, "torch", "2.9.1", installer="uv"),
            package(SITE, "xformers", "0.0.33", installer="pip"),
            package(SITE, "apex", "0.1", installer=None),
        ),
        {
            "package.torch.installer": "uv",
            "package.xformers.installer": "pip",
            "package.apex.installer": ABSENT,
        },
    ),
    (
        "requirements that matter, markers resolved for this Python and machine",
        in_venv(
            package(
                SITE,
                "torch",
                "2.9.1",
                "filelock",
                f"nvidia-cudnn-cu12==9.10.2.21; {LINUX_X86}",
                'nvidia-cudnn-cu12==9.10.2.21; platform_machine == "aarch64"',
                f'triton==3.5.1; {LINUX_X86} and python_version < "3.15"',
                'torch-tensorrt>=2; extra == "tensorrt"',
                "cuda-toolkit[cublas,cudart]==13.0.3; sys_platform == 'linux'",
                "cuda-bindings (>=13.0.3)",
            )
        ),
        {
            "package.torch.requires": [
                "nvidia-cudnn-cu12==9.10.2.21",
                "triton==3.5.1",
                "cuda-toolkit[cublas,cudart]==13.0.3",
                "cuda-bindings>=13.0.3",
            ]
        },
    ),
    (
        "cuda-toolkit requires what the extras that torch names stand for",
        in_venv(
            package(SITE, "torch", "2.14.1", "cuda-toolkit[cublas,cudart]==13.0.3"),
            package(
                SITE,
                "cuda-toolkit",
                "13.0.3.0",
                "nvidia-cublas==13.1.1.3.*; (sys_platform == 'linux') and extra == 'all'",
                "nvidia-npp==13.0.1.2.*; (sys_platform == 'linux') and extra == 'all'",
                "nvidia-cublas==13.1.1.3.*; (sys_platform == 'linux') and extra == 'cublas'",
                "nvidia-cuda-runtime==13.0.96.*; (extra == \"cudart\" and sys_platform == 'linux')",
                "nvidia-cufile==1.15; (extra == \"cudart\" and sys_platform == 'win32')",
                "nvidia-npp==13.0.1.2.*; (sys_platform == 'linux') and extra == 'npp'",
            ),
        ),
        {"package.cuda-toolkit.requires": ["nvidia-cublas==13.1.1.3.*", "nvidia-cuda-runtime==13.0.96.*"]},
    ),
    (
        "a marker that asks for what is not known leaves the requirements open",
        in_venv(package(SITE, "vllm", "0.11", "torch==2.9.0; platform_release >= '6'")),
        {"package.vllm.requires": Unknown("platform_release")},
    ),
    (
        "what a package requires and is not there",
        in_venv(
            package(SITE, "torch", "2.9.1", "nvidia-nccl-cu12==2.27.5", "nvidia-cublas-cu12==12.8.4.1"),
            names("nvidia_nccl_cu12-2.27.5.dist-info"),
        ),
        {"package.nvidia-nccl-cu12.version": "2.27.5", "package.nvidia-cublas-cu12.version": ABSENT},
    ),
    (
        "metadata that is gone or broken",
        in_venv(names("torch-2.9.1.dist-info", "vllm-0.11.dist-info"), file("vllm-0.11.dist-info/METADATA", "?")),
        {
            "package.torch.version": "2.9.1",
            "package.torch.requires": Unknown("no METADATA"),
            "package.vllm.requires": Unknown("METADATA"),
        },
    ),
    (
        "installed twice: in the environment and by PYTHONPATH, which wins",
        in_venv(
            names("torch-2.9.1.dist-info"), names("torch-2.6.0.dist-info", site="/opt/site"), PYTHONPATH="/opt/site"
        ),
        {
            "package.torch.version": "2.6.0",
            "package.torch.location": "/opt/site",
            "packages.duplicates": [
                {"name": "torch", "versions": ["2.6.0", "2.9.1"], "locations": ["/opt/site", SITE]}
            ],
        },
    ),
    (
        "two versions in one folder: an installation that was broken off",
        in_venv(names("torch-2.6.0.dist-info", "torch-2.9.1.dist-info", "~orch-2.6.0.dist-info", "~orch")),
        {
            "packages.duplicates": [{"name": "torch", "versions": ["2.6.0", "2.9.1"], "locations": [SITE, SITE]}],
            "packages.leftovers": [f"{SITE}/~orch", f"{SITE}/~orch-2.6.0.dist-info"],
        },
    ),
    (
        "site-packages may not be listed: nothing is said to be missing",
        in_venv({"folders": {SITE: DENIED}, "status": {SITE: {"kind": "directory"}}}),
        {
            "package.torch.version": Unknown("permission denied"),
            "packages.duplicates": Unknown("permission denied"),
            "packages.leftovers": Unknown("permission denied"),
        },
    ),
    (
        "one of two folders may not be listed: what the other holds is there",
        in_venv(
            names("torch-2.9.1.dist-info"),
            {"folders": {"/opt/site": DENIED}, "status": {"/opt/site": {"kind": "directory"}}},
            PYTHONPATH="/opt/site",
        ),
        {"package.torch.version": "2.9.1", "package.xformers.version": Unknown("permission denied")},
    ),
    (
        "no Python at all: no packages either",
        machine_with(),
        {"package.torch.version": ABSENT, "packages.duplicates": ABSENT},
    ),
    (
        "a Python that cannot be read leaves its packages open",
        machine_with(venv(), {"files": {f"{VENV}/pyvenv.cfg": DENIED}}, VIRTUAL_ENV=VENV),
        {"package.torch.version": Unknown("permission denied")},
    ),
    (
        "Debian's packages",
        machine_with(debian(), names("numpy-1.26.4.egg-info", site="/usr/lib/python3/dist-packages")),
        {"package.numpy.version": "1.26.4", "package.numpy.location": "/usr/lib/python3/dist-packages"},
    ),
    (
        "Windows",
        windows_with(
            windows_venv("C:\\v"),
            {"folders": {"C:\\v\\Lib\\site-packages": ["torch-2.9.1+cpu.dist-info"]}},
            VIRTUAL_ENV="C:\\v",
        ),
        {"package.torch.version": "2.9.1+cpu", "package.torch.location": "C:\\v\\Lib\\site-packages"},
    ),
]


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_what_is_installed(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, expected)


def direct_url(url: str) -> dict[str, str]:
    return {"direct_url.json": json.dumps({"url": url, "archive_info": {}})}


WHEELS = "https://example.org/releases"

BUILT: list[tuple[str, ReplaySystem, str, Any, Any]] = [
    (
        "torchvision writes it into version.py",
        in_venv(
            package(SITE, "torchvision", "0.24.1"),
            file("torchvision/version.py", "__version__ = '0.24.1'\ncuda = '12.6'\n"),
        ),
        "torchvision",
        None,
        "12.6",
    ),
    (
        "the version in version.py has the local part that the default index leaves away",
        in_venv(package(SITE, "torchaudio", "2.9.1"), file("torchaudio/version.py", "__version__ = '2.9.1+cu128'\n")),
        "torchaudio",
        None,
        "12.8",
    ),
    (
        "a CPU build of torchvision",
        in_venv(package(SITE, "torchvision", "0.24.1"), file("torchvision/version.py", "__version__ = '0.24.1+cpu'\n")),
        "torchvision",
        None,
        ABSENT,
    ),
    (
        "torchvision without a word",
        in_venv(package(SITE, "torchvision", "0.24.1"), file("torchvision/version.py", "__version__ = '0.24.1'\n")),
        "torchvision",
        None,
        Unknown("do not say"),
    ),
    (
        "xformers writes down both",
        in_venv(
            package(SITE, "xformers", "0.0.33"),
            file("xformers/cpp_lib.json", '{"version": {"cuda": 1208, "torch": "2.9.0+cu128"}, "env": {}}'),
        ),
        "xformers",
        "2.9.0+cu128",
        "12.8",
    ),
    (
        "xformers with a broken file",
        in_venv(package(SITE, "xformers", "0.0.33"), file("xformers/cpp_lib.json", '{"version": []}')),
        "xformers",
        Unknown("cannot be read"),
        Unknown("cannot be read"),
    ),
    (
        "flash-attn says it in the wheel's name alone",
        in_venv(
            package(
                SITE,
                "flash-attn",
                "2.8.3",
                **direct_url(f"{WHEELS}/flash_attn-2.8.3%2Bcu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"),
            )
        ),
        "flash-attn",
        "2.8",
        "12",
    ),
    (
        "torch-scatter says it in its version",
        in_venv(package(SITE, "torch-scatter", "2.1.2+pt26cu124")),
        "torch-scatter",
        "2.6",
        "12.4",
    ),
    (
        "an extension of a CPU build",
        in_venv(package(SITE, "torch-sparse", "0.6.18+pt26cpu")),
        "torch-sparse",
        "2.6",
        ABSENT,
    ),
    (
        "an extension that was compiled here says nothing",
        in_venv(package(SITE, "flash-attn", "2.8.3")),
        "flash-attn",
        ABSENT,
        Unknown("do not say"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("system", "name", "for_torch", "for_cuda"), [row[1:] for row in BUILT], ids=[row[0] for row in BUILT]
)
def test_for_which_torch_and_cuda_a_package_was_built(
    system: ReplaySystem, name: str, for_torch: Any, for_cuda: Any
) -> None:
    expected = {f"package.{name}.built_for_cuda": for_cuda}
    if for_torch is not None:
        expected[f"package.{name}.built_for_torch"] = for_torch
    check(PROBE, system, expected)


RECORD = "pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0"

CONDA: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "conda's pytorch is torch",
        in_conda(
            package(ENV_SITE, "torch", "2.5.1", installer="conda"),
            {
                "files": {
                    f"{ENV}/conda-meta/{RECORD}.json": '{"build": "x", "channel": "https://conda.example/t/s3cret/pytorch/linux-64",'
                }
            },
            meta=(RECORD, "pytorch-cuda-12.4-hc786d27_7", "pytorch-mutex-1.0-cuda", "zlib-1.3.1-hb9d3cd8_2"),
        ),
        {
            "package.torch.version": "2.5.1",
            "package.torch.installer": "conda",
            "package.torch.conda_build": "py3.11_cuda12.4_cudnn9.1.0_0",
            "package.torch.conda_channel": "pytorch",
            "package.pytorch-cuda.version": "12.4",
            "package.pytorch-mutex.conda_build": "cuda",
            "packages.duplicates": [],
        },
    ),
    (
        "conda-forge",
        in_conda(
            package(ENV_SITE, "torch", "2.6.0", installer="conda"),
            {
                "files": {
                    f"{ENV}/conda-meta/pytorch-2.6.0-cpu_mkl_py311_h1_100.json": '{"channel": "https://conda.example/conda-forge/linux-64"}'
                }
            },
            meta=("pytorch-2.6.0-cpu_mkl_py311_h1_100",),
        ),
        {"package.torch.conda_build": "cpu_mkl_py311_h1_100", "package.torch.conda_channel": "conda-forge"},
    ),
    (
        "a channel of several parts",
        in_conda(
            {"files": {f"{ENV}/conda-meta/{RECORD}.json": '{"channel":"https://conda.example/pkgs/main/linux-64"}'}},
            meta=(RECORD,),
        ),
        {"package.torch.conda_channel": "pkgs/main", "package.torch.version": "2.5.1"},
    ),
    (
        "pip wrote over conda's torch, which conda still believes in",
        in_conda(package(ENV_SITE, "torch", "2.9.1"), meta=(RECORD,)),
        {
            "package.torch.version": "2.9.1",
            "package.torch.installer": "pip",
            "package.torch.conda_build": "py3.11_cuda12.4_cudnn9.1.0_0",
            "packages.duplicates": [
                {"name": "torch", "versions": ["2.9.1", "2.5.1"], "locations": [ENV_SITE, f"{ENV}/conda-meta"]}
            ],
        },
    ),
    (
        "pip's torch alone in a conda environment",
        in_conda(package(ENV_SITE, "torch", "2.9.1")),
        {"package.torch.installer": "pip", "package.torch.conda_build": ABSENT, "packages.duplicates": []},
    ),
    (
        "conda-meta may not be listed",
        machine_with(
            conda(ENV),
            {"folders": {f"{ENV}/conda-meta": DENIED}, "status": {f"{ENV}/conda-meta": {"kind": "directory"}}},
            package(ENV_SITE, "torch", "2.9.1"),
            CONDA_PREFIX=ENV,
        ),
        {"package.torch.version": "2.9.1", "package.torch.conda_build": Unknown("permission denied")},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in CONDA], ids=[row[0] for row in CONDA])
def test_what_conda_says_of_its_packages(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, expected)


def test_no_credential_of_an_address_gets_into_a_fact() -> None:
    token = "s3cret"
    system = in_venv(
        package(
            SITE, "flash-attn", "2.8.3", **direct_url(f"https://me:{token}@example.org/{token}/flash_attn-2.8.3.whl")
        )
    )
    assert token not in repr(check(PROBE, system, {}))


def test_packages_that_have_nothing_to_do_with_cuda_are_passed_over() -> None:
    facts = check(PROBE, in_venv(names("requests-2.32.0.dist-info", "torchlike-1.0.dist-info")), {})
    assert not any("requests" in name or "torchlike" in name for name in facts)


@pytest.mark.parametrize(
    "name", ["torch", "nvidia-cublas", "cuda-toolkit", "jax-cuda12-plugin", "cupy-cuda12x", "vllm"]
)
def test_names_that_matter(name: str) -> None:
    assert matters(name)


def test_a_package_with_a_fixed_name_always_gets_an_answer() -> None:
    facts = check(PROBE, in_venv(), {})
    assert {f"package.{name}.version" for name in NAMES} <= set(facts)


# -- real ones --------------------------------------------------------------------------------------------------------


def look_live(python: str, **variables: str) -> dict[str, Any]:
    system = LiveSystem(time.monotonic() + 30, python)
    system._environment = {**clean_environ(), **variables}
    return dict(check(PROBE, system, {}))  # type: ignore[arg-type]


@pytest.mark.parametrize("python", ["3.9", "3.11", "3.13"])
def test_real_wheels_in_a_real_venv(python: str, venv_with: Any) -> None:
    patient = venv_with(
        torch_wheel("2.9.1", "cu126", python=python, local=False),
        companion_wheel("torchvision", "0.24.1", "cu126", "2.9.1", python=python, local=False),
        tiny_wheel("xformers", "0.0.33", requires=["torch==2.9.1", "numpy"]),
        tiny_wheel("rich", "14.0"),
        python=python,
    )
    facts = look_live(patient.python)
    assert facts["package.torch.version"].get() == "2.9.1"
    assert "nvidia-cudnn-cu12==9.10.2.21" in facts["package.torch.requires"].get()
    assert facts["package.torchvision.built_for_cuda"].get() == "12.6"
    assert facts["package.torchvision.requires"].get() == ["torch==2.9.1"]
    assert facts["package.xformers.requires"].get() == ["torch==2.9.1"]
    assert facts["package.torch.installer"].get() == "pip"
    versions = {name.split(".")[1] for name in facts if name.endswith(".version") and facts[name].is_known}
    assert versions == set(patient.installed()) - {"rich"}


def test_a_folder_with_64000_files_is_listed_once_and_read_rightly(venv_with: Any) -> None:
    patient = venv_with(torch_wheel("2.9.1", "cpu"))
    for number in range(64_000):
        (Path(patient.site_packages) / f"module_{number}.py").touch()
    listed: list[str] = []

    class Counting(LiveSystem):
        def list_folder(self, path: str) -> Any:
            listed.append(path)
            return super().list_folder(path)

    system = Counting(time.monotonic() + 30, patient.python)
    system._environment = clean_environ()
    assert PROBE.function(system)["package.torch.version"].get() == "2.9.1+cpu"
    assert listed.count(str(patient.site_packages)) == 1


def test_nothing_of_the_patient_is_read_but_small_files() -> None:
    """A description of a megabyte behind the headers does not matter."""
    system = in_venv(
        merged(
            torch(SITE, "2.9.1"),
            file("torch-2.9.1.dist-info/METADATA", "Name: torch\nVersion: 2.9.1\n\n" + "x" * (1 << 20)),
        )
    )
    check(PROBE, system, {"package.torch.requires": []})
