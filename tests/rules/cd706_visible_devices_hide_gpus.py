"""CD706: CUDA_VISIBLE_DEVICES leaves nothing, or less than was meant."""

from __future__ import annotations

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD706"

TWO = linux().gpu("NVIDIA GeForce RTX 4090", "8.9", 24, index=1)

REPORT = linux().only().set({"examination.kind": "report"})


def visible(value: str, machine: Machine = TWO) -> Machine:
    return machine.set({"env.CUDA_VISIBLE_DEVICES": value})


CASES = [
    skips(
        "Slurm's word for a job without GPUs, in a report",
        REPORT.set({"env.CUDA_VISIBLE_DEVICES": "NoDevFiles"}),
    ),
    passes("it is not set", linux()),
    passes("both, in the other order", visible("1,0"), says="shows 2"),
    passes("with blanks", visible(" 0 , 1 ")),
    passes("a UUID, which a report does not show", visible("GPU-*")),
    passes("two UUIDs look alike in a report", visible("GPU-*,GPU-*"), says="shows 2"),
    passes("a slice of a card (MIG)", visible("MIG-*")),
    passes("the first one, of a number that is not known", visible("0", linux().unknown("gpu.count", "smi.gpus"))),
    passes("nvidia-smi knows the number", visible("0,1", TWO.unknown("gpu.count")), says="shows 2"),
    fails(
        "set and empty",
        visible(""),
        says="set and empty, which hides every GPU",
        certainty="certain",
        severity="error",
        blame="environment",
        fix="unset-variable",
    ),
    fails("-1 hides all", visible("-1"), says="CUDA_VISIBLE_DEVICES=-1 hides every GPU", severity="error"),
    fails("a script that was written for eight", visible("7", linux()), says="there is only GPU 0", severity="error"),
    fails("the third of two", visible("2"), says="GPUs 0 to 1"),
    fails("a word", visible("all"), says="hides every GPU"),
    fails("one named twice", visible("0,0"), says="twice"),
    fails("Slurm's word outside of a job", visible("NoDevFiles"), says="hides every GPU"),
    fails("digits that are none for CUDA", visible("\u00b2"), says="hides every GPU"),
    fails("a number of many digits", visible("9" * 5000), says="hides every GPU"),
    fails(
        "an entry that does not exist hides itself and the rest",
        visible("1,4,0"),
        says=["no GPU '4'", "shows 1 only"],
        severity="warning",
        fix="unset-variable",
    ),
    fails("-1 in the middle is a way to cut the list", visible("0,-1,1"), severity="warning"),
    fails("Windows", visible("3", windows()), severity="error"),
    skips("the driver lists none, so the variable hides none", visible("0", linux().no_devices())),
    skips("no driver that could count", visible("3", linux().no_driver())),
    skips("the card is there and its driver fails", visible("1", linux().driver_fails(18, "mismatch", 18))),
    unknown_when("it could not be read", linux().unknown("env.CUDA_VISIBLE_DEVICES")),
    unknown_when(
        "nobody could count",
        visible("3", linux()).unknown(
            "gpu.count",
            "smi.gpus",
            "driver.nvml_version",
            "driver.smi_version",
            "driver.nvml_error",
            "driver.smi_failure",
        ),
    ),
    passes("set by a job of one card", linux().job(gpus=1).set({"env.CUDA_VISIBLE_DEVICES": "0"})),
    passes(
        "an unset variable on a machine without a driver", linux().no_driver().set({"env.CUDA_VISIBLE_DEVICES": GONE})
    ),
    fails(
        "a number in the script, and no GPU is available",
        visible("7", REPORT).set({"symptom.no_cuda_gpus": {"text": "No CUDA GPUs are available"}}),
        says="there is probably no GPU 7",
        severity="error",
        certainty="likely",
        fix="unset-variable",
    ),
    unknown_when(
        "no GPU is available, and the variable is not told",
        REPORT.set({"symptom.no_cuda_gpus": {"text": "No CUDA GPUs are available"}}),
    ),
    fails(
        "the program's own number",
        REPORT.set({"symptom.invalid_device_ordinal": {"text": "CUDA error: invalid device ordinal"}}),
        says="does not see",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "one visible card is counted from 0",
        visible("1").set({"symptom.invalid_device_ordinal": {"text": "invalid device ordinal"}}),
        says="counted from 0",
        certainty="likely",
    ),
    fails(
        "two processes on one card",
        REPORT.set({"symptom.nccl_duplicate_gpu": {"text": "Duplicate GPU detected", "rank": "1", "other": "0"}}),
        says="ranks 1 and 0",
        certainty="certain",
    ),
    fails(
        "a file from another card",
        REPORT.set({"symptom.checkpoint_needs_cuda": {"text": "...", "asked": "3", "count": "1"}}),
        says="saved from GPU 3",
        certainty="certain",
    ),
    unknown_when(
        "CUDA's own start fails with these words: nobody asked for a number",
        REPORT.set(
            {"symptom.invalid_device_ordinal": {"text": "error from cudaGetDeviceCount(). Error 101: invalid device"}}
        ),
    ),
]
