"""CD206: libraries in LD_LIBRARY_PATH that stand in front of torch's own."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD206"

WHEELS = {
    "nvidia-cublas-cu12": "12.8.4.1",
    "nvidia-cudnn-cu12": "9.10.2.21",
    "nvidia-cuda-runtime-cu12": "12.8.90",
    "nvidia-cuda-cupti-cu12": "12.8.90",
    "nvidia-nvjitlink-cu12": "12.8.93",
    "nvidia-nvtx-cu12": "12.8.90",
    "nvidia-nccl-cu12": "2.27.5",
}


def pip_torch(version: str = "2.9.1+cu128", wheels: dict[str, str] = WHEELS) -> Machine:
    """torch of pip's, which takes its CUDA libraries from wheels of their own."""
    machine = linux().torch(version, sass=["sm_86", "sm_120"])
    machine = machine.set({"package.torch.requires": [f"{name}=={number}" for name, number in wheels.items()]})
    return machine.set({f"package.{name}.version": number for name, number in wheels.items()})


def on_path(machine: Machine, folder: str, libraries: dict[str, Optional[str]]) -> Machine:
    entries: list[dict[str, Any]] = [
        {"directory": folder, "soname": name, "file": f"{name}.x", "version": version}
        for name, version in libraries.items()
    ]
    return machine.set(
        {
            "env.LD_LIBRARY_PATH": ":".join([*machine.facts.value("libraries.search_path"), folder]),
            "libraries.search_path": [*machine.facts.value("libraries.search_path"), folder],
            "libraries.on_search_path": [*machine.facts.value("libraries.on_search_path"), *entries],
        }
    )


def toolkit(machine: Machine, release: str, libraries: dict[str, Optional[str]]) -> Machine:
    return on_path(machine, f"/usr/local/cuda-{release}/lib64", libraries)


SYMBOL = {"symptom.library_symbol_missing": {"text": "undefined symbol: __nvJitLinkAddData_12_1, libnvJitLink.so.12"}}
CUDA_12_1: dict[str, Optional[str]] = {"libcublas.so.12": "12.1.3.1", "libnvJitLink.so.12": "12.1.105"}
# The toolkit of the wheel's own CUDA: NVTX and CUPTI count their files in ways of their own.
CUDA_12_8: dict[str, Optional[str]] = {
    "libcublas.so.12": "12.8.4.1",
    "libcudart.so.12": "12.8.90",
    "libnvJitLink.so.12": "12.8.93",
    "libnvToolsExt.so.1": "1.0.0",
    "libcupti.so.12": "2025.1.1",
}
NGC = linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0", sass=["sm_80", "sm_90"]).package("nvidia-cublas", "13.1.0.3")

NVJITLINK = {
    "symptom.library_symbol_missing": {
        "text": "libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12",
        "file": "libcusparse.so.12",
        "symbol": "__nvJitLinkAddData_12_1",
    }
}
CUDNN = {"symptom.library_symbol_missing": {"text": "undefined symbol: cudnnGetVersion", "symbol": "cudnnGetVersion"}}
CRASH = {"symptom.segmentation_fault": {"text": "Segmentation fault (core dumped)"}}


def report(symptom: dict[str, dict[str, str]], path: Optional[str] = None, torch: bool = False) -> Machine:
    """A pasted text, which may show LD_LIBRARY_PATH."""
    machine = linux().only("torch.version", "torch.cuda", "torch.hip") if torch else linux().only()
    machine = machine.set({"examination.kind": "report", **symptom})
    return machine.set({"env.LD_LIBRARY_PATH": path}) if path else machine


JAX_OLDER = {
    "symptom.jax_library_older": {
        "text": "Found cuBLAS version 120205, but JAX was built against version 120304",
        "library": "cuBLAS",
        "loaded": "120205",
        "built": "120304",
    }
}

