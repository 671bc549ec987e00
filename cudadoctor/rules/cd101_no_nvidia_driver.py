"""No NVIDIA driver is installed

What it checks
    Whether an NVIDIA card is on the bus while nothing of a driver is there: no kernel module, no library, no
    nvidia-smi. Where a better reason is known (nouveau, a module that was not built, Secure Boot), that rule names it.

Why it matters
    The driver is the first link: without it no torch build and no toolkit can use the card. A CUDA toolkit or a
    torch wheel does not bring one.

How to fix
    Install the driver that your distribution packages (cudadoctor fix prints the command), then reboot. On Windows,
    take it from NVIDIA's page or app.

References
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    https://www.nvidia.com/drivers
"""

from __future__ import annotations

from cudadoctor.derive.driver import NO, YES, answer
from cudadoctor.derive.gpus import NONE, PRESENT, gpus, presence
from cudadoctor.derive.surroundings import driver_software, in_container, in_report, in_wsl, on_jetson
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD101",
    name="no-nvidia-driver",
    title="No NVIDIA driver is installed",
    severity=ERROR,
    blame=MACHINE,
    blocked_by=("CD102",),
    # A container that was given no GPU has no driver either: it is the host's.
    follows_from=("CD701",),
    precedence=20,
)


def judge(case: Case) -> Outcome:
    reply = case.derived(answer)
    if reply.state == YES:
        return case.passed("a driver is installed and answers", reply.evidence)
    if in_wsl(case):
        return case.skipped("WSL uses the driver of Windows")
    if on_jetson(case):
        return case.skipped("a Jetson's driver is part of its system")
    seen = case.derived(presence)
    if in_report(case):
        return _reported(case, seen.state)
    if seen.state != PRESENT:
        return case.skipped("no NVIDIA GPU is known to be here")
    if case.value("driver.module_loaded", False):
        return case.passed("a driver is loaded", ("driver.module_loaded", "driver.module_version"))
    if in_container(case):
        return _in_container(case, seen.evidence)
    if driver_software(case):
        return case.skipped("a driver is installed; why it is not at work is for other rules")
    if reply.state != NO:
        return case.undecided(f"cannot tell whether a driver is installed: {reply.reason}", reply.evidence)
    found = case.derived(gpus)
    card = found[0].label if found else "NVIDIA GPU"
    on_windows = case.value("system.os") == "windows"
    return case.failed(
        f"no NVIDIA driver is installed for the {card}",
        (*seen.evidence, "driver.nvml_library", "driver.smi_path"),
        fixes=(Remedy("install-windows-driver" if on_windows else "install-driver", {}),),
        not_helping=("a CUDA toolkit or another torch build: neither brings a driver",),
    )


# The shell and programs say these where nothing of a driver is installed.
_NOT_FOUND = ("symptom.smi_not_found", "symptom.nvml_library_missing")
_NO_LIBCUDA = ("symptom.no_driver_found", "symptom.libcuda_missing", "symptom.cuda_init_failed")


def _reported(case: Case, state: str) -> Outcome:
    """What a text says: that nvidia-smi is not there is much, and may be said in a container, too."""
    lent = case.fact("symptom.hosted_notebook_named").is_known
    if lent or in_container(case) or case.fact("scheduler.kind").is_known or state == NONE:
        return case.skipped("whether the host has a driver is not told")
    if driver_software(case) or case.value("driver.module_loaded", False):
        return case.skipped("a driver is installed; why it is not at work is for other rules")
    if case.fact("driver.smi_failure").is_known or case.value("torch.cuda_available", False):
        return case.skipped("nvidia-smi is there")
    missing = [name for name in _NOT_FOUND if case.fact(name).is_known]
    also = [name for name in _NO_LIBCUDA if case.fact(name).is_known]
    unbound = [entry for entry in case.value("pci.gpus", []) if entry.get("driver") is None]
    on_windows = case.value("system.os") == "windows"
    if not missing and not (also and unbound):
        return case.undecided("whether a driver is installed is not told", ("driver.smi_path", "driver.packages"))
    shown = state == PRESENT
    return case.failed(
        "no NVIDIA driver seems to be installed: " + ("nvidia-smi is not found" if missing else "libcuda is not found"),
        (*missing, *also, *(("pci.gpus",) if unbound else ())),
        certainty=LIKELY if shown or (missing and also) else POSSIBLE,
        fixes=(Remedy("install-windows-driver" if on_windows else "install-driver", {}),),
        not_helping=("a CUDA toolkit or another torch build: neither brings a driver",),
    )


def _in_container(case: Case, seen: tuple[str, ...]) -> Outcome:
    loaded = case.fact("driver.module_loaded")
    if not loaded.is_known:
        return case.undecided("the container does not show the host's kernel modules", ("driver.module_loaded",))
    holders = [gpu.bound_driver for gpu in case.derived(gpus) if gpu.bound_driver not in (None, "nvidia")]
    beside = f" ({holders[0]} holds the card)" if holders else ""
    return case.failed(
        f"the host of this container has no NVIDIA driver loaded{beside}",
        (*seen, "driver.module_loaded"),
        certainty=LIKELY,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Install the driver on the host, not in the container",
                    "text": "The driver belongs to the host: install it there and start the container again.",
                    "kind": "driver",
                    "effect": {"driver.module_loaded": True},
                },
            ),
        ),
        not_helping=("installing a driver inside the container",),
    )
