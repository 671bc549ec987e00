"""Names of wheels: which release, which variant, for which Python and platform."""

from __future__ import annotations

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.wheel_name import parse_tagged_wheel

# name -> project, release, local version, plain release?, Python, platform, glibc
NAMES = [
    (
        "torch-2.15.0+cu132-cp312-cp312-manylinux_2_28_x86_64.whl",
        ("torch", "2.15.0", "cu132", True, "3.12", "linux-x86_64", "2.28"),
    ),
    (
        "torch-2.15.0%2Bcu132-cp312-cp312-manylinux_2_28_aarch64.whl",
        ("torch", "2.15.0", "cu132", True, "3.12", "linux-aarch64", "2.28"),
    ),
    ("torch-2.15.0-cp315-cp315t-win_amd64.whl", ("torch", "2.15.0", None, True, "3.15t", "windows-x86_64", None)),
    ("torch-2.4.1-cp39-none-macosx_11_0_arm64.whl", ("torch", "2.4.1", None, True, "3.9", "macos-arm64", None)),
    ("torch-1.8.1-cp38-none-macosx_10_9_x86_64.whl", ("torch", "1.8.1", None, True, "3.8", "macos-x86_64", None)),
    ("torch-1.7.0-cp37-cp37m-manylinux1_x86_64.whl", ("torch", "1.7.0", None, True, "3.7", "linux-x86_64", "2.5")),
    (
        "torch-2.0.0-1-cp310-cp310-manylinux2014_aarch64.whl",
        ("torch", "2.0.0", None, True, "3.10", "linux-aarch64", "2.17"),
    ),
    ("torch-2.0.1+cu118-cp311-cp311-linux_x86_64.whl", ("torch", "2.0.1", "cu118", True, "3.11", "linux-x86_64", None)),
    (
        "torchaudio-2.11.1-py3-none-manylinux_2_28_aarch64.whl",
        ("torchaudio", "2.11.1", None, True, None, "linux-aarch64", "2.28"),
    ),
    (
        "triton-3.9.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        ("triton", "3.9.0", None, True, "3.11", "linux-x86_64", "2.27"),
    ),
    ("vllm-0.33.0-cp38-abi3-manylinux_2_31_x86_64.whl", ("vllm", "0.33.0", None, True, None, "linux-x86_64", "2.31")),
    # No release: a nightly, a candidate, a rebuild.
    (
        "torch-2.16.0.dev20261120+cu132-cp312-cp312-win_amd64.whl",
        ("torch", "2.16.0.dev20261120", "cu132", False, "3.12", "windows-x86_64", None),
    ),
    (
        "torch-2.15.0rc3+cu132-cp312-cp312-win_amd64.whl",
        ("torch", "2.15.0rc3", "cu132", False, "3.12", "windows-x86_64", None),
    ),
    (
        "torch-0.3.0.post4-cp27-cp27mu-linux_x86_64.whl",
        ("torch", "0.3.0.post4", None, False, "2.7", "linux-x86_64", None),
    ),
    # Platforms that the matrix has no rows for.
    ("torch-2.15.0+cpu-cp312-cp312-win_arm64.whl", ("torch", "2.15.0", "cpu", True, "3.12", None, None)),
    ("torch-2.6.0+cpu-cp312-cp312-manylinux_2_28_s390x.whl", ("torch", "2.6.0", "cpu", True, "3.12", None, "2.28")),
    ("cuda_toolkit-13.4.1.0-py2.py3-none-any.whl", ("cuda-toolkit", "13.4.1.0", None, True, None, None, None)),
]


@pytest.mark.parametrize(("name", "expected"), NAMES, ids=[name for name, _ in NAMES])
def test_name(name: str, expected: tuple[object, ...]) -> None:
    assert parse_tagged_wheel(name) == expected


@pytest.mark.parametrize("name", ["torch-2.15.0.tar.gz", "torch.whl", "torch-2.15.0-cp312.whl", "", "index.html"])
def test_other_files(name: str) -> None:
    with pytest.raises(ParseError, match="not a wheel's file name"):
        parse_tagged_wheel(name)
