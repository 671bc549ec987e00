"""No NVIDIA GPU in this machine

What it checks
    Whether any source shows an NVIDIA GPU: NVML, nvidia-smi, the PCI bus, /proc, the Windows device list, or, inside
    WSL, the libraries that Windows' driver lends. Cards that are held for virtual machines (vfio-pci) do not count:
    this system cannot use them.

Why it matters
    CUDA runs on NVIDIA GPUs alone. Without one, torch.cuda.is_available() is False on a machine where nothing else is
    wrong, and no driver, toolkit or wheel changes that.

How to fix
    On a laptop with switchable graphics, enable the NVIDIA card in the firmware or the vendor's tool and look again. In
    a virtual machine, the host must pass the card through. On a cluster, look inside a job that asked for a GPU: login
    nodes often have none. To work on the processor alone, install torch from the CPU index: it is far smaller than the
    CUDA build.

References
    https://pytorch.org/get-started/locally/
    https://developer.nvidia.com/cuda-gpus
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import LENT_TO_GUESTS, NONE, PRESENT, gpus, presence
from cudadoctor.derive.surroundings import built_for_rocm, driver_software, in_job, in_report, in_wsl
from cudadoctor.rules.api import ALLOCATION, ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD501",
    name="no-nvidia-gpu",
    title="No NVIDIA GPU in this machine",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    follows_from=("CD705",),
    precedence=10,
)

_BY_SLURMD = "$SLURMD_NODENAME"
_OTHER_MAKERS = {"1002": "an AMD", "8086": "an Intel"}

# What the bus shows once a card is there, whichever it is.
_A_CARD = {
    "pci.gpus": [{"address": "0000:01:00.0", "device_id": "", "class": "030000", "driver": "nvidia"}],
    "windows.gpus": [{"name": "NVIDIA GPU", "driver_version": None, "vendor_id": "10de", "device_id": None}],
}


def judge(case: Case) -> Outcome:
    seen = case.derived(presence)
    if seen.state == PRESENT:
        return case.passed(_names(case) or seen.reason, seen.evidence, {"gpus": [g.label for g in case.derived(gpus)]})
    if in_report(case) and built_for_rocm(case):
        return case.skipped("torch is built for AMD's ROCm, and the text shows no NVIDIA GPU")
    hosted = _in_a_hosted_notebook(case) if seen.state != NONE else None
    if hosted is not None:
        return hosted
    if seen.state != NONE:
        # Inside WSL the one thing that can be done is done in Windows.
        remedy = "; if it has a card, install NVIDIA's driver in Windows, then run wsl --shutdown"
        hint = remedy if in_wsl(case) and case.fact("driver.libcuda").value == [] else ""
        return case.undecided(f"cannot tell whether there is an NVIDIA GPU: {seen.reason}{hint}", seen.evidence)
    not_helping = ("a driver, a CUDA toolkit or another torch build: there is no card for them to run on",)
    if any(entry.get("driver") in LENT_TO_GUESTS for entry in case.value("pci.gpus", [])):
        return case.failed(
            f"{seen.reason}: this system cannot use it, a guest can", seen.evidence, not_helping=not_helping
        )
    if case.value("system.os") == "darwin":
        return case.failed("macOS has no CUDA: NVIDIA ships no driver for it", seen.evidence, not_helping=not_helping)
    if seen.evidence[0].startswith("symptom."):
        # A second card that nobody spoke of would be seen in nvidia-smi.
        return case.failed(
            f"{seen.reason}: CUDA cannot work there",
            seen.evidence,
            certainty=LIKELY,
            not_helping=not_helping,
        )
    if driver_software(case):
        return _switched_off(case, seen.evidence)
    # What Slurm's daemon starts on a node (a prolog, a health check) is in no job either, and no login node.
    if case.fact("scheduler.kind").is_known and not in_job(case) and case.fact("scheduler.node").source != _BY_SLURMD:
        return _on_login_node(case, seen.evidence)
    beside, fact = _others(case)
    return case.failed(
        f"this machine has no NVIDIA GPU, so CUDA cannot work on it{beside}",
        (*seen.evidence, fact) if beside else seen.evidence,
        not_helping=not_helping,
    )


# What is said in a notebook's machine that was lent without a GPU.
_NOTEBOOK = "symptom.hosted_notebook_named"
_WITHOUT = (
    "symptom.smi_not_found",
    "symptom.no_driver_found",
    "symptom.libcuda_missing",
    "symptom.smi_no_driver",
    "symptom.no_cuda_gpus",
)


def _in_a_hosted_notebook(case: Case) -> Optional[Outcome]:
    """A rented notebook brings its driver where it brings a GPU; None where none is spoken of."""
    trouble = tuple(name for name in _WITHOUT if case.fact(name).is_known)
    if not case.fact(_NOTEBOOK).is_known or not trouble:
        return None
    return case.failed(
        "the notebook's machine was lent without a GPU",
        (*trouble, _NOTEBOOK),
        certainty=LIKELY,
        blame=ALLOCATION,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Give the notebook a GPU",
                    "text": "Colab: Runtime > Change runtime type > a GPU. Kaggle: Settings > Accelerator > a GPU. The "
                    "session starts anew. If none is offered, the day's or week's share is used up.",
                    "kind": "job",
                    "id": "notebook-gpu",
                    "effect": {**_A_CARD, **dict.fromkeys(trouble)},
                },
            ),
        ),
        not_helping=("a driver or another torch build: the driver comes with the lent GPU",),
    )


_IN_A_CLUSTER = (
    "If this node has NVIDIA cards, they are off the PCI bus: lspci -d 10de: shows those that are on it, dmesg what "
    "became of the others. Switch the node off and on, not only reboot. On a login node, run cudadoctor inside a "
    "job that asked for a GPU."
)


def _switched_off(case: Case, seen: tuple[str, ...]) -> Outcome:
    """Who has installed a driver has, or had, a card."""
    shown = [name for name in ("driver.packages", "driver.smi_path", "driver.windows_version") if case.value(name)][:1]
    return case.failed(
        "this node shows no NVIDIA GPU, though a driver is installed: are the cards off the bus, or is it a login node?"
        if case.fact("scheduler.kind").is_known and not in_job(case)
        else "this machine shows no NVIDIA GPU, though a driver is installed: is the card switched off?",
        (*seen, *shown),
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Look for the card",
                    "text": _IN_A_CLUSTER
                    if case.fact("scheduler.kind").is_known
                    else "If this machine has an NVIDIA card, switch it on: prime-select or the maker's tool, or "
                    "the graphics setting of the firmware. In a virtual machine, the host passes it through.",
                    "kind": "setting",
                    "effect": _A_CARD,
                },
            ),
        ),
        not_helping=("another torch build: there is no card for it to run on",),
    )


def _names(case: Case) -> str:
    """The cards, each kind once: 8x NVIDIA H100 80GB HBM3."""
    labels = [gpu.label for gpu in case.derived(gpus)]
    counts = {label: labels.count(label) for label in labels}
    return ", ".join(label if count == 1 else f"{count}x {label}" for label, count in counts.items())


def _others(case: Case) -> tuple[str, str]:
    """What the machine has instead, and the fact that tells."""
    fact = "windows.gpus" if case.value("system.os") == "windows" else "pci.other_display"
    found = case.value(fact, [])
    vendors = [str(entry.get("vendor_id")) for entry in found] if fact == "windows.gpus" else found
    names = sorted({_OTHER_MAKERS[vendor] for vendor in vendors if vendor in _OTHER_MAKERS})
    return (f"; it has {' and '.join(names)} one" if names else "", fact)


def _on_login_node(case: Case, seen: tuple[str, ...]) -> Outcome:
    return case.failed(
        "this node has no NVIDIA GPU, and is in no job: run cudadoctor inside a job that asked for one",
        (*seen, "scheduler.kind", "scheduler.in_job"),
        blame=ALLOCATION,
        fixes=(Remedy("request-gpu", {"effect": _A_CARD}),),
        not_helping=("a driver or another torch build on this node: there is no card for them to run on",),
    )
