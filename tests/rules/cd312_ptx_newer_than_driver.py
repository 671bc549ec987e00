"""CD312: PTX of a CUDA that the driver does not compile."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, jetson, linux, passes, skips, unknown_when

RULE = "CD312"

TEXT = "CUDA error 222: the provided PTX was compiled with an unsupported toolchain."
SAID = {"symptom.ptx_unsupported_toolchain": {"text": TEXT}}
NUMBA = {
    "symptom.ptx_unsupported_toolchain": {
        "text": "ptxas application ptx input, line 9; fatal : Unsupported .version 8.7; current version is '8.4'",
        "ptx": "8.7",
        "newest": "8.4",
    }
}
INVALID = {"symptom.kernel_image_invalid": {"text": "CUDA error: device kernel image is invalid"}}
R550 = linux().driver("550.54.14", "12.4").torch("2.9.1+cu128", sass=["sm_86", "sm_90"])


def report(driver: str = "", cuda: str = "") -> Machine:
    machine = linux().only().set({"examination.kind": "report", "system.os": "linux"})
    return machine.set({"driver.smi_version": driver, "driver.smi_cuda": cuda}) if driver else machine


CASES = [
    passes("driver and torch of one CUDA", linux(), says="compiles PTX of CUDA 13.0"),
    skips("a newer minor, and nothing that needs PTX: minor-version compatibility", R550),
    skips("no torch and no toolkit", linux().no_torch()),
    skips("a Jetson's driver has numbers of its own", jetson().torch("2.5.0a0+nv24.8", "12.6")),
    fails(
        "torch of a newer minor, and the error",
        R550.set(SAID),
        says=["driver 550.54.14 (CUDA 12.4) cannot compile PTX made by CUDA 12.8 (torch 2.9.1+cu128)", "error 222"],
        certainty="certain",
        severity="error",
        fix="update-driver",
    ),
    fails(
        "a toolkit newer than the driver",
        linux()
        .driver("460.80", "11.2")
        .torch("1.10.2+cu111", sass=["sm_80", "sm_86"])
        .set({"toolkit.nvcc_on_path_version": "11.3.109", **SAID}),
        says="made by CUDA 11.3 (the CUDA toolkit)",
        certainty="certain",
    ),
    fails(
        "a report with the driver alone",
        report("525.125.06", "12.0").set(SAID),
        says="driver 525.125.06 (CUDA 12.0) cannot compile PTX made by a newer CUDA",
        certainty="likely",
        fix="update-driver",
    ),
    fails("the words alone", report().set(SAID), certainty="likely", fix="manual"),
    fails("numba names the versions", report("550.120", "12.4").set(NUMBA), says="of version 8.7", certainty="certain"),
    fails("an image that is called invalid, with a newer toolkit", R550.set(INVALID), certainty="likely"),
    fails(
        "minutes at each start, and the cache is off",
        report().set(
            {
                "symptom.slow_start": {"text": "around 3 minutes until the window appears every time"},
                "env.CUDA_CACHE_DISABLE": "1",
            }
        ),
        says="CUDA_CACHE_DISABLE forbids",
        severity="warning",
        certainty="likely",
        fix="manual",
    ),
    skips(
        "minutes at each start, and nothing that speaks of PTX", report().set({"symptom.slow_start": {"text": "..."}})
    ),
    unknown_when("an image that is called invalid, and no more", report("550.54.14", "12.4").set(INVALID)),
]
