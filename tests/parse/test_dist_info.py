"""Installed distributions: folder names, METADATA, requirements, wheel names."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement as PackagingRequirement
from packaging.utils import canonicalize_name

from cudadoctor.parse import dist_info
from cudadoctor.parse.errors import ParseError


@pytest.mark.parametrize(
    ("folder", "name", "version", "leftover"),
    [
        ("torch-2.14.1+cu126.dist-info", "torch", "2.14.1+cu126", False),
        ("nvidia_cublas_cu12-12.8.4.1.dist-info", "nvidia-cublas-cu12", "12.8.4.1", False),
        ("Pillow-10.0.0.dist-info", "pillow", "10.0.0", False),
        ("ruamel.yaml-0.18.dist-info", "ruamel-yaml", "0.18", False),
        ("torch-1.0.0-py3.9.egg-info", "torch", "1.0.0", False),
        ("torch-1.0.0.egg-info", "torch", "1.0.0", False),
        ("~orch-2.6.0.dist-info", "orch", "2.6.0", True),
        ("-orch-2.6.0.dist-info", "orch", "2.6.0", True),
        ("flash_attn-2.8.3+cu12torch2.8cxx11abitrue.dist-info", "flash-attn", "2.8.3+cu12torch2.8cxx11abitrue", False),
    ],
)
def test_folder(folder: str, name: str, version: str, leftover: bool) -> None:
    assert dist_info.parse_dist_info_name(folder) == (name, version, folder, leftover)


@pytest.mark.parametrize(
    "folder",
    [
        "torch",
        "torch-2.0",
        ".dist-info",
        "torch.dist-info",
        "torch-.dist-info",
        "torch-new.dist-info",
        "-2.0.dist-info",
        "torch-2.0.dist-info.bak",
        "__pycache__",
        "a-b-1.0.dist-info",
        "x" * 999 + "-1.dist-info",
    ],
)
def test_other_folders(folder: str) -> None:
    assert dist_info.parse_dist_info_name(folder) is None


REQUIREMENTS = [
    ("triton==3.7.0", ("triton", [], "==3.7.0", "", None)),
    (
        'nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"',
        ("nvidia-cudnn-cu12", [], "==9.1.0.70", 'platform_system == "Linux"', None),
    ),
    ("numpy (>=1.21)", ("numpy", [], ">=1.21", "", None)),
    ("numpy >= 1.21, < 3", ("numpy", [], ">=1.21,<3", "", None)),
    (
        'cuda-toolkit[cublas,cuda_runtime]==13.0.3 ; sys_platform == "linux"',
        ("cuda-toolkit", ["cublas", "cuda-runtime"], "==13.0.3", 'sys_platform == "linux"', None),
    ),
    ("Typing_Extensions", ("typing-extensions", [], "", "", None)),
    ("torch==2.6.0+cu124", ("torch", [], "==2.6.0+cu124", "", None)),
    ("torch!=2.7.*,~=2.6", ("torch", [], "!=2.7.*,~=2.6", "", None)),
    (
        "torch @ https://example.org/torch.whl ; python_version < '3.13'",
        ("torch", [], "", "python_version < '3.13'", "https://example.org/torch.whl"),
    ),
]


@pytest.mark.parametrize(("text", "expected"), REQUIREMENTS)
def test_requirement(text: str, expected: tuple[object, ...]) -> None:
    assert dist_info.parse_requirement(text) == expected


@pytest.mark.parametrize(
    "text", ["", "==1.0", "torch 2.0", "torch ==", "torch >=1;rm -rf", "torch[x", "$(x)", "_x", "torch =! 1"][:-2]
)
def test_no_requirement(text: str) -> None:
    if text == "torch >=1;rm -rf":  # the marker is kept as it is, and is not understood
        assert dist_info.parse_requirement(text).marker == "rm -rf"
        return
    with pytest.raises(ParseError, match="requirement"):
        dist_info.parse_requirement(text)


METADATA = """\
Metadata-Version: 2.4
Name: torch
Version: 2.9.1
Summary: Tensors
Requires-Python: >=3.10
License-File: LICENSE
Requires-Dist: filelock
Requires-Dist: nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"
Requires-Dist: nvidia_cudnn_cu12==9.10.2.21; platform_system == "Linux"
Requires-Dist: triton==3.5.1; platform_system == "Linux"
Requires-Dist: broken ===
Requires-Dist: opt-einsum>=3.3; extra == "opt-einsum"
Dynamic: license
 continued: Requires-Dist: nothing

