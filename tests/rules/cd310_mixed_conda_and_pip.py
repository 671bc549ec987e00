"""CD310: torch and its companions of two installers in one conda environment."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GONE, Machine, fails, linux, passes, report, skips, unknown_when

RULE = "CD310"

ENVIRONMENT = linux().set({"python.environment": "conda", "python.environment_name": "ml"})


def torch(installer: Any, build: Any = GONE) -> Machine:
    return ENVIRONMENT.torch("2.5.1+cu124").set(
        {"package.torch.installer": installer, "package.torch.conda_build": build}
    )


OF_CONDA = torch("conda", "py3.11_cuda12.4_cudnn9.1.0_0")
OF_PIP = torch("pip")
SYMBOL = {"symptom.library_symbol_missing": {"text": "libcublas.so.11: undefined symbol: cublasLtBIIMatmulAlgo..."}}
OF_A_WHEEL = {
    "symptom.library_symbol_missing": {
        "text": "/envs/ml/lib/python3.10/site-packages/nvidia/cublas/lib/libcublas.so.11: undefined symbol: cublasLtA"
    }
}

CASES = [
    passes("no conda environment", linux(), says="not a conda environment"),
    passes("all of conda", OF_CONDA.package("torchvision", "0.20.1", installer="conda", conda_build="py311_cu124")),
    passes("all of pip, in a conda environment", OF_PIP.package("torchvision", "0.20.1+cu124")),
    passes("pip and uv write alike", OF_PIP.package("torchvision", "0.20.1+cu124", installer="uv")),
    passes("conda's own package without an INSTALLER file", torch(GONE, "py3.11_cuda12.4_cudnn9.1.0_0")),
    passes(
        "conda's CUDA libraries beside torch of pip: nothing complains",
        OF_PIP.package("cudatoolkit", "11.3.1", installer="conda"),
    ),
    fails(
        "pip wrote over conda's torch",
        torch("pip", "py3.11_cuda12.4_cudnn9.1.0_0"),
        says="torch was installed by conda and by pip into the same environment",
        severity="warning",
        certainty="certain",
        blame="environment",
        fix="manual",
    ),
    fails("uv did", torch("uv", "py3.11_cuda12.4_cudnn9.1.0_0"), says="by conda and by uv"),
    fails(
        "torch of conda, torchvision of pip",
        OF_CONDA.package("torchvision", "0.20.1+cu124"),
        says="torch was installed by conda and torchvision by pip",
        certainty="likely",
    ),
    fails(
        "the same, where conda's package has no INSTALLER file",
        torch(GONE, "py3.11_cuda12.4_cudnn9.1.0_0").package("torchvision", "0.20.1+cu124"),
        certainty="likely",
    ),
    fails(
        "a symbol is missing, and conda's cudatoolkit lies beside torch of pip",
        OF_PIP.package("cudatoolkit", "11.3.1", installer="conda").set(SYMBOL),
        says="cudatoolkit 11.3.1",
        severity="error",
        certainty="likely",
    ),
    fails(
        "a report: the library of pip's wheel lacks a symbol, and conda's cudatoolkit lies beside it",
        report()
        .set({"python.environment": "conda", **OF_A_WHEEL})
        .set({"package.cudatoolkit.version": "11.3.1", "package.cudatoolkit.installer": "conda"}),
        says="cudatoolkit 11.3.1",
        severity="error",
        certainty="likely",
        fix="remove-conda-package",
    ),
    skips("no torch", ENVIRONMENT.no_torch()),
    unknown_when("what kind of environment it is", linux().unknown("python.environment")),
    unknown_when("nothing tells who brought torch", torch(GONE)),
]