CASES = [
    passes("LD_LIBRARY_PATH is not set", pip_torch()),
    passes("the toolkit of the same CUDA", toolkit(pip_torch(), "12.8", CUDA_12_8), says="nothing in the way"),
    passes("a newer toolkit", toolkit(pip_torch(), "12.9", {"libcublas.so.12": "12.9.1.4"})),
    passes("only the driver's folder", on_path(pip_torch(), "/usr/local/nvidia/lib64", {"libcuda.so.1": "580.95.05"})),
    passes(
        "a toolkit of another major has other file names",
        toolkit(pip_torch(), "11.8", {"libcublas.so.11": "11.11.3.6"}),
    ),
    passes(
        "a build with its libraries inside (no nvidia-* wheels)",
        toolkit(linux().torch("2.6.0+cu118", sass=["sm_86"]), "11.3", {"libcublas.so.11": "11.5.1.109"}),
    ),
    passes(
        "NVIDIA's container: its torch is made for the system's libraries, whatever wheels another package brought",
        toolkit(NGC, "13.0", {"libcublas.so.13": "13.0.2.14"}),
    ),
    fails(
        "the old toolkit of an installation guide",
        toolkit(pip_torch(), "12.1", CUDA_12_1),
        says="LD_LIBRARY_PATH puts libcublas.so.12 12.1.3.1 of /usr/local/cuda-12.1/lib64 before torch's 12.8.4.1",
        severity="warning",
        certainty="likely",
        blame="environment",
        fix="change-variable",
    ),
    fails(
        "the error of an old nvJitLink was reported",
        toolkit(pip_torch(), "12.1", CUDA_12_1).set(SYMBOL),
        severity="error",
        certainty="certain",
        fix="change-variable",
    ),
    fails(
        "a newer one, and an error about a symbol",
        on_path(pip_torch(), "/opt/nccl/lib", {"libnccl.so.2": "2.30.7"}).set(SYMBOL),
        severity="error",
        certainty="likely",
    ),
    fails(
        "CUDA 13: the requirement stands behind cuda-toolkit's extras",
        toolkit(
            linux()
            .set({"package.torch.requires": ["cuda-toolkit[cublas]==13.0.3"]})
            .package("cuda-toolkit", "13.0.3.0", requires=["nvidia-cublas==13.1.1.3.*"])
            .package("nvidia-cublas", "13.1.1.3"),
            "13.0",
            {"libcublas.so.13": "13.0.0.19"},
        ),
        certainty="likely",
    ),
    fails(
        "a cuDNN whose version the file does not tell",
        on_path(pip_torch(), "/opt/cudnn/lib", {"libcudnn.so.9": None}),
        says="version unknown",
        certainty="possible",
        severity="warning",
    ),
    fails(
        "two folders, both to be taken out",
        on_path(toolkit(pip_torch(), "12.1", CUDA_12_1), "/opt/cudnn-9.1/lib", {"libcudnn.so.9": "9.1.0"}),
        says="and 1 more",
    ),
    skips("Windows", windows()),
    skips("a CPU build", toolkit(linux().torch("2.14.1+cpu"), "12.1", CUDA_12_1)),
    unknown_when("a folder in it could not be read", pip_torch().unknown("libraries.on_search_path")),
    fails(
        "a text with the folder",
        report(NVJITLINK, "/usr/local/cuda-12.1/lib64"),
        says=["LD_LIBRARY_PATH puts the CUDA libraries of /usr/local/cuda-12.1/lib64", "libnvJitLink does not fit"],
        severity="error",
        certainty="likely",
        fix="change-variable",
    ),
    fails(
        "a text that shows what ldd found",
        report(NVJITLINK, "/usr/local/cuda-12.1/lib64").set(
            {
                "libraries.loaded": [
                    {"soname": "libnvJitLink.so.12", "path": "/usr/local/cuda-12.1/lib64/libnvJitLink.so.12"}
                ]
            }
        ),
        says="libnvJitLink.so.12 is taken from /usr/local/cuda-12.1/lib64",
        certainty="certain",
        fix="change-variable",
    ),
    fails("the words alone", report(NVJITLINK), says="libnvJitLink", certainty="likely", fix="unset-variable"),
    unknown_when(
        "the words, with conda's CUDA beside", report(NVJITLINK).set({"package.cudatoolkit.version": "11.3.1"})
    ),
    fails(
        "a crash without a word, and a folder of CUDA's",
        report(CRASH, "/usr/local/cuda/lib64", torch=True),
        says="a program crashed",
        severity="error",
        certainty="likely",
        fix="change-variable",
    ),
    skips("a crash, and nothing about LD_LIBRARY_PATH", report(CRASH, torch=True)),
    skips("a folder of CUDA's and no error", report({}, "/usr/local/cuda/lib64", torch=True)),
    skips("LD_LIBRARY_PATH is known and names none", report(NVJITLINK, "/opt/mylib")),
    unknown_when("a symbol of cuDNN's is CD209's affair", report(CUDNN)),
    fails(
        "JAX found an older library than the one that is installed",
        report(JAX_OLDER).set({"package.nvidia-cublas-cu12.version": "12.4.2.65"}),
        says="another release of libcublas is found before",
        certainty="likely",
        fix="unset-variable",
    ),
    fails("JAX found an older library, and no list of packages", report(JAX_OLDER), certainty="possible"),
    unknown_when(
        "JAX found an older cuDNN, which is CD209's affair",
        report({"symptom.cudnn_version_differs": {"text": "JAX was built against: 8907", "loaded": "8600"}}),
    ),
]
