"""Names of the files in conda-meta."""

from __future__ import annotations

import pytest

from cudadoctor.parse.conda_meta import parse_conda_meta_name


@pytest.mark.parametrize(
    ("file", "name", "version", "cuda"),
    [
        ("pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.json", "pytorch", "2.5.1", "12.4"),
        ("pytorch-2.6.0-cuda126_py312h30b5a27_301.json", "pytorch", "2.6.0", "12.6"),
        ("pytorch-2.6.0-cuda129_mkl_py312_1.json", "pytorch", "2.6.0", "12.9"),
        ("pytorch-1.9.0-py3.8_cuda10.2_cudnn7.6.5_0.json", "pytorch", "1.9.0", "10.2"),
        ("pytorch-1.13.1-py3.10_cuda11.7_cudnn8.5.0_0.json", "pytorch", "1.13.1", "11.7"),
        ("pytorch-1.13.1-cuda112py310he33e0d6_200.json", "pytorch", "1.13.1", "11.2"),
        ("pytorch-2.6.0-cpu_mkl_py312_h1_101.json", "pytorch", "2.6.0", "cpu"),
        ("pytorch-2.5.1-py3.12_cpu_0.json", "pytorch", "2.5.1", "cpu"),
        ("pytorch-mutex-1.0-cuda.json", "pytorch-mutex", "1.0", "cuda"),
        ("pytorch-mutex-1.0-cpu.json", "pytorch-mutex", "1.0", "cpu"),
        ("pytorch-gpu-2.6.0-cuda126_py312_301.json", "pytorch-gpu", "2.6.0", "12.6"),
        ("numpy-1.26.4-py312h2809609_0.json", "numpy", "1.26.4", None),
        ("cuda-version-12.4-h3060b56_3.json", "cuda-version", "12.4", None),
        ("libtorch-2.6.0-cuda126_hebb32c0_301.json", "libtorch", "2.6.0", "12.6"),
    ],
)
def test_file(file: str, name: str, version: str, cuda: str | None) -> None:
    got = parse_conda_meta_name(file)
    assert got is not None
    assert (got.name, got.version, got.cuda) == (name, version, cuda)


@pytest.mark.parametrize("file", ["history", "", ".json", "a.json", "a-b.json", "a--b.json", "state"])
def test_other_files(file: str) -> None:
    assert parse_conda_meta_name(file) is None
