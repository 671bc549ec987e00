"""CD710: GPUs that cannot transfer directly to each other."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD710"

REPORT = linux().only()
WAITS = {"symptom.gpus_wait_for_each_other": {"text": "ncclAllReduce deadlocks"}}
TIMEOUT = {"symptom.nccl_timeout": {"text": "Watchdog caught collective operation timeout", "operation": "ALLREDUCE"}}
ACS = {"symptom.acs_enabled": {"text": "ACSCtl: SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+"}}


def cards(name: str, count: int, machine: Machine = REPORT) -> Machine:
    entries = [{"index": n, "name": name, "truncated": False, "memory_total": None} for n in range(count)]
    return machine.set({"smi.gpus": entries})


CASES = [
    passes("ACS is on and nobody waits", REPORT.set(ACS)),
    fails(
        "a hang with ACS on",
        cards("NVIDIA RTX 5880 Ada Generation", 2).set(WAITS).set(ACS),
        says="access control (ACS)",
        severity="error",
        certainty="likely",
        blame="machine",
        fix=["change-variable", "manual"],
    ),
    fails(
        "a hang with faults of the IOMMU",
        REPORT.set(TIMEOUT).set({"symptom.iommu_fault": {"text": "AMD-Vi: Event logged [IO_PAGE_FAULT"}}),
        says="IOMMU",
        certainty="likely",
    ),
    fails("four GeForce cards", cards("NVIDIA GeForce RTX 4090", 4).set(WAITS), says="RTX 4090", certainty="likely"),
    fails(
        "somebody found the cure",
        cards("NVIDIA A40", 2).set(WAITS).set({"symptom.p2p_disable_named": {"text": "NCCL_P2P_DISABLE=1"}}),
        certainty="likely",
        fix="change-variable",
    ),
    unknown_when("a time limit alone", REPORT.set(TIMEOUT)),
    fails(
        "accelerate refuses",
        REPORT.set({"symptom.p2p_not_on_this_card": {"text": "RTX 4000 series doesn't support"}}),
        certainty="certain",
    ),
    fails(
        "CUDA refuses",
        REPORT.set({"symptom.peer_access_unsupported": {"text": "peer access is not supported"}}),
        certainty="likely",
    ),
    skips("nobody waits", linux()),
    unknown_when("NCCL failed for another reason", REPORT.set({"symptom.nccl_error": {"text": "NCCL error in"}})),
    skips("ROCm has its own ways", REPORT.set({**WAITS, "symptom.rocm_named": {"text": "ROCm version : 6.4"}})),
]
