"""CD305: a GPU that the torch build has no code for any more."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD305"

CU126 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


def gtx1080ti(machine: Machine) -> Machine:
    return machine.gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", 11, device_id="1b06")


PASCAL = gtx1080ti(linux())
V100 = linux().gpu("Tesla V100-SXM2-16GB", "7.0", 16, device_id="1db1")

CASES = [
    passes("a GTX 1080 Ti runs sm_60 code", PASCAL.torch("2.14.1+cu126", sass=CU126)),
    passes("by the matrix", PASCAL.torch("2.8.0+cu126")),
    passes("a V100 on cu128 of 2.8", V100.torch("2.8.0+cu128", sass=["sm_70", *CU130])),
    fails(
        "a GTX 1080 Ti on a cu130 build",
        PASCAL.torch("2.14.1+cu130", sass=CU130),
        says=["it starts at sm_75", "the GeForce GTX 1080 Ti is sm_61"],
        severity="error",
        certainty="certain",
        fix="install-torch",
    ),
    fails("the same torch from cu126 would run: the matrix knows both", PASCAL.torch("2.8.0+cu128")),
    fails("a V100 on cu128 of 2.11", V100.torch("2.11.0+cu128", sass=CU130)),
    fails("Windows", gtx1080ti(windows()).torch("2.14.1+cu130", sass=CU130)),
    fails(
        "code on both sides of the card and none for it",
        V100.torch("2.9.0a0+abc", "12.8", sass=["sm_120", "sm_61", "sm_80"]),
        says="it has sm_61 and sm_80, nothing between, the Tesla V100-SXM2-16GB is sm_70",
    ),
    fails("a build with an empty list", PASCAL.torch("2.9.0a0+abc", "12.8", sass=[]), says="it lists none"),
    fails(
        "a display card beside an RTX 4090: a warning",
        linux().gpu("NVIDIA GeForce GT 1030", "6.1", 2, device_id="1d01", index=1),
        says="the GeForce RTX 4090 is served",
        severity="warning",
    ),
    passes("a display card that another driver holds", linux().display_card("1d01", "nouveau")),
    skips(
        "the card is newer than the build: the affair of CD304", linux().torch("2.0.1+cu117", sass=["sm_37", "sm_75"])
    ),
    skips("a CPU build", PASCAL.torch("2.14.1+cpu")),
    skips("no torch", PASCAL.no_torch()),
    unknown_when("which build it is could not be read", PASCAL.unknown("torch.version")),
    unknown_when("a torch newer than the matrix, unread", PASCAL.torch("2.16.0+cu126")),
    unknown_when(
        "sources disagree on whether this build has the card",
        windows().gpu("Tesla V100-PCIE-16GB", "7.0", 16, device_id="1db4").torch("2.9.1+cu128"),
        says="sources contradict each other",
    ),
    fails(
        "torch says so, and its version is not told",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "symptom.gpu_too_old_for_torch": {
                    "text": "Found GPU0 GeForce GTX 670M which is of cuda capability 2.1.",
                    "gpu": "GeForce GTX 670M",
                    "capability": "2.1",
                },
            }
        ),
        says="sm_21",
        certainty="likely",
    ),
    fails(
        "Triton refuses the card",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "smi.gpus": [{"index": 0, "name": "Tesla P100-SXM2-16GB", "truncated": False}],
                "symptom.gpu_too_old_for_triton": {"text": "too old for triton", "minimum": "7.0", "capability": "6.0"},
            }
        ),
        says="Triton takes GPUs from compute capability 7.0 on",
        fix="manual",
    ),
]
