"""CD209: a cuDNN that is not the one a program was built with."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD209"


def torch(cudnn: str = "9.1.0.70") -> Machine:
    """torch of pip's with the cuDNN that it requires."""
    machine = linux().torch("2.6.0+cu124", sass=["sm_80", "sm_86", "sm_90"])
    machine = machine.set({"package.torch.requires": ["nvidia-cudnn-cu12==9.1.0.70"]})
    return machine.package("nvidia-cudnn-cu12", cudnn)


def report(name: str, text: str, **caught: str) -> Machine:
    return linux().only().set({"examination.kind": "report", f"symptom.{name}": {"text": text, **caught}})


LOADED = "Loaded runtime CuDNN library: 7.4.1 but source was compiled with: 7.6.4."
SYMBOL = {
    "text": "libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn5infer22queryClusterProperties",
    "file": "libcudnn_cnn_train.so.8",
    "symbol": "_ZN5cudnn3cnn5infer22queryClusterProperties",
}

CASES = [
    passes("one cuDNN", torch(), says="nvidia-cudnn-cu12 9.1.0.70"),
    skips("none at all", linux()),
    fails(
        "TensorFlow's words alone",
        report("cudnn_version_differs", LOADED, loaded="7.4.1", built="7.6.4."),
        says="cuDNN 7.4.1 is loaded, and the program was built with 7.6.4",
        certainty="certain",
        severity="error",
        blame="environment",
        fix="manual",
    ),
    fails(
        "torch's words, with the folder that is to blame",
        torch()
        .set({"env.LD_LIBRARY_PATH": "/usr/local/cuda-11.8/lib64"})
        .set({"symptom.cudnn_version_differs": {"text": "...", "loaded": "8, 7, 0", "built": "9, 1, 0"}}),
        says="cuDNN 8.7.0 is loaded, and the program was built with 9.1.0",
        fix=["change-variable", "reinstall-package"],
    ),
    fails(
        "a newer one of the same major is in a wheel",
        report("cudnn_version_differs", "...", loaded="9.1.0", built="9.3.0").package("nvidia-cudnn-cu12", "9.1.0.70"),
        says="cuDNN 9.1.0 is loaded",
        fix="install-libraries",
    ),
    fails("jax", report("jax_cudnn_outdated", "Outdated cuDNN installation found"), says="jax", certainty="likely"),
    fails(
        "a status without versions",
        report("cudnn_version_differs", "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"),
        certainty="likely",
        severity="error",
    ),
    fails(
        "a symbol of cuDNN's own is missing",
        torch().set({"symptom.library_symbol_missing": SYMBOL}),
        says="not of one release",
        certainty="likely",
        fix="reinstall-package",
    ),
    fails(
        "cuDNN for two CUDA majors in one environment",
        torch().package("nvidia-cudnn-cu11", "8.9.6.50"),
        says=["nvidia-cudnn-cu11 8.9.6.50 and nvidia-cudnn-cu12 9.1.0.70", "the same files"],
        severity="warning",
        certainty="likely",
        fix=["uninstall-package", "reinstall-package"],
    ),
    fails(
        "of one release for two CUDA majors",
        torch().package("nvidia-cudnn-cu13", "9.1.0.70"),
        severity="warning",
        certainty="possible",
    ),
    unknown_when(
        "it could not start, and nothing says why",
        report("cudnn_not_initialized", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
        says="for want of GPU memory",
    ),
    skips("a missing symbol of another library", report("library_symbol_missing", "...", symbol="ncclCommRegister")),
    skips(
        "cuDNN is not there at all",
        report("library_symbol_missing", "Cannot load symbol cudnnCreateTensorDescriptor", symbol="cudnnCreate").set(
            {"libraries.not_found": [{"soname": "cudnn_ops64_9.dll", "asked_by": None, "text": "Could not locate"}]}
        ),
    ),
    fails(
        "JAX tells numbers without points, and the least that it takes",
        report(
            "cudnn_version_differs", "Version JAX was built against: 8907", loaded="8907", built="8907", minimum="9100"
        ),
        says="cuDNN 8.9.7 is loaded, and jax takes 9.1.0 or newer",
        certainty="certain",
    ),
    fails(
        "the numbers of cuDNN 9",
        report("cudnn_version_differs", "but JAX was built against version 90501", loaded="90300", built="90501"),
        says="cuDNN 9.3.0 is loaded, and jax was built with 9.5.1",
    ),
]
