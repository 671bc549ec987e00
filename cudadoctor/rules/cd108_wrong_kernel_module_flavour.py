"""The kernel module is of the wrong flavour for this GPU

What it checks
    Whether the loaded NVIDIA module is the open or the proprietary one, where the GPU works with one of them only.

Why it matters
    NVIDIA ships two kernel modules of the same driver. Cards from Blackwell on, and Grace Hopper, need the open one;
    cards before Turing need the proprietary one. With the wrong one the driver loads and finds no devices.

How to fix
    Install the other flavour of the same driver version (on Ubuntu nvidia-driver-580-open instead of
    nvidia-driver-580, say) and reboot.

References
    https://github.com/NVIDIA/open-gpu-kernel-modules
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from cudadoctor.derive.gpus import Gpu, gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, on_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD108",
    name="wrong-kernel-module-flavour",
    title="The kernel module is of the wrong flavour for this GPU",
    severity=ERROR,
    blame=MACHINE,
    precedence=17,
)


def judge(case: Case) -> Outcome:
    if not on_own_linux(case) and not in_container(case):
        return case.skipped("only Linux has two kernel modules")
    found = case.derived(gpus)
    left_out = [gpu for gpu in found if gpu.index is None]
    if not found:
        return case.skipped("no NVIDIA GPU is known to be here")
    if not left_out:
        return case.passed("the module serves every card", found[0].facts)
    if events(case, "needs-open-module"):
        return _failed(case, left_out[0], "open", CERTAIN, ("kernel.log_events", "pci.gpus"))
    if events(case, "needs-proprietary-module"):
        return _failed(case, left_out[0], "proprietary", CERTAIN, ("kernel.log_events", "pci.gpus"))
    flavour = case.fact("driver.module_flavour")
    if flavour.is_absent:
        return case.skipped("no module is loaded")
    if not flavour.is_known:
        return case.undecided(f"cannot tell the module's flavour: {flavour.reason}", ("driver.module_flavour",))
    for gpu in left_out:
        needed = _needed(case, gpu)
        if needed and needed != flavour.get():
            return _failed(case, gpu, needed, LIKELY, ("driver.module_flavour", *gpu.facts))
    return case.passed(f"the {flavour.get()} module suits the card", ("driver.module_flavour", *found[0].facts))


def _needed(case: Case, gpu: Gpu) -> str:
    """The only flavour that this card works with, or an empty text."""
    product = case.matrix.gpu_by_pci(gpu.pci_device_id).exact if gpu.pci_device_id else None
    if product is not None and product.modules in ("open", "proprietary"):
        return str(product.modules)
    if gpu.compute_capability.is_known:
        architecture = case.matrix.architecture(gpu.compute_capability.get())
        if architecture is not None and architecture.modules in ("open", "proprietary"):
            return str(architecture.modules)
    return ""


def _failed(case: Case, gpu: Gpu, needed: str, certainty: str, evidence: tuple[str, ...]) -> Outcome:
    other = "proprietary" if needed == "open" else "open"
    served = [card for card in case.derived(gpus) if card.index is not None]
    bound = [card for card in served if _needed(case, card) == other]
    if bound:
        # Installing the other module would only swap which of the two works.
        return case.failed(
            f"no kernel module serves both cards: the {gpu.label} needs the {needed} one, "
            f"the {bound[0].label} the {other} one, which is installed",
            evidence,
            certainty=certainty,
            severity=WARNING,
            data={"needed": needed},
            not_helping=(f"the {needed} module: the {bound[0].label} would stop working",),
        )
    return case.failed(
        f"the {gpu.label} needs the {needed} kernel module, and the {other} one is installed",
        evidence,
        certainty=certainty,
        severity=WARNING if served else None,
        data={"needed": needed},
        fixes=(Remedy(f"install-{needed}-kernel-module", {}),),
        not_helping=("another version of the same flavour",),
    )
