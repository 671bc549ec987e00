"""First lines of compilers."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.host_compiler import HostCompiler, parse_host_compiler


@pytest.mark.parametrize(
    ("line", "family", "version"),
    [
        ("gcc (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "gcc", "13.3.0"),
        ("g++-12 (Debian 12.2.0-14) 12.2.0", "gcc", "12.2.0"),
        ("gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-26)", "gcc", "8.5.0"),
        ("gcc (GCC) 15.2.1 20250813", "gcc", "15.2.1"),
        ("x86_64-conda-linux-gnu-cc (conda-forge gcc 14.2.0-1) 14.2.0", "gcc", "14.2.0"),
        ("c++ (SUSE Linux) 7.5.0", "gcc", "7.5.0"),
        ("gcc (Gentoo 14.3.0 p8) 14.3.0", "gcc", "14.3.0"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang", "18.1.3"),
        ("clang version 17.0.6", "clang", "17.0.6"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", "apple-clang", "15.0.0"),
        ("Microsoft (R) C/C++ Optimizing Compiler Version 19.39.33523 for x64", "msvc", "19.39.33523"),
        ("Microsoft (R) C/C++-Optimierungscompiler Version 19.29.30154 für x64", "msvc", "19.29.30154"),
        ("用于 x64 的 Microsoft (R) C/C++ 优化编译器 19.44.35211 版", "msvc", "19.44.35211"),
    ],
)
def test_banner(line: str, family: str, version: str) -> None:
    found = parse_host_compiler(line + "\nCopyright (C) ...\n")
    assert found == HostCompiler(family, version)
    assert found.major == int(version.split(".")[0])


@pytest.mark.parametrize("text", ["", "sh: 1: gcc: not found", "gcc version unknown", "Copyright (C) 2021"])
def test_no_banner(text: str) -> None:
    with pytest.raises(ParseError):
        parse_host_compiler(text)


@pytest.mark.real_part("C compiler")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
def test_real_gcc() -> None:
    def ask(option: str) -> str:
        return subprocess.run(["gcc", option], capture_output=True, text=True, timeout=60, check=True).stdout

    found = parse_host_compiler(ask("--version"))
    assert (found.family, str(found.major)) == ("gcc", ask("-dumpversion").split(".")[0].strip())