# The description
Requires-Dist: not-a-header
"""


def test_metadata() -> None:
    metadata = dist_info.parse_metadata(METADATA)
    assert (metadata.name, metadata.version, metadata.requires_python) == ("torch", "2.9.1", ">=3.10")
    assert [one.name for one in metadata.requirements] == [
        "filelock",
        "nvidia-cuda-runtime-cu12",
        "nvidia-cudnn-cu12",
        "triton",
        "opt-einsum",
    ]


@pytest.mark.parametrize(
    ("only", "names"),
    [
        (["triton"], ["triton"]),
        (["nvidia-*"], ["nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12"]),
        (["triton", "nvidia-cudnn-*"], ["nvidia-cudnn-cu12", "triton"]),
        ([], []),
    ],
)
def test_metadata_only_what_was_asked_for(only: list[str], names: list[str]) -> None:
    assert [one.name for one in dist_info.parse_metadata(METADATA, only).requirements] == names


@pytest.mark.parametrize("text", ["", "Name: torch\n", "Version: 1\n", "Name: torch\n\nVersion: 1\n"])
def test_no_metadata(text: str) -> None:
    with pytest.raises(ParseError, match="METADATA"):
        dist_info.parse_metadata(text)


def test_what_is_installed_here_reads_the_same_as_with_importlib() -> None:
    checked = 0
    for distribution in importlib.metadata.distributions():
        text = distribution.read_text("METADATA")
        if not text:
            continue
        metadata = dist_info.parse_metadata(text)
        assert (metadata.name, metadata.version) == (distribution.metadata["Name"], distribution.version)
        wanted = [PackagingRequirement(one) for one in distribution.requires or []]
        assert [one.name for one in metadata.requirements] == [canonicalize_name(one.name) for one in wanted]
        for one, other in zip(metadata.requirements, wanted):
            assert set(one.specifier.split(",")) - {""} == {str(clause) for clause in other.specifier}
            assert set(one.extras) == {canonicalize_name(extra) for extra in other.extras}
            assert bool(one.marker) == (other.marker is not None)
        checked += 1
    assert checked > 3


def test_direct_url() -> None:
    local = {"url": "file:///home/me/torch", "dir_info": {"editable": True}}
    assert dist_info.parse_direct_url(json.dumps(local)) == ("file:///home/me/torch", "directory", True)
    wheel = {"url": "https://example.org/torch-2.0.whl", "archive_info": {}}
    assert dist_info.parse_direct_url(json.dumps(wheel)) == ("https://example.org/torch-2.0.whl", "archive", False)
    vcs = {"url": "https://example.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}
    assert dist_info.parse_direct_url(json.dumps(vcs)).kind == "vcs"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"url": 3}', "{" * 3000, "[" * 100000])
def test_no_direct_url(text: str) -> None:
    with pytest.raises(ParseError):
        dist_info.parse_direct_url(text)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
            ("torch", "2.14.1+cu126", "cp312", "cp312", "manylinux_2_28_x86_64"),
        ),
        (
            "torch-2.14.1%2Bcu126-cp313-cp313t-win_amd64.whl",
            ("torch", "2.14.1+cu126", "cp313", "cp313t", "win_amd64"),
        ),
        (
            "nvidia_cublas-13.0.0.19-py3-none-manylinux_2_27_x86_64.whl",
            ("nvidia-cublas", "13.0.0.19", "py3", "none", "manylinux_2_27_x86_64"),
        ),
        ("x-1.0-1build-py2.py3-none-any.whl", ("x", "1.0", "py2.py3", "none", "any")),
    ],
)
def test_wheel_name(file: str, expected: tuple[str, ...]) -> None:
    assert dist_info.parse_wheel_name(file) == expected


@pytest.mark.parametrize("file", ["", "torch.whl", "torch-2.0.tar.gz", "torch-2.0-py3-none.whl", "a-b-c-d-e-f-g.whl"])
def test_no_wheel_name(file: str) -> None:
    with pytest.raises(ParseError):
        dist_info.parse_wheel_name(file)


@given(
    st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,10}[A-Za-z0-9])?", fullmatch=True),
    st.lists(st.sampled_from([">=1.2", "<3", "!=2.*", "~=1.4", "==1.5+cu126"]), max_size=2, unique=True),
    st.sampled_from(["", ' ; python_version < "3.13"']),
)
def test_requirements_read_as_with_packaging(name: str, clauses: list[str], marker: str) -> None:
    text = name + " " + ", ".join(clauses) + marker
    got, wanted = dist_info.parse_requirement(text), PackagingRequirement(text)
    assert got.name == canonicalize_name(wanted.name)
    assert set(got.specifier.split(",")) - {""} == {str(clause) for clause in wanted.specifier}
    assert got.marker == (str(wanted.marker) if wanted.marker else "")
