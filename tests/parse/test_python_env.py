"""pyvenv.cfg, EXTERNALLY-MANAGED, names of interpreters, wheel tags."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from cudadoctor.parse import python_env
from cudadoctor.parse.errors import ParseError

VENV = """\
home = /usr/bin
include-system-site-packages = false
version = 3.12.3
executable = /usr/bin/python3.12
command = /usr/bin/python3 -m venv /home/me/env = x
"""
VIRTUALENV = """\
home = /usr/bin
implementation = CPython
version_info = 3.11.7.final.0
virtualenv = 20.25.0
include-system-site-packages = true
base-prefix = /usr
base-executable = /usr/bin/python3.11
version = 20.25.0
"""
UV = "home = C:\\Python\r\nimplementation = CPython\r\nuv = 0.9.1\r\nversion_info = 3.13.0\r\nprompt = 'demo'\r\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VENV, ("/usr/bin", "3.12.3", False, "/usr/bin/python3.12", None, None)),
        (VIRTUALENV, ("/usr/bin", "3.11.7", True, "/usr/bin/python3.11", None, None)),
        (UV, ("C:\\Python", "3.13.0", False, None, "0.9.1", "demo")),
        ("\ufeffhome=/x\n", ("/x", None, False, None, None, None)),
        ("home = /x\nversion = 3.12\n", ("/x", "3.12", False, None, None, None)),
        ("home = /x\nversion = new\n", ("/x", None, False, None, None, None)),
    ],
    ids=["venv", "virtualenv", "uv on Windows", "a mark", "short", "odd version"],
)
def test_pyvenv_cfg(text: str, expected: tuple[object, ...]) -> None:
    assert python_env.parse_pyvenv_cfg(text) == expected


@pytest.mark.parametrize("text", ["", "version = 3.12\n", "home =\n", "home\n"])
def test_no_pyvenv_cfg(text: str) -> None:
    with pytest.raises(ParseError, match=r"pyvenv\.cfg"):
        python_env.parse_pyvenv_cfg(text)


def test_real_pyvenv_cfg(tmp_path: Path) -> None:
    venv.EnvBuilder(with_pip=False).create(tmp_path)
    got = python_env.parse_pyvenv_cfg((tmp_path / "pyvenv.cfg").read_text(encoding="utf-8"))
    assert got.version == ".".join(map(str, sys.version_info[:3]))
    assert got.system_site_packages is False


def test_externally_managed() -> None:
    text = """\
[externally-managed]
Error=To install Python packages system-wide, try apt install
 python3-xyz, where xyz is the package.

 If you wish to install a non-Debian package, use a venv.
Error-de_DE=Anders
"""
    message = python_env.parse_externally_managed(text)
    assert message is not None
    assert message.startswith("To install Python packages system-wide") and message.endswith("use a venv.")
    assert python_env.parse_externally_managed("[externally-managed]\n") is None
    assert python_env.parse_externally_managed("") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("python", ("python", None, False)),
        ("python3", ("python", "3", False)),
        ("python3.12", ("python", "3.12", False)),
        ("python3.13t", ("python", "3.13", True)),
        ("python.exe", ("python", None, False)),
        ("pythonw.exe", ("python", None, False)),
        ("python3.12.exe", ("python", "3.12", False)),
        ("pypy3.10", ("pypy", "3.10", False)),
    ],
)
def test_python_name(name: str, expected: tuple[object, ...]) -> None:
    assert python_env.parse_python_name(name) == expected


@pytest.mark.parametrize("name", ["", "python3-config", "ipython", "python3.12-gdb.py", "perl", "python 3"])
def test_other_names(name: str) -> None:
    assert python_env.parse_python_name(name) is None


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/home/me/env/lib/python3.12/site-packages", "3.12"),
        ("/usr/lib/python3.11/dist-packages", "3.11"),
        ("/env/lib/pypy3.10/site-packages/torch", "3.10"),
        ("C:\\env\\Lib\\site-packages", None),
        ("/usr/lib/python3/dist-packages", None),
    ],
)
def test_site_packages(path: str, version: str | None) -> None:
    got = python_env.parse_site_packages_version(path)
    assert (got.version if got else None) == version


TAGS = [
    # tag, (Python, free-threaded, system, glibc, musl, machine)
    ("cp312-cp312-manylinux_2_28_x86_64", ("3.12", False, "linux", (2, 28), None, "x86_64")),
    ("cp313-cp313t-manylinux_2_28_aarch64", ("3.13", True, "linux", (2, 28), None, "aarch64")),
    ("cp39-cp39-manylinux2014_x86_64", ("3.9", False, "linux", (2, 17), None, "x86_64")),
    ("cp38-cp38-manylinux1_x86_64", ("3.8", False, "linux", (2, 5), None, "x86_64")),
    ("cp37-cp37m-linux_x86_64", ("3.7", False, "linux", None, None, "x86_64")),
    ("cp312-cp312-musllinux_1_2_x86_64", ("3.12", False, "linux", None, (1, 2), "x86_64")),
    ("cp310-cp310-win_amd64", ("3.10", False, "win", None, None, "x86_64")),
    ("cp312-cp312-win_arm64", ("3.12", False, "win", None, None, "arm64")),
    ("cp312-none-macosx_11_0_arm64", ("3.12", False, "macosx", None, None, "arm64")),
    ("py3-none-any", (None, False, "any", None, None, None)),
    ("cp39-abi3-win32", ("3.9", False, "win", None, None, "x86")),
]


@pytest.mark.parametrize(("text", "expected"), TAGS)
def test_wheel_tag(text: str, expected: tuple[object, ...]) -> None:
    tag = python_env.parse_wheel_tag(text)
    assert (tag.python_version, tag.free_threaded, tag.system, tag.glibc, tag.musl, tag.machine) == expected
    assert f"{tag.python}-{tag.abi}-{tag.platform}" == text


@pytest.mark.parametrize("text", ["", "cp312", "cp312-cp312", "cp312-cp312-any.whl", "cp312-cp312-amiga", "a-b-c-d"])
def test_no_wheel_tag(text: str) -> None:
    with pytest.raises(ParseError):
        python_env.parse_wheel_tag(text)


@pytest.mark.parametrize(
    ("name", "base", "major"),
    [
        ("nvidia-cublas-cu12", "nvidia-cublas", 12),
        ("nvidia-cudnn-cu13", "nvidia-cudnn", 13),
        ("nvidia-cublas-cu117", "nvidia-cublas", 11),
        ("nvidia-cublas", "nvidia-cublas", None),
        ("torch", "torch", None),
    ],
)
def test_cuda_suffix(name: str, base: str, major: int | None) -> None:
    assert python_env.split_cuda_suffix(name) == (base, major)
