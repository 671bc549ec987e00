"""No NVIDIA GPU in this machine

What it checks
    Whether any source shows an NVIDIA GPU: NVML, nvidia-smi, the PCI bus, /proc, the Windows device list, or, inside
    WSL, the libraries that Windows' driver lends.

Why it matters
    CUDA runs on NVIDIA GPUs alone. Without one, torch.cuda.is_available() is False on a machine where nothing else is
    wrong, and no driver, toolkit or wheel changes that.

How to fix
    On a laptop with switchable graphics, enable the NVIDIA card in the firmware or the vendor's tool and look again. In
    a virtual machine, the host must pass the card through. On a cluster, ask for a node with a GPU. To work on the
    processor alone, install torch from the CPU index: it is far smaller than the CUDA build.

References
    https://pytorch.org/get-started/locally/
    https://developer.nvidia.com/cuda-gpus
"""

from __future__ import annotations

from cudadoctor.derive.gpus import NONE, PRESENT, gpus, presence
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Rule

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

_OTHER_MAKERS = {"1002": "an AMD", "8086": "an Intel"}


def judge(case: Case) -> Outcome:
    seen = case.derived(presence)
    if seen.state == PRESENT:
        found = case.derived(gpus)
        names = ", ".join(gpu.label for gpu in found) or seen.reason
        return case.passed(names, seen.evidence, {"gpus": [gpu.label for gpu in found]})
    if seen.state != NONE:
        return case.undecided(f"cannot tell whether there is an NVIDIA GPU: {seen.reason}", seen.evidence)
    others = sorted({_OTHER_MAKERS[v] for v in case.value("pci.other_display", []) if v in _OTHER_MAKERS})
    beside = f"; it has {' and '.join(others)} one" if others else ""
    return case.failed(
        f"this machine has no NVIDIA GPU, so CUDA cannot work on it{beside}",
        (*seen.evidence, "pci.other_display") if others else seen.evidence,
        not_helping=("a driver, a CUDA toolkit or another torch build: there is no card for them to run on",),
    )
