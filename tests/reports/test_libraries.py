"""CUDA libraries and compilers in a pasted text: what was not found, what ldd shows, which gcc there is."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.reports import read_report


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


NOT_FOUND: tuple[tuple[str, list[tuple[str, Any]]], ...] = (
    (
        "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
        [("libcudnn.so.9", None)],
    ),
    (
        '  File "/home/u/venv/lib/python3.11/site-packages/torch/__init__.py", line 367, in <module>\n'
        "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory",
        [("libnccl.so.2", "torch")],
    ),
    (
        "W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: ...\n"
        "W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcublas.so.11'; dlerror: ...",
        [("libcudart.so.11.0", "tensorflow"), ("libcublas.so.11", "tensorflow")],
    ),
    ("Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!", [("cudnn_ops64_9.dll", None)]),
    ("RuntimeError: Unable to load cuPTI. Is it installed?", [("libcupti", "jax")]),
)


@pytest.mark.parametrize(("text", "wanted"), NOT_FOUND, ids=[row[1][0][0] for row in NOT_FOUND])
def test_libraries_that_were_not_found(matrix: Matrix, text: str, wanted: list[tuple[str, Any]]) -> None:
    found = read_report([("r", text)], matrix).facts["libraries.not_found"].get()
    assert [(entry["soname"], entry["asked_by"]) for entry in found] == wanted


OTHERS = (
    "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "libcudnn_cnn_train.so.8. Error: /usr/lib/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn",
    'OSError: [WinError 1455] Error loading "C:\\torch\\lib\\cublas64_11.dll" or one of its dependencies.',
)


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_missing_cuda_library(matrix: Matrix, text: str) -> None:
    assert read_report([("r", text)], matrix).facts["libraries.not_found"].is_unknown


PATHS = (
    ("LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64:", "/usr/local/cuda-12.1/lib64"),
    ("$ echo $LD_LIBRARY_PATH\n/usr/local/cuda/lib64:/opt/x", "/usr/local/cuda/lib64:/opt/x"),
    ("export LD_LIBRARY_PATH=/usr/local/cuda/lib64:$LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),
    ("dlerror: libx.so; LD_LIBRARY_PATH: /usr/local/cuda/lib64", "/usr/local/cuda/lib64"),
)


@pytest.mark.parametrize(("text", "wanted"), PATHS)
def test_the_librarys_path(matrix: Matrix, text: str, wanted: str) -> None:
    assert read_report([("r", text)], matrix).facts["env.LD_LIBRARY_PATH"].value == wanted


def test_what_ldd_shows(matrix: Matrix) -> None:
    text = "\tlibnvJitLink.so.12 => /usr/local/cuda-12.1/lib64/libnvJitLink.so.12 (0x7f)\n\tlibm.so.6 => /lib/libm.so.6"
    assert read_report([("r", text)], matrix).facts["libraries.loaded"].value == [
        {"soname": "libnvJitLink.so.12", "path": "/usr/local/cuda-12.1/lib64/libnvJitLink.so.12"}
    ]


COMPILERS = (
    ("GCC version: (Ubuntu 13.2.0-23ubuntu4) 13.2.0", "gcc", "13.2.0"),
    ("gcc (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "gcc", "13.3.0"),
    ("nvcc 12.6, gcc (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)", "gcc", "14.2.1"),
    ("-- The CXX compiler identification is GNU 15.2.0", "gcc", "15.2.0"),
    ("Microsoft (R) C/C++ Optimizing Compiler Version 19.44.35211 for x64", "msvc", "19.44.35211"),
)


@pytest.mark.parametrize(("text", "name", "version"), COMPILERS)
def test_the_compiler(matrix: Matrix, text: str, name: str, version: str) -> None:
    fact = read_report([("r", text)], matrix).facts["toolkit.host_compiler"]
    assert (fact.get()["name"], fact.get()["version"]) == (name, version)


def test_the_file_of_the_reason_is_the_one_that_is_missing(matrix: Matrix) -> None:
    text = "Could not load library libcudnn_ops_infer.so.8. Error: libcuda.so: cannot open shared object file"
    facts = read_report([("r", text)], matrix).facts
    assert not facts["libraries.not_found"].is_known
    assert not facts["symptom.cuda_library_missing"].is_known
    assert facts["symptom.libcuda_missing"].is_known
