"""CD309: the nvidia-* packages beside torch, and the libraries that it needs."""

from __future__ import annotations

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD309"

PINS = {"nvidia-cublas-cu12": "12.8.4.1", "nvidia-cudnn-cu12": "9.10.2.21", "nvidia-nccl-cu12": "2.27.5"}


def pip_torch(**installed: object) -> Machine:
    """torch 2.9.1+cu128 with the packages that it pins; `installed` changes what is there (cudnn="9.1.0.70")."""
    machine = linux().torch("2.9.1+cu128").set({"package.torch.requires": [f"{n}=={v}" for n, v in PINS.items()]})
    for name, version in PINS.items():
        machine = machine.set({f"package.{name}.version": installed.get(name.split("-")[1], version)})
    return machine


# torch for CUDA 13 names the libraries by the extras of one package, whose own pins leave the last number open.
CUDA_13 = (
    linux()
    .set({"package.torch.requires": ["cuda-toolkit[cublas]==13.0.3", "nvidia-cudnn-cu13==9.24.0.43"]})
    .package("cuda-toolkit", "13.0.3.0", requires=["nvidia-cublas==13.1.1.3.*"])
    .package("nvidia-cudnn-cu13", "9.24.0.43")
    .package("nvidia-cublas", "13.1.1.3")
)

CASES = [
    passes("as pinned", pip_torch()),
    passes("CUDA 13, through cuda-toolkit", CUDA_13),
    passes("another package took a newer build within the range", CUDA_13.package("nvidia-cublas", "13.1.1.3.5")),
    passes("a build that brings its libraries inside", linux().torch("2.6.0+cu118")),
    passes("Windows' wheels bring their libraries inside", windows()),
    passes("NVIDIA's container requires none", linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0")),
    passes("one is not there, and torch finds its libraries elsewhere", pip_torch(cublas=GONE)),
    fails(
        "another package replaced cuDNN",
        pip_torch(cudnn="9.1.0.70"),
        says="nvidia-cudnn-cu12 9.1.0.70 is installed, and torch 2.9.1+cu128 requires ==9.10.2.21",
        severity="warning",
        certainty="likely",
        blame="environment",
        fix="reinstall-package",
    ),
    fails("two of them", pip_torch(cudnn="9.1.0.70", nccl="2.21.5"), says="(and 1 more)"),
    fails(
        "outside the range of CUDA 13's",
        CUDA_13.package("nvidia-cublas", "13.4.0.1"),
        says="requires ==13.1.1.3.*",
        fix="manual",
    ),
    fails(
        "a library is nowhere, since its package is not there",
        pip_torch(cublas=GONE).set({"torch.missing_libraries": ["libcublas.so.12", "libcublasLt.so.12"]}),
        says="torch 2.9.1+cu128 cannot be imported: libcublas.so.12 is nowhere that it looks (and 1 more)",
        severity="error",
        certainty="certain",
        fix="reinstall-package",
    ),
    fails(
        "a library is nowhere, and no package is missing",
        pip_torch().set({"torch.missing_libraries": ["libcublas.so.12"]}),
        certainty="likely",
        fix="install-torch",
    ),
    fails(
        "a container's own torch lost one: an index's wheel would be another torch",
        linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0").set({"torch.missing_libraries": ["libcublas.so.13"]}),
        certainty="likely",
        fix="manual",
    ),
    fails(
        "one is not there, and torch's needs could not be read",
        pip_torch(nccl=GONE).unknown("torch.missing_libraries"),
        says="nvidia-nccl-cu12 is not installed",
        severity="error",
        certainty="likely",
        fix="reinstall-package",
    ),
    skips("a CPU build", linux().torch("2.9.1+cpu")),
    skips("no torch", linux().no_torch()),
    unknown_when(
        "neither its metadata nor its libraries could be read",
        linux().unknown("package.torch.requires", "torch.missing_libraries"),
    ),
]
