"""CD709: guest and host of a virtual GPU."""

from __future__ import annotations

from typing import Optional

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD709"

REPORT = linux().only()
PLUGIN = {"symptom.vgpu_plugin_failed": {"text": "vGPU: Failed to initialize"}}


def drivers(host: Optional[str] = None, guest: Optional[str] = None, machine: Machine = REPORT) -> Machine:
    if host:
        machine = machine.set({"symptom.vgpu_host_driver": {"text": f"{host}-vgpu-kvm", "host": host}})
    if guest:
        machine = machine.set({"symptom.vgpu_guest_driver": {"text": f"guest {guest}", "guest": guest}})
    return machine


def profile(name: str) -> Machine:
    return REPORT.set({"smi.gpus": [{"index": 0, "name": name, "truncated": False, "memory_total": None}]})


BROKEN = {"symptom.operation_not_supported": {"text": "Error 801: operation not supported"}}

CASES = [
    passes("one branch", drivers("510.47.03", "510.85.02"), says="one branch"),
    passes("a Windows guest's own numbers", drivers("470.63", "472.12")),
    passes("a vGPU that works", profile("GRID A100-10C"), says="virtual GPU"),
    fails(
        "the manager says so",
        drivers("510.47.03", "470.63.01").set(
            {"symptom.vgpu_versions_differ": {"text": "Incompatible Guest/Host drivers", "reason": "older"}}
        ),
        says="guest 470.63.01, host 510.47.03",
        severity="error",
        certainty="certain",
        blame="machine",
        fix="manual",
    ),
    fails("a guest that is newer", drivers("470.63", "510.85.02"), says="newer branch", certainty="likely"),
    fails("an older one, perhaps served", drivers("510.47.03", "470.63.01"), says="older branch", certainty="possible"),
    fails("an older one that does not start", drivers("510.47.03", "470").set(PLUGIN), certainty="likely"),
    fails("a profile without CUDA", profile("NVIDIA A16-2B").set(BROKEN), says="without CUDA", certainty="likely"),
    fails("a profile with CUDA", profile("GRID V100D-8Q").set(BROKEN), certainty="possible"),
    fails("it does not start, and no more is told", REPORT.set(PLUGIN), certainty="possible"),
    skips("a card of its own", linux()),
    unknown_when("the guest is not told", drivers("510.47.03")),
    unknown_when("a branch that nobody knows", drivers("999.1", "998.1")),
    fails(
        "a call that a virtual GPU does not know, and vGPU is named",
        REPORT.set({**BROKEN, "symptom.vgpu_named": {"text": "a vGPU profile"}}),
        says="unified memory is off",
        certainty="possible",
        fix="manual",
    ),
]
