"""CD112: nvidia-smi works, and CUDA reports its unknown error (999)."""

from __future__ import annotations

from cudadoctor.testing import Machine, container, fails, linux, report, skips, unknown_when, windows

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
    fails(
        "a report: it woke from sleep",
        report().says("cuda_unknown_error", "CUDA unknown error").says("machine_slept", "after suspend"),
        certainty="likely",
        fix="load-uvm",
    ),
    fails(
        "a report: the driver answers, and nothing speaks of a suspend",
        report().says("cuda_unknown_error", "CUDA unknown error").set({"driver.smi_version": "535.104.05"}),
        certainty="possible",
    ),
    fails(
        "a report: the option that helps is named",
        report().says("uvm_broken", "options nvidia_uvm uvm_disable_hmm=1").says("no_cuda_device", "no CUDA devices"),
        says="HMM",
        fix="disable-uvm-hmm",
    ),
    fails(
        "a report: error 3, and the proprietary module works",
        report()
        .says("cuda_init_failed", "cuInit(0) failed: CUDA_ERROR_NOT_INITIALIZED")
        .says("other_module_works", "the proprietary driver works"),
        says="HMM",
        certainty="likely",
        fix="disable-uvm-hmm",
    ),
    fails(
        "a report: error 3 beside the open module",
        report().says("cuda_init_failed", "library init failure: 3", code="3").set({"driver.module_flavour": "open"}),
        certainty="possible",
        fix="disable-uvm-hmm",
    ),
    skips(
        "a report: error 3 in a process that may have been forked, and nothing of the module",
        report("linux").says("cuda_init_failed", "CUDA error: initialization error"),
    ),
    skips("a report from Windows", report("windows").says("cuda_unknown_error", "CUDA unknown error")),
    fails(
        "a report from a container whose host slept",
        report()
        .says("cuda_unknown_error", "CUDA unknown error")
        .says("machine_slept", "after suspend")
        .set({"system.container": "docker"}),
        fix="load-uvm",
    ),
]

# It answers to what a program reported; where nothing was reported there is nothing to praise.
NEVER_PASSES = "no report is no sign of health"
