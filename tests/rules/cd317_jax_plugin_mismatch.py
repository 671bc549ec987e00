"""CD317: JAX and the plugin that brings it CUDA."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD317"


def jax(version: str, plugin: str = "", cuda: str = "12", base: Machine = linux()) -> Machine:  # noqa: B008
    machine = base.package("jax", version).package("jaxlib", version)
    if plugin:
        machine = machine.package(f"jax-cuda{cuda}-plugin", plugin).package(f"jax-cuda{cuda}-pjrt", plugin)
    return machine


MISMATCH = {
    "symptom.jax_plugin_mismatch": {
        "text": "JAX plugin jax_cuda12_plugin version 0.7.2 is installed, but it is not compatible with the installed",
        "plugin": "0.7.2",
        "jaxlib": "0.7.1",
    }
}
MISSING = {"symptom.jax_without_cuda": {"text": "a CUDA-enabled jaxlib is not installed. Falling back to cpu."}}
FAILED = {"symptom.jax_backend_failed": {"text": "Unable to initialize backend 'cuda'", "reason": "INTERNAL"}}

CASES = [
    passes("plugin and jaxlib of one version", jax("0.8.3", "0.8.3"), says="has its CUDA plugin"),
    passes("a plugin of the night before", jax("0.4.36", "0.4.36.dev20241125")),
    passes("jaxlib of the time when CUDA was in it", jax("0.4.28+cuda12.cudnn89")),
    fails(
        "jaxlib moved and the plugin stayed",
        jax("0.7.1", "0.7.2"),
        says="jax-cuda12-plugin 0.7.2 does not go with jaxlib 0.7.1",
        severity="warning",
        certainty="certain",
        fix="install-framework",
    ),
    fails("JAX says so", linux().set(MISMATCH), says="0.7.2 does not go with jaxlib 0.7.1", severity="error"),
    fails(
        "two majors side by side",
        jax("0.8.3", "0.8.3", "13", jax("0.8.3", "0.8.3", "12")),
        says="for CUDA 12 and 13",
        certainty="likely",
    ),
    fails(
        "a plugin for CUDA 13 on a driver of CUDA 12",
        jax("0.8.3", "0.8.3", "13").driver("550.54.15", "12.4"),
        says="driver 550.54.15 is too old",
        certainty="certain",
    ),
    fails("JAX misses it", jax("0.8.3").set(MISSING), severity="error", certainty="certain", fix="install-framework"),
    fails("nobody complains: advice", jax("0.8.3"), severity="info", certainty="likely"),
    fails("on Windows there is none", jax("0.8.3", base=windows()).set(MISSING), fix="use-wsl"),
    skips("no JAX", linux()),
    skips("no GPU", jax("0.8.3").no_gpu()),
    unknown_when("the packages fit, and JAX fails", jax("0.8.3", "0.8.3").set(FAILED)),
    unknown_when("a report names jax alone", jax("0.8.3").set({"examination.kind": "report"})),
]
