"""CD314: which torch a Jetson has."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, jetson, linux, passes, skips, unknown_when

RULE = "CD314"

NO_DRIVER = {"symptom.no_driver_found": {"text": "RuntimeError: Found no NVIDIA driver on your system."}}
ORIN = {
    "index": 0,
    "name": "Orin (nvgpu)",
    "truncated": False,
    "address": None,
    "memory_total": None,
    "memory_used": None,
    "compute_capability": None,
    "mig": None,
    "driver_model": None,
    "lost": False,
}


def report(version: str, cuda: str = "") -> Machine:
    """collect_env on an Orin: its kernel, torch, and a driver that is not shown."""
    machine = (
        jetson()
        .torch(version, cuda or None)
        .only("torch.version", "torch.cuda", "system.os", "system.arch", "system.kernel_release")
    )
    return machine.set({"examination.kind": "report", "smi.gpus": [ORIN]})


CASES = [
    skips("a workstation", linux()),
    skips("no torch", jetson()),
    passes("NVIDIA's build", jetson().torch("2.5.0a0+872d972e41.nv24.8", "12.6")),
    passes("the build of JetPack 5, in a report", report("2.0.0a0+ec3941ad.nv23.02", "11.4")),
    passes(
        "Thor takes the server builds", jetson().gpu("NVIDIA Thor", "11.0", 128).torch("2.9.1+cu130", sass=["sm_110"])
    ),
    passes("it works, whatever it is", report("2.8.0", "12.6").set({"torch.cuda_available": True})),
    fails(
        "pip install torch",
        jetson().torch("2.6.0+cpu"),
        says=["torch 2.6.0+cpu is a build without CUDA", "it finds no GPU of a Jetson"],
        certainty="certain",
        severity="error",
        blame="environment",
        fix="manual",
    ),
    fails("the same in a report", report("2.4.0"), certainty="likely", severity="error"),
    fails(
        "a wheel for servers, and the error",
        jetson().torch("2.9.1+cu126", sass=["sm_80", "sm_90"]).set(NO_DRIVER),
        says="a wheel for ARM servers",
        certainty="likely",
        severity="error",
    ),
    fails(
        "a wheel for servers, and no error", jetson().torch("2.9.1+cu126", sass=["sm_80", "sm_90"]), severity="warning"
    ),
    fails(
        "a text that tells the version alone, and that CUDA is not available",
        report("2.5.1").unknown("torch.cuda").set({"torch.cuda_available": False}),
        says="torch 2.5.1 is, of pip's default index, a build without CUDA: it finds no GPU of a Jetson",
        severity="error",
        certainty="likely",
    ),
    unknown_when("which torch is not known", jetson().unknown("torch.version")),
    fails(
        "somebody writes that it is a Jetson, and that torch finds no CUDA",
        linux()
        .only("examination.kind")
        .set(
            {
                "examination.kind": "report",
                "symptom.unified_memory_named": {"text": "my Jetson Orin Nano"},
                "symptom.cuda_said_unavailable": {"text": "torch.cuda.is_available() gives False"},
            }
        ),
        says="hardly NVIDIA's build",
        certainty="possible",
    ),
    skips(
        "a Jetson is named, and nothing is wrong with torch",
        linux()
        .only("examination.kind")
        .set({"examination.kind": "report", "symptom.unified_memory_named": {"text": "my Jetson Orin Nano"}}),
    ),
]
