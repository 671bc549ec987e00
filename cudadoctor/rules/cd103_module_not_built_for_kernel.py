"""The NVIDIA module was not built for the running kernel

What it checks
    Whether a driver is installed while the running kernel has no NVIDIA module: there are module files or DKMS builds
    for other kernels, or only the user-space part. Also whether an update has replaced the running kernel, whose
    folder under /lib/modules is then gone.

Why it matters
    After a kernel update the module must be built again. Where that failed (no headers, a compiler that does not fit)
    or was skipped, the machine boots without a driver, and nvidia-smi cannot communicate with it.

How to fix
    Install the headers of the running kernel and let DKMS build the module; or boot the kernel that has one. After an
    update that replaced the running kernel, reboot. Where only programs and libraries are there (nvidia-utils, say),
    install the driver's package.

References
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    https://github.com/dell/dkms
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import PRESENT, expected, gpus, presence
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import driver_software, in_report, maybe_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD103",
    name="module-not-built-for-kernel",
    title="The NVIDIA module was not built for the running kernel",
    severity=ERROR,
    blame=MACHINE,
    precedence=13,
)

_FILES = ("system.kernel_release", "kernel.nvidia_module_files", "kernel.dkms")


def judge(case: Case) -> Outcome:
    if not maybe_own_linux(case):
        return case.skipped("modules are built on Linux machines of their own")
    if case.derived(answer).state == YES or case.value("driver.module_loaded", False):
        return case.passed("the module is loaded", ("driver.module_loaded",))
    if case.derived(expected).state != PRESENT:
        return case.skipped("no NVIDIA GPU is known to be here")
    running = case.value("system.kernel_release")
    files = case.fact("kernel.nvidia_module_files")
    if in_report(case):
        outcome = _reported(case, running)
        if outcome is not None:
            return outcome
    if running is None or not files.is_known:
        return case.undecided(
            "cannot tell for which kernels there is a module", ("kernel.nvidia_module_files", "system.kernel_release")
        )
    if any(entry.get("kernel") == running for entry in files.get()):
        if events(case, "wrong-kernel"):
            why = "its file was built for another"
            return _failed(case, running, why, CERTAIN, (*_FILES, "kernel.log_events"), "build-module")
        return case.passed(f"there is a module for {running}", _FILES)
    others = sorted({str(entry.get("kernel")) for entry in files.get()})
    if others:
        installed = case.fact("kernel.installed")
        if installed.is_known and running not in installed.get():
            return _replaced(case, running, others[-1])
        why = f"there is one for {others[-1]}" + (" and others" if len(others) > 1 else "")
        return _failed(case, running, why, CERTAIN, _FILES, "build-module")
    if case.value("kernel.dkms"):
        version = case.value("kernel.dkms")[0].get("version")
        return _failed(case, running, f"DKMS has {version} and did not build it", CERTAIN, _FILES, "build-module")
    if not driver_software(case):
        return case.skipped("no driver is installed")
    if any(gpu.bound_driver not in (None, "nvidia") for gpu in case.derived(gpus)):
        return case.skipped("another driver holds the card")
    found = ("driver.packages", "driver.library_version")
    why = "only the driver's programs and libraries are there"
    return _failed(case, running, why, LIKELY, (*_FILES, *found), "install-driver")


_SAID = (
    ("symptom.module_build_failed", "building it failed", CERTAIN),
    ("symptom.module_wrong_kernel", "its file was built for another", CERTAIN),
    ("symptom.module_not_found", "modprobe finds none", LIKELY),
)
_NO_ANSWER = ("driver.smi_failure", "symptom.smi_no_driver", "symptom.nvml_driver_not_loaded", "driver.module_loaded")


def _reported(case: Case, running: Optional[str]) -> Optional[Outcome]:
    """What a text says. That DKMS has nothing for the running kernel counts only where the driver fails."""
    told = [str((case.value(symptom) or {}).get("kernel") or "") for symptom, _, _ in _SAID]
    kernel = running or next(filter(None, told), "")
    if events(case, "key-rejected") or case.fact("symptom.module_key_rejected").is_known:
        return None
    for symptom, why, certainty in _SAID:
        if case.fact(symptom).is_known and _is_nvidias(case, case.value(symptom)):
            return _failed(case, kernel, why, certainty, (symptom, *_known(case, _FILES)), "build-module")
    if events(case, "wrong-kernel"):
        why = "its file was built for another"
        return _failed(case, kernel, why, CERTAIN, ("kernel.log_events", *_known(case, _FILES)), "build-module")
    if events(case, "module-not-found"):
        return _failed(case, kernel, "modprobe finds none", LIKELY, ("kernel.log_events",), "build-module")
    silent = _known(case, _NO_ANSWER)
    built = [entry for entry in case.value("kernel.dkms", []) if entry.get("status") == "installed"]
    listed = case.value("kernel.dkms", [])
    if running is None or not listed or not silent:
        return None
    if any(entry.get("kernel") == running for entry in built):
        return case.passed(f"DKMS has built it for {running}", ("kernel.dkms",))
    others = sorted({str(entry.get("kernel")) for entry in built if entry.get("kernel")})
    why = f"DKMS has built it for {others[-1]} only" if others else "DKMS has not built it"
    return _failed(case, running, why, LIKELY, (*silent, *_known(case, _FILES)), "build-module")


def _is_nvidias(case: Case, said: Mapping[str, Any]) -> bool:
    """DKMS builds other modules, too, and its errors do not name the module. Where nothing else in the text is about
    NVIDIA, it is none of ours."""
    module = str(said.get("module", ""))
    if module or "nvidia" in str(said.get("text", "")).lower():
        return "nvidia" in (module or "nvidia")
    return bool(
        case.derived(presence).state == PRESENT
        or driver_software(case)
        or _known(case, _NO_ANSWER)
        or case.value("kernel.log_events")
        or case.fact("symptom.module_not_found").is_known
        or case.fact("torch.version").is_known
    )


def _known(case: Case, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if case.fact(name).is_known)


def _failed(case: Case, running: str, why: str, certainty: str, evidence: tuple[str, ...], remedy: str) -> Outcome:
    headers = ""
    if case.fact("kernel.headers").value is False and remedy == "build-module":
        headers = " and no headers to build it"
        evidence = (*evidence, "kernel.headers")
    named = {"kernel": running} if running and remedy == "build-module" else {}
    fixes: tuple[Fix, ...] = (Remedy(remedy, named),)
    # Without NVIDIA's module, nouveau has taken the card, and lets go of it at a reboot only.
    if any(gpu.bound_driver == "nouveau" for gpu in case.derived(gpus)):
        fixes = (*fixes, Remedy("blacklist-nouveau", {}))
    return case.failed(
        f"{f'kernel {running}' if running else 'the running kernel'} has no NVIDIA module{headers}: {why}",
        evidence,
        certainty=certainty,
        fixes=fixes,
        not_helping=("another torch build: nothing works before the module loads",),
    )


def _replaced(case: Case, running: str, newer: str) -> Outcome:
    """The update has taken the running kernel's folder away; a module can be neither built nor loaded for it."""
    return case.failed(
        f"kernel {running} still runs, and an update replaced it: the NVIDIA module is there for {newer}",
        (*_FILES, "kernel.installed"),
        fixes=(
            Remedy(
                "reboot",
                {
                    "why": f"the machine then runs {newer}, whose module is there",
                    "effect": {"system.kernel_release": newer, "driver.module_loaded": True},
                },
            ),
        ),
        not_helping=("installing the driver again: the files of the running kernel are gone",),
    )
