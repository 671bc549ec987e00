"""The loaded NVIDIA module and the driver's libraries differ

What it checks
    Whether NVML or nvidia-smi refuse with "Driver/library version mismatch", and which versions stand against each
    other: the loaded module (/sys/module/nvidia/version), and the library on disk.

Why it matters
    The driver's two halves must be of the very same version. After an update of the packages the old module stays
    loaded until a reboot; in a container, the image may have brought libraries of its own.

How to fix
    Reboot (or stop everything that uses the GPU, unload the module and load the new one). In a container, take the
    driver packages out of the image: the runtime mounts the host's libraries.

References
    https://docs.nvidia.com/deploy/nvml-api/
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
"""

from __future__ import annotations

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, in_wsl
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
_LIBRARY_FACTS = ("driver.nvml_library_version", "driver.smi_library_version", "driver.library_version")


def judge(case: Case) -> Outcome:
    if in_wsl(case) or case.value("system.os") == "windows":
        return case.skipped("only Linux has a module and libraries that can part")
    if case.derived(answer).state == YES:
        return case.passed("module and libraries agree: the driver answers", case.derived(answer).evidence)
    said = [
        name
        for name, hit in (
            ("driver.nvml_error", case.value("driver.nvml_error") == _NVML_MISMATCH),
            ("driver.smi_failure", case.value("driver.smi_failure") == "mismatch"),
        )
        if hit
    ]
    if said:
        return _failed(case, CERTAIN, tuple(said))
    module, library, fact = _versions(case)
    if module and library and module != library:
        return _failed(case, LIKELY, ("driver.module_version", fact))
    if case.fact("driver.nvml_error").is_known or case.fact("driver.smi_failure").is_known:
        return case.passed("the driver fails for another reason", ("driver.nvml_error", "driver.smi_failure"))
    if case.fact("driver.module_loaded").is_unknown and case.fact("driver.module_version").is_unknown:
        return case.undecided("cannot tell which module is loaded", ("driver.module_version",))
    return case.skipped("there are no two parts to compare")


def _versions(case: Case) -> tuple[str, str, str]:
    module = case.value("driver.module_version") or case.value("driver.procfs_version") or ""
    for event in events(case, "api-mismatch"):
        module = module or str(event.get("values", {}).get("module", ""))
    for fact in _LIBRARY_FACTS:
        if case.value(fact):
            return module, str(case.value(fact)), fact
    for event in events(case, "api-mismatch"):
        if event.get("values", {}).get("client"):
            return module, str(event["values"]["client"]), "kernel.log_events"
    return module, "", _LIBRARY_FACTS[0]


def _failed(case: Case, certainty: str, said: tuple[str, ...]) -> Outcome:
    module, library, fact = _versions(case)
    versions = ""
    if module and library and module != library:
        versions = f": the loaded module is {module}, the library is {library}"
    evidence = tuple(dict.fromkeys((*said, "driver.module_version", fact)))
    data = {"module": module or None, "library": library or None}
    if in_container(case):
        return case.failed(
            f"the container's NVIDIA libraries do not fit the host's driver{versions}",
            evidence,
            certainty=certainty,
            blame=ALLOCATION,
            data=data,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Take the driver's libraries out of the image",
                        "text": "Remove the nvidia-driver and libnvidia packages from the image: the container "
                        "runtime mounts the host's libraries. After a driver update on the host, start the "
                        "container again.",
                        "kind": "container",
                        "effect": {"driver.nvml_error": None, "driver.smi_failure": None, **_agree(module)},
                    },
                ),
            ),
        )
    return case.failed(
        f"the NVIDIA driver was changed and the old module is still loaded{versions}"
        if versions
        else "the loaded NVIDIA module and the driver's libraries are of different versions",
        evidence,
        certainty=certainty,
        data=data,
        fixes=(Remedy("reload-module", {}),),
        not_helping=("another torch build or toolkit: the two halves of the driver do not fit each other",),
    )


def _agree(module: str) -> dict[str, object]:
    return {"driver.library_version": module} if module else {}
