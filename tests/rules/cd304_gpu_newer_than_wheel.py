"""CD304: a GPU that came after the torch build."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, jetson, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD304"

CU124 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU128 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


def rtx5090(machine: Machine) -> Machine:
    return machine.gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85")


BLACKWELL = rtx5090(linux()).driver("570.124.06", "12.8")
GB10 = linux().gpu("NVIDIA GB10", "12.1", 128, device_id="2e12")
B300 = linux().gpu("NVIDIA B300 SXM6 AC", "10.3", 270, device_id="3182")
# Code for sm_90 and PTX, by CUDA 12.8: R570 compiles that, R550 does not.
PTX = BLACKWELL.torch("2.9.1+cu128", sass=["sm_80", "sm_90"], ptx=["compute_90"])

CASES = [
    passes(
        "an RTX 4090 runs sm_86 code",
        linux().torch("2.6.0+cu124", sass=CU124),
        says="has code for NVIDIA GeForce RTX 4090",
    ),
    passes("an RTX 5090 on a cu128 build", BLACKWELL.torch("2.9.1+cu128", sass=CU128)),
    passes("GB10 runs sm_120 code, whatever the warning says", GB10.torch("2.9.1+cu130", sass=CU128)),
    passes("B300 runs sm_100 code", B300.torch("2.9.1+cu130", sass=CU128)),
    passes("libraries unread: the matrix knows the build", linux().torch("2.6.0+cu124")),
    passes("PTX that the driver compiles", PTX, says="PTX that the driver compiles: slow at first"),
    passes("NVIDIA's container", linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0", sass=CU128)),
    passes("a torch newer than the matrix, its libraries read", BLACKWELL.torch("2.16.0+cu132", sass=CU128)),
    passes(
        "a Jetson's wheel", jetson().gpu("Orin (nvgpu)", "8.7", 32).torch("2.5.0a0+8.nv24.8", "12.6", sass=["sm_87"])
    ),
    passes("sources disagree on another card's entry", windows().torch("2.9.1+cu128")),
    fails(
        "an RTX 5090 on a cu124 build",
        BLACKWELL.torch("2.6.0+cu124", sass=CU124),
        says=["torch 2.6.0+cu124 has no code for this GPU: it ends at sm_90", "the GeForce RTX 5090 is sm_120"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="install-torch",
    ),
    fails(
        "the list in the order of its letters",
        BLACKWELL.torch("2.7.0+cu126", sass=["sm_100", "sm_50", "sm_90"]),
        says="it ends at sm_100",
    ),
    fails("the matrix alone knows it", BLACKWELL.torch("2.6.0+cu118")),
    fails(
        "an H100 on a build for Ampere",
        linux()
        .gpu("NVIDIA H100 PCIe", "9.0", 80, device_id="2331")
        .torch("2.0.1+cu117", sass=["sm_37", "sm_80", "sm_86"]),
    ),
    fails(
        "code for sm_90a is for sm_90 alone",
        B300.torch("2.9.1+cu128", sass=["sm_80", "sm_90a"]),
        says="it ends at sm_90a",
    ),
    fails(
        "PTX that is newer than the driver: here a newer driver would do",
        PTX.driver("550.54.15", "12.4"),
        says="its PTX is newer than the driver can compile",
        fix="install-torch",
    ),
    fails(
        "an older card beside it is served: a warning, and no other build is forced on both",
        linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85", index=1).torch("2.6.0+cu124", sass=CU124),
        says="the GeForce RTX 4090 is served",
        severity="warning",
    ),
    passes(
        "that card is not among the visible ones",
        linux()
        .gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85", index=1)
        .torch("2.6.0+cu124", sass=CU124)
        .set({"env.CUDA_VISIBLE_DEVICES": "0,-1", "env.CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
    ),
    fails("Windows", rtx5090(windows()).torch("2.6.0+cu124", sass=CU124)),
    fails("WSL", rtx5090(wsl()).torch("2.6.0+cu124", sass=CU124)),
    skips("a card that is too old is the affair of CD305", linux().gpu("Tesla K80", "3.7", 12, device_id="102d")),
    skips("a CPU build", linux().torch("2.9.1+cpu")),
    skips("no torch", linux().no_torch()),
    skips("no GPU", linux().no_gpu().torch("2.6.0+cu124", sass=CU124)),
    unknown_when("a build of somebody's own, unread", BLACKWELL.torch("2.9.0a0+145a3a7bda.nv25.10", "13.0")),
    unknown_when("a torch newer than the matrix, unread", BLACKWELL.torch("2.16.0+cu132")),
    unknown_when(
        "conda's builds have lists of their own", BLACKWELL.torch("2.5.1", "12.4").set({"torch.origin": "conda"})
    ),
    unknown_when(
        "the list was read, and not whether there is PTX",
        BLACKWELL.torch("2.6.0+cu124", sass=CU124).unknown("torch.ptx"),
    ),
    unknown_when(
        "a card that nobody knows",
        linux().gpu("NVIDIA RTX 9999", "", device_id="ffff").unknown("gpu.0.compute_capability"),
    ),
    fails(
        "a run on a new card, and nothing tells of torch",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "smi.gpus": [{"index": 0, "name": "NVIDIA GeForce RTX 5070", "truncated": False}],
                "symptom.no_kernel_image": {"text": "no kernel image is available for execution on the device"},
            }
        ),
        says="this torch has no code for the GeForce RTX 5070 (sm_120)",
        severity="error",
        certainty="likely",
        fix="install-torch",
    ),
    passes(
        "the warning for GB10 is harmless where torch has code of its major",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "smi.gpus": [{"index": 0, "name": "NVIDIA GB10", "truncated": False, "compute_capability": "12.1"}],
                "torch.sass": ["sm_80", "sm_90", "sm_100", "sm_120"],
                "torch.ptx": [],
                "symptom.gpu_too_old_for_torch": {"text": "Found GPU0 NVIDIA GB10", "capability": "12.1"},
            }
        ),
    ),
]
