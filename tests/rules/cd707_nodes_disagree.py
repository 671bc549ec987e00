"""CD707: nodes of one job that differ."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when

RULE = "CD707"

MISMATCH = {"symptom.nccl_version_differs": {"text": "Mismatched NCCL version detected"}}
DRIVERS = {"nodes.differences": [{"what": "driver", "values": ["550.54.15", "535.183.01"]}]}

CASES = [
    skips("one machine", linux()),
    passes("nodes that are alike", linux().set({"nodes.differences": []})),
    fails(
        "NCCL says so",
        linux().set(MISMATCH),
        says="NCCL",
        severity="error",
        certainty="likely",
        blame="environment",
        fix="manual",
    ),
    fails("two drivers", linux().set(DRIVERS), says=["driver", "550.54.15"], severity="warning", certainty="certain"),
    unknown_when(
        "communication failed in a job",
        linux().set({"symptom.nccl_error": {"text": "NCCL error in: ..."}, "scheduler.kind": "slurm"}),
    ),
]
