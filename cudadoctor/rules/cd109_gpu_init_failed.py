"""The driver is loaded and could not bring the GPU up

What it checks
    Whether the module is loaded and a card is on the bus, and yet NVML and nvidia-smi find no device. The kernel log
    names the reason: RmInitAdapter failed, firmware that is missing, a memory region (BAR) that the firmware gave
    wrongly.

Why it matters
    CUDA then says that no CUDA-capable device is detected.

How to fix
    Read the kernel log lines. In the order in which they help: a cold start (power off at the switch); the power
    cables and the seat of the card; Above 4G Decoding in the firmware; the driver's own firmware files, by installing
    the driver again; another slot.

References
    https://docs.nvidia.com/deploy/xid-errors/
    https://github.com/NVIDIA/open-gpu-kernel-modules
"""

from __future__ import annotations

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import on_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD109",
    name="gpu-init-failed",
    title="The driver is loaded and could not bring the GPU up",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD705", "CD107", "CD108", "CD111"),
    precedence=19,
)

_REASONS = {
    "init-failed": "the driver could not initialise it (RmInitAdapter failed)",
    "firmware-missing": "the driver did not find its firmware file",
    "bar-invalid": "the system's firmware gave it no usable memory region (BAR)",
    "off-the-bus": "it has fallen off the bus",
    "no-power-state": "it did not come out of its power-saving state",
}


def judge(case: Case) -> Outcome:
    if not on_own_linux(case):
        return case.skipped("a container, a job or WSL may be given fewer cards than there are")
    if not case.value("driver.module_loaded", False):
        if case.fact("driver.module_loaded").is_unknown and case.value("driver.smi_failure") != "no-devices":
            return case.undecided("cannot tell whether the module is loaded", ("driver.module_loaded",))
        if case.value("driver.smi_failure") != "no-devices":
            return case.skipped("no module is loaded")
    found = case.derived(gpus)
    shown = [gpu for gpu in found if gpu.index is not None]
    hidden = [gpu for gpu in found if gpu.index is None and gpu.bound_driver in (None, "nvidia")]
    no_devices = case.value("driver.smi_failure") == "no-devices" or case.value("gpu.count") == 0
    if not no_devices and not (shown and hidden):
        if not shown and case.fact("gpu.count").is_unknown and case.fact("smi.gpus").is_unknown:
            return case.undecided("neither NVML nor nvidia-smi was asked", ("gpu.count", "smi.gpus"))
        return case.passed("the driver shows every card that it holds", ("gpu.count",))
    if case.value("scheduler.in_job", False) and not no_devices:
        return case.skipped("a job may be given fewer cards than there are")
    reasons = events(case, *_REASONS)
    why = _REASONS[reasons[0]["kind"]] if reasons else "the kernel log would tell why"
    card = hidden[0].label if hidden else "GPU"
    evidence = ["driver.module_loaded", "gpu.count" if case.fact("gpu.count").is_known else "driver.smi_failure"]
    return case.failed(
        f"the driver is loaded and does not bring the {card} up: {why}",
        (*evidence, "pci.gpus", "kernel.log_events"),
        certainty=CERTAIN if reasons else LIKELY,
        severity=WARNING if shown else None,
        data={"log": [event.get("text") for event in reasons][:5]},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Bring the card up",
                    "text": "Look at: sudo dmesg | grep -i nvrm. Then power the machine off completely and on again; "
                    "check the card's power cables and seat; enable Above 4G Decoding in the firmware; install the "
                    "driver again.",
                    "kind": "driver",
                    "effect": _works(case),
                },
            ),
        ),
        not_helping=("another torch build or toolkit: the driver itself sees no device",),
    )


def _works(case: Case) -> dict[str, object]:
    count = len(case.derived(gpus)) or 1
    entries = [
        {
            "index": index,
            "name": gpu.label,
            "truncated": False,
            "address": gpu.pci_address,
            "memory_total": None,
            "memory_used": None,
            "compute_capability": gpu.compute_capability.value,
            "mig": None,
            "driver_model": None,
            "lost": False,
        }
        for index, gpu in enumerate(case.derived(gpus))
    ]
    effect: dict[str, object] = {"driver.smi_failure": None, "gpu.count": count, "smi.gpus": entries}
    for index, gpu in enumerate(case.derived(gpus)):
        effect[f"gpu.{index}.name"] = gpu.label
        if gpu.pci_address:
            effect[f"gpu.{index}.pci_address"] = gpu.pci_address
    return effect
