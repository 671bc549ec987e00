"""The nouveau driver holds the GPU

What it checks
    Whether the open-source nouveau (or nova) module drives the NVIDIA card instead of NVIDIA's own. Where NVIDIA's
    module is missing for the running kernel (CD103) or refused (CD104), nouveau is what follows from that. A card that
    nouveau drives for a screen, beside one that NVIDIA's driver has, is no fault.

Why it matters
    Only one driver can own the card, and CUDA needs NVIDIA's. While nouveau holds it, nvidia-smi cannot communicate
    with the NVIDIA driver.

How to fix
    Keep nouveau from loading (a file in /etc/modprobe.d), build the initial ramdisk again, and reboot. If NVIDIA's
    driver is not installed yet, install it first: the distributions' packages bring the blacklist along.

References
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    https://nouveau.freedesktop.org/
"""

from __future__ import annotations

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import NONE, gpus, presence
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import driver_software, in_report, maybe_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD102",
    name="nouveau-in-use",
    title="The nouveau driver holds the GPU",
    severity=ERROR,
    blame=MACHINE,
    # Where NVIDIA's module is missing or refused, nouveau takes the card in its place.
    follows_from=("CD103", "CD104"),
    precedence=11,
)

# nova is nouveau's successor in the kernel and as much in the way.
_OPEN_SOURCE_DRIVERS = ("nouveau", "nova", "nova_core", "nova_drm")
_MODULE_REFUSES = (
    "needs-legacy-driver",
    "unsupported-gpu",
    "needs-open-module",
    "needs-proprietary-module",
    "off-the-bus",
)


def judge(case: Case) -> Outcome:
    if not maybe_own_linux(case):
        return case.skipped("nouveau is a matter of Linux on its own hardware")
    if case.derived(answer).state == YES:
        return case.passed("NVIDIA's driver is at work", case.derived(answer).evidence)
    if case.derived(presence).state == NONE:
        return case.skipped("no NVIDIA GPU is here")
    found = case.derived(gpus)
    holders = [gpu for gpu in found if gpu.bound_driver in _OPEN_SOURCE_DRIVERS]
    if any(gpu.bound_driver == "nvidia" for gpu in found):
        return case.passed("NVIDIA's driver has a card of its own", ("pci.gpus",))
    if holders:
        # Beside a card that it does not hold, it may be there for a screen only.
        certainty = CERTAIN if len(holders) == len(found) else LIKELY
        return _failed(case, f"{holders[0].bound_driver} holds the {holders[0].label}", "pci.gpus", certainty)
    modules = case.fact("kernel.modules")
    loaded = [name for name in modules.value or () if name in _OPEN_SOURCE_DRIVERS]
    # A line of the log may be older than the present state.
    taken = [event for event in events(case, "device-taken") if "nouveau" in str(event.get("values", {}))]
    if taken and (loaded or not modules.is_known):
        return _failed(case, "nouveau holds the GPU, says the kernel log", "kernel.log_events", CERTAIN)
    if loaded and not case.value("driver.module_loaded", False):
        return _failed(case, f"the {loaded[0]} module is loaded instead of NVIDIA's", "kernel.modules", LIKELY)
    refused = case.fact("symptom.driver_install_failed")
    if refused.is_known and in_report(case) and "nouveau" in str(refused.get().get("text", "")).lower():
        return _failed(
            case, "nouveau is in use, and the driver's installer refuses", "symptom.driver_install_failed", CERTAIN
        )
    said = case.fact("symptom.module_device_taken")
    # "No NVIDIA GPU found" is also said where the module does not serve the card: then the log says so.
    if said.is_known and in_report(case) and not events(case, *_MODULE_REFUSES):
        return _failed(case, "another driver, as a rule nouveau, holds the GPU", "symptom.module_device_taken", LIKELY)
    if modules.is_unknown and not case.fact("pci.gpus").is_known:
        return case.undecided("cannot tell which driver holds the card", ("kernel.modules", "pci.gpus"))
    return case.passed("nouveau is not in use", ("kernel.modules", "pci.gpus"))


def _failed(case: Case, what: str, fact: str, certainty: str) -> Outcome:
    blacklist = Remedy("blacklist-nouveau", {})
    files = case.fact("kernel.nvidia_module_files")
    running = case.value("system.kernel_release")
    is_built = any(entry.get("kernel") == running for entry in files.value or ())
    complete = driver_software(case) and (is_built or not files.is_known)
    fixes: tuple[Fix, ...] = (blacklist,) if complete else (Remedy("install-driver", {}), blacklist)
    pending = bool(case.value("kernel.nouveau_blacklisted_by")) and is_built
    when = ", which takes the card at the next start" if pending else ""
    return case.failed(
        f"{what}: CUDA needs NVIDIA's driver{when}",
        (fact, "driver.module_loaded", "kernel.nouveau_blacklisted_by"),
        certainty=certainty,
        fixes=fixes,
        not_helping=("another torch build: none can use a card that nouveau holds",),
    )
