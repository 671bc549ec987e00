"""A GPU has fallen off the bus

What it checks
    Whether NVML or nvidia-smi say that a GPU is lost, or the kernel log says that one has fallen off the bus; and
    whether NVML counts a GPU that answers every question with Unknown Error.

Why it matters
    The card no longer answers, and programs that use it end in errors. The other cards of the machine go on working as
    long as nothing asks for all of them.

How to fix
    End what uses the GPUs and power the machine off and on again. If it comes back: the power cables, the seat or
    riser of the card, its temperature, and the slot; in a server, report it to whoever runs the hardware.

References
    https://docs.nvidia.com/deploy/xid-errors/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import NO, answer
from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_report, on_jetson
from cudadoctor.derive.xids import worst_xid
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD113",
    name="gpu-lost",
    title="A GPU has fallen off the bus",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD713",),
    precedence=5,
)

_NVML_LOST = 15  # NVML_ERROR_GPU_IS_LOST

_UNKNOWN_ERROR = "NVML: Unknown Error"
# A card that works tells these to every user, in a container and as a vGPU too.
_TOLD_BY_EVERY_CARD = ("name", "compute_capability", "pci_address")


def judge(case: Case) -> Outcome:
    found = case.derived(gpus)
    for gpu in found:
        if gpu.lost:
            which = f"GPU {gpu.index}" if gpu.index is not None else gpu.label
            fact = f"gpu.{gpu.index}.lost" if case.fact(f"gpu.{gpu.index}.lost").is_known else "smi.gpus"
            effect: dict[str, object] = {fact: False}
            if fact == "smi.gpus":
                effect = {fact: [dict(entry, lost=False) for entry in case.value("smi.gpus", [])]}
            return _failed(case, f"{which} has fallen off the bus: the driver says that it is lost", (fact,), effect)
    for number in gpu_numbers(case.facts):
        silent = tuple(f"gpu.{number}.{part}" for part in _TOLD_BY_EVERY_CARD)
        if all(case.fact(name).is_unknown and _UNKNOWN_ERROR in case.fact(name).reason for name in silent):
            return _failed(
                case,
                f"GPU {number} answers nothing but Unknown Error: it fell off the bus, or its driver lost it",
                silent[:1],
                {silent[0]: "NVIDIA GPU"},
                LIKELY,
            )
    said = {
        name: None
        for name, hit in (
            ("driver.nvml_error", case.value("driver.nvml_error") == _NVML_LOST),
            ("driver.smi_failure", case.value("driver.smi_failure") == "gpu-lost"),
        )
        if hit
    }
    if said:
        return _failed(case, "a GPU has fallen off the bus: the driver says that it is lost", tuple(said), dict(said))
    if in_report(case):
        outcome = _reported(case)
        if outcome is not None:
            return outcome
    if events(case, "off-the-bus") and not (found and all(gpu.index is not None for gpu in found)):
        return _failed(
            case,
            "a GPU has fallen off the bus, says the kernel log",
            ("kernel.log_events",),
            {"kernel.log_events": []},
            LIKELY,
        )
    shown = [gpu for gpu in found if gpu.index is not None]
    if shown:
        return case.passed("every GPU answers", shown[0].facts)
    if case.derived(answer).state == NO:
        return case.skipped("the driver does not answer, so it shows no GPU")
    if on_jetson(case):
        return case.skipped("a Jetson's GPU is on no bus")
    if case.fact("gpu.count").is_unknown and case.fact("smi.gpus").is_unknown:
        return case.undecided("neither NVML nor nvidia-smi was asked", ("gpu.count", "smi.gpus"))
    return case.skipped("the driver shows no GPU")


def _reported(case: Case) -> Optional[Outcome]:
    """The kernel log's own word counts whatever a table shows, which may be of before or of after a reboot."""
    xid = worst_xid(case, "lost")
    if xid is not None:
        where = f"GPU {xid.bus_id}" if xid.bus_id else "a GPU"
        effect: dict[str, object] = {xid.fact: [] if xid.fact == "kernel.log_events" else None}
        return _failed(case, f"{where} has fallen off the bus (Xid {xid.number})", (xid.fact,), effect, LIKELY)
    for name, words in (
        ("symptom.gpu_lost", "a GPU has fallen off the bus, says a message"),
        ("symptom.device_handle_unknown", "a GPU does not answer nvidia-smi any more: it fell off the bus, or hangs"),
    ):
        if case.fact(name).is_known:
            said = case.value(name)
            if str(said.get("reason", "")).lower().startswith("not found"):
                continue  # the driver never had it: CD109
            if "requires reset" in str(said.get("text", "")) and _memory_waits(case):
                continue  # CD115 has the reason for the reset
            which = f" ({said['gpu']})" if said.get("gpu") else ""
            facts = (name, "driver.smi_failure") if case.fact("driver.smi_failure").is_known else (name,)
            return _failed(case, words + which, facts, {name: None, "driver.smi_failure": None}, LIKELY)
    if case.value("driver.smi_failure") == "device-handle" and not _never_had(case):
        words = "a GPU does not answer nvidia-smi any more: it fell off the bus, or hangs"
        return _failed(case, words, ("driver.smi_failure",), {"driver.smi_failure": None}, LIKELY)
    return None


def _never_had(case: Case) -> bool:
    text = str(case.value("driver.smi_failure_text", "")).lower()
    return "not found" in text or case.fact("symptom.gpu_init_failed").is_known


def _memory_waits(case: Case) -> bool:
    parts = ("remap_pending", "retired_pending", "remap_failure")
    pending = any(case.value(f"gpu.{n}.{part}", False) for n in gpu_numbers(case.facts) for part in parts)
    return pending or worst_xid(case, "memory") is not None


def _failed(
    case: Case, message: str, evidence: tuple[str, ...], effect: dict[str, object], certainty: str = CERTAIN
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Power the machine off and on again",
                    "text": "End what uses the GPUs, shut down, switch the power off and on. If it is lost again, "
                    "check its power cables, its seat and its temperature; try another slot.",
                    "kind": "reboot",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("installing the driver or torch again: the card itself does not answer",),
    )
