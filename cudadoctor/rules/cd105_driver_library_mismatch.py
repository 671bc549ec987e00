"""The loaded NVIDIA module and the driver's libraries differ

What it checks
    Whether NVML or nvidia-smi refuse with "Driver/library version mismatch", and which versions stand against each
    other: the loaded module (/sys/module/nvidia/version), the library, and the module on disk for the running kernel.

Why it matters
    The driver's two halves must be of the very same version. After an update of the packages the old module stays
    loaded until a reboot; in a container, the image may have brought libraries of its own.

How to fix
    Reboot (or stop everything that uses the GPU, unload the module and load the new one). Where the module on disk is
    the old one too, the update was cut short, and a reboot changes nothing: install the driver's packages again. Start
    a container again; if that does not help, take the driver packages out of its image: the runtime mounts the host's
    libraries.

References
    https://docs.nvidia.com/deploy/nvml-api/
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, on_jetson
from cudadoctor.matrix import numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.rules.api import ALLOCATION, CERTAIN, ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD105",
    name="driver-library-mismatch",
    title="The loaded NVIDIA module and the driver's libraries differ",
    severity=ERROR,
    blame=MACHINE,
    precedence=14,
)

_NVML_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
_MODULE_FACTS = ("driver.module_version", "driver.procfs_version")
_LIBRARY_FACTS = ("driver.nvml_library_version", "driver.smi_library_version", "driver.library_version")


_SYMPTOMS = ("symptom.nvml_mismatch", "symptom.tensorflow_dso_mismatch")


class _Versions(NamedTuple):
    """The driver's parts: the module that is loaded, the library, the module file for the running kernel; and the facts
    that told."""

    module: Optional[str]
    library: Optional[str]
    on_disk: Optional[str]
    facts: tuple[str, ...]

    @property
    def differ(self) -> bool:
        return bool(self.module and self.library and self.module != self.library)


def judge(case: Case) -> Outcome:
    if in_wsl(case) or case.value("system.os") == "windows" or on_jetson(case):
        return case.skipped("only a Linux driver has a module and libraries that can part")
    if case.derived(answer).state == YES:
        return case.passed("module and libraries agree: the driver answers", case.derived(answer).evidence)
    said = [
        name
        for name, hit in (
            ("driver.nvml_error", case.value("driver.nvml_error") == _NVML_MISMATCH),
            ("driver.smi_failure", case.value("driver.smi_failure") == "mismatch"),
            *((name, case.fact(name).is_known) for name in _SYMPTOMS),
        )
        if hit
    ]
    versions = _versions(case)
    if said:
        return _failed(case, versions, CERTAIN, tuple(said))
    if case.fact("driver.nvml_error").is_known or case.fact("driver.smi_failure").is_known:
        return case.passed("the driver fails for another reason", ("driver.nvml_error", "driver.smi_failure"))
    if versions.differ:
        return _failed(case, versions, LIKELY, ())
    if case.fact("driver.module_loaded").is_unknown and case.fact("driver.module_version").is_unknown:
        return case.undecided("cannot tell which module is loaded", ("driver.module_version",))
    return case.skipped("there are no two parts to compare")


def _versions(case: Case) -> _Versions:
    logged = [event.get("values") or {} for event in events(case, "api-mismatch")]
    # TensorFlow names both: "kernel version 535.104.5 does not match DSO version 535.113.1".
    told = case.value("symptom.tensorflow_dso_mismatch") or {}
    if told.get("kernel"):
        logged.append({"module": told["kernel"], "client": told.get("library", ""), "fact": _SYMPTOMS[1]})
    module, module_fact = _first(case, _MODULE_FACTS, logged, "module")
    library, library_fact = _first(case, _LIBRARY_FACTS, logged, "client")
    running = case.value("system.kernel_release")
    here = [entry for entry in case.value("kernel.nvidia_module_files", []) if entry.get("kernel") == running]
    on_disk = here[0].get("version") if len({entry.get("version") for entry in here}) == 1 else None
    if in_report(case):
        in_packages = _packaged(case, _LIBRARY_PACKAGES)
        if library is None and in_packages:
            library, library_fact = in_packages, "driver.packages"
        on_disk = on_disk or _packaged(case, _MODULE_PACKAGES)
    facts = tuple(dict.fromkeys(fact for fact in (module_fact, library_fact) if fact))
    return _Versions(module, library, str(on_disk) if on_disk else None, facts)


_LIBRARY_PACKAGES = ("libnvidia-ml", "libnvidia-compute", "libcuda1", "nvidia-utils", "nvidia-smi")
_MODULE_PACKAGES = ("nvidia-kernel-", "nvidia-dkms", "linux-modules-nvidia", "akmod-nvidia")


def _packaged(case: Case, beginnings: tuple[str, ...]) -> Optional[str]:
    """The driver's version in the packages of that part: 525.85.12 of 525.85.12-1."""
    for package in case.value("driver.packages", []):
        version = str(package.get("version") or "").rpartition(":")[2].partition("-")[0]
        if str(package.get("name", "")).startswith(beginnings) and numbers(version) is not None:
            return version
    return None


