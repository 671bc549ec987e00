"""CD112: nvidia-smi works, and CUDA reports its unknown error (999)."""

from __future__ import annotations

from cudadoctor.testing import Machine, container, fails, linux, skips, unknown_when, windows

RULE = "CD112"

REPORTED = {"symptom.cuda_unknown_error": {"text": "CUDA unknown error", "code": "999"}}
WITHOUT_UVM = {"kernel.modules": ["nvidia_drm", "nvidia_modeset", "nvidia"]}


def reported(machine: Machine) -> Machine:
    return machine.set(REPORTED)


CASES = [
    skips("nobody reported an error", linux()),
    skips("the module is not loaded before CUDA is first used, and nobody reported an error", linux().set(WITHOUT_UVM)),
    fails(
        "a laptop woke up",
        reported(linux()),
        says=["unknown error", "after a suspend"],
        certainty="likely",
        severity="error",
        blame="machine",
        fix="load-uvm",
    ),
    fails("nvidia_uvm is not loaded", reported(linux().set(WITHOUT_UVM)), says="not loaded", fix="load-uvm"),
    fails("/proc/modules is missing", reported(linux().unknown("kernel.modules")), says="suspend"),
    skips("nothing answers at all", reported(linux().not_loaded())),
    skips("a container cannot load modules", reported(container())),
    skips("Windows", reported(windows())),
    unknown_when(
        "a traceback alone",
        reported(linux().only("system.os")),
    ),
]

# It answers to what a program reported; where nothing was reported there is nothing to praise.
NEVER_PASSES = "no report is no sign of health"
