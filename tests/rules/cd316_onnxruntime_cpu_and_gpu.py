"""CD316: onnxruntime's two packages, and the CUDA of the one for GPUs."""

from __future__ import annotations

from cudadoctor.testing import GONE, fails, linux, passes, skips, unknown_when

RULE = "CD316"

BOTH = linux().package("onnxruntime", "1.23.2").package("onnxruntime-gpu", "1.23.2")
ALONE = linux().package("onnxruntime-gpu", "1.23.2")
BESIDE_12 = linux().torch("2.9.1+cu128").package("onnxruntime-gpu", "1.23.2")
CPU_ONLY = {"symptom.onnxruntime_cpu_only": {"text": "['AzureExecutionProvider', 'CPUExecutionProvider']"}}
NO_CUDA = {"symptom.onnxruntime_no_cuda": {"text": "Failed to create CUDAExecutionProvider."}}
LIBRARY = {
    "symptom.onnxruntime_provider_library": {
        "text": "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open",
        "library": "libcublasLt.so.12",
    }
}

CASES = [
    passes("the one for GPUs, and torch for another minor of its CUDA", BESIDE_12, says="CUDA 12"),
    passes("the one for GPUs beside torch of another major: nobody complains", ALONE),
    passes("the one for the CPU, and nobody complains", linux().package("onnxruntime", "1.23.2"), says="meant so"),
    fails(
        "both",
        BOTH,
        says=["onnxruntime 1.23.2 and onnxruntime-gpu 1.23.2 are both installed"],
        severity="warning",
        certainty="likely",
        fix="install-framework",
    ),
    fails("both, and only the CPU's provider", BOTH.set(CPU_ONLY), severity="error", certainty="certain"),
    fails("both in a report", BOTH.set({"examination.kind": "report"}), severity="error", certainty="likely"),
    fails(
        "the one for the CPU, and the GPU's provider is missed",
        linux().package("onnxruntime", "1.23.2").set({"package.onnxruntime-gpu.version": GONE, **NO_CUDA}),
        says="is the build for the CPU",
        severity="error",
        certainty="certain",
    ),
    fails(
        "the same where a report shows one package and no whole list",
        linux().package("onnxruntime", "1.23.2").set(NO_CUDA).unknown("package.onnxruntime-gpu.version"),
        certainty="likely",
    ),
    fails(
        "for CUDA 13 on a driver of CUDA 12",
        linux().package("onnxruntime-gpu", "1.30.0").driver("550.54.15", "12.4"),
        says=["is for CUDA 13", "driver 550.54.15 is too old"],
        severity="warning",
        certainty="certain",
    ),
    fails(
        "it looks for CUDA 12, and torch brings 13",
        ALONE.set(LIBRARY),
        says=["for CUDA 12", "of CUDA 13"],
        severity="error",
        certainty="likely",
    ),
    skips("no onnxruntime", linux()),
    skips("no GPU", BOTH.no_gpu()),
    unknown_when("it complains, and nothing tells of packages", linux().set(NO_CUDA)),
    unknown_when("the one for GPUs complains, and nothing tells of libraries", BESIDE_12.set(NO_CUDA)),
    unknown_when("a build of somebody's own", linux().package("onnxruntime-gpu", "from-source")),
]