def _first(
    case: Case, facts: tuple[str, ...], logged: list[dict[str, str]], key: str
) -> tuple[Optional[str], Optional[str]]:
    for fact in facts:
        if case.value(fact):
            return str(case.value(fact)), fact
    for values in logged:
        if values.get(key):
            return str(values[key]), values.get("fact", "kernel.log_events")
    return None, None


def _finish(case: Case, versions: _Versions) -> tuple[Remedy, ...]:
    """The rest of the update is installed."""
    parts = numbers(versions.library or "")
    if not in_report(case) or case.fact("system.distribution").is_known:
        return (Remedy("install-driver", {"branch": parts[0]} if parts else {}),)
    text = (
        "Let the package manager finish what was cut short. On Debian and Ubuntu:\n"
        "    sudo apt update && sudo apt --fix-broken install\n"
        "Then see that all packages of the driver have one version (dpkg -l | grep nvidia), and reboot."
    )
    effect: dict[str, object] = {"driver.smi_failure": None, "driver.nvml_error": None, "kernel.log_events": []}
    effect.update({name: None for name in _SYMPTOMS if case.fact(name).is_known})
    effect.update({name: versions.library for name in _MODULE_FACTS if case.fact(name).is_known})
    return (Remedy("manual", {"title": "Finish the update", "text": text, "kind": "driver", "effect": effect}),)


def _failed(case: Case, versions: _Versions, certainty: str, said: tuple[str, ...]) -> Outcome:
    shown = f": module {versions.module}, library {versions.library}" if versions.differ else ""
    evidence = tuple(dict.fromkeys((*said, *versions.facts))) or _MODULE_FACTS
    data = {"module": versions.module, "library": versions.library, "on_disk": versions.on_disk}
    if in_container(case):
        return case.failed(
            f"the container's NVIDIA libraries do not fit the host's driver{shown}",
            evidence,
            certainty=certainty,
            blame=ALLOCATION,
            data=data,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Take the driver's libraries out of the image",
                        "text": "Start the container again: after a driver update on the host it still has the old "
                        "libraries. If that does not help, remove the nvidia-driver and libnvidia packages from the "
                        "image: the container runtime mounts the host's libraries.",
                        "kind": "container",
                        "effect": {
                            "driver.nvml_error": None,
                            "driver.smi_failure": None,
                            **({"driver.library_version": versions.module} if versions.module else {}),
                            **{fact: versions.module for fact in versions.facts if fact in _LIBRARY_FACTS},
                        },
                    },
                ),
            ),
            not_helping=("another torch build: the two halves of the driver do not fit each other",),
        )
    not_helping = ["another torch build or toolkit: the two halves of the driver do not fit each other"]
    if versions.differ and versions.on_disk == versions.module:
        # The update was cut short: a reboot loads the same old module again.
        return case.failed(
            f"half of a driver update is missing{shown}, and the module on disk is the old one",
            (*evidence, "kernel.nvidia_module_files"),
            certainty=certainty,
            data=data,
            fixes=_finish(case, versions),
            not_helping=("a reboot: it loads the same old module again", *not_helping),
        )
    what = "the NVIDIA driver was updated and the old module is still loaded"
    if not versions.differ:
        what = "the loaded NVIDIA module and the driver's libraries are of different versions"
    return case.failed(
        what + shown,
        evidence,
        certainty=certainty,
        data=data,
        fixes=(Remedy("reload-module", {}),),
        not_helping=tuple(not_helping),
    )
