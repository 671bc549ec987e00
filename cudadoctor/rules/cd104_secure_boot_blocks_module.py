"""Secure Boot keeps the NVIDIA module out

What it checks
    Whether the kernel refused the NVIDIA module because its signature is missing or its key is not enrolled: by the
    kernel log. Where nobody may read that, Secure Boot being on while a module that was built on this machine lies on
    disk unloaded makes it likely; of a module that the distribution signed it is only possible.

Why it matters
    With Secure Boot the kernel loads only modules whose key the firmware knows. A module that DKMS built is signed with
    a key of this machine, which has to be enrolled once, at a screen that the firmware shows at boot.

How to fix
    Enrol the key: mokutil asks for a password, and the blue screen at the next boot asks for it again. If that screen
    was missed, do it once more. Where it never comes, the machine starts without shim, which would show it: start by
    shim, or sign the module with a key that is trusted. Switching Secure Boot off in the firmware works too, and lowers
    the machine's guard.

References
    https://wiki.ubuntu.com/UEFI/SecureBoot
    https://wiki.debian.org/SecureBoot
"""

from __future__ import annotations

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import PRESENT, expected, gpus, presence
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import driver_software, in_report, maybe_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD104",
    name="secure-boot-blocks-module",
    title="Secure Boot keeps the NVIDIA module out",
    severity=ERROR,
    blame=MACHINE,
    precedence=12,
)

# Somebody tells of the blue screen, and that they went on without it.
_SKIPPED = "symptom.mok_not_enrolled"

# The screen never comes, or the machine starts by keys of its owner's own.
_NO_SHIM = ("symptom.mok_screen_missing", "symptom.own_boot_keys")

# Where modules lie that were built on this machine; the distribution signs its own with a key that the firmware knows.
_BUILT_HERE = ("/updates/", "/extra/", "/misc/", "/weak-updates/")


def judge(case: Case) -> Outcome:
    if not maybe_own_linux(case):
        return case.skipped("Secure Boot checks the modules of Linux machines of their own")
    if case.derived(answer).state == YES or case.value("driver.module_loaded", False):
        return case.passed("the module is loaded", ("driver.module_loaded",))
    if case.derived(expected).state != PRESENT:
        return case.skipped("no NVIDIA GPU is known to be here")
    said = case.fact("symptom.module_key_rejected")
    if said.is_known and in_report(case):
        words = str(said.get().get("text", "")).lower()
        facts = ("symptom.module_key_rejected", "kernel.secure_boot")
        if "nvidia" in words:
            return _failed(case, CERTAIN if "could not insert" in words else LIKELY, facts)
        # A line that names no module may be about any.
        ours = case.fact("driver.smi_failure").is_known or case.derived(presence).state == PRESENT
        return _failed(case, LIKELY if ours or driver_software(case) else POSSIBLE, facts)
    if case.fact(_SKIPPED).is_known and in_report(case):
        fails = case.value("kernel.secure_boot", False) and case.fact("driver.smi_failure").is_known
        return _failed(case, LIKELY if fails else POSSIBLE, (_SKIPPED, "kernel.secure_boot"))
    secure_boot = case.fact("kernel.secure_boot")
    running = case.value("system.kernel_release")
    files = case.fact("kernel.nvidia_module_files")
    on_disk = [entry for entry in files.value or () if entry.get("kernel") == running]
    rejected = events(case, "key-rejected")
    if any(str(event.get("values", {}).get("module", "")).startswith("nvidia") for event in rejected):
        return _failed(case, CERTAIN, ("kernel.log_events", "kernel.secure_boot"))
    # A line that names no module may be about any, so there must be one of NVIDIA's that could have been meant.
    if rejected and (on_disk or not files.is_known):
        return _failed(case, LIKELY, ("kernel.log_events", "kernel.nvidia_module_files", "kernel.secure_boot"))
    if secure_boot.is_absent or secure_boot.value is False:
        return case.passed("Secure Boot is off", ("kernel.secure_boot",))
    if files.is_known and not on_disk:
        return case.skipped("there is no module for the running kernel that could be refused")
    if not secure_boot.is_known:
        return case.undecided(f"cannot tell whether Secure Boot is on: {secure_boot.reason}", ("kernel.secure_boot",))
    if not files.is_known or in_report(case):
        return case.undecided(
            "Secure Boot is on; whether there is a module that it could refuse is not known",
            ("kernel.secure_boot", "kernel.nvidia_module_files"),
        )
    if any(gpu.bound_driver not in (None, "nvidia") for gpu in case.derived(gpus)):
        return case.skipped("another driver holds the card")
    if case.value("kernel.nvidia_blacklisted_by"):
        return case.skipped("a setting keeps the module from loading")
    if case.fact("kernel.log_events").is_known:
        return case.passed("Secure Boot is on, and the kernel log tells of no refusal", ("kernel.log_events",))
    built_here = any(place in str(entry.get("path", "")) for entry in on_disk for place in _BUILT_HERE)
    evidence = ("kernel.secure_boot", "kernel.nvidia_module_files", "driver.module_loaded")
    return _failed(case, LIKELY if built_here else POSSIBLE, evidence)


def _failed(case: Case, certainty: str, evidence: tuple[str, ...]) -> Outcome:
    in_vain = tuple(name for name in _NO_SHIM if case.fact(name).is_known)
    evidence = (*evidence, *in_vain)
    # How sure that is says the certainty, which every format shows.
    return case.failed(
        "Secure Boot keeps the NVIDIA module from loading: the key that signed it is not enrolled",
        evidence,
        certainty=certainty,
        fixes=(_without_shim(in_vain) if in_vain else Remedy("enroll-mok", {}),),
        not_helping=("installing the driver again, or another torch build: the kernel refuses the module's signature",),
    )


def _without_shim(symptoms: tuple[str, ...]) -> Remedy:
    """mokutil only leaves a request, which shim carries out at the next start: where no shim starts, nobody does."""
    return Remedy(
        "manual",
        {
            "title": "Sign the nvidia module with a key that this start trusts",
            "text": "mokutil only leaves a request: shim, the first program of most distributions' start, shows the "
            "screen and enrols the key. A start without shim (systemd-boot or a unified kernel image with keys of "
            "your own) never shows it. One of three: start by shim and enrol again; have DKMS sign with a key that "
            "your kernel trusts (mok_signing_key and mok_certificate in /etc/dkms/framework.conf) and build the module "
            "anew; turn Secure Boot off in the firmware.",
            "kind": "kernel",
            "needs": ("root", "reboot"),
            "id": "sign-module",
            "effect": {**dict.fromkeys(symptoms), "symptom.module_key_rejected": None, "driver.module_loaded": True},
        },
    )
