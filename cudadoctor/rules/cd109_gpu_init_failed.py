"""The driver is loaded and could not bring the GPU up

What it checks
    Whether the module is loaded and a card is on the bus, and yet NVML and nvidia-smi find no device, with no better
    reason known (age, kernel module, another driver, a container or job that was given other cards). The kernel log
    names the reason: RmInitAdapter failed, firmware that is missing, a memory region (BAR) that the firmware gave
    wrongly, the card's own processor that stopped answering (Xid 119 and 120).

Why it matters
    CUDA then says that no CUDA-capable device is detected.

How to fix
    Read the kernel log lines. In the order in which they help: a cold start (power off at the switch); the power
    cables and the seat of the card; Above 4G Decoding in the firmware; the driver's own firmware files, by installing
    the driver again, or the other one of its two kernel modules, where the card works with either; another slot.

References
    https://docs.nvidia.com/deploy/xid-errors/
    https://github.com/NVIDIA/open-gpu-kernel-modules
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.driver import NO, answer
from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.left_out import UNEXPLAINED, left_out, listed
from cudadoctor.derive.surroundings import in_report, maybe_own_linux
from cudadoctor.derive.xids import worst_xid
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD109",
    name="gpu-init-failed",
    title="The driver is loaded and could not bring the GPU up",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD705", "CD107", "CD108", "CD111", "CD113"),
    precedence=19,
)

_REASONS = {
    "init-failed": "it could not be initialised (RmInitAdapter failed)",
    "firmware-missing": "its firmware file was not found",
    "bar-invalid": "it has no usable memory region (BAR)",
    "off-the-bus": "it has fallen off the bus",
    "no-power-state": "it did not wake from power saving",
}
# Timeout of, and error in, the processor on the card that runs the driver's firmware.
_GSP_XIDS = ("119", "120")


def judge(case: Case) -> Outcome:
    if not maybe_own_linux(case):
        return case.skipped("a container, a Jetson or WSL shows other cards than the machine has")
    if in_report(case):
        return _reported(case)
    loaded = case.fact("driver.module_loaded")
    says_none = case.value("driver.smi_failure") == "no-devices"
    if not loaded.value and not says_none:
        if loaded.is_unknown:
            return case.undecided("cannot tell whether the module is loaded", ("driver.module_loaded",))
        return case.skipped("no module is loaded")
    shown = case.derived(listed)
    hidden = [entry for entry in case.derived(left_out) if entry.why == UNEXPLAINED]
    no_devices = not shown and (says_none or case.value("gpu.count") == 0)
    if no_devices or (shown and hidden):
        return _failed(case, _log(case))
    stuck = [event for event in events(case, "xid") if (event.get("values") or {}).get("number") in _GSP_XIDS]
    if stuck and case.derived(answer).state == NO:
        return _failed(case, stuck)
    if not shown and case.fact("gpu.count").is_unknown and case.fact("smi.gpus").is_unknown:
        if case.derived(answer).state == NO:
            return case.skipped("the driver does not answer, so it shows no card")
        return case.undecided("neither NVML nor nvidia-smi was asked", ("gpu.count", "smi.gpus"))
    return case.passed("the driver shows every card that it could", ("gpu.count",))


_SAID = ("symptom.gpu_init_failed", "symptom.no_devices_found")


def _reported(case: Case) -> Outcome:
    """By the kernel log, by nvidia-smi's words, or by what is said of an Xid."""
    none = case.value("driver.smi_failure") == "no-devices"
    said = tuple(name for name in _SAID if case.fact(name).is_known)
    log = events(case, *(kind for kind in _REASONS if kind != "off-the-bus"))
    shown = case.derived(listed)
    xid = worst_xid(case, "gsp", "init")
    if log and not shown:
        # That a probe failed tells nothing of why; the module's own lines do.
        told = any(str(event.get("text", "")).startswith("NVRM") for event in log)
        return _failed(case, log, ("kernel.log_events", *said), CERTAIN if told else LIKELY)
    if xid is not None and xid.row is not None:
        return _by_xid(case, xid.words, (xid.fact,))
    if case.fact("symptom.gsp_timeout").is_known:
        return _by_xid(case, "the card's own processor (GSP) did not answer in time", ("symptom.gsp_timeout",))
    handle = case.value("symptom.device_handle_unknown") or {}
    if str(handle.get("reason", "")).lower().startswith("not found"):
        said = (*said, "symptom.device_handle_unknown")
    if (none or said) and not shown:
        facts = (*(("driver.smi_failure",) if none else ()), *said)
        # In a container it may only be that the device files were not passed in.
        return _failed(case, [], facts, POSSIBLE if case.fact("container.engine").is_known else LIKELY)
    if shown:
        return case.passed("the driver shows a card", shown[0].facts)
    return case.undecided("whether the driver shows a card is not told", ("smi.gpus", "kernel.log_events"))


