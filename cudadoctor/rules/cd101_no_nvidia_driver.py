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
from cudadoctor.derive.gpus import PRESENT, gpus, presence
from cudadoctor.derive.surroundings import driver_software, in_container, in_wsl
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD101",
    name="no-nvidia-driver",
    title="No NVIDIA driver is installed",
    severity=ERROR,
    blame=MACHINE,
    blocked_by=("CD102",),
    precedence=20,
)


def judge(case: Case) -> Outcome:
    reply = case.derived(answer)
    if reply.state == YES:
        return case.passed("a driver is installed and answers", reply.evidence)
    if in_wsl(case):
        return case.skipped("WSL uses the driver of Windows")
    seen = case.derived(presence)
    if seen.state != PRESENT:
        return case.skipped("no NVIDIA GPU is known to be here")
    if case.value("driver.module_loaded", False):
        return case.passed("a driver is loaded", ("driver.module_loaded", "driver.module_version"))
    if in_container(case):
        if case.fact("driver.module_loaded").is_unknown:
            return case.undecided("the container does not show the host's modules", ("driver.module_loaded",))
        return case.failed(
            "the host of this container has no NVIDIA driver loaded",
            (*seen.evidence, "driver.module_loaded"),
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
    if driver_software(case):
        return case.skipped("a driver is installed; why it is not at work is for other rules")
    if reply.state != NO:
        return case.undecided(f"cannot tell whether a driver is installed: {reply.reason}", reply.evidence)
    found = case.derived(gpus)
    card = found[0].label if found else "an NVIDIA GPU"
    on_windows = case.value("system.os") == "windows"
    return case.failed(
        f"no NVIDIA driver is installed for the {card}",
        (*seen.evidence, "driver.nvml_library", "driver.smi_path"),
        fixes=(Remedy("install-windows-driver" if on_windows else "install-driver", {}),),
        not_helping=("a CUDA toolkit or another torch build: neither brings a driver",),
    )
