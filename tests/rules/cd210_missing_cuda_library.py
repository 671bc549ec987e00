"""CD210: libraries that a program did not find, and the packages that have them."""

from __future__ import annotations

from typing import Optional

from cudadoctor.testing import Machine, fails, linux, skips, windows

RULE = "CD210"

NEVER_PASSES = "without an error text there is nothing to judge: CD309 looks at torch's own libraries"
NEVER_UNDECIDED = "a text names the library, or there is no text"


def lacks(machine: Machine, *sonames: str, by: Optional[str] = None) -> Machine:
    """An error text about these libraries, on a machine of which the rest is known."""
    entries = [{"soname": name, "asked_by": by, "text": f"{name}: cannot open shared object file"} for name in sonames]
    return machine.set({"libraries.not_found": entries})


def report(*sonames: str, by: Optional[str] = None) -> Machine:
    """The error text and nothing else."""
    return lacks(linux().only().set({"examination.kind": "report"}), *sonames, by=by)


CU124 = linux().torch("2.6.0+cu124", sass=["sm_80", "sm_86", "sm_90"])
CU121 = linux().torch("2.3.1+cu121", sass=["sm_80", "sm_86", "sm_90"])

CASES = [
    skips("a healthy machine", linux()),
    skips("a report that names no library", linux().only().set({"examination.kind": "report"})),
    fails(
        "the loader's words alone",
        report("libcublas.so.12"),
        says="a program does not find libcublas.so.12 (cuBLAS 12)",
        certainty="certain",
        severity="error",
        blame="environment",
        fix="install-libraries",
    ),
    fails(
        "CUDA 10 is in no wheel",
        report("libcudart.so.10.1"),
        says="libcudart.so.10.1 (CUDA runtime 10.1)",
        fix="manual",
    ),
    fails(
        "onnxruntime brings its libraries by an extra",
        report("libcublasLt.so.12", "libcudnn_adv.so.9", by="onnxruntime-gpu"),
        says=["onnxruntime-gpu does not find libcublasLt.so.12", "cuDNN 9"],
        fix="install-libraries",
    ),
    fails("a part of cuDNN", report("libcudnn_ops_infer.so.8"), says="(cuDNN 8)"),
    fails(
        "NVRTC", report("libnvrtc.so.12", by="cupy"), says="cupy does not find libnvrtc.so.12", fix="install-libraries"
    ),
    fails("cuSPARSELt", report("libcusparseLt.so.0"), says="cuSPARSELt"),
    fails("NCCL", report("libnccl.so.2"), says="NCCL 2"),
    fails("cuFile", report("libcufile.so.0"), says="cuFile"),
    fails("TensorRT", report("libnvinfer.so.10"), says="TensorRT 10"),
    fails("CUPTI, as jax asks for it", report("libcupti", by="jax"), says="jax does not find libcupti (CUPTI)"),
    fails(
        "TensorFlow can do without TensorRT",
        report("libnvinfer.so.7", "libnvinfer_plugin.so.7", by="tensorflow"),
        says="works without it",
        severity="info",
    ),
    fails(
        "an old TensorFlow on Windows",
        lacks(windows(), "cudart64_110.dll", by="tensorflow"),
        says="tensorflow does not find cudart64_110.dll (CUDA runtime 11.0)",
    ),
    fails(
        "a program for cuDNN 9 beside a torch with cuDNN 8",
        lacks(windows().torch("2.3.1+cu121", sass=["sm_86"]), "cudnn_ops64_9.dll", by="ctranslate2"),
        says=["ctranslate2 does not find cudnn_ops64_9.dll", "torch 2.3.1+cu121 brings cuDNN 8"],
        certainty="certain",
        fix="manual",
    ),
    fails(
        "a program for cuDNN 8 beside a torch with cuDNN 9",
        lacks(CU124, "libcudnn_ops_infer.so.8", by="ctranslate2"),
        says="torch 2.6.0+cu124 brings cuDNN 9",
    ),
    fails(
        "an extension for CUDA 11 beside a torch of CUDA 12",
        lacks(CU121, "libcudart.so.11.0", by="flash-attn"),
        says="it was built for CUDA 11, and torch 2.3.1+cu121 brings CUDA 12.1",
        fix="manual",
    ),
    fails(
        "the package is there, and the loader does not look into it",
        lacks(CU124.package("nvidia-cudnn-cu12", "9.1.0.70"), "libcudnn.so.9", by="ctranslate2"),
        says="though nvidia-cudnn-cu12 is installed",
        fix="manual",
    ),
    fails(
        "TensorFlow's last line alone",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "symptom.tensorflow_libraries_missing": {"text": "Cannot dlopen some GPU libraries."},
            }
        ),
        says="tensorflow does not find the CUDA libraries",
        certainty="likely",
        fix="install-libraries",
    ),
    fails(
        "a symptom without the list",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "symptom.cuda_library_missing": {"text": "libcudnn.so.9: cannot open", "library": "libcudnn.so.9"},
            }
        ),
        says="libcudnn.so.9 (cuDNN 9)",
    ),
    skips(
        "TensorFlow of today on Windows is CD315's affair",
        windows()
        .unknown("torch.missing_libraries")
        .set({"symptom.tensorflow_libraries_missing": {"text": "Cannot dlopen"}}),
    ),
]
