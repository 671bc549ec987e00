"""The version of a CUDA toolkit, from nvcc and from the files in its folder."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from cudadoctor.parse import nvcc
from cudadoctor.parse.errors import ParseError

HEAD = "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\nBuilt on Thu_Jan__1_2024\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            HEAD + "Cuda compilation tools, release 12.4, V12.4.131\nBuild cuda_12.4.r12.4/compiler.1_0\n",
            nvcc.NvccVersion("12.4", "12.4.131", "cuda_12.4.r12.4/compiler.1_0"),
        ),
        (
            (HEAD + "Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0\n").replace("\n", "\r\n"),
            nvcc.NvccVersion("13.0", "13.0.88", "cuda_13.0"),
        ),
        (HEAD + "Cuda compilation tools, release 10.1, V10.1.243\n", nvcc.NvccVersion("10.1", "10.1.243", None)),
        ("Cuda compilation tools, release 8.0", nvcc.NvccVersion("8.0", "8.0", None)),
    ],
    ids=["12.4", "Windows", "10.1 has no Build line", "cut off"],
)
def test_nvcc(text: str, expected: nvcc.NvccVersion) -> None:
    assert nvcc.parse_nvcc(text) == expected


@pytest.mark.parametrize("text", ["", "bash: nvcc: command not found", "release notes", HEAD])
def test_no_nvcc(text: str) -> None:
    with pytest.raises(ParseError, match="nvcc --version"):
        nvcc.parse_nvcc(text)


def test_real_nvcc(real_nvcc: str) -> None:
    text = subprocess.run([real_nvcc, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    got = nvcc.parse_nvcc(text)
    assert re.search(rf"release {re.escape(got.release)}\b", text) and f"V{got.version}" in text


def test_version_json() -> None:
    document = {
        "cuda": {"name": "CUDA SDK", "version": "12.4.20240101"},
        "cuda_nvcc": {"name": "CUDA NVCC", "version": "12.4.131"},
    }
    assert nvcc.parse_version_json(json.dumps(document)) == nvcc.ToolkitVersion("12.4", "12.4.20240101", "12.4.131")
    assert nvcc.parse_version_json('{"cuda_nvcc": {"version": "11.8.89"}}').release == "11.8"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"cuda": "12.4"}',
        '{"cuda": {"version": 12}}',
        '{"cuda": {"version": "new"}}',
        "[" * 9999,
    ],
)
def test_no_version_json(text: str) -> None:
    with pytest.raises(ParseError, match=re.escape("version.json")):
        nvcc.parse_version_json(text)


def test_version_txt() -> None:
    assert nvcc.parse_version_txt("CUDA Version 10.1.243\n") == nvcc.ToolkitVersion("10.1", "10.1.243", None)
    with pytest.raises(ParseError):
        nvcc.parse_version_txt("CUDA")


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("cuda-12.4", "12.4"),
        ("cuda-9.0", "9.0"),
        ("v12.4", "12.4"),
        ("V13.0", "13.0"),
        ("cuda", None),
        ("cuda-12", None),
        ("cuda-12.4-old", None),
        ("", None),
    ],
)
def test_release_of_folder(name: str, release: str | None) -> None:
    assert nvcc.release_of_folder(name) == release
