"""Which Python is the patient, what kind of environment it has, and what would install into it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from bench.parts import clean_environ, pythons_at_hand

from cudadoctor.parse.errors import ParseError
from cudadoctor.probes.interpreter import PROBE
from cudadoctor.probes.patient import check_asked_python
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.replay import ReplaySystem

from .pythons import (
    OTHER_PROGRAM,
    PROGRAM,
    SCRIPT,
    Sections,
    answering,
    conda,
    debian,
    fedora,
    installed,
    machine_with,
    merged,
    own,
    package,
    site_of,
    torch,
    venv,
    windows_python,
    windows_venv,
    windows_with,
)
from .tables import ABSENT, DENIED, Unknown, check

VENV = "/home/me/proj/.venv"
ENV = "/home/me/miniconda3/envs/train"
BASE = "/home/me/miniconda3"
TOOL = "/home/me/.local/share/uv/tools/cudadoctor"
PIPX = "/home/me/.local/share/pipx/venvs/cudadoctor"
UVX = "/home/me/.cache/uv/archive-v0/bM5uPfwYNrJD5LYl"
SHIMS = "/home/me/.pyenv/shims"

UV_TOOL = merged(
    venv(TOOL, "3.12.3", "/usr/bin", "uv = 0.9.1", key="version_info"), {"files": {f"{TOOL}/uv-receipt.toml": ""}}
)

# cudadoctor as one file, which the distribution's interpreter runs.
ONE_FILE = {**own("/usr"), "executable": "/usr/bin/python3", "one_file": "yes"}


def chosen(executable: str, by: str, kind: str) -> dict[str, Any]:
    return {"python.executable": executable, "python.chosen_by": by, "python.environment": kind}


# -- the choice -------------------------------------------------------------------------------------------------------

CHOICES: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "an active venv",
        machine_with(debian(), venv(), VIRTUAL_ENV=VENV),
        chosen(f"{VENV}/bin/python", "VIRTUAL_ENV", "venv"),
    ),
    (
        "an active venv beside conda's base, which every shell activates",
        machine_with(
            debian(), venv(), conda(BASE, base=True), VIRTUAL_ENV=VENV, CONDA_PREFIX=BASE, CONDA_DEFAULT_ENV="base"
        ),
        chosen(f"{VENV}/bin/python", "VIRTUAL_ENV", "venv"),
    ),
    (
        "an active conda environment",
        machine_with(debian(), conda(ENV), CONDA_PREFIX=ENV, CONDA_DEFAULT_ENV="train"),
        chosen(f"{ENV}/bin/python", "CONDA_PREFIX", "conda"),
    ),
    (
        "a conda environment activated after a venv: it stands in front on PATH",
        machine_with(
            debian(),
            venv(),
            conda(ENV),
            VIRTUAL_ENV=VENV,
            CONDA_PREFIX=ENV,
            CONDA_DEFAULT_ENV="train",
            PATH=f"{ENV}/bin:{VENV}/bin:/usr/bin",
        ),
        chosen(f"{ENV}/bin/python", "CONDA_PREFIX", "conda"),
    ),
    (
        "VIRTUAL_ENV names a folder that is gone",
        machine_with(debian(), VIRTUAL_ENV="/home/me/deleted"),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "VIRTUAL_ENV is empty",
        machine_with(debian(), VIRTUAL_ENV=""),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "a venv whose interpreter was upgraded away is still the patient",
        machine_with(venv(home="/usr/lib/old/bin"), VIRTUAL_ENV=VENV),
        {**chosen(f"{VENV}/bin/python", "VIRTUAL_ENV", "venv"), "python.bits": Unknown("gone")},
    ),
    (
        "a conda environment without Python (R alone)",
        machine_with(debian(), {"folders": {f"{ENV}/conda-meta": []}}, CONDA_PREFIX=ENV),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "our own venv, called by its path",
        machine_with(debian(), venv(), own=own(VENV)),
        chosen(f"{VENV}/bin/python", "own", "venv"),
    ),
    (
        "installed with `uv tool install`: the python on PATH is meant",
        machine_with(debian(), UV_TOOL, own=own(TOOL)),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "installed with pipx",
        machine_with(debian(), venv(PIPX), {"files": {f"{PIPX}/pipx_metadata.json": "{}"}}, own=own(PIPX)),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "run with uvx",
        machine_with(debian(), venv(UVX, "3.12.3", "/usr/bin", "uv = 0.9.1", key="version_info"), own=own(UVX)),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "run with uvx in a project with .venv, which uv's users never activate",
        machine_with(
            debian(),
            UV_TOOL,
            venv("/home/me/job/.venv"),
            torch(site_of("/home/me/job/.venv"), "2.9.1"),
            own=own(TOOL),
        ),
        chosen("/home/me/job/.venv/bin/python", ".venv", "venv"),
    ),
    (
        "run with uvx, and .venv holds no torch: nobody chose it",
        machine_with(debian(), UV_TOOL, venv("/home/me/job/.venv"), own=own(TOOL)),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
    (
        "run with `uv run --with cudadoctor`: a throw-away environment over the project's",
        machine_with(
            venv(
                "/home/me/.cache/uv/builds-v0/.tmpX",
                "3.12.3",
                "/usr/bin",
                "uv = 0.9.1",
                f"extends-environment = {VENV}",
            ),
            venv(),
            VIRTUAL_ENV="/home/me/.cache/uv/builds-v0/.tmpX",
        ),
        chosen(f"{VENV}/bin/python", "VIRTUAL_ENV", "venv"),
    ),
    (
        "our own holds no torch, the python on PATH does",
        machine_with(
            venv(),
            installed("/opt/python", "3.11"),
            torch(site_of("/opt/python", "3.11"), "2.6.0+cu124", "12.4"),
            own=own(VENV),
            PATH="/opt/python/bin",
        ),
        chosen("/opt/python/bin/python", "PATH", "system"),
    ),
    (
        "one file, run by the system's python3: the python on PATH is meant, and no `python` of the system's",
        machine_with(debian(), installed("/opt/python", "3.11"), own=ONE_FILE, PATH="/opt/python/bin:/usr/bin"),
        chosen("/opt/python/bin/python", "PATH", "system"),
    ),
    (
        "one file, run by the system's python3, which alone holds torch",
        machine_with(
            debian(),
            torch("/usr/lib/python3/dist-packages", "2.6.0"),
            installed("/opt/python", "3.11"),
            own=ONE_FILE,
            PATH="/opt/python/bin",
        ),
        chosen("/usr/bin/python3", "own", "system"),
    ),
    (
        "one file, run by the python of an environment: somebody named that",
        machine_with(
            venv(), installed("/opt/python", "3.11"), own={**own(VENV), "one_file": "yes"}, PATH="/opt/python/bin"
        ),
        chosen(f"{VENV}/bin/python", "own", "venv"),
    ),
    (
        "one file, run by the python of a conda environment that is not active",
        machine_with(
            conda(ENV),
            installed("/opt/python", "3.11"),
            own={**own(ENV, ENV, "3.11.9"), "one_file": "yes"},
            PATH="/opt/python/bin",
        ),
        chosen(f"{ENV}/bin/python", "own", "conda"),
    ),
    (
        "both hold torch: our own",
        machine_with(
            venv(),
            torch(site_of(VENV), "2.9.1"),
            installed("/opt/python", "3.11"),
            torch(site_of("/opt/python", "3.11"), "2.6.0+cu124", "12.4"),
            own=own(VENV),
            PATH="/opt/python/bin",
        ),
        {
            **chosen(f"{VENV}/bin/python", "own", "venv"),
            "python.others_with_torch": [{"executable": "/opt/python/bin/python", "torch": "2.6.0+cu124"}],
        },
    ),
    (
        "torch is in conda's base, which is not active",
        machine_with(
            debian(),
            venv(),
            conda(BASE, base=True),
            torch(site_of(BASE, "3.11"), "2.5.1"),
            own=own(VENV),
            CONDA_EXE=f"{BASE}/bin/conda",
        ),
        chosen(f"{BASE}/bin/python", "CONDA_EXE", "conda"),
    ),
    (
        "conda's base is active by habit, and our own venv holds torch",
        machine_with(
            conda(BASE, base=True),
            venv(),
            torch(site_of(VENV), "2.9.1"),
            own=own(VENV),
            CONDA_PREFIX=BASE,
            CONDA_DEFAULT_ENV="base",
        ),
        chosen(f"{VENV}/bin/python", "own", "venv"),
    ),
    (
        "an active environment is looked at though another one holds torch",
        machine_with(venv(), debian(), torch("/usr/lib/python3/dist-packages", "1.13.1"), VIRTUAL_ENV=VENV),
        {
            **chosen(f"{VENV}/bin/python", "VIRTUAL_ENV", "venv"),
            "python.others_with_torch": [{"executable": "/usr/bin/python3", "torch": "1.13.1"}],
        },
    ),
    (
        "no Python at all",
        machine_with(),
        {
            "python.executable": ABSENT,
            "python.chosen_by": ABSENT,
            "python.pip": ABSENT,
            "python.python_on_path": ABSENT,
            "python.pip_on_path": ABSENT,
        },
    ),
    (
        "no PATH and no HOME",
        ReplaySystem.of({"unlisted": "absent", "machine": "x86_64", **debian()}),
        chosen("/usr/bin/python3", "PATH", "system"),
    ),
]


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in CHOICES], ids=[row[0] for row in CHOICES])
def test_the_patient_is_the_environment_that_the_person_means(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, expected)


ASKED: list[tuple[str, Sections, str]] = [
    (f"{VENV}/bin/python", venv(), f"{VENV}/bin/python"),
    (VENV, venv(), f"{VENV}/bin/python"),
    ("../proj/.venv", venv(), f"{VENV}/bin/python"),
    ("3.12", debian("3.12"), "/usr/bin/python3.12"),
    ("3.12.4", debian("3.12"), "/usr/bin/python3.12"),
    ("python3", debian("3.11"), "/usr/bin/python3"),
    ("3.13t", installed("/usr", "3.13t"), "/usr/bin/python3.13t"),
]


@pytest.mark.parametrize(("asked", "parts", "executable"), ASKED, ids=[row[0] for row in ASKED])
def test_python_on_the_command_line_is_a_path_a_folder_or_a_version(
    asked: str, parts: Sections, executable: str
) -> None:
    system = machine_with(parts, venv("/home/me/other"), asked=asked, VIRTUAL_ENV="/home/me/other")
    check(PROBE, system, {"python.executable": executable, "python.chosen_by": "--python"})


REFUSED: list[tuple[str, Sections, str]] = [
    ("/home/me/nowhere/bin/python", {}, "there is no file"),
    ("3.14", debian("3.12"), "no Python '3.14' on PATH"),
    ("/etc", {"files": {"/etc/hostname": "x"}}, "no Python in the folder"),
    ("/usr/sbin/reboot", {"files": {"/usr/sbin/reboot": PROGRAM}}, "it is no Python 3 by its name"),
    (
        "/opt/old/python",
        {
            "files": {"/opt/old/python": SCRIPT},
            "programs": [{"argv": ["python", "-I", "-S", "-c", "*"], "exit_status": 2}],
        },
        "it is no Python 3",
    ),
]


@pytest.mark.parametrize(("asked", "parts", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_python_that_is_none_is_a_usage_error(asked: str, parts: Sections, words: str) -> None:
    system = machine_with(answering(parts), asked=asked)
    with pytest.raises(ParseError, match=words) as raised:
        check_asked_python(system)
    assert "or a version such as 3.12" in str(raised.value)


def test_python_that_cannot_be_looked_at_is_no_usage_error() -> None:
    system = machine_with({"real_paths": {"/root/bin/python": DENIED}}, asked="/root/bin/python")
    check_asked_python(system)
    check(PROBE, system, {"python.chosen_by": "--python", "python.version": Unknown("permission denied")})


# -- kinds of environments --------------------------------------------------------------------------------------------


def facts(**expected: Any) -> dict[str, Any]:
    return {f"python.{name}": value for name, value in expected.items()}


LAYOUTS: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "venv",
        machine_with(debian(), venv(), VIRTUAL_ENV=VENV),
        facts(
            environment="venv",
            environment_name="~/proj/.venv",
            prefix=VENV,
            version="3.12.3",
            implementation="CPython",
            free_threaded=False,
            bits=64,
            arch=ABSENT,
            site_packages=[site_of(VENV)],
            externally_managed=False,
            uv_environment=False,
            pip=False,
        ),
    ),
    (
        "venv of uv",
        machine_with(
            venv(VENV, "3.12.3", "/home/me/.local/share/uv/python/x/bin", "uv = 0.9.1", key="version_info"),
            VIRTUAL_ENV=VENV,
        ),
        facts(environment="venv", version="3.12.3", uv_environment=True),
    ),
    (
        "venv of virtualenv",
        machine_with(venv(VENV, "3.12.3.final.0", key="version_info"), VIRTUAL_ENV=VENV),
        facts(environment="venv", version="3.12.3"),
    ),
    (
        "venv of a free-threaded Python",
        machine_with(venv(VENV, "3.13.1", suffix="t"), VIRTUAL_ENV=VENV),
        facts(free_threaded=True, version="3.13.1", site_packages=[site_of(VENV, "3.13t")]),
    ),
    (
        "venv that sees the system's packages: the user's and Debian's come after its own",
        machine_with(
            debian(),
            venv(system_site=True),
            {"folders": {"/home/me/.local/lib/python3.12/site-packages": []}},
            VIRTUAL_ENV=VENV,
        ),
        facts(
            site_packages=[
                site_of(VENV),
                "/home/me/.local/lib/python3.12/site-packages",
                "/usr/local/lib/python3.12/dist-packages",
                "/usr/lib/python3/dist-packages",
            ]
        ),
    ),
    (
        "Debian's own Python, with packages in the user's folder",
        machine_with(debian(), {"folders": {"/home/me/.local/lib/python3.12/site-packages": []}}),
        facts(
            environment="system",
            version="3.12",
            externally_managed=True,
            site_packages=[
                "/home/me/.local/lib/python3.12/site-packages",
                "/usr/local/lib/python3.12/dist-packages",
                "/usr/lib/python3/dist-packages",
            ],
        ),
    ),
    (
        "PYTHONNOUSERSITE switches the user's folder off",
        machine_with(
            debian(externally_managed=False),
            {"folders": {"/home/me/.local/lib/python3.12/site-packages": []}},
            PYTHONNOUSERSITE="1",
        ),
        facts(
            externally_managed=False,
            site_packages=["/usr/local/lib/python3.12/dist-packages", "/usr/lib/python3/dist-packages"],
        ),
    ),
    (
        "Fedora's own Python",
        machine_with(fedora()),
        facts(
            environment="system",
            site_packages=[
                "/usr/local/lib/python3.12/site-packages",
                "/usr/lib64/python3.12/site-packages",
                "/usr/lib/python3.12/site-packages",
            ],
        ),
    ),
    (
        "a container's Python in /usr/local, our own micro version known",
        machine_with(
            installed("/usr/local", "3.11"),
            own={**own("/usr/local", "/usr/local", "3.11.7")},
            PATH="/usr/local/bin",
        ),
        facts(environment="system", version="3.11.7", prefix="/usr/local", environment_name="/usr/local"),
    ),
    (
        "a Python of uv's own",
        machine_with(
            installed("/home/me/.local/share/uv/python/cpython-3.13.2-linux-x86_64-gnu", "3.13"),
            PATH="/home/me/.local/share/uv/python/cpython-3.13.2-linux-x86_64-gnu/bin",
        ),
        facts(environment="user", version="3.13.2"),
    ),
    (
        "PyPy",
        machine_with(
            {
                "files": {"/opt/pypy/bin/pypy3.10": PROGRAM, "/opt/pypy/lib/pypy3.10/os.py": ""},
                "folders": {"/opt/pypy/lib/pypy3.10/site-packages": []},
            },
            asked="/opt/pypy/bin/pypy3.10",
        ),
        facts(implementation="PyPy", version="3.10", site_packages=["/opt/pypy/lib/pypy3.10/site-packages"]),
    ),
    (
        "a 32-bit Python on a 64-bit system",
        machine_with(
            installed("/opt/py", "3.12"), {"files": {"/opt/py/bin/python3.12": OTHER_PROGRAM}}, PATH="/opt/py/bin"
        ),
        facts(bits=32, arch="x86"),
    ),
    (
        "conda",
        machine_with(conda(ENV, "3.11.9"), CONDA_PREFIX=ENV, CONDA_DEFAULT_ENV="train"),
        facts(
            environment="conda",
            environment_name="train",
            version="3.11.9",
            externally_managed=False,
            site_packages=[site_of(ENV, "3.11")],
        ),
    ),
    (
        "conda's base",
        machine_with(conda(BASE, base=True), CONDA_PREFIX=BASE),
        facts(environment="conda", environment_name="base"),
    ),
    (
        "a tool's environment, asked for by name",
        machine_with(UV_TOOL, asked=TOOL),
        facts(environment="tool", uv_environment=True),
    ),
    (
        "PYTHONPATH comes first; what is not there does not count",
        machine_with(
            debian(),
            venv(),
            {"folders": {"/opt/site": [], "/home/me/job/src": []}},
            VIRTUAL_ENV=VENV,
            PYTHONPATH="/opt/site:/gone:src:",
        ),
        facts(site_packages=["/opt/site", "/home/me/job/src", site_of(VENV)]),
    ),
    (
        "a cluster's modules (EasyBuild)",
        machine_with(
            installed("/apps/Python/3.11.3", "3.11"),
            {"folders": {"/apps/PyTorch/2.1/lib/python3.11/site-packages": []}},
            PATH="/apps/Python/3.11.3/bin",
            EBPYTHONPREFIXES="/apps/PyTorch/2.1",
        ),
        facts(
            version="3.11.3",
            site_packages=["/apps/PyTorch/2.1/lib/python3.11/site-packages", site_of("/apps/Python/3.11.3", "3.11")],
        ),
    ),
    (
        "a venv's python through a link elsewhere is the interpreter behind it, as for Python itself",
        machine_with(debian(), venv(), {"links": {"/usr/local/bin/p": f"{VENV}/bin/python"}}, asked="/usr/local/bin/p"),
        facts(environment="system", prefix="/usr"),
    ),
    (
        "a venv reached through a link to its folder",
        machine_with(debian(), venv("/data/a"), {"links": {"/home/me/v": "/data/a"}}, VIRTUAL_ENV="/home/me/v"),
        facts(environment="venv", prefix="/home/me/v", site_packages=[site_of("/home/me/v")]),
    ),
    (
        "pyvenv.cfg may not be read",
        machine_with(venv(), {"files": {f"{VENV}/pyvenv.cfg": DENIED}}, VIRTUAL_ENV=VENV),
        facts(environment=Unknown("permission denied"), version=Unknown("permission denied")),
    ),
    (
        "pip as Debian packages it",
        machine_with(debian(), {"folders": {"/usr/lib/python3/dist-packages": ["pip", "pip-23.0.1.dist-info"]}}),
        facts(pip=True),
    ),
    (
        "site-packages may not be listed",
        machine_with(venv(), {"folders": {site_of(VENV): DENIED}, "status": {site_of(VENV): {"kind": "directory"}}},
                     VIRTUAL_ENV=VENV),
        facts(pip=Unknown("permission denied"), site_packages=[site_of(VENV)]),
    ),
    (
        "the recording has nothing about Python",
        ReplaySystem.of({"variables": {"VIRTUAL_ENV": VENV}}),
        facts(version=Unknown(), environment=Unknown(), pip=Unknown()),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS])
def test_an_environment_is_read_from_its_files(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, expected)


WINDOWS_LAYOUTS: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "venv",
        windows_with(windows_venv("C:\\Users\\me\\proj\\.venv"), VIRTUAL_ENV="C:\\Users\\me\\proj\\.venv"),
        facts(
            executable="C:\\Users\\me\\proj\\.venv\\Scripts\\python.exe",
            environment="venv",
            environment_name="~\\proj\\.venv",
            version="3.12.7",
            site_packages=["C:\\Users\\me\\proj\\.venv\\Lib\\site-packages"],
        ),
    ),
    (
        "python.org's, for everybody",
        windows_with(windows_python("C:\\Python312"), PATH="C:\\Python312"),
        facts(
            executable="C:\\Python312\\python.exe",
            environment="system",
            version="3.12",
            externally_managed=False,
            site_packages=["C:\\Python312\\Lib\\site-packages"],
        ),
    ),
    (
        "python.org's, for one user, with that user's packages",
        windows_with(
            windows_python("C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python312"),
            {"folders": {"C:\\Users\\me\\AppData\\Roaming\\Python\\Python312\\site-packages": []}},
            PATH="C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python312",
        ),
        facts(
            environment="user",
            site_packages=[
                "C:\\Users\\me\\AppData\\Roaming\\Python\\Python312\\site-packages",
                "C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python312\\Lib\\site-packages",
            ],
        ),
    ),
    (
        "conda",
        windows_with(
            windows_python("C:\\miniconda3\\envs\\train", "3.11"),
            {"folders": {"C:\\miniconda3\\envs\\train\\conda-meta": ["python-3.11.9-he1021f5_0.json"]}},
            CONDA_PREFIX="C:\\miniconda3\\envs\\train",
            CONDA_DEFAULT_ENV="train",
        ),
        facts(environment="conda", environment_name="train", version="3.11.9"),
    ),
    (
        "the launcher's registry knows a version that PATH does not",
        windows_with(
            windows_python("C:\\Python312"),
            {
                "registry": {
                    "HKLM\\Software\\Python\\PythonCore\\3.12\\InstallPath": {
                        "ExecutablePath": "C:\\Python312\\python.exe"
                    }
                }
            },
            asked="3.12",
        ),
        facts(executable="C:\\Python312\\python.exe", chosen_by="--python"),
    ),
    (
        "Microsoft's invitation to its store is no Python",
        windows_with(
            {"files": {"C:\\Users\\me\\AppData\\Local\\Microsoft\\WindowsApps\\python.exe": ""}},
            answering({"programs": [{"argv": ["python.exe", "-I", "-S", "-c", "*"], "exit_status": 9009}]}),
            PATH="C:\\Users\\me\\AppData\\Local\\Microsoft\\WindowsApps",
        ),
        facts(executable=ABSENT),
    ),
]


@pytest.mark.parametrize(
    ("system", "expected"), [row[1:] for row in WINDOWS_LAYOUTS], ids=[row[0] for row in WINDOWS_LAYOUTS]
)
def test_an_environment_of_windows_is_read_from_its_files(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, expected)


# -- shims and wrappers -----------------------------------------------------------------------------------------------


def pyenv(**files: str) -> Sections:
    root = "/home/me/.pyenv"
    return merged(
        installed(f"{root}/versions/3.11.7", "3.11"),
        installed(f"{root}/versions/3.12.1", "3.12"),
        {"files": {f"{SHIMS}/{name}": SCRIPT for name in ("python", "python3", "python3.12", "pip")}},
        {"files": {f"{root}/version": "3.11.7\n", **files}},
    )


PYENV: list[tuple[str, ReplaySystem, str]] = [
    ("pyenv global", machine_with(pyenv(), PATH=SHIMS), "3.11.7"),
    ("pyenv shell", machine_with(pyenv(), PATH=SHIMS, PYENV_VERSION="3.12.1"), "3.12.1"),
    ("pyenv local", machine_with(pyenv(**{"/home/me/job/.python-version": "3.12.1\n"}), PATH=SHIMS), "3.12.1"),
    ("pyenv local of a parent", machine_with(pyenv(**{"/home/me/.python-version": "3.12.1\n"}), PATH=SHIMS), "3.12.1"),
    ("several, the first that is there", machine_with(pyenv(), PATH=SHIMS, PYENV_VERSION="3.9.1:3.12.1"), "3.12.1"),
    ("asked for one that is not selected", machine_with(pyenv(), PATH=SHIMS, asked="3.12"), "3.12.1"),
]


@pytest.mark.parametrize(("system", "version"), [row[1:] for row in PYENV], ids=[row[0] for row in PYENV])
def test_a_shim_of_pyenv_is_followed_without_starting_it(system: ReplaySystem, version: str) -> None:
    found = check(PROBE, system, {"python.version": version})
    assert f"/versions/{version}/bin/" in found["python.executable"].get()


def test_pip_of_pyenv_belongs_to_the_python_of_pyenv() -> None:
    found = check(PROBE, machine_with(pyenv(), PATH=SHIMS), {})
    assert found["python.pip_on_path"].get() == {
        "path": f"{SHIMS}/pip",
        "interpreter": "/home/me/.pyenv/versions/3.11.7/bin/python",
    }


def test_a_wrapper_is_asked_which_interpreter_it_starts() -> None:
    answer = "/opt/py/bin/python3.12\n3.12.8\n/opt/py\n/opt/py/lib/python3.12\n"
    system = machine_with(
        installed("/opt/py", "3.12"),
        {"files": {"/usr/bin/python": SCRIPT}},
        answering({"programs": [{"argv": ["/usr/bin/python", "-I", "-S", "-c", "*"], "stdout": answer}]}),
    )
    check(PROBE, system, {"python.executable": "/opt/py/bin/python3.12", "python.version": "3.12.8"})


def test_an_interpreter_in_no_known_layout_is_taken_at_its_word() -> None:
    answer = "/gnu/store/abc/bin/guile-python\n3.11.6\n/gnu/store/abc\n/gnu/store/abc/share/python3.11\n"
    system = machine_with(
        {"files": {"/usr/bin/python": SCRIPT}, "folders": {"/gnu/store/abc/share/python3.11/site-packages": []}},
        answering({"programs": [{"argv": ["/usr/bin/python", "-I", "-S", "-c", "*"], "stdout": answer}]}),
    )
    check(
        PROBE,
        system,
        facts(version="3.11.6", site_packages=["/gnu/store/abc/share/python3.11/site-packages"], free_threaded=False),
    )


def test_a_python_2_is_passed_over_for_python3() -> None:
    system = machine_with(
        debian(),
        {"files": {"/usr/bin/python": SCRIPT}},
        answering({"programs": [{"argv": ["/usr/bin/python", "-I", "-S", "-c", "*"], "exit_status": 2}]}),
    )
    check(PROBE, system, {"python.executable": "/usr/bin/python3", "python.python_on_path": "/usr/bin/python"})


def test_a_wrapper_that_hangs_leaves_the_interpreter_unknown() -> None:
    system = machine_with(
        {"files": {f"{VENV}/bin/python": SCRIPT}},
        answering({"programs": [{"argv": [f"{VENV}/bin/python", "-I", "-S", "-c", "*"], "timed_out": True}]}),
        VIRTUAL_ENV=VENV,
    )
    check(PROBE, system, {"python.version": Unknown("did not answer in time"), "python.chosen_by": "VIRTUAL_ENV"})


def test_a_python_on_path_that_hangs_is_not_the_absence_of_python() -> None:
    system = machine_with(
        {"files": {"/usr/bin/python": SCRIPT}},
        answering({"programs": [{"argv": ["/usr/bin/python", "-I", "-S", "-c", "*"], "timed_out": True}]}),
    )
    check(PROBE, system, facts(executable=Unknown("did not answer in time"), pip=Unknown("did not answer in time")))


# -- the pip on PATH --------------------------------------------------------------------------------------------------

PIPS: list[tuple[str, str, Any]] = [
    ("of the venv", f"#!{VENV}/bin/python\n", f"{VENV}/bin/python"),
    ("of the venv, under its other name", f"#!{VENV}/bin/python3.12\n", f"{VENV}/bin/python"),
    ("of another Python", "#!/usr/bin/python3\n", "/usr/bin/python3"),
    ("whichever python3 comes first", "#!/usr/bin/env python3\n", "/usr/bin/python3"),
    ("too long for a first line", f"#!/bin/sh\n'''exec' \"{VENV}/bin/python\" \"$0\"\n", f"{VENV}/bin/python"),
    ("a shell script of somebody's", "#!/bin/bash\nexec something\n", None),
    ("no script", "ELF", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "interpreter"), [row[1:] for row in PIPS], ids=[row[0] for row in PIPS])
def test_the_pip_on_path_tells_whose_packages_it_installs(text: str, interpreter: Any) -> None:
    system = machine_with(debian(), venv(), {"files": {"/usr/bin/pip": text}}, VIRTUAL_ENV=VENV)
    check(PROBE, system, {"python.pip_on_path": {"path": "/usr/bin/pip", "interpreter": interpreter}})


def test_pip_exe_of_windows_names_its_interpreter_near_its_end() -> None:
    launcher = "MZ" + "." * 9000 + "#!C:\\Python312\\python.exe\r\nPK"
    system = windows_with(
        windows_python("C:\\Python312"), {"files": {"C:\\Tools\\pip.exe": launcher}}, PATH="C:\\Tools"
    )
    found = check(PROBE, system, {})
    assert found["python.pip_on_path"].get()["interpreter"] == "C:\\Python312\\python.exe"


# -- real ones --------------------------------------------------------------------------------------------------------


def look_live(python: str, **variables: str) -> dict[str, Any]:
    return dict(check(PROBE, _live(python, variables), {}))


def _live(python: str, variables: dict[str, str]) -> Any:
    system = LiveSystem(time.monotonic() + 30, python)
    system._environment = {**clean_environ(), **variables}
    return system


def ask(python: str, *options: str, **variables: str) -> dict[str, Any]:
    """What an interpreter says of itself."""
    code = (
        "import json,site,struct,sys,sysconfig;"
        "print(json.dumps(dict(prefix=sys.prefix, base=sys.base_prefix, bits=struct.calcsize('P')*8,"
        "version='%d.%d.%d' % sys.version_info[:3], stdlib=sysconfig.get_path('stdlib'),"
        "sites=[p for p in sys.path if 'packages' in p])))"
    )
    environment = clean_environ(variables)
    done = subprocess.run([python, *options, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("python", pythons_at_hand())
def test_a_real_venv_is_read_as_its_python_describes_itself(python: str, real_python: Any, tmp_path: Path) -> None:
    base = real_python(python)
    subprocess.run([base, "-I", "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=60)
    (tmp_path / "link").symlink_to(tmp_path / "venv")
    for root in ("venv", "link"):
        executable = str(tmp_path / root / "bin" / "python")
        said, found = ask(executable), look_live(executable)
        assert found["python.prefix"].get() == said["prefix"]
        assert found["python.version"].get() == said["version"]
        assert found["python.bits"].get() == said["bits"]
        assert found["python.site_packages"].get() == said["sites"]
        assert found["python.environment"].get() == "venv"
        assert found["python.implementation"].get() == "CPython"
        assert found["python.pip"].get() is False


@pytest.mark.parametrize("python", pythons_at_hand())
def test_a_real_installation_is_read_as_it_describes_itself(python: str, real_python: Any, tmp_path: Path) -> None:
    executable = real_python(python)
    home = {"HOME": str(tmp_path)}
    user = tmp_path / ".local" / "lib" / f"python{python}" / "site-packages"
    user.mkdir(parents=True)
    said, found = ask(executable, **home), look_live(executable, **home)
    assert found["python.prefix"].get() == said["prefix"]
    assert said["version"].startswith(found["python.version"].get())
    assert found["python.site_packages"].get() == said["sites"]
    assert str(user) in said["sites"]
    marker = Path(said["stdlib"]) / "EXTERNALLY-MANAGED"
    assert found["python.externally_managed"].get() is marker.exists()


def test_a_real_venv_with_system_packages_imports_in_the_order_that_we_give(real_python: Any, tmp_path: Path) -> None:
    command = [real_python("3.9"), "-I", "-m", "venv", "--without-pip", "--system-site-packages", str(tmp_path / "v")]
    subprocess.run(command, check=True, timeout=60)
    user = tmp_path / ".local" / "lib" / "python3.9" / "site-packages"
    user.mkdir(parents=True)
    extra = tmp_path / "extra-packages"
    extra.mkdir()
    executable = str(tmp_path / "v" / "bin" / "python")
    variables = {"HOME": str(tmp_path), "PYTHONPATH": str(extra)}
    assert look_live(executable, **variables)["python.site_packages"].get() == ask(executable, **variables)["sites"]


def test_the_patient_is_never_started_where_its_files_tell_all(tmp_path: Path) -> None:
    """An interpreter that would leave a trace if it ran."""
    prefix = tmp_path / "venv"
    (prefix / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "pyvenv.cfg").write_text("home = /nonexistent/bin\nversion = 3.12.9\n")
    python = prefix / "bin" / "python"
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/it-ran\n")
    python.chmod(0o755)
    found = look_live(str(python))
    assert found["python.version"].get() == "3.12.9"
    assert not (tmp_path / "it-ran").exists()


def test_a_venv_whose_packages_cannot_be_reached_is_unknown_not_empty(tmp_path: Path) -> None:
    """A link that leads in circles stops root too, whom no permission stops."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/usr/bin/python3")
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.9\n")
    (tmp_path / "lib").symlink_to("lib")
    found = look_live(str(tmp_path / "bin" / "python"))
    assert found["python.version"].get() == "3.12.9"
    assert found["python.pip"].is_unknown
    assert found["python.pip"].reason == "too many symbolic links"


def test_what_is_not_called_python_is_never_started(tmp_path: Path) -> None:
    program = tmp_path / "format-disk"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/it-ran\n")
    program.chmod(0o755)
    with pytest.raises(ParseError, match="no Python 3 by its name"):
        check_asked_python(_live(str(program), {}))
    assert not (tmp_path / "it-ran").exists()


def test_another_torch_is_reported_by_its_metadata_where_it_has_no_version_file() -> None:
    system = machine_with(
        venv(), debian(), package("/usr/lib/python3/dist-packages", "torch", "2.1.0"), VIRTUAL_ENV=VENV
    )
    check(PROBE, system, facts(others_with_torch=[{"executable": "/usr/bin/python3", "torch": "2.1.0"}]))
