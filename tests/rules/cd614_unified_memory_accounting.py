"""CD614: machines on which GPU and processor share one memory."""

from __future__ import annotations

from cudadoctor.testing import fails, jetson, linux, passes, skips, unknown_when, windows

RULE = "CD614"

SPARK = linux().set({"system.arch": "aarch64"}).gpu("NVIDIA GB10", "12.1", 119)
HOPPER = linux().set({"system.arch": "aarch64"}).gpu("NVIDIA GH200 480GB", "9.0", 96)
SHARE = {"symptom.engine_memory_share": {"text": "...", "free": "80.1", "total": "119.7", "share": "0.9"}}
OOM = {"symptom.cuda_out_of_memory": {"text": "CUDA out of memory."}}

CASES = [
    passes("DGX Spark", SPARK, says="GB10 shares one memory"),
    passes("Grace Hopper", HOPPER),
    passes("a Jetson", jetson(), says="Jetson"),
    fails(
        "an engine finds less free than it wants",
        SPARK.set(SHARE),
        says="page cache",
        severity="error",
        certainty="likely",
        blame="machine",
        fix="manual",
    ),
    fails("out of memory on a Jetson", jetson().set(OOM), severity="warning", certainty="certain"),
    fails(
        "the Jetson's driver found no memory, and nothing else names the board",
        linux().only().set({"symptom.jetson_memory_refused": {"text": "NvMapMemAllocInternalTagged: 1 error 12"}}),
        says=["a Jetson", "no piece large enough"],
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    skips("a card with memory of its own", linux().set(OOM)),
    skips("Windows", windows().set(SHARE)),
    unknown_when(
        "a name that nvidia-smi has cut",
        linux().only("system.os").set({"smi.gpus": [{"index": 0, "name": "NVIDIA GB", "truncated": True}]}),
    ),
    fails(
        "the machine is named in words only",
        linux().only().set({**SHARE, "symptom.unified_memory_named": {"text": "a DGX Spark"}}),
        says="this machine shares one memory",
        severity="error",
        certainty="likely",
    ),
    skips(
        "it is named beside a card with memory of its own",
        linux().set({**OOM, "symptom.unified_memory_named": {"text": "unlike a DGX Spark"}}),
    ),
]