def _by_xid(case: Case, what: str, evidence: tuple[str, ...]) -> Outcome:
    text = (
        "Power the machine off completely and on again, and update the driver: early releases of a branch had this "
        "fault. With the proprietary kernel module only, NVreg_EnableGpuFirmware=0 as an option of nvidia in "
        "/etc/modprobe.d does without that processor. If it comes back, report it with nvidia-bug-report.sh."
    )
    effect: dict[str, object] = {name: ([] if name == "kernel.log_events" else None) for name in evidence}
    return case.failed(
        f"the driver lost its hold on a GPU: {what}",
        evidence,
        certainty=LIKELY,
        fixes=(
            Remedy("update-driver", {}),
            Remedy("manual", {"title": "Start the card anew", "text": text, "kind": "driver", "effect": effect}),
        ),
        not_helping=("another torch build or toolkit: the driver itself has no use of the card",),
    )


def _log(case: Case) -> list[dict[str, Any]]:
    """The lines of the kernel log that are about the cards in question."""
    places = {entry.gpu.pci_address for entry in case.derived(left_out)}
    found = events(case, *_REASONS)
    own = [event for event in found if event.get("bus_id") is None or event.get("bus_id") in places]
    return own if places else found


def _failed(
    case: Case, log: list[dict[str, Any]], facts: tuple[str, ...] = (), certainty: Optional[str] = None
) -> Outcome:
    shown = case.derived(listed)
    hidden = case.derived(left_out)
    why = "; the kernel log would tell why"
    if log:
        gsp = "its firmware (GSP) does not answer"
        why = f": {_REASONS.get(str(log[0].get('kind')), gsp)}"
    card = hidden[0].gpu.label if hidden else shown[0].label if shown else "GPU"
    seen = "gpu.count" if case.fact("gpu.count").is_known else "driver.smi_failure"
    return case.failed(
        f"the driver does not bring the {card} up{why}",
        facts or ("driver.module_loaded", seen, "pci.gpus", "kernel.log_events"),
        certainty=certainty or (CERTAIN if log else LIKELY),
        severity=WARNING if shown and case.derived(answer).state != NO else ERROR,
        data={"log": [event.get("text") for event in log][:5]},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Bring the card up",
                    "text": _advice(case),
                    "kind": "driver",
                    "effect": _works(case),
                },
            ),
        ),
        not_helping=("another torch build or toolkit: the driver itself has no use of the card",),
    )


def _advice(case: Case) -> str:
    other = {"open": "proprietary", "proprietary": "open"}.get(case.value("driver.module_flavour", ""))
    flavour = f", or its {other} kernel module" if other else ""
    return (
        "Look at: sudo dmesg | grep -i nvrm. Then power the machine off completely and on again; check the card's "
        f"power cables and seat; enable Above 4G Decoding in the firmware; install the driver again{flavour}."
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
    effect: dict[str, object] = {
        "driver.smi_failure": None,
        "driver.nvml_unresponsive": False,
        "gpu.count": count,
        "smi.gpus": entries,
        "kernel.log_events": [],
    }
    for index, gpu in enumerate(case.derived(gpus)):
        effect[f"gpu.{index}.name"] = gpu.label
        if gpu.pci_address:
            effect[f"gpu.{index}.pci_address"] = gpu.pci_address
    return effect
